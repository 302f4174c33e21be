/*
 * arcs_index_test.c
 *		The index of arcs: how neighbours share its boxes, and how much memory it takes.
 *
 * rooms: engine/cpu/arcs engine/shapes
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arc.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/arcs/arcs.h"
#include "engine/cpu/base/path.h"
#include "engine/cpu/built.h"
#include "../lib/random.h"
#include "../lib/verdict.h"
#include "device_work.h"

#define ARCS_MAX 20000
#define ROWS 4096

static struct device machine = {.operations = &cpu_device_operations};
static atomic_bool cancelled;

/* columns for arcs */
static struct
{
	uint32_t	count;
	int32_t		shapes;
	int32_t		polygons;
	double		latitude[ARCS_MAX];
	double		longitude[ARCS_MAX];
	double		end_latitude[ARCS_MAX];
	double		end_longitude[ARCS_MAX];
	int64_t		tag[ARCS_MAX];
	int32_t		shape[ARCS_MAX];
	int32_t		polygon[ARCS_MAX];
}			arcs;

/* observations, and their answers by index and by brute force */
static double latitude[ROWS];
static double longitude[ROWS];
static struct
{
	int64_t		tag[ROWS];
	double		distance[ROWS];
	double		place_latitude[ROWS];
	double		place_longitude[ROWS];
	double		fraction[ROWS];
}			answers[2];

static void
add_arc(double from_latitude, double from_longitude, double to_latitude, double to_longitude, int32_t polygon)
{
	uint32_t	i = arcs.count++;

	arcs.latitude[i] = from_latitude;
	arcs.longitude[i] = from_longitude;
	arcs.end_latitude[i] = to_latitude;
	arcs.end_longitude[i] = to_longitude;
	arcs.shape[i] = arcs.tag[i] = arcs.shapes;
	arcs.polygon[i] = polygon;
}

static struct dataset *
make_dataset(void)
{
	struct geonn_batch_columns batch = {
		.latitude = arcs.latitude,
		.longitude = arcs.longitude,
		.tag = arcs.tag,
		.end_latitude = arcs.end_latitude,
		.end_longitude = arcs.end_longitude,
		.shape = arcs.shape,
		.polygon = arcs.polygon
	};
	struct dataset *dataset = dataset_create(1, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC);
	struct failure failure;

	if (dataset_append(dataset, &batch, arcs.count, &failure) && dataset_check_end(dataset, &failure))
		return dataset;
	printf("# %s\n", failure.message);
	dataset_free(dataset);
	return NULL;
}

/* Find the nearest shape of so many observations. */
static bool
answer(struct dataset *dataset, enum geonn_algorithm algorithm, bool places, uint32_t rows)
{
	static uint32_t counts[ROWS];
	int			by_brute = algorithm == GEONN_ALGORITHM_BRUTE;
	struct search search = {
		.dataset = dataset,
		.question = {.k = 1,.algorithm = algorithm,.max_distance = INFINITY,.places = places},
		.algorithm = algorithm,
		.rows = rows,
		.cancelled = &cancelled,
		.columns = {
			.rows = rows,
			.room = rows,
			.latitude = latitude,
			.longitude = longitude,
			.tag = answers[by_brute].tag,
			.distance = answers[by_brute].distance,
			.end_latitude = answers[by_brute].place_latitude,
			.end_longitude = answers[by_brute].place_longitude,
			.fraction = answers[by_brute].fraction,
			.count = counts
		}
	};

	return dataset != NULL && device_work(&machine, &search, &search.failure) && !search.failed && search.pairs == rows;
}

/*
 * Neighbours go through lists of what is near them (src/engine/cpu/arcs/arcs_search.c).  Observations in a patch of many
 * short lines and, now and then, far away have limits that differ a thousandfold.
 */
static void
test_bundles(void)
{
	struct dataset *dataset;
	bool		answered;

	arcs.count = 0;
	for (arcs.shapes = 0; arcs.shapes < 2000; arcs.shapes++)
	{
		bool		is_far = arcs.shapes % 100 == 0;
		double		lat = is_far ? random_between(-80.0, 80.0) : 10.0 + random_between(-1.0, 1.0) * random_between(0.0, 1.0);
		double		lon = is_far ? random_between(-180.0, 180.0) : 20.0 + random_between(-1.0, 1.0);

		add_arc(lat, lon, lat + random_between(-0.05, 0.05), lon + random_between(-0.05, 0.05), 0);
	}
	for (int i = 0; i < ROWS; i++)
	{
		latitude[i] = i % 8 == 0 ? random_between(-90.0, 90.0) : 10.0 + random_between(-6.0, 6.0);
		longitude[i] = i % 8 == 0 ? random_between(-180.0, 180.0) : 20.0 + random_between(-6.0, 6.0);
	}
	dataset = make_dataset();
	answered = answer(dataset, GEONN_ALGORITHM_INDEX, false, ROWS) && answer(dataset, GEONN_ALGORITHM_BRUTE, false, ROWS);
	report("neighbours whose limits differ have the answers of brute force", answered &&
		   memcmp(answers[0].tag, answers[1].tag, sizeof(answers[0].tag)) == 0 &&
		   memcmp(answers[0].distance, answers[1].distance, sizeof(answers[0].distance)) == 0);
	device_forget(&machine, dataset);
}

/*
 * An index cuts long arcs (src/engine/cpu/arcs/arcs.c).  Lines of one arc of up to almost half a great circle have the answers
 * of brute force, no piece is much longer than 250 km, and all pieces together take no more memory than is counted.
 */
static void
test_long(void)
{
	struct dataset *dataset;
	const struct cpu_arcs *built;
	double		longest = 0.0;
	bool		answered;

	arcs.count = 0;
	for (arcs.shapes = 0; arcs.shapes < 2000; arcs.shapes++)
	{
		double		lat = random_between(-80.0, 80.0);
		double		lon = random_between(-180.0, 180.0);

		add_arc(lat, lon, random_below(2) ? random_between(-80.0, 80.0) : -lat + random_between(-1.0, 1.0),
				random_below(3) ? random_between(-180.0, 180.0) : lon + (lon > 0.0 ? -179.0 : 179.0), 0);
	}
	for (int i = 0; i < ROWS; i++)
	{
		latitude[i] = i % 64 == 0 ? 90.0 - i % 128 / 64 * 180.0 : random_between(-90.0, 90.0);
		longitude[i] = random_between(-180.0, 180.0);
	}
	dataset = make_dataset();
	answered = answer(dataset, GEONN_ALGORITHM_INDEX, false, ROWS) && answer(dataset, GEONN_ALGORITHM_BRUTE, false, ROWS);
	report("long arcs have the answers of brute force", answered &&
		   memcmp(answers[0].tag, answers[1].tag, sizeof(answers[0].tag)) == 0 &&
		   memcmp(answers[0].distance, answers[1].distance, sizeof(answers[0].distance)) == 0);
	built = ((struct cpu_built *) dataset->built[0])->arcs;
	for (uint32_t i = 0; i < built->count; i++)
	{
		uint32_t	vertex = built->leaf[i / CPU_ARCS_LEAF].vertex[i % CPU_ARCS_LEAF];

		longest = fmax(longest, geonn_distance_of(built->vertices.vertex[vertex], built->vertices.vertex[vertex + 1]));
	}
	printf("# %zu pieces of %u arcs, the longest of %.6f km\n", built->count, arcs.count, longest / 1000.0);
	report("no piece is longer than 250 km", built->count > 10 * arcs.count && longest < 250e3 + 1e-3);
	report("the pieces take no more memory than is counted", (double) atomic_load(&dataset->built_bytes) - 4 * 4096.0 <
		   (double) arcs.count * GEONN_ARC_INDEX_BYTES + (double) dataset->part_bytes);
	device_forget(&machine, dataset);
}

static size_t chains;			/* of a dataset's */

/* Add a ring, or a line, of so many arcs. */
static void
add_chain(int count, int32_t polygon)
{
	double		lat = random_between(-60.0, 60.0);
	double		lon = random_between(-170.0, 170.0);

	chains++;
	for (int i = 0; i < count; i++)
	{
		double		turn = 2.0 * M_PI * i / count;
		double		next = polygon != 0 && i == count - 1 ? 0.0 : 2.0 * M_PI * (i + 1) / count;

		add_arc(lat + cos(turn), lon + sin(turn), lat + cos(next), lon + sin(next), polygon);
	}
}

/*
 * Whatever lines and polygons a dataset has, with fractions, its index takes no more memory than is counted; without them,
 * and with the dataset's columns, at most 96 bytes a vertex.
 */
static void
test_bytes(int sets)
{
	long		larger = 0;
	long		larger_vertices = 0;
	long		refused = 0;
	double		most = 0.0;

	for (int set = 0; set < sets; set++)
	{
		int			lines = random_below(4);	/* of ten shapes, about */
		int			corners = 3 + random_below(random_below(2) ? 2 : 30);
		int			wanted = 3000 + random_below(ARCS_MAX - 4000);
		struct dataset *dataset;

		arcs.count = 0;
		chains = 0;
		arcs.shapes = arcs.polygons = 0;
		add_chain(1, 0);
		for (arcs.shapes = 1; (int) arcs.count < wanted; arcs.shapes++)
			if (random_below(10) < lines)
				add_chain(1 + random_below(corners), 0);
			else
			{
				arcs.polygons++;
				for (int rings = random_below(5) ? 1 : 1 + random_below(6); rings > 0; rings--)
					add_chain(corners, arcs.polygons);
			}
		dataset = make_dataset();
		if (!answer(dataset, GEONN_ALGORITHM_INDEX, true, 1))
			refused++;
		else
		{
			/* what is rounded up to whole pages is beside it (engine/server/datasets.c) */
			double		bytes = (double) atomic_load(&dataset->built_bytes) - 4 * 4096.0;
			double		fractions = (double) arcs.count * GEONN_FRACTION_BYTES;
			double		counted = (double) arcs.count * GEONN_ARC_INDEX_BYTES + (double) dataset->part_bytes;
			double		all = (double) (arcs.count * dataset_row_bytes(dataset)) + counted;

			most = fmax(most, (bytes - fractions) / counted);
			larger += bytes - fractions > counted;
			larger_vertices += all > 96.0 * (double) (arcs.count + chains);
		}
		device_forget(&machine, dataset);
	}
	printf("# at most %.3f of what is counted\n", most);
	report_failures("random lines and polygons are taken", refused);
	report_failures("and their index takes no more bytes than are counted", larger);
	report("and some take at least five sixths of that", most > 5.0 / 6.0);
	report_failures("with their columns that is at most 96 bytes a vertex", larger_vertices);
}

/*
 * Where polygons ask, the index gets the places of the parts of its lines and polygons, once, and they take no more memory than
 * is counted.  A search for lines gets none.
 */
static void
test_parts(void)
{
	static int64_t tag[ROWS];
	static double distance[ROWS];
	static uint32_t count[ROWS];
	struct search search = {
		.question = {.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY},
		.algorithm = GEONN_ALGORITHM_INDEX,
		.cancelled = &cancelled,
		.columns = {.rows = ROWS,.room = ROWS,.tag = tag,.distance = distance,.count = count}
	};
	uint64_t	before;
	uint64_t	bytes[2];
	double		most = 0.0;
	bool		answered = true;

	arcs.count = 0;
	chains = 0;
	for (arcs.shapes = 0; arcs.shapes < 5000; arcs.shapes++)
		add_chain(2, 0);
	search.dataset = make_dataset();
	answered = answer(search.dataset, GEONN_ALGORITHM_INDEX, false, 1);
	before = atomic_load(&search.dataset->built_bytes);
	for (int polygons = 0; polygons < 2; polygons++)
	{
		arcs.count = 0;
		for (arcs.shapes = 0; arcs.shapes < 2000; arcs.shapes++)
			add_chain((polygons ? 3 : 1) + arcs.shapes % 8, polygons * (arcs.shapes + 1));
		search.shapes = make_dataset();
		search.shapes->sealed = true;	/* nothing is left to be copied */
		search.arcs = arcs.count;
		search.rows = (uint32_t) arcs.shapes;
		search.answered = search.pairs = 0;
		answered = device_work(&machine, &search, &search.failure) && !search.failed && search.pairs == search.rows && answered;
		bytes[polygons] = atomic_load(&search.dataset->built_bytes) - before;
		most = fmax(most, ((double) (arcs.count * dataset_row_bytes(search.shapes) + atomic_load(&search.shapes->built_bytes)) -
						   4 * 4096.0) / ((double) arcs.count * GEONN_OBSERVED_ARC_BYTES + (double) search.shapes->part_bytes));
		device_forget(&machine, search.shapes);
	}
	printf("# %llu bytes for 5,000 parts\n", (unsigned long long) bytes[1]);
	printf("# what asks takes %.3f of what is counted\n", most);
	report("what asks takes no more memory than is counted, and not much less", most <= 1.0 && most > 0.7);
	report("lines that ask get the nearest, and no places of parts", answered && bytes[0] == 0);
	report("polygons that ask get them, in no more memory than is counted", answered && bytes[1] > 0 &&
		   bytes[1] <= 5000 * GEONN_PART_BYTES + 4096);
	device_forget(&machine, search.dataset);
}

int
main(void)
{
	struct failure failure;

	cpu_path_choose(NULL, &failure);
	thread_pool_set_threads(1);
	if (!machine.operations->probe(&machine, &failure))
		return EXIT_FAILURE;
	test_bundles();
	test_long();
	test_bytes(60);
	test_parts();
	machine.operations->close(&machine);
	return summed_up();
}
