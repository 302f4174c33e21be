/*
 * log.c
 *		The engine's log.
 */
#include "engine/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {
	[LOG_NOTE] = "LOG",
	[LOG_WARNING] = "WARNING",
	[LOG_ERROR] = "ERROR"
};

void
log_line(enum log_level level, const char *format,...)
{
	char		line[1024];
	va_list		arguments;
	int			length;
	int			room;
	ssize_t		written;

	length = snprintf(line, sizeof(line), "%s: ", level_names[level]);
	room = (int) sizeof(line) - length - 1;
	va_start(arguments, format);
	vsnprintf(line + length, (size_t) room, format, arguments);
	va_end(arguments);
	length = (int) strlen(line);
	line[length++] = '\n';

	/* Write each line by a single write(), so that lines of several threads stay whole. */
	written = write(STDERR_FILENO, line, (size_t) length);
	(void) written;
}
