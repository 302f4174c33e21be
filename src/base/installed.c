/*
 * installed.c
 *		Where the module was loaded from, and where the files are that belong to it.
 *
 * The module, the engine's program and the library of the spheroid are installed
 * together, and fit each other.  The module may have been loaded from any folder:
 * by dynamic_library_path, by a full path in shared_preload_libraries, or, from
 * PostgreSQL 18 on, by extension_control_path.  So the others are looked for
 *
 *	1.	in the folder from which the module was loaded, as it was named then,
 *	2.	in the folder in which the module's file lies, if that name is a link's,
 *	3.	in PostgreSQL's folder of libraries.
 *
 * The first file of its name is taken, whether or not it can be executed or
 * loaded: one farther down may be of another version.  It is as trusted as the
 * module beside it, whose code runs in the server.
 */
#include "postgres.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include "miscadmin.h"

#include "base/installed.h"

const char *
geonn_module_file(void)
{
	Dl_info		module;

	/* any address of the module would do */
	if (dladdr((void *) geonn_module_file, &module) == 0 || module.dli_fname == NULL)
		elog(ERROR, "could not find the file of geonn's module");
	return module.dli_fname;
}

static char *
beside(const char *file, const char *name)
{
	char	   *folder = pstrdup(file);

	get_parent_directory(folder);
	return psprintf("%s/%s", folder, name);
}

char *
geonn_installed_file(const char *name)
{
	const char *module = geonn_module_file();
	char	   *expected = beside(module, name);
	char		file[PATH_MAX];
	char	   *path;

	if (access(expected, F_OK) == 0)
		return expected;
	if (realpath(module, file) != NULL)
	{
		path = beside(file, name);
		if (access(path, F_OK) == 0)
			return path;
	}
	path = psprintf("%s/%s", pkglib_path, name);
	return access(path, F_OK) == 0 ? path : expected;
}
