/*
 * verdict.h
 *		Verdicts of the tests of distances, each with what was measured.
 */
#ifndef GEONN_TEST_VERDICT_H
#define GEONN_TEST_VERDICT_H

#include <stdio.h>
#include <stdlib.h>

static int	passed_count;
static int	failed_count;

/* The property, and the worst that was measured, in a unit that may be "". */
static inline void
report(const char *name, int passed, const char *measure, double worst,
	   const char *unit)
{
	if (passed)
		passed_count++;
	else
		failed_count++;
	printf("%s - %s (%s %.4g%s%s)\n", passed ? "ok" : "not ok", name,
		   measure, worst, *unit ? " " : "", unit);
	fflush(stdout);
}

/* A property that nothing may violate. */
static inline void
report_failures(const char *name, long failures)
{
	report(name, failures == 0, "failures", (double) failures, "");
}

/* Sum up; what main() returns. */
static inline int
summed_up(void)
{
	printf("%d passed, %d failed\n", passed_count, failed_count);
	return failed_count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif							/* GEONN_TEST_VERDICT_H */
