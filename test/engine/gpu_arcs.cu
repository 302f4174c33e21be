/*
 * gpu_arcs.cu
 *		Whether a GPU finds the nearest shapes that the CPU finds, byte for byte.
 *
 * Scenes of lines of all lengths, of points, many at one place, and of polygons, small and large, beside each other and in
 * each other, are asked for the nearest by both devices.  A GPU may hand a search over: then the CPU goes on with it, as in
 * the engine.
 *
 * Usage: gpu_arcs [seed [sanitized]].  Exits with 0 if all is as it should be, 1 if not, 2 without a GPU.  "sanitized": in
 * small, for compute-sanitizer.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/geodesy.h"
#include "cuda/lane/dataset.cuh"
#include "cuda/lane/gpu.cuh"
#include "cuda/lane/lane.cuh"
#include "cuda/probe.cuh"
#include "../lib/random.h"

extern "C"
{
#include "device_work.h"
#include "engine/cpu/path.h"
}

#define ROWS_MAX 1100000

/* observations of a scene at most */
#define SCENE_ROWS 20000

static struct device cpu;
static struct device gpu;
static int	failed;
static atomic_bool cancelled;

/* a tag that one dataset alone has, and how many observations of others got it */
#define FOREIGN_TAG 77
static uint32_t foreign;

/* observations, and the answers of a device */
static uint32_t rows;
static double observed_latitude[ROWS_MAX];
static double observed_longitude[ROWS_MAX];

struct answers
{
	uint32_t	pairs;
	uint32_t	count[ROWS_MAX];
	int64_t		tag[ROWS_MAX];
	double		distance[ROWS_MAX];
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

/* ---- scenes ---- */

enum scene
{
	SCENE_GLOBE,				/* lines of some 300 km a step, anywhere */
	SCENE_CITY,					/* lines of 100 m a step, within 20 km */
	SCENE_POINTS,				/* points, many at one place */
	SCENE_LONG,					/* lines that go half around the globe */
	SCENE_POLE,					/* lines of 10 km a step around a pole */
	SCENE_CIRCLE,				/* a circle, as far from its centre everywhere, as degrees can say */
	SCENE_STAR,					/* lines from one place to many */
	SCENE_POLYGONS,				/* polygons with holes and parts, many in each other, and lines */
	SCENE_GRID,					/* squares of degrees that have their sides in common */
	SCENE_COAST,				/* one polygon, or two, of all arcs, around a pole or not */
	SCENES
};

struct place
{
	double		latitude;
	double		longitude;
};

static struct place
place_at(double latitude, double longitude)
{
	struct place place = {latitude, longitude};

	if (place.latitude > 90.0)
		place = {180.0 - place.latitude, place.longitude + 180.0};
	if (place.latitude < -90.0)
		place = {-180.0 - place.latitude, place.longitude + 180.0};
	place.longitude = remainder(place.longitude, 360.0);
	return place;
}

/* up to so many degrees of latitude away, and as many metres of longitude if it is not a pole */
static struct place
place_near(struct place place, double degrees)
{
	double		wider = 1.0 / fmax(cos(place.latitude * M_PI / 180.0), 0.01);

	return place_at(place.latitude + random_between(-degrees, degrees),
					place.longitude + wider * random_between(-degrees, degrees));
}

static struct place
anywhere(void)
{
	return place_at(90.0 - acos(random_between(-1, 1)) * 180.0 / M_PI, random_between(-180, 180));
}

static const struct place centre = {48.2, 16.4};

static void
add_arc(struct dataset *dataset, struct place from, struct place to, int32_t shape)
{
	size_t		i = dataset->count++;

	dataset->latitude[i] = from.latitude;
	dataset->longitude[i] = from.longitude;
	dataset->end_latitude[i] = to.latitude;
	dataset->end_longitude[i] = to.longitude;
	dataset->shape[i] = shape;
	dataset->tag[i] = 1000000000000 + shape / 2;
	dataset->polygon[i] = 0;
}

/* Where a line of a scene begins. */
static struct place
beginning(enum scene scene)
{
	switch (scene)
	{
		case SCENE_CITY:
			return place_near(centre, 0.2);
		case SCENE_POINTS:
			return random_below(3) ? place_near(centre, 0.01) : place_at(48.2 + 0.01 * random_below(5), 16.4);
		case SCENE_POLE:
			return place_at(random_between(87, 90), random_between(-180, 180));
		case SCENE_STAR:
			return centre;
		default:
			return anywhere();
	}
}

static struct place
step(enum scene scene, struct place from, uint32_t number, uint32_t count)
{
	switch (scene)
	{
		case SCENE_GLOBE:
			return place_near(from, 3.0);
		case SCENE_CITY:
			return place_near(from, 0.001);
		case SCENE_POINTS:
			return from;
		case SCENE_LONG:
			return random_below(2) ? anywhere() : place_near(from, 60.0);
		case SCENE_POLE:
			return place_near(from, 0.1);
		case SCENE_STAR:
			return place_near(from, 0.1);
		default:
			return place_at(90.0 - 1.0, 360.0 * number / count);
	}
}

/* ---- polygons ---- */

#define CORNERS_MAX 300000

static struct place corner[CORNERS_MAX + 1];

/* Whether the ring of corners has the north pole inside. */
static bool
holds_pole(uint32_t corners)
{
	static struct geonn_vector ring[CORNERS_MAX + 1];
	bool		holds = false;

	for (uint32_t i = 0; i < corners; i++)
		ring[i] = geonn_unit_vector(corner[i].latitude, corner[i].longitude);
	ring[corners] = ring[0];
	if (!geonn_ring_holds_pole(ring, corners + 1, NULL, &holds))
		return false;
	return holds;
}

/* Put corners around a place, so many degrees away, more or less. */
static void
draw_ring(struct place middle, uint32_t corners, double radius, double even)
{
	double		wider = 1.0 / fmax(cos(middle.latitude * M_PI / 180.0), 0.01);
	double		begin = random_between(0, 2.0 * M_PI);

	for (uint32_t i = 0; i < corners; i++)
	{
		double		turn = begin + 2.0 * M_PI * i / corners;
		double		away = radius * random_between(even, 1.0);

		if (fabs(middle.latitude) > 85.0)
			corner[i] = place_at(middle.latitude > 0 ? 90.0 - away : away - 90.0, turn * 180.0 / M_PI);
		else
			corner[i] = place_at(middle.latitude + away * cos(turn), middle.longitude + wider * away * sin(turn));
	}
}

static void
add_ring(struct dataset *dataset, uint32_t corners, int32_t shape, int32_t polygon)
{
	for (uint32_t i = 0; i < corners; i++)
	{
		add_arc(dataset, corner[i], corner[(i + 1) % corners], shape);
		dataset->polygon[dataset->count - 1] = polygon;
	}
}

/* Add a polygon, with holes or without, as a shape of its own or another part of the last one. */
static void
add_polygon(struct dataset *dataset, struct place middle, uint32_t corners, double radius)
{
	int32_t		shape = dataset->count == 0 ? 0 : dataset->shape[dataset->count - 1] + (random_below(4) > 0);
	int32_t		polygon = ++dataset->last_polygon;
	size_t		first = dataset->count;
	bool		pole_is_inside;

	draw_ring(middle, corners, radius, corners > 1000 ? 0.9999 : 0.7);
	pole_is_inside = holds_pole(corners);
	add_ring(dataset, corners, shape, polygon);
	/* so many that stretches have several rings */
	for (int holes = random_below(2) ? 0 : random_below(20); holes > 0; holes--)
	{
		draw_ring(fabs(middle.latitude) > 85.0 ? middle : place_near(middle, 0.5 * radius), 5, 0.2 * radius, 0.7);
		pole_is_inside ^= holds_pole(5);
		add_ring(dataset, 5, shape, polygon);
	}
	for (size_t i = first; pole_is_inside && i < dataset->count; i++)
		dataset->polygon[i] = -polygon;
}

static void
add_square(struct dataset *dataset, uint32_t count)
{
	/* about one square in each place */
	int			span = 2 + (int) fmin(sqrt(count / 4.0), 170.0);
	double		latitude = random_below(span) - span / 2;
	double		longitude = random_below(span) - span / 2;
	int32_t		shape = dataset->count == 0 ? 0 : dataset->shape[dataset->count - 1] + 1;

	corner[0] = place_at(latitude, longitude);
	corner[1] = place_at(latitude, longitude + 1);
	corner[2] = place_at(latitude + 1, longitude + 1);
	corner[3] = place_at(latitude + 1, longitude);
	add_ring(dataset, 4, shape, ++dataset->last_polygon);
}

static void
add_polygons(struct dataset *dataset, enum scene scene, uint32_t count)
{
	while (dataset->count < count)
		if (scene == SCENE_GRID)
			add_square(dataset, count);
		else if (scene == SCENE_COAST)
		{
			uint32_t	corners = random_below(2) ? count : count / 2;

			add_polygon(dataset, random_below(2) ? centre : place_at(random_below(2) ? 90 : -90, 0), corners < 3 ? 3 : corners,
						30.0);
		}
		else if (random_below(4) == 0)
		{
			struct place from = place_near(centre, 10.0);

			add_arc(dataset, from, place_near(from, 0.5), dataset->count == 0 ? 0 : dataset->shape[dataset->count - 1] + 1);
		}
		else
			add_polygon(dataset, random_below(8) ? place_near(centre, 10.0) : anywhere(), 3 + (uint32_t) random_below(60),
						fabs(random_magnitude(1e-3, random_below(8) ? 0.3 : 10.0)));
}

/* Make a dataset of some so many arcs. */
static struct dataset *
make_dataset(enum scene scene, uint32_t count)
{
	static uint64_t id;
	struct dataset *dataset = dataset_create(++id, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC);
	size_t		room = 2 * (size_t) count + 256;
	struct place from = {};
	int32_t		shape = -1;

	dataset->latitude = (double *) malloc(room * sizeof(double));
	dataset->longitude = (double *) malloc(room * sizeof(double));
	dataset->end_latitude = (double *) malloc(room * sizeof(double));
	dataset->end_longitude = (double *) malloc(room * sizeof(double));
	dataset->tag = (int64_t *) malloc(room * sizeof(int64_t));
	dataset->shape = (int32_t *) malloc(room * sizeof(int32_t));
	dataset->polygon = (int32_t *) malloc(room * sizeof(int32_t));
	if (scene >= SCENE_POLYGONS)
	{
		add_polygons(dataset, scene, count);
		return dataset;
	}
	for (uint32_t i = 0; i < count; i++)
	{
		struct place to;
		bool		begins = i == 0 || (scene != SCENE_CIRCLE && (scene == SCENE_STAR || random_below(10) == 0));

		shape += begins;
		if (begins)
			from = scene == SCENE_CIRCLE ? step(scene, from, 0, count) : beginning(scene);
		to = step(scene, from, i + 1, count);
		/* nearly antipodal ends are no arc */
		if (geonn_distance_degrees(from.latitude, from.longitude, to.latitude, to.longitude) > 20000000.0)
			to = from;
		add_arc(dataset, from, to, shape);
		if (scene != SCENE_POINTS)
			from = to;
		else if (random_below(3) == 0)
			from = beginning(scene);
	}
	return dataset;
}

static void
make_observations(enum scene scene, const struct dataset *dataset)
{
	for (uint32_t i = 0; i < rows; i++)
	{
		size_t		arc = (size_t) random_bits() % dataset->count;
		struct place end = {dataset->latitude[arc], dataset->longitude[arc]};
		int			kind = random_below(12);
		struct place place = kind == 0 ? anywhere() : kind == 1 ? end : kind < 4 ? beginning(scene) :
			place_near(end, fabs(random_magnitude(1e-9, 10.0)));

		/* on the meridian or the parallel of a vertex; a pole */
		if (kind == 10)
			place = random_below(2) ? place_at(end.latitude + random_between(-2, 2), end.longitude) :
				place_at(end.latitude, end.longitude + random_between(-2, 2));
		if (kind == 9 && random_below(20) == 0)
			place = place_at(random_below(2) ? 90 : -90, random_below(360));
		/* on the arc, but for rounding */
		if (kind == 11)
			place = place_at((end.latitude + dataset->end_latitude[arc]) / 2, (end.longitude + dataset->end_longitude[arc]) / 2);
		observed_latitude[i] = place.latitude;
		observed_longitude[i] = place.longitude;
	}
	/* the centre of the circle */
	if (scene == SCENE_CIRCLE)
		observed_latitude[rows / 2] = 90.0;
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
	return device_work(&cpu, search, &search->failure);
}

/* Answer the observations, batch by batch where the room is small. */
static bool
answer(struct device *device, struct dataset *dataset, double max_distance, uint32_t room, struct answers *answers)
{
	static uint32_t count[ROWS_MAX];
	static int64_t tag[ROWS_MAX];
	static double distance[ROWS_MAX];
	struct search search = {};

	search.dataset = dataset;
	search.question.k = 1;
	search.question.algorithm = GEONN_ALGORITHM_INDEX;
	search.question.max_distance = max_distance;
	search.algorithm = GEONN_ALGORITHM_INDEX;
	search.rows = rows;
	search.cancelled = &cancelled;
	search.columns.rows = rows;
	search.columns.room = room;
	search.columns.latitude = observed_latitude;
	search.columns.longitude = observed_longitude;
	search.columns.tag = tag;
	search.columns.distance = distance;
	search.columns.count = count;
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
		for (uint32_t i = 0; i < search.answered; i++)
			answers->count[search.first + i] = search.one_each ? 1 : count[search.first + i];
		memcpy(answers->tag + answers->pairs, tag, search.pairs * sizeof(*tag));
		memcpy(answers->distance + answers->pairs, distance, search.pairs * sizeof(*distance));
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
		if (by_cpu.count[i] != by_gpu.count[i] || (by_cpu.count[i] == 1 && (
			by_cpu.tag[cpu_pair] != by_gpu.tag[gpu_pair] || by_cpu.distance[cpu_pair] != by_gpu.distance[gpu_pair])))
		{
			printf("# observation %u, (%.17g, %.17g): CPU %u, %lld, %.17g, GPU %u, %lld, %.17g\n", i, observed_latitude[i],
				   observed_longitude[i], by_cpu.count[i], (long long) by_cpu.tag[cpu_pair], by_cpu.distance[cpu_pair],
				   by_gpu.count[i], (long long) by_gpu.tag[gpu_pair], by_gpu.distance[gpu_pair]);
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
				if (!answer(&cpu, dataset, max_distance, room, &by_cpu) || !answer(&gpu, dataset, max_distance, room, &by_gpu) ||
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
	return answer(&cpu, dataset, max_distance, rows, &by_cpu) && answer(&gpu, dataset, max_distance, rows, &by_gpu) &&
		same_answers(&by_cpu, &by_gpu);
}

/* More observations than a launch takes. */
static void
test_slices(void)
{
	struct dataset *city = make_dataset(SCENE_CITY, 1000);
	struct dataset *polygons = make_dataset(SCENE_POLYGONS, 1000);
	const struct lane *lane = cuda_device_of(&gpu)->lanes[0];
	struct search search = {};
	struct search *ended = NULL;
	uint32_t	launches;
	bool		right;

	rows = ROWS_MAX;
	make_observations(SCENE_CITY, city);
	right = same_on_both(city, 100.0);
	make_observations(SCENE_POLYGONS, polygons);
	check(right && same_on_both(polygons, INFINITY), "searches of several launches give the CPU's bytes, too");
	launches = lane->launches;

	search.dataset = city;
	search.question.k = 1;
	search.question.max_distance = INFINITY;
	search.algorithm = search.question.algorithm = GEONN_ALGORITHM_INDEX;
	search.rows = search.columns.rows = search.columns.room = rows;
	search.cancelled = &cancelled;
	search.columns.latitude = observed_latitude;
	search.columns.longitude = observed_longitude;
	search.columns.tag = by_gpu.tag;
	search.columns.distance = by_gpu.distance;
	search.columns.count = by_gpu.count;
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

static void
test_refusals(void)
{
	struct dataset *dataset = make_dataset(SCENE_CITY, 1000);

	rows = 100;
	make_observations(SCENE_CITY, dataset);
	observed_latitude[99] = 91;
	check(!answer(&gpu, dataset, INFINITY, rows, &by_gpu), "coordinates that are no point make a search fail");
	observed_latitude[99] = 9;
	atomic_store(&cancelled, true);
	forget(dataset);
	dataset = make_dataset(SCENE_CITY, 1000);
	check(!answer(&gpu, dataset, INFINITY, rows, &by_gpu), "a cancelled search builds nothing");
	atomic_store(&cancelled, false);
	check(answer(&gpu, dataset, INFINITY, rows, &by_gpu) && by_gpu.pairs == rows, "and the next one does");
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
	test_refusals();
	gpu.operations->close(&gpu);
	cpu.operations->close(&cpu);
	return failed > 0;
}
