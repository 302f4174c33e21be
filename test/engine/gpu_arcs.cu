/*
 * gpu_arcs.cu
 *		Whether a GPU finds the shapes that the CPU finds, byte for byte: the nearest, and all within a distance.
 *
 * Both devices are asked about the scenes of gpu_scenes.cuh.  A GPU may hand a search over: then the CPU goes on with it, as
 * in the engine.
 *
 * Usage: gpu_arcs [seed [sanitized]].  Exits with 0 if all is as it should be, 1 if not, 2 without a GPU.  "sanitized": in
 * small, for compute-sanitizer.
 *
 * rooms: cuda cuda/arcs cuda/shapes
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/lane/dataset.cuh"
#include "cuda/lane/gpu.cuh"
#include "cuda/lane/lane.cuh"
#include "cuda/probe.cuh"
#include "gpu_scenes.cuh"

extern "C"
{
#include "device_work.h"
#include "engine/cpu/base/path.h"
#include "engine/search/ways.h"
}

/* observations of a scene at most */
#define SCENE_ROWS 20000

static struct device cpu;
static struct device gpu;
static int	failed;
static atomic_bool cancelled;

/* a tag that one dataset alone has, and how many observations of others got it */
#define FOREIGN_TAG 77
static uint32_t foreign;

/* pairs of an answer at most */
#define PAIRS_MAX 4000000

/* the answers of a device */
struct answers
{
	uint32_t	pairs;
	uint32_t	count[ROWS_MAX];
	int64_t		tag[PAIRS_MAX];
	double		distance[PAIRS_MAX];
	uint32_t	handed_over;	/* batches that the GPU left to the CPU, or a part of them */
	uint32_t	rows_by_gpu;	/* observations that it answered of such */
};

static struct answers by_cpu;
static struct answers by_gpu;

static void
check(bool right, const char *what)
{
	printf("%s - %s\n", right ? "ok" : "not ok", what);
	failed += !right;
}

/* ---- both devices ---- */

/* Have a device work on a search until it ends; a GPU may hand it over. */
static bool
work(struct device *device, struct search *search, struct answers *answers)
{
	struct search *ended;
	enum device_progress progress;

	if (device->operations->turn != NULL)
		return device_work(device, search, &search->failure);
	if (!device->operations->build(device, search, &search->failure))
		return false;
	do
	{
		device->operations->start(device, search);
		ended = NULL;
		while ((progress = device->operations->advance(device, &ended)) == DEVICE_IDLE)
			;
	} while (progress == DEVICE_YIELDED && search->choice != GEONN_DEVICE_CPU);
	if (progress == DEVICE_FINISHED)
		return true;
	answers->handed_over++;
	answers->rows_by_gpu += search->answered;
	for (uint32_t i = search->answered; i < search->rows - search->first; i++)
		foreign += search->columns.tag[i] == FOREIGN_TAG;
	/* as the scheduler does when another device takes a search */
	search->device_state = 0;
	return device_work(&cpu, search, &search->failure);
}

/* A search for the nearest, or where k is 0 for all, within a distance of the first rows. */
static struct search
search_for(struct dataset *dataset, uint32_t k, double max_distance, uint32_t room)
{
	static uint32_t count[ROWS_MAX];
	static int64_t tag[PAIRS_MAX];
	static double distance[PAIRS_MAX];
	struct search search = {};

	search.dataset = dataset;
	search.question.k = k;
	search.question.max_distance = max_distance;
	search.algorithm = search.question.algorithm = GEONN_ALGORITHM_INDEX;
	search.rows = search.columns.rows = rows;
	search.cancelled = &cancelled;
	search.columns.room = room;
	search.columns.latitude = observed_latitude;
	search.columns.longitude = observed_longitude;
	search.columns.tag = tag;
	search.columns.distance = distance;
	search.columns.count = count;
	return search;
}

/* Answer the observations, batch by batch where the room is small.  False: a search has failed, or the pairs are too many. */
static bool
answer(struct device *device, struct dataset *dataset, uint32_t k, double max_distance, uint32_t room, struct answers *answers)
{
	struct search search = search_for(dataset, k, max_distance, room);

	answers->pairs = answers->handed_over = answers->rows_by_gpu = 0;
	while (search.first < search.rows)
	{
		search.answered = search.pairs = 0;
		search.one_each = false;
		search.choice = search_choice(&search, GEONN_DEVICE_AUTO);
		if (search.choice == GEONN_DEVICE_CPU || !work(device, &search, answers) || search.failed || search.answered == 0)
		{
			printf("# %s %s\n", search.failure.message, search.failure.detail);
			return false;
		}
		if (search.pairs > PAIRS_MAX - answers->pairs)
			return false;
		for (uint32_t i = 0; i < search.answered; i++)
			answers->count[search.first + i] = search.one_each ? 1 : search.columns.count[search.first + i];
		memcpy(answers->tag + answers->pairs, search.columns.tag, search.pairs * sizeof(*answers->tag));
		memcpy(answers->distance + answers->pairs, search.columns.distance, search.pairs * sizeof(*answers->distance));
		answers->pairs += search.pairs;
		search.first += search.answered;
	}
	return true;
}

static bool
same_answers(const struct answers *a, const struct answers *b)
{
	return a->pairs == b->pairs && memcmp(a->count, b->count, rows * sizeof(*a->count)) == 0 &&
		memcmp(a->tag, b->tag, a->pairs * sizeof(*a->tag)) == 0 &&
		memcmp(a->distance, b->distance, a->pairs * sizeof(*a->distance)) == 0;
}

/* Print the first difference. */
static void
show_difference(void)
{
	for (uint32_t i = 0, cpu_pair = 0, gpu_pair = 0; i < rows; cpu_pair += by_cpu.count[i], gpu_pair += by_gpu.count[i], i++)
	{
		uint32_t	pair = 0;

		while (pair < by_cpu.count[i] && pair < by_gpu.count[i] &&
			   by_cpu.tag[cpu_pair + pair] == by_gpu.tag[gpu_pair + pair] &&
			   by_cpu.distance[cpu_pair + pair] == by_gpu.distance[gpu_pair + pair])
			pair++;
		if (pair == by_cpu.count[i] && pair == by_gpu.count[i])
			continue;
		printf("# observation %u, (%.17g, %.17g): CPU %u, GPU %u pairs; pair %u: CPU %lld, %.17g, GPU %lld, %.17g\n", i,
			   observed_latitude[i], observed_longitude[i], by_cpu.count[i], by_gpu.count[i], pair,
			   (long long) by_cpu.tag[cpu_pair + pair], by_cpu.distance[cpu_pair + pair],
			   (long long) by_gpu.tag[gpu_pair + pair], by_gpu.distance[gpu_pair + pair]);
		return;
	}
}

static void
forget(struct dataset *dataset)
{
	if (dataset->built[gpu.number] != NULL)
		gpu.operations->discard(&gpu, dataset->built[gpu.number]);
	device_forget(&cpu, dataset);
}

static void
test_scenes(bool sanitized)
{
	static const uint32_t counts[] = {1, 2, 8, 9, 63, 65, 513, 3000, 40000, 300000};
	int			sizes = sanitized ? 8 : 10;
	long		differing = 0;
	uint32_t	handed_over = 0;
	uint32_t	pairs = 0;
	uint32_t	inside = 0;
	uint64_t	before = cuda_device_of(&gpu)->taken;

	for (int scene = 0; scene < SCENES; scene++)
		for (int size = 0; size < sizes; size++)
		{
			struct dataset *dataset;
			bool		dear = scene == SCENE_LONG || scene == SCENE_STAR;
			int			most = size < 8 ? SCENE_ROWS : dear ? 100 : SCENE_ROWS / 8;

			/* each observation near the middle of a star takes the CPU all of its arcs */
			if (dear && counts[size] > 40000)
				continue;
			dataset = make_dataset((enum scene) scene, counts[size]);
			for (int round = 0; round < (sanitized ? 1 : 3); round++)
			{
				bool		limited = sanitized ? size % 2 == 1 : round == 1;
				double		max_distance = limited ? fabs(random_magnitude(1e-3, 1e7)) : INFINITY;
				uint32_t	room;

				rows = sanitized ? 300 : 1 + (uint32_t) random_below(random_below(2) ? 100 : most);
				room = random_below(3) ? rows : 1 + (uint32_t) random_below((int) rows);
				room = rows / room > 20 ? rows : room;
				make_observations((enum scene) scene, dataset);
				if (!answer(&cpu, dataset, 1, max_distance, room, &by_cpu) ||
					!answer(&gpu, dataset, 1, max_distance, room, &by_gpu) ||
					!same_answers(&by_cpu, &by_gpu))
				{
					printf("# scene %d, %u arcs, %u observations, room %u, max_distance %.17g:\n", scene, counts[size], rows, room,
						   max_distance);
					show_difference();
					differing++;
				}
				handed_over += by_gpu.handed_over;
				pairs += by_gpu.pairs;
				for (uint32_t i = 0; i < by_gpu.pairs; i++)
					inside += by_gpu.distance[i] == 0.0;
			}
			printf("# scene %d, %u arcs: %.1f s of the CPU, %u searches handed over so far\n", scene, counts[size],
				   (double) clock() / CLOCKS_PER_SEC, handed_over);
			forget(dataset);
		}
	printf("# %u pairs, %u of them at distance 0; %u searches were handed over\n", pairs, inside, handed_over);
	check(differing == 0, "the GPU gives the CPU's bytes");
	check(pairs > 1000, "many have a neighbour");
	if (!sanitized)
		check(handed_over > 0, "an observation as far from very many arcs is handed over");
	cudaDeviceSynchronize();
	printf("# %lld bytes more are taken than before\n", (long long) (cuda_device_of(&gpu)->taken - before));
}

static bool
same_on_both(struct dataset *dataset, double max_distance)
{
	return answer(&cpu, dataset, 1, max_distance, rows, &by_cpu) && answer(&gpu, dataset, 1, max_distance, rows, &by_gpu) &&
		same_answers(&by_cpu, &by_gpu);
}

/* More observations than a launch takes. */
static void
test_slices(void)
{
	struct dataset *city = make_dataset(SCENE_CITY, 1000);
	struct dataset *polygons = make_dataset(SCENE_POLYGONS, 1000);
	const struct lane *lane = cuda_device_of(&gpu)->lanes[0];
	struct search search;
	struct search *ended = NULL;
	uint32_t	launches;
	bool		right;

	rows = ROWS_MAX;
	make_observations(SCENE_CITY, city);
	right = same_on_both(city, 100.0);
	make_observations(SCENE_POLYGONS, polygons);
	check(right && same_on_both(polygons, INFINITY), "searches of several launches give the CPU's bytes, too");
	launches = lane->launches;

	search = search_for(city, 1, INFINITY, rows);
	gpu.operations->start(&gpu, &search);
	gpu.operations->advance(&gpu, &ended);
	atomic_store(&cancelled, true);
	while (ended == NULL)
		gpu.operations->advance(&gpu, &ended);
	atomic_store(&cancelled, false);
	printf("# %u launches, %u of the search that was cancelled\n", launches, lane->launches);
	check(lane->launches < launches && search.answered == 0, "a search that is cancelled is enqueued no further");
	forget(city);
	forget(polygons);
}

/* One observation alone, the one of this number, is as far from all of a circle. */
static void
observe_circle(const struct dataset *circle, uint32_t centre)
{
	make_observations(SCENE_CIRCLE, circle);
	for (uint32_t i = 0; i < rows; i++)
		if (fabs(observed_latitude[i]) > 89.9)
			observed_latitude[i] = 80.0;
	observed_latitude[centre] = 90.0;
}

/* A GPU refuses the centre of a circle, and then the whole of searches for the nearest arc of that circle. */
static void
test_refused_again(bool sanitized)
{
	struct dataset *city = make_dataset(SCENE_CITY, 1000);
	struct dataset *circle = make_dataset(SCENE_CIRCLE, 40000);
	uint32_t	tried = 0;
	uint32_t	untried = 0;
	bool		right = true;

	for (size_t i = 0; i < city->count; i++)
		city->tag[i] = FOREIGN_TAG;
	rows = sanitized ? 2000 : 20000;
	make_observations(SCENE_CITY, city);
	right = same_on_both(city, INFINITY);
	observe_circle(circle, rows / 2);
	foreign = 0;
	right = right && same_on_both(circle, INFINITY) && by_gpu.handed_over == 1;
	check(right && foreign == 0, "what stands behind a refused observation is no other dataset's answer");

	rows = 100;
	observe_circle(circle, rows - 1);
	for (int i = 0; i < 6; i++)
	{
		right = right && same_on_both(circle, INFINITY) && by_gpu.handed_over == 1;
		tried += by_gpu.rows_by_gpu > 0;
	}
	check(right && tried == 6, "a search of which a GPU answers most counts as no refusal");
	tried = 0;
	observe_circle(circle, rows / 2);
	for (int i = 0; i < 9; i++)
	{
		right = right && same_on_both(circle, INFINITY) && by_gpu.handed_over == 1;
		tried += by_gpu.rows_by_gpu > 0;
		untried += by_gpu.rows_by_gpu == 0;
	}
	check(right && tried == 4 && untried == 5, "after four refusals a dataset's searches go to the CPU untried");
	observed_latitude[rows / 2] = 80.0;
	for (untried = 0; right && untried < 100; untried++)
	{
		right = same_on_both(circle, INFINITY);
		if (by_gpu.handed_over == 0)
			break;
	}
	check(right && untried > 50 && untried < 100, "and one is tried again later");
	check(same_on_both(circle, INFINITY) && by_gpu.handed_over == 0, "an answer ends that");
	forget(city);
	forget(circle);
}

/*
 * Ask both devices for all shapes within a distance.  It becomes less, and the rows do, until the CPU finds no more than so
 * many pairs.  A batch has room for all of them, or for not much more than the most that an observation has.
 */
static bool
same_within(struct dataset *dataset, double *max_distance, uint32_t most, uint32_t *room)
{
	uint32_t	largest = 1;

	*room = PAIRS_MAX;
	for (int i = 0; !answer(&cpu, dataset, 0, *max_distance, PAIRS_MAX, &by_cpu) || by_cpu.pairs > most; i++)
	{
		if (i == 60)
			return false;
		*max_distance /= 2.0;
		if (i % 4 == 3)
			rows = (rows + 1) / 2;
	}
	for (uint32_t i = 0; i < rows; i++)
		largest = by_cpu.count[i] > largest ? by_cpu.count[i] : largest;
	if (random_below(2))
		*room = largest + (uint32_t) random_below((int) largest) + by_cpu.pairs / 20;
	return answer(&gpu, dataset, 0, *max_distance, *room, &by_gpu) && same_answers(&by_cpu, &by_gpu);
}

static void
test_within(bool sanitized)
{
	static const uint32_t counts[] = {1, 9, 65, 513, 3000, 40000, 300000};
	int			sizes = sanitized ? 3 : 7;
	long		differing = 0;
	uint32_t	batches = 0;
	uint32_t	by_cpu_alone = 0;
	uint64_t	pairs = 0;
	uint64_t	inside = 0;

	for (int scene = 0; scene < SCENES; scene++)
		for (int size = 0; size < sizes; size++)
		{
			struct dataset *dataset;

			if ((scene == SCENE_LONG || scene == SCENE_STAR) && counts[size] > 3000)
				continue;
			dataset = make_dataset((enum scene) scene, counts[size]);
			for (int round = 0; round < (sanitized ? 1 : 4); round++)
			{
				double		max_distance = round == 3 ? 0.0 : fabs(random_magnitude(1e-3, 1e7));
				uint32_t	room;

				rows = sanitized ? 100 : 1 + (uint32_t) random_below(random_below(2) ? 100 : SCENE_ROWS / 4);
				make_observations((enum scene) scene, dataset);
				if (!same_within(dataset, &max_distance, sanitized ? 5000 : 2000000, &room))
				{
					printf("# scene %d, %u arcs, %u observations, room %u, within %.17g:\n", scene, counts[size], rows, room,
						   max_distance);
					show_difference();
					differing++;
				}
				batches++;
				by_cpu_alone += by_gpu.handed_over > 0 && by_gpu.rows_by_gpu == 0;
				pairs += by_gpu.pairs;
				for (uint32_t i = 0; i < by_gpu.pairs; i++)
					inside += by_gpu.distance[i] == 0.0;
			}
			printf("# within, scene %d, %u arcs: %.1f s of the CPU, %u of %u searches by it alone\n", scene, counts[size],
				   (double) clock() / CLOCKS_PER_SEC, by_cpu_alone, batches);
			forget(dataset);
		}
	printf("# %llu pairs, %llu of them at distance 0\n", (unsigned long long) pairs, (unsigned long long) inside);
	check(differing == 0, "the GPU gives the CPU's bytes for all within a distance");
	check(pairs > 3000 && inside > 300, "many are, and many at distance 0");
	check(by_cpu_alone < batches / 2, "and the GPU answers most");
}

/* Districts with borders in common; an observation with more shapes within the distance than a GPU takes, between others. */
static void
test_within_many(void)
{
	struct dataset *city = make_dataset(SCENE_CITY, 100000);
	struct dataset *districts = make_dataset(SCENE_CITY, 12 * 4 * 500);
	bool		right;

	districts->count = 0;
	add_districts(districts, 500);
	rows = 2000;
	make_observations(SCENE_CITY, districts);
	right = answer(&cpu, districts, 0, 30000.0, PAIRS_MAX, &by_cpu) && answer(&gpu, districts, 0, 30000.0, PAIRS_MAX, &by_gpu) &&
		same_answers(&by_cpu, &by_gpu);
	check(right && by_gpu.pairs > 10 * rows / 2 && by_gpu.handed_over == 0,
		  "arcs of borders that shapes have in common are not too many");
	right = answer(&cpu, districts, 0, INFINITY, PAIRS_MAX, &by_cpu) && answer(&gpu, districts, 0, INFINITY, PAIRS_MAX, &by_gpu);
	check(right && same_answers(&by_cpu, &by_gpu) && by_gpu.pairs == 12 * rows && by_gpu.handed_over == 0,
		  "all shapes are within an infinite distance");
	forget(districts);
	rows = 1000;
	make_observations(SCENE_CITY, city);
	for (uint32_t i = 0; i < rows; i++)
		observed_latitude[i] = -fabs(observed_latitude[i]);
	observed_latitude[600] = centre.latitude;
	observed_longitude[600] = centre.longitude;
	right = answer(&cpu, city, 0, 20000.0, PAIRS_MAX, &by_cpu) && answer(&gpu, city, 0, 20000.0, PAIRS_MAX, &by_gpu) &&
		same_answers(&by_cpu, &by_gpu);
	check(right && by_cpu.count[600] > 4096 && by_gpu.handed_over == 1 && by_gpu.rows_by_gpu == 600,
		  "an observation with too many shapes is the CPU's, and all before it the GPU's");
	observed_latitude[10] = 91;
	check(!answer(&gpu, city, 0, 100.0, PAIRS_MAX, &by_gpu), "coordinates that are no point make such a search fail, too");
	forget(city);
}

static void
test_refusals(void)
{
	struct dataset *dataset = make_dataset(SCENE_CITY, 1000);

	rows = 100;
	make_observations(SCENE_CITY, dataset);
	observed_latitude[99] = 91;
	check(!answer(&gpu, dataset, 1, INFINITY, rows, &by_gpu), "coordinates that are no point make a search fail");
	observed_latitude[99] = 9;
	atomic_store(&cancelled, true);
	forget(dataset);
	dataset = make_dataset(SCENE_CITY, 1000);
	check(!answer(&gpu, dataset, 1, INFINITY, rows, &by_gpu), "a cancelled search builds nothing");
	atomic_store(&cancelled, false);
	check(answer(&gpu, dataset, 1, INFINITY, rows, &by_gpu) && by_gpu.pairs == rows, "and the next one does");
	forget(dataset);
}

int
main(int argument_count, char **words)
{
	struct failure failure;
	bool		sanitized = argument_count > 2;

	if (argument_count > 1)
		random_state = strtoull(words[1], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %llu\n", (unsigned long long) random_state);
	if (cuda_device_count(&failure) == 0)
	{
		printf("%s\n", failure.message);
		return 2;
	}
	cpu_path_choose(NULL, &failure);
	cpu.operations = &cpu_device_operations;
	gpu.operations = &cuda_device_operations;
	gpu.number = 1;
	atomic_store(&gpu.usable, gpu.operations->probe(&gpu, &failure));
	if (!atomic_load(&gpu.usable) || !cpu.operations->probe(&cpu, &failure))
	{
		printf("not ok - %s %s\n", failure.message, failure.detail);
		return 1;
	}
	test_scenes(sanitized);
	if (!sanitized)
		test_slices();
	test_refused_again(sanitized);
	test_within(sanitized);
	if (!sanitized)
		test_within_many();
	test_refusals();
	gpu.operations->close(&gpu);
	cpu.operations->close(&cpu);
	return failed > 0;
}
