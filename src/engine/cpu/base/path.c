/*
 * path.c
 *		Chooses the version of the CPU's hot loops for this processor.
 */
#include "engine/cpu/base/path.h"

#include <string.h>

const struct cpu_path *cpu_path = &cpu_path_portable;

#ifdef CPU_PATH_VECTORS

/* __builtin_cpu_supports() also asks whether the operating system saves the registers. */
static bool
has_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
		__builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static bool
has_avx512(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") &&
		__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#endif

static bool
has_any(void)
{
	return true;
}

/* the best one first */
static const struct
{
	const struct cpu_path *path;
	bool		(*has) (void);
}			paths[] = {
#ifdef CPU_PATH_VECTORS
	{&cpu_path_avx512, has_avx512},
	{&cpu_path_avx2, has_avx2},
#endif
	{&cpu_path_portable, has_any}
};

bool
cpu_path_choose(const char *name, struct failure *failure)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
	{
		if (name != NULL && strcmp(name, paths[i].path->name) != 0)
			continue;
		if (paths[i].has())
		{
			cpu_path = paths[i].path;
			return true;
		}
		if (name != NULL)
			return fail(failure, GEONN_ERROR_NO_DEVICE,
						"this processor lacks what the CPU path %s needs", name);
	}
	return fail(failure, GEONN_ERROR_NO_DEVICE, "this engine has no CPU path \"%s\"", name);
}
