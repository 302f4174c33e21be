/*
 * setups.c
 *		Engines set up in different ways.
 */
#include "setups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct setup setups[SETUPS_MAX];
int			setup_count;

static struct engine engines[SETUPS_MAX];
static int	engine_count;

/*
 * Start another engine, with so many threads of a CPU path; NULL: the best.
 */
static const struct engine *
start_engine(const char *program, const char *cpu_path, int threads)
{
	const struct geonn_configure settings = {.cpu_threads = (uint64_t) threads};
	struct engine *engine = &engines[engine_count++];

	engine_start_on(engine, program, cpu_path, &settings);
	return engine;
}

static void
add_setup(const struct engine *engine, enum geonn_device_choice device, const char *name)
{
	struct setup *setup = &setups[setup_count++];

	setup->engine = engine;
	setup->device = device;
	snprintf(setup->name, sizeof(setup->name), "%s", name);
	printf("# with %s\n", name);
}

/*
 * Add an engine whose CPU device takes this path, with so many threads, where
 * the processor has what the path needs.
 */
static void
add_cpu_path(const char *program, const char *path, bool supported, int threads)
{
	char		name[64];

	if (!supported)
	{
		printf("# without the CPU path %s, which this processor lacks\n", path);
		return;
	}
	snprintf(name, sizeof(name), "the CPU path %s, threads: %d", path, threads);
	add_setup(start_engine(program, path, threads), GEONN_DEVICE_CPU, name);
}

static void
add_cpu_paths(const char *program)
{
	bool		avx2 = false;
	bool		avx512 = false;

#ifdef __x86_64__
	avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
		__builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
	avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
		__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
	add_cpu_path(program, "portable", true, 1);
	add_cpu_path(program, "avx2", avx2, 2);
	add_cpu_path(program, "avx512", avx512, 5);
}

/*
 * All GPUs, one of them if the host has more, and the CPU beside them.
 */
static void
add_gpus(const char *program, bool sanitized)
{
	const struct engine *engine = start_engine(program, NULL, 0);
	struct geonn_engine_status status;

	if (!engine_status(engine, &status, NULL, 0) || status.no_gpu_reason[0] != '\0')
	{
		fprintf(stderr, "no GPU: %s\n", status.no_gpu_reason);
		exit(EXIT_FAILURE);
	}
	add_setup(engine, GEONN_DEVICE_CUDA, status.devices > 2 ? "all GPUs" : "the GPU");
	if (sanitized)
		return;
	add_setup(engine, GEONN_DEVICE_CPU, "the CPU beside GPUs");
	if (status.devices > 2)
	{
		const char *visible = getenv("CUDA_VISIBLE_DEVICES");
		char		first[64];

		/* the first of those that may be used here */
		snprintf(first, sizeof(first), "%s", visible != NULL ? visible : "0");
		first[strcspn(first, ",")] = '\0';
		setenv("CUDA_VISIBLE_DEVICES", first, 1);
		add_setup(start_engine(program, NULL, 0), GEONN_DEVICE_CUDA, "one GPU");
		if (visible != NULL)
			setenv("CUDA_VISIBLE_DEVICES", visible, 1);
		else
			unsetenv("CUDA_VISIBLE_DEVICES");
	}
}

void
setups_start(const char *program, bool gpu, bool sanitized)
{
	if (gpu)
		add_gpus(program, sanitized);
	else
		add_cpu_paths(program);
}

void
setups_stop(void)
{
	for (int i = 0; i < engine_count; i++)
		engine_stop(&engines[i]);
}
