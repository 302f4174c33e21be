/*
 * algorithm_test.c
 *		Which algorithm auto means on the CPU: the properties of its choice.  And which
 *		questions a GPU gets, how they are answered, and why it is the CPU that answers.
 *
 * rooms: engine/search engine/cpu
 */
#include <math.h>
#include <stdio.h>

#include "engine/base/thread_pool.h"
#include "engine/cpu/built.h"
#include "engine/search/backends.h"
#include "engine/search/ways.h"
#include "../lib/verdict.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* what the CPU has built of the dataset, or NULL */
static struct cpu_built *built;

/* What the CPU chooses for a search without points. */
static enum geonn_algorithm
chosen(uint32_t observations, uint32_t references, uint32_t k, bool is_first)
{
	struct dataset dataset = {.count = references,.metric = GEONN_METRIC_SPHERE,.built = {built}};
	struct search search = {
		.dataset = &dataset,
		.question = {.k = k,.max_distance = INFINITY},
		.columns = {.room = UINT32_MAX},
		.rows = observations
	};

	return cpu_device_operations.choose(&search, is_first);
}

/* The CPU: small searches of a dataset go by brute force until an index pays. */
static void
test_few(void)
{
	struct cpu_index index = {0};
	struct cpu_built made = {.index = &index};
	struct cpu_built without_index = {.index = NULL};

	report("CPU: the first observation of a dataset: by brute force, with a label and without",
		   chosen(1, 1 << 20, 1, true) == GEONN_ALGORITHM_BRUTE &&
		   chosen(1, 1 << 20, 1, false) == GEONN_ALGORITHM_BRUTE);
	report("CPU: 17 observations: by index", chosen(17, 1 << 20, 1, true) == GEONN_ALGORITHM_INDEX);
	report("CPU: of too many references only the first, without a label",
		   chosen(1, 1 << 25, 1, true) == GEONN_ALGORITHM_BRUTE &&
		   chosen(1, 1 << 25, 1, false) == GEONN_ALGORITHM_INDEX);
	built = &made;
	report("CPU: one observation, with an index: by it", chosen(1, 1 << 20, 1, false) == GEONN_ALGORITHM_INDEX);
	built = &without_index;
	atomic_store(&without_index.brute_us, 20000);
	report("CPU: once more without an index: by brute force", chosen(1, 1 << 20, 1, false) == GEONN_ALGORITHM_BRUTE);
	atomic_store(&without_index.brute_us, 30000);
	report("CPU: once brute force has taken a quarter of what a build takes: by index",
		   chosen(1, 1 << 20, 1, false) == GEONN_ALGORITHM_INDEX);
	atomic_store(&without_index.brute_us, 20000);
	thread_pool_set_threads(4);
	report("CPU: with more threads a build takes less, and the index comes sooner",
		   chosen(1, 1 << 20, 1, false) == GEONN_ALGORITHM_INDEX);
	thread_pool_set_threads(1);
	built = NULL;
}

/* More references: the index is never given up for brute force. */
static void
test_order(void)
{
	static const uint32_t observations[] = {1, 2, 16, 17, 100, 4096, 32768, 1 << 20, 1 << 24};
	static const uint32_t ks[] = {0, 1, 10, 1024};
	long		given_up = 0;

	for (size_t n = 0; n < COUNT(observations); n++)
		for (size_t k = 0; k < COUNT(ks); k++)
		{
			bool		indexed[2] = {false, false};

			for (double references = 1; references < 2e8; references = ceil(references * 1.2))
			{
				bool		was_indexed[2] = {indexed[0], indexed[1]};

				for (int is_first = 0; is_first < 2; is_first++)
				{
					indexed[is_first] = chosen(observations[n], (uint32_t) references, ks[k], is_first) == GEONN_ALGORITHM_INDEX;
					given_up += was_indexed[is_first] && !indexed[is_first];
				}
			}
		}
	report_failures("CPU: more references: the index is not given up", given_up);
}

/* A session that wants a GPU: what does it get for each question? */
static void
test_devices(void)
{
	static const struct
	{
		const char *name;
		uint32_t	columns;
		enum geonn_metric metric;
		struct question question;
		enum geonn_device_choice device;
	}			asked[] = {
		{"the nearest", 0, GEONN_METRIC_SPHERE, {.k = 1}, GEONN_DEVICE_CUDA},
		{"the nearest, by brute force", 0, GEONN_METRIC_SPHERE, {.k = 1,.algorithm = GEONN_ALGORITHM_BRUTE}, GEONN_DEVICE_CUDA},
		{"ten of a group, with ties", GEONN_COLUMN_GROUP, GEONN_METRIC_SPHERE, {.k = 10,.ties = true}, GEONN_DEVICE_CUDA},
		{"all within a distance", 0, GEONN_METRIC_SPHERE, {.max_distance = 1000}, GEONN_DEVICE_CUDA},
		{"counts", 0, GEONN_METRIC_SPHERE, {.radii = 1}, GEONN_DEVICE_CUDA},
		{"the nearest shape", GEONN_COLUMN_ARC, GEONN_METRIC_SPHERE, {.k = 1}, GEONN_DEVICE_CUDA},
		{"ten, by brute force", 0, GEONN_METRIC_SPHERE, {.k = 10,.algorithm = GEONN_ALGORITHM_BRUTE}, GEONN_DEVICE_CPU},
		{"extremes", 0, GEONN_METRIC_SPHERE, {.radii = 1,.extremes = true}, GEONN_DEVICE_CPU},
		{"the nearest of another party", GEONN_COLUMNS_PARTIES, GEONN_METRIC_SPHERE, {.k = 1}, GEONN_DEVICE_CPU},
		{"ten shapes", GEONN_COLUMN_ARC, GEONN_METRIC_SPHERE, {.k = 10}, GEONN_DEVICE_CPU},
		{"the nearest on the spheroid", 0, GEONN_METRIC_SPHEROID, {.k = 1}, GEONN_DEVICE_CPU},
		{"ten of a group on the spheroid, with ties", GEONN_COLUMN_GROUP, GEONN_METRIC_SPHEROID, {.k = 10,.ties = true}, GEONN_DEVICE_CPU},
		{"all within a distance on the spheroid", 0, GEONN_METRIC_SPHEROID, {.max_distance = 1000}, GEONN_DEVICE_CPU},
		{"counts on the spheroid", 0, GEONN_METRIC_SPHEROID, {.radii = 1}, GEONN_DEVICE_CPU}
	};

	for (size_t i = 0; i < COUNT(asked); i++)
	{
		struct dataset dataset = {.count = 1000,.columns = asked[i].columns,.metric = asked[i].metric};
		struct search search = {.dataset = &dataset,.question = asked[i].question};
		char		name[100];

		snprintf(name, sizeof(name), "%s: by %s", asked[i].name,
				 asked[i].device == GEONN_DEVICE_CPU ? "the CPU, whatever the session wants" : "a GPU");
		report(name, search_choice(&search, GEONN_DEVICE_CUDA) == asked[i].device);
	}
}

/* How does each kind of device answer, by the words that the client gets? */
static void
test_ways(void)
{
	static const struct
	{
		const char *name;
		uint32_t	columns;
		struct question question;
		enum geonn_algorithm algorithm; /* that the device has chosen */
		enum geonn_device_kind kind;
		enum geonn_way way;
	}			asked[] = {
		{"the nearest", 0, {.k = 1}, GEONN_ALGORITHM_INDEX, GEONN_KIND_CPU, GEONN_WAY_INDEX},
		{"the nearest of few observations", 0, {.k = 1}, GEONN_ALGORITHM_BRUTE, GEONN_KIND_CPU, GEONN_WAY_BRUTE},
		{"ten, by brute force", 0, {.k = 10,.algorithm = GEONN_ALGORITHM_BRUTE}, GEONN_ALGORITHM_BRUTE, GEONN_KIND_CPU, GEONN_WAY_BRUTE},
		{"counts of shapes", GEONN_COLUMN_ARC, {.radii = 1}, GEONN_ALGORITHM_INDEX, GEONN_KIND_CPU, GEONN_WAY_ARCS},
		{"shapes, by brute force", GEONN_COLUMN_ARC, {.k = 2,.algorithm = GEONN_ALGORITHM_BRUTE}, GEONN_ALGORITHM_BRUTE, GEONN_KIND_CPU, GEONN_WAY_ARCS},
		{"the nearest", 0, {.k = 1}, GEONN_ALGORITHM_INDEX, GEONN_KIND_CUDA, GEONN_WAY_INDEX},
		{"the nearest, by brute force", 0, {.k = 1,.algorithm = GEONN_ALGORITHM_BRUTE}, GEONN_ALGORITHM_BRUTE, GEONN_KIND_CUDA, GEONN_WAY_BRUTE},
		{"the nearest shape", GEONN_COLUMN_ARC, {.k = 1}, GEONN_ALGORITHM_INDEX, GEONN_KIND_CUDA, GEONN_WAY_ARCS}
	};

	for (size_t i = 0; i < COUNT(asked); i++)
	{
		struct dataset dataset = {.count = 1000,.columns = asked[i].columns,.metric = GEONN_METRIC_SPHERE};
		struct search search = {.dataset = &dataset,.question = asked[i].question,.algorithm = asked[i].algorithm};
		char		name[100];

		snprintf(name, sizeof(name), "%s, by a %s: %s", asked[i].name, asked[i].kind == GEONN_KIND_CPU ? "CPU" : "GPU",
				 geonn_way_words(asked[i].way));
		report(name, way_gone(&search, asked[i].kind) == asked[i].way);
	}
}

/* Why has the CPU answered? */
static void
test_reasons(void)
{
	struct search search = {.ways = {[GEONN_KIND_CUDA] = 1u << GEONN_WAY_INDEX}};
	bool		right = search_cpu_reason(&search, GEONN_DEVICE_AUTO) == GEONN_CPU_NONE;

	search.ways[GEONN_KIND_CPU] = 1u << GEONN_WAY_INDEX;
	report("a reason for the CPU is told where it has answered",
		   right && search_cpu_reason(&search, GEONN_DEVICE_CPU) == GEONN_CPU_CHOSEN);
	engine_device_count = 2;
	engine_devices[0].operations = &cpu_device_operations;
	engine_devices[1].operations = &cuda_device_operations;
	atomic_store(&engine_devices[0].usable, true);
	report("no GPU can be used", search_cpu_reason(&search, GEONN_DEVICE_AUTO) == GEONN_CPU_NO_GPU);
	atomic_store(&engine_devices[1].usable, true);
	report("no GPU could be used when the CPU began", search_cpu_reason(&search, GEONN_DEVICE_AUTO) == GEONN_CPU_NO_GPU);
	search.choice = GEONN_DEVICE_CPU;
	report("a GPU has no way", search_cpu_reason(&search, GEONN_DEVICE_AUTO) == GEONN_CPU_NO_WAY &&
		   search_cpu_reason(&search, GEONN_DEVICE_CUDA) == GEONN_CPU_NO_WAY);
	search_leave_to_cpu(&search, GEONN_CPU_HARD);
	report("a GPU has left it to the CPU", search.choice == GEONN_DEVICE_CPU &&
		   search_cpu_reason(&search, GEONN_DEVICE_AUTO) == GEONN_CPU_HARD);
}

int
main(void)
{
	thread_pool_set_threads(1);
	test_order();
	test_few();
	report("CPU: a full batch: by index",
		   chosen(4096, 50, 1, true) == GEONN_ALGORITHM_INDEX);
	test_devices();
	test_ways();
	test_reasons();
	return summed_up();
}
