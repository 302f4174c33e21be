/*
 * verdict.h
 *		Verdicts on properties, a line each, and their sum.
 */
#ifndef GEONN_TEST_VERDICT_H
#define GEONN_TEST_VERDICT_H

#include <stdbool.h>

extern void report(const char *property, bool holds);

/* With the worst that was measured, in a unit that may be "". */
extern void report_measure(const char *property, bool holds, const char *measure,
						   double worst, const char *unit);

/* A property that nothing may violate. */
extern void report_failures(const char *property, long failures);

/* Sum up; what main() returns: a test that reports nothing has failed. */
extern int	summed_up(void);

#endif							/* GEONN_TEST_VERDICT_H */
