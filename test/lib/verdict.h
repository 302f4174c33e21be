/*
 * verdict.h
 *		Verdicts on properties, a line each, and their sum.
 */
#ifndef GEONN_CLIENT_VERDICT_H
#define GEONN_CLIENT_VERDICT_H

#include <stdbool.h>

extern void report(const char *property, bool holds);

/* Sum up; what main() returns: a test that reports nothing has failed. */
extern int	summed_up(void);

#endif							/* GEONN_CLIENT_VERDICT_H */
