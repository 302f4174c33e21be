/*
 * no_gpu.c
 *		In the place of gpu_run.cu where there is no CUDA compiler.
 */
#include "gpu_run.h"

#include <stdio.h>

static const char reason[] = "geonn-bench was built without a CUDA compiler, for the CPU alone";

int
gpu_count(char *failure)
{
	snprintf(failure, 512, "%s", reason);
	return 0;
}

void
gpu_name(int number, char *name)
{
	(void) number;
	name[0] = '\0';
}

void
gpu_run(const struct problem *problem, struct outcome *outcome)
{
	(void) problem;
	snprintf(outcome->failure, sizeof(outcome->failure), "%s", reason);
}
