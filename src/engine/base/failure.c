/*
 * failure.c
 *		The reason why an operation of the engine failed.
 */
#include "engine/base/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/channel.h"

bool
fail(struct failure *failure, enum geonn_error_code code, const char *format,...)
{
	va_list		arguments;

	memset(failure, 0, sizeof(*failure));
	failure->code = code;
	va_start(arguments, format);
	vsnprintf(failure->message, sizeof(failure->message), format, arguments);
	va_end(arguments);
	return false;
}

void
fail_detail(struct failure *failure, const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(failure->detail, sizeof(failure->detail), format, arguments);
	va_end(arguments);
}

void
fail_hint(struct failure *failure, const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(failure->hint, sizeof(failure->hint), format, arguments);
	va_end(arguments);
}

void
fail_reason(struct failure *failure, int reason)
{
	failure->reason = reason;
	fail_detail(failure, "%s", strerror(reason));
	if (reason == EMFILE)
		fail_hint(failure, "Run fewer searches at a time, or raise the limit on open files of the server's processes: LimitNOFILE of its systemd unit, or \"ulimit -n\" before it starts.");
	else if (reason == ENFILE)
		fail_hint(failure, "Run fewer searches at a time, or raise the limit on open files of the whole system, fs.file-max.");
	else if (reason == ETOOMANYREFS)
		fail_hint(failure, GEONN_CROWDED_HINT);
	else if (reason == EAGAIN)
		fail_hint(failure, "Raise the limits on processes, which count threads, too: \"ulimit -u\" of the server's user, TasksMax of its systemd unit, or the pids limit of its container.");
}
