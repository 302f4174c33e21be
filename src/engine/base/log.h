/*
 * log.h
 *		The engine's log: lines on standard error, which the supervisor passes
 *		to PostgreSQL's log.
 */
#ifndef GEONN_LOG_H
#define GEONN_LOG_H

enum log_level
{
	LOG_NOTE,					/* "LOG: " */
	LOG_WARNING,				/* "WARNING: " */
	LOG_ERROR					/* "ERROR: " */
};

/*
 * Write one line (a printf format without a newline); any thread.  If the pipe
 * has no room for the line, the line is lost, so that no thread waits.
 */
extern void log_line(enum log_level level, const char *format,...)
			__attribute__((format(printf, 2, 3)));

#endif							/* GEONN_LOG_H */
