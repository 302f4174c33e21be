/*
 * verdict.c
 *		Verdicts on properties, a line each, and their sum.
 */
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>

static int	passed;
static int	failed;

static void
count(bool holds)
{
	fflush(stdout);
	if (holds)
		passed++;
	else
		failed++;
}

void
report(const char *property, bool holds)
{
	printf("%s - %s\n", holds ? "ok" : "not ok", property);
	count(holds);
}

void
report_measure(const char *property, bool holds, const char *measure, double worst,
			   const char *unit)
{
	printf("%s - %s (%s %.4g%s%s)\n", holds ? "ok" : "not ok", property, measure, worst,
		   *unit ? " " : "", unit);
	count(holds);
}

void
report_failures(const char *property, long failures)
{
	report_measure(property, failures == 0, "failures", (double) failures, "");
}

int
summed_up(void)
{
	printf("%d passed, %d failed\n", passed, failed);
	return failed == 0 && passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
