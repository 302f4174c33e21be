/*
 * installed.c
 *		Where the module was loaded from, and where the engine's program is.
 *
 * Module and engine are installed together, and fit each other.  The module may
 * have been loaded from any folder: by dynamic_library_path, by a full path in
 * shared_preload_libraries, or, from PostgreSQL 18 on, by extension_control_path.
 * So the program is looked for
 *
 *	1.	in the folder from which the module was loaded, as it was named then,
 *	2.	in the folder in which the module's file lies, if that name is a link's,
 *	3.	in PostgreSQL's folder of libraries.
 *
 * The first file of its name is taken, whether or not it can be executed: one
 * farther down may be of another version.  The program is as trusted as the
 * module beside it, whose code runs in the server.
 */
#include "postgres.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include "miscadmin.h"

#include "supervisor/files.h"
#include "supervisor/installed.h"

const char *
geonn_module_file(void)
{
	Dl_info		module;

	/* any address of the module would do */
	if (dladdr((void *) geonn_module_file, &module) == 0 || module.dli_fname == NULL)
		elog(ERROR, "could not find the file of geonn's module");
	return module.dli_fname;
}

/*
 * The program's path in a folder.
 */
static char *
program_in(const char *folder)
{
	return psprintf("%s/%s", folder, GEONN_ENGINE_PROGRAM);
}

/*
 * The program's path beside a file.
 */
static char *
program_beside(const char *file)
{
	char	   *folder = pstrdup(file);

	get_parent_directory(folder);
	return program_in(folder);
}

char *
geonn_engine_program(void)
{
	const char *module = geonn_module_file();
	char	   *beside = program_beside(module);
	char		file[PATH_MAX];
	char	   *program = beside;

	if (access(program, F_OK) == 0)
		return program;
	if (realpath(module, file) != NULL)
	{
		program = program_beside(file);
		if (access(program, F_OK) == 0)
			return program;
	}
	program = program_in(pkglib_path);
	return access(program, F_OK) == 0 ? program : beside;
}
