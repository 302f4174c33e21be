/*
 * engine_version.c
 *		The error that the engine has another version than this session's
 *		module, with the hint that mends it.
 *
 * Module and engine are installed together, and talk only to the same
 * version.  An installation replaces the files of both but no process: a
 * session keeps the module that it has loaded, the supervisor the one with
 * which it was launched, and the engine runs on.  So any of three versions can
 * differ from the other two: this session's, the engine's, and the installed
 * one, which the program beside the module prints.  Any of them may be the
 * oldest: administrators also go back to an older version.
 *
 * Where geonn is preloaded, sessions and supervisor have the module of the
 * server's start.  If that is the installed version, it is enough to replace
 * the engine; otherwise only a restart of the server helps.
 *
 * Where it is not preloaded, the supervisor may be as old as the engine, and
 * unable to talk to another one.  So it has to end with the engine, and the
 * next statement launches both.  A session whose module is not the installed
 * version must connect again.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "storage/fd.h"

#include "client/engine_version.h"
#include "common/protocol.h"
#include "base/installed.h"
#include "supervisor/state.h"
#include "supervisor/supervisor.h"

/* a version, as the program prints it */
#define VERSION_FORMAT	"%31s"
#define VERSION_ROOM	32

/* Ask the installed program for its version.  Returns false if the program does not run. */
static bool
read_installed_version(const char *program, char *version)
{
	StringInfoData command;
	FILE	   *output;
	bool		is_read;

	/* Quote the path for the shell, and write each quote in it as '\''. */
	initStringInfo(&command);
	for (const char *c = program; *c != '\0'; c++)
	{
		if (*c == '\'')
			appendStringInfoString(&command, "'\\''");
		else
			appendStringInfoChar(&command, *c);
	}
	output = OpenPipeStream(psprintf("'%s' --version 2>/dev/null", command.data), PG_BINARY_R);

	if (output == NULL)
		return false;
	is_read = fscanf(output, GEONN_ENGINE_PROGRAM " " VERSION_FORMAT, version) == 1;
	return ClosePipeStream(output) == 0 && is_read;
}

static int
hint_of_preloaded(bool module_is_installed, pid_t engine)
{
	if (module_is_installed)
		return errhint("End the engine with \"kill %d\"; the next statement starts the installed one.",
					   (int) engine);
	return errhint("Restart the server: as geonn is in shared_preload_libraries, all sessions have the module of the server's start.");
}

static int
hint_of_launched(bool module_is_installed, bool engine_is_installed, pid_t supervisor)
{
	/* an engine ends with its supervisor */
	if (supervisor == 0)
		return errhint("Run the statement again.");
	if (engine_is_installed)
		return errhint("Connect again, for the installed module. If this error comes again, module and engine are installed in different versions: install geonn again.");
	if (module_is_installed)
		return errhint("End the geonn supervisor with \"kill %d\", and the engine with it; the next statement starts the installed ones.",
					   (int) supervisor);
	return errhint("End the geonn supervisor with \"kill %d\", and the engine with it; then connect again. The next statement starts the installed ones.",
				   (int) supervisor);
}

void
geonn_raise_other_version(const char *release, pid_t engine)
{
	char		installed[VERSION_ROOM];
	const char *program = geonn_installed_file(GEONN_ENGINE_PROGRAM);
	bool		is_known = read_installed_version(program, installed);
	bool		module_is_installed = is_known && strcmp(installed, GEONN_VERSION) == 0;
	bool		engine_is_installed = is_known && strcmp(installed, release) == 0;
	pid_t		supervisor = geonn_state_supervisor();

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("geonn engine is version %s, this session's module is version %s",
					release[0] != '\0' ? release : "unknown", GEONN_VERSION),
			 is_known ? errdetail("The installed engine is version %s.", installed) :
			 errdetail("The installed engine, \"%s\", does not run.", program),
			 !is_known ? errhint("Install geonn again and restart the server.") :
			 geonn_preloaded ?
			 hint_of_preloaded(module_is_installed, engine) :
			 hint_of_launched(module_is_installed, engine_is_installed, supervisor)));
}
