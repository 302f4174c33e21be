/*
 * verdict.c
 *		Verdicts on properties, a line each, and their sum.
 */
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>

static int	passed;
static int	failed;

void
report(const char *property, bool holds)
{
	printf("%s - %s\n", holds ? "ok" : "not ok", property);
	fflush(stdout);
	if (holds)
		passed++;
	else
		failed++;
}

int
summed_up(void)
{
	printf("%d passed, %d failed\n", passed, failed);
	return failed == 0 && passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
