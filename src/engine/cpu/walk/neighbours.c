/*
 * neighbours.c
 *		Answers any question for many observations on the CPU.
 *
 * Observations that are neighbours on the curve, in one part of the index, go
 * through the index together, in bundles.  Where they ask for their nearest reference alone, nearest.c answers a
 * bundle; else:
 *
 *	1.	A radius is guessed, from the area of the leaf where the curve puts the
 *		first observation (its home leaf), and from how far the k-th candidates
 *		of bundles before were.  If the question asks for all within a distance, it
 *		is that distance.  For a small k, a single observation takes the radius
 *		that the k-th position of its home leaf proves to be enough.
 *	2.	One walk lists the positions within this radius of the bundle.  They
 *		become float32 offsets from the bundle's centre.
 *	3.	For k up to 3, eight observations go through the list together, each in
 *		a lane of vectors, and keep their nearest positions.  For a larger k, and
 *		where these keys leave open which positions are nearest, each observation
 *		computes its squared chords to all of the list, keeps those below a
 *		threshold that the observation before it suggests, and sorts them by a
 *		network (floats.h).  Those that may be among its first k
 *		get a distance in float64, which decides.  Where they are k and no more,
 *		only their order is open (settled.h).
 *
 * No guess can make an answer wrong.  An observation whose k-th candidate is
 * farther than the radius goes again, by the radius that this candidate proves
 * to be enough.  A bundle that lists too many positions for most of its
 * observations is halved.
 *
 * bundle.c says what float32 may decide.
 *
 * With windows, a search for k neighbours has tasks (turn_tasks.h), and `observation` above means a task: k candidates of
 * one part of the index.  Where the part's references have different windows, only those that overlap the observation's
 * get a key (bundle.c).
 *
 * Some observations have too many positions about as near as their k-th.  Such
 * an observation walks alone (walk_alone.c), and so does a task that has few candidates in its part.  So do all where
 * references have radiuses, or windows and no tasks, as candidates of one observation say little about the next one, and
 * where most references around one are of the same party.
 */
#include "engine/cpu/walk/neighbours.h"

#include <stdlib.h>
#include <string.h>

#include "common/metric.h"
#include "engine/cpu/walk/bundle.h"
#include "engine/cpu/walk/nearest.h"
#include "engine/cpu/walk/settled.h"
#include "engine/cpu/walk/walk.h"

/* a bundle has at most this many observations; prefetch_row() runs this many rows ahead */
#define BUNDLE_MAX 64
#define AHEAD 24

/* a bundle is at most BUNDLE_WIDTH / sqrt(wanted + 1) + BUNDLE_WIDTH_MIN radiuses wide: one list for many
 * observations pays, above all where few positions are wanted */
#define BUNDLE_WIDTH 9.0
#define BUNDLE_WIDTH_MIN 1.6

/* a bundle ends before an observation whose home leaf has less than this share of the first home leaf's
 * area: the bundle's radius would have too many positions around it */
#define AREA_SHARE 0.25

/* if more positions are wanted, proven_radius() is too wide: it reaches to the home leaf's corners */
#define PROVEN_MAX (INDEX_WIDTH / 2)

/* the square of a radius is at most this many times the largest limit of the bundle before */
#define LEAP 8.0

/* after a bundle, `spread` moves by SPREAD_SHARE towards SPREAD_TIMES what the bundle needed; SPREAD_TIMES_FEW
 * if few positions are wanted, for which a longer list costs less than another walk */
#define SPREAD_TIMES 1.3
#define SPREAD_TIMES_FEW 2.0
#define SPREAD_SHARE (1.0 / 16.0)

/* a bundle of at least HALVED_MIN observations is halved if it lists more positions than LISTED_FEW
 * + LISTED_EACH * wanted */
#define LISTED_FEW 256
#define LISTED_EACH 20
#define HALVED_MIN 8

/* observations walk alone if neighbours in the index have a party in common more often than this */
#define SAME_PARTY_MAX 0.5

/* the smallest radius, so that nothing underflows */
#define RADIUS_MIN 0x1p-30

/* look() asks the caller whether to stop: after so many observations that go together (NEAREST_UNTIL_LOOK of those that
 * nearest.c answers), or pairs; and within a bundle after so many measured positions, as each may take a geodesic */
#define ROWS_UNTIL_LOOK 32
#define NEAREST_UNTIL_LOOK 512
#define PAIRS_UNTIL_LOOK 4096
#define MEASURED_UNTIL_LOOK 4096

/* a piece at work */
struct work
{
	struct cpu_neighbours_piece *piece;
	struct cpu_collector collector;
	double		spread;			/* the square of a bundle's radius, as a multiple of its home leaf's area */
	double		width;			/* how wide a bundle is at most, as a multiple of the radius */
	uint32_t	home;			/* the home leaf of the bundle's first observation */
	double		farthest;		/* the largest limit of the present bundle's observations */
	uint64_t	pairs;			/* how many were found since the caller was asked whether to stop */
	bool		over;
	struct cpu_settled settled;
	struct cpu_bundle bundle;
};

static struct geonn_vector
vector_of(const struct cpu_neighbours_piece *piece, uint32_t at)
{
	return piece->observation[cpu_neighbours_row(piece, piece->row[at])].vector;
}

/*
 * Begin the collector with the observation of a row, or task.
 */
static void
begin(struct work *work, uint32_t task)
{
	const struct search *search = work->piece->search;
	uint32_t	row = cpu_neighbours_row(work->piece, task);
	const struct cpu_observation *observation = &work->piece->observation[row];
	struct cpu_collector *collector = &work->collector;
	uint32_t	number = work->piece->first + row;

	collector->from = observation->vector;
	collector->latitude = observation->latitude;
	collector->longitude = observation->longitude;
	cpu_conditions_read(&collector->conditions, &search->columns, number);
	collector->max_distance = fmin(search->question.max_distance, collector->conditions.radius);
	collector->cutoff = number == search->first ? search->cutoff : (struct cutoff) {0};
	CPU_PATH_NAME(cpu_collector_begin) (collector);
}

/*
 * Ask the caller whether to stop.
 */
static void
look(struct work *work)
{
	if (work->piece->is_over(work->piece->turn, work->pairs))
		work->over = true;
	work->pairs = 0;
	work->collector.measured = 0;
}

/*
 * End an observation, and keep its pairs: as many as fit into the batch, and one more if the
 * observation has more.
 */
static void
end(struct work *work, uint32_t row)
{
	struct cpu_neighbours_piece *piece = work->piece;
	struct cpu_collector *collector = &work->collector;
	size_t		count = CPU_PATH_NAME(cpu_collector_end) (collector);

	CPU_PATH_NAME(cpu_settled_end) (&work->settled, piece);
	work->pairs += count;
	if (count > piece->pairs_max)
		count = piece->pairs_max;
	piece->short_of_memory = piece->short_of_memory || collector->short_of_memory;
	if (piece->short_of_memory || cpu_collector_stopped(collector) ||
		!CPU_PATH_NAME(cpu_settled_pairs) (piece, row, collector->chosen, (uint32_t) count))
	{
		work->over = true;
		return;
	}
	piece->answered++;
	if (collector->measured >= MEASURED_UNTIL_LOOK)
		look(work);
}

/*
 * The part of the index that has the candidates of one of the piece's observations, or tasks; index->parts: none has, or
 * the task is to walk through all of its group's parts.
 */
static uint32_t
part_of(const struct cpu_neighbours_piece *piece, uint32_t at)
{
	if (piece->task_row != NULL)
		return cpu_nearest_part(piece->key[at]);
	return cpu_index_part_of(piece->index, cpu_group_read(&piece->search->columns, piece->first + piece->row[at]));
}

/*
 * Answer one of the piece's observations, or tasks, which walks alone.
 */
static void
answer_alone(struct work *work, uint32_t at)
{
	const struct cpu_neighbours_piece *piece = work->piece;
	const struct cpu_index *index = piece->index;

	begin(work, piece->row[at]);
	if (index != NULL && piece->task_row != NULL && part_of(piece, at) < index->parts)
		CPU_PATH_NAME(cpu_index_collect_part) (index, cpu_index_part(index, part_of(piece, at)), &work->collector);
	else if (index != NULL)
		CPU_PATH_NAME(cpu_index_collect) (index, &work->collector);
	else if (piece->references != NULL)
		CPU_PATH_NAME(cpu_brute_collect) (piece->references, &work->collector);
	else
		CPU_PATH_NAME(cpu_brute_collect_columns) (&work->collector);
	CPU_PATH_NAME(cpu_collector_trim) (&work->collector);
	end(work, piece->row[at]);
}

/* Answer the piece's next tasks with their nearest references. */
static void
answer_nearest(struct work *work)
{
	struct cpu_neighbours_piece *piece = work->piece;
	uint32_t	first = piece->answered;
	uint32_t	count;
	uint32_t	alone = CPU_PATH_NAME(cpu_nearest) (piece, work->collector.widest, &count);

	piece->answered += count - (uint32_t) __builtin_popcount(alone);
	for (; alone != 0 && !work->over; alone &= alone - 1)
	{
		answer_alone(work, first + (uint32_t) __builtin_ctz(alone));
		look(work);
	}
}

/*
 * Find the nearest positions of the piece's observations from `first` on, at most FLOATS.
 */
static void
find_few(struct work *work, uint32_t first, uint32_t count)
{
	struct cpu_bundle *bundle = &work->bundle;
	float		offset[3][FLOATS] = {{0.0f}};

	for (uint32_t i = 0; i < count && i < FLOATS; i++)
	{
		struct geonn_vector from = vector_of(work->piece, first + i);

		offset[0][i] = (float) (from.x - bundle->centre[0]);
		offset[1][i] = (float) (from.y - bundle->centre[1]);
		offset[2][i] = (float) (from.z - bundle->centre[2]);
	}
	CPU_PATH_NAME(cpu_bundle_few) (bundle, offset);
	for (uint32_t i = 0; i < count && i < FLOATS; i++)
		for (uint32_t rank = 0; rank < bundle->wanted && rank < bundle->listed; rank++)
			__builtin_prefetch(&bundle->index->start[bundle->position[bundle->few[rank][i] & (CPU_LISTED_MAX - 1)]]);
}

enum outcome
{
	ANSWERED,
	TOO_NEAR,					/* the list may lack some candidates */
	CROWDED						/* too many positions are about equally near */
};

/*
 * Answer an observation from the bundle's list, or from this lane of the few nearest positions.  If the list may
 * lack candidates, *needed is a reach that suffices.
 */
static enum outcome
answer_from(struct work *work, uint32_t row, uint32_t lane, double *needed)
{
	struct cpu_bundle *bundle = &work->bundle;
	struct cpu_collector *collector = &work->collector;
	double		limit;
	uint32_t	count;
	size_t		within;

	begin(work, row);
	limit = collector->limit;
	if (limit < 0.0)
	{
		end(work, row);
		return ANSWERED;
	}
	count = CPU_PATH_NAME(cpu_bundle_collect) (bundle, lane, collector, &limit);
	if (count == UINT32_MAX)
		return CROWDED;
	if (limit > bundle->reach)
	{
		/* one with few candidates in the part would widen the others' lists */
		if (bundle->compares && count < bundle->wanted)
			return CROWDED;
		*needed = limit < INFINITY ? limit : 4.0 * bundle->reach;
		return TOO_NEAR;
	}
	if (limit > work->farthest)
		work->farthest = limit;
	within = collector->count;
	CPU_PATH_NAME(cpu_collector_drop) (collector, bundle->index);

	/* more of the wanted positions than expected may have no candidate */
	if (bundle->wanted > 0 && count >= bundle->wanted && limit < collector->limit && !collector->short_of_memory)
	{
		if (within - collector->count > bundle->wanted - collector->k)
			return CROWDED;
		if (limit < GEONN_NEAR_CHORD && CPU_PATH_NAME(cpu_settled_keep) (&work->settled, work->piece, collector, row))
		{
			work->pairs += collector->k;
			collector->measured += collector->k;
			if (collector->measured >= MEASURED_UNTIL_LOOK)
				look(work);
			return ANSWERED;
		}
	}
	end(work, row);
	return ANSWERED;
}

/*
 * List positions for some observations, and change the radius until they are enough, and for a single
 * one not too many; *too_large becomes the smallest radius that listed too many.  False if the
 * observations have to walk alone.
 */
static bool
fit_radius(struct work *work, uint32_t first, uint32_t count, double *radius, double *too_large)
{
	struct cpu_bundle *bundle = &work->bundle;

	bundle->box = cpu_empty_box;
	for (uint32_t i = first; i < first + count; i++)
		cpu_box_enlarge(&bundle->box, vector_of(work->piece, i));
	for (int tries = 0; tries < CPU_TRIES_MAX; tries++)
	{
		bool		listed = CPU_PATH_NAME(cpu_bundle_list) (bundle, *radius);

		if (listed && (bundle->listed >= bundle->wanted || bundle->reach >= work->collector.widest))
			return true;
		if (!listed && (count > 1 || bundle->wanted == 0))
			return count > 1;
		if (!listed)
		{
			*too_large = *radius;
			*radius *= 0.6;
		}
		else
		{
			double		times = bundle->listed > 0 ? sqrt(2.0 * bundle->wanted / bundle->listed) : 3.0;

			times = times > 3.0 ? 3.0 : times < 1.2 ? 1.2 : times;
			*radius = *radius * times < *too_large ? *radius * times : 0.5 * (*radius + *too_large);
			if (*radius > CPU_RADIUS_MAX)
				*radius = CPU_RADIUS_MAX;
		}
	}
	return false;
}

/*
 * Answer some of the piece's observations, all of one part, by a radius that may be too small or
 * too large.
 */
static void
answer_some(struct work *work, uint32_t first, uint32_t count, double radius)
{
	struct cpu_neighbours_piece *piece = work->piece;
	struct cpu_bundle *bundle = &work->bundle;
	uint32_t	enough = LISTED_FEW + LISTED_EACH * bundle->wanted;
	double		too_large = INFINITY;
	double		all_needed = 0.0;
	uint32_t	left = 0;
	bool		alone;

	alone = !fit_radius(work, first, count, &radius, &too_large);
	if (!alone && count > 1 && (bundle->listed > CPU_LISTED_MAX ||
								(bundle->listed > enough && count >= HALVED_MIN && bundle->wanted > 0)))
	{
		answer_some(work, first, count / 2, radius);
		if (!work->over)
			answer_some(work, first + count / 2, count - count / 2, radius);
		return;
	}

	/* observations for which the list is too short are swapped to the end */
	for (uint32_t i = first; i < first + count && !work->over; i++)
	{
		uint32_t	row = piece->row[i];
		double		needed;
		uint32_t	lane = (i - first) % FLOATS;
		enum outcome outcome = CROWDED;

		if (!alone && lane == 0 && cpu_bundle_few_wanted(bundle))
			find_few(work, i, first + count - i);
		if (!alone)
			outcome = answer_from(work, row, lane, &needed);

		/* a larger radius may list too many positions again */
		if (outcome == TOO_NEAR && too_large < INFINITY)
			outcome = CROWDED;
		if (outcome == ANSWERED)
		{
			piece->row[i] = piece->row[i - left];
			piece->row[i - left] = row;
		}
		else if (outcome == CROWDED)
		{
			piece->row[i] = piece->row[i - left];
			piece->row[i - left] = row;
			answer_alone(work, i - left);
		}
		else
		{
			left++;
			all_needed = needed > all_needed ? needed : all_needed;
		}
	}
	if (left == 0 || work->over)
		return;
	radius = sqrt(all_needed) * (1 + 1e-6);
	if (radius > CPU_RADIUS_MAX)
		radius = CPU_RADIUS_MAX;
	first += count - left;
	if (left > 4 && all_needed <= 4.0 * bundle->reach)
		answer_some(work, first, left, radius);
	else
		for (uint32_t i = first; i < first + left && !work->over; i++)
			answer_some(work, i, 1, radius);
}

/*
 * About the area that a leaf's positions cover, from the sides of their box.
 */
static double
leaf_area(const struct cpu_index *index, uint32_t leaf)
{
	double		x = index->high[0][leaf] - index->low[0][leaf];
	double		y = index->high[1][leaf] - index->low[1][leaf];
	double		z = index->high[2][leaf] - index->low[2][leaf];

	return sqrt(x * x * y * y + y * y * z * z + z * z * x * x);
}

/*
 * The first radius of a bundle whose home leaf has this area.
 */
static double
first_radius(const struct work *work, double area)
{
	double		reach = work->spread * area;

	if (work->farthest > 0.0 && reach > LEAP * work->farthest)
		reach = LEAP * work->farthest;
	if (work->bundle.wanted == 0 || reach > work->collector.widest)
		reach = work->collector.widest * (1 + 1e-12);
	return reach < RADIUS_MIN * RADIUS_MIN ? RADIUS_MIN : reach < CPU_RADIUS_MAX * CPU_RADIUS_MAX ? sqrt(reach) : CPU_RADIUS_MAX;
}

/*
 * A radius within which an observation has the wanted number of positions, as those of its home leaf whose bits are set
 * show.  INFINITY if these are fewer, or so many are wanted that a guess is better.
 */
static double
proven_radius(const struct work *work, uint32_t home, uint32_t bits, struct geonn_vector from)
{
	const struct cpu_bundle *bundle = &work->bundle;
	uint32_t	wanted = bundle->wanted;
	double		chords[INDEX_WIDTH];
	int32_t		key[INDEX_WIDTH];
	float		kth;

	if (wanted == 0 || wanted > PROVEN_MAX || wanted > (uint32_t) __builtin_popcount(bits))
		return INFINITY;
	cpu_leaf_chords(bundle->index, home, from, chords);
	for (int i = 0; i < INDEX_WIDTH; i++)
	{
		float		chord = bits >> i & 1 ? (float) chords[i] : INFINITY;

		memcpy(&key[i], &chord, sizeof(chord));
	}
	sort_network(key, INDEX_WIDTH / WIDE);
	memcpy(&kth, &key[wanted - 1], sizeof(kth));

	/* these margins exceed the rounding of float32, and of all keys (bundle.c) */
	return sqrt(geonn_metric_chord_limit(work->collector.dataset->metric, kth * (1 + 0x1p-11) + 0x1p-100)) *
		(1 + 1e-5);
}

/*
 * The home leaf of one of the piece's observations, which is at the home leaf `from` or after it.
 */
static uint32_t
home_of(const struct work *work, uint32_t at, uint32_t from)
{
	return cpu_home_leaf(work->piece->index, cpu_nearest_code(work->piece->key[at]), from,
						 cpu_node_above(work->bundle.part.end - 1, 0));
}

/* Fetch into the cache what the answer of a row needs of the observation. */
static void
prefetch_row(const struct cpu_neighbours_piece *piece, uint32_t row)
{
	const struct geonn_batch_columns *columns = &piece->search->columns;

	__builtin_prefetch(&piece->observation[row].vector);
	__builtin_prefetch(&piece->observation[row].longitude);
	if (columns->excluded_first != NULL)
	{
		__builtin_prefetch(&columns->excluded_first[piece->first + row]);
		__builtin_prefetch(&columns->excluded_last[piece->first + row]);
	}
}

/*
 * Fetch into the cache what an answer from a home leaf needs.  If few references coincide, position i
 * has references near tag[i].
 */
static void
prefetch_home(const struct cpu_index *index, uint32_t home)
{
	cpu_prefetch_leaf(index, home);
	for (uint32_t i = home * INDEX_WIDTH; i < (home + 1) * INDEX_WIDTH; i += 16)
	{
		__builtin_prefetch(index->start + i);
		__builtin_prefetch(index->tag + i);
		__builtin_prefetch(index->tag + i + 8);
	}
}

/*
 * How many of the piece's next observations go together: all of one part, in a box not much wider than the
 * radius, and with home leaves not much smaller than the first.
 */
static uint32_t
count_bundle(const struct work *work, double area, double radius)
{
	const struct cpu_neighbours_piece *piece = work->piece;
	uint32_t	first = piece->answered;
	uint32_t	home = work->home;
	struct cpu_box box = cpu_empty_box;
	uint32_t	count = 0;

	for (; count < BUNDLE_MAX && first + count < piece->count; count++)
	{
		if (first + count + AHEAD < piece->count)
			prefetch_row(piece, cpu_neighbours_row(piece, piece->row[first + count + AHEAD]));
		cpu_box_enlarge(&box, vector_of(piece, first + count));
		if (count == 0)
			continue;
		if (part_of(piece, first + count) != work->bundle.number || cpu_box_extent(&box) > work->width * radius)
			break;
		home = home_of(work, first + count, home);
		if (leaf_area(piece->index, home) < AREA_SHARE * area)
			break;
	}
	return count;
}

/* A bit for each position of a leaf, set if one of the piece's observations may have a candidate there. */
static uint32_t
leaf_bits(const struct work *work, uint32_t at, uint32_t leaf)
{
	const struct cpu_neighbours_piece *piece = work->piece;
	uint32_t	number = piece->first + cpu_neighbours_row(piece, piece->row[at]);
	struct point_windows windows;

	if (!work->bundle.compares)
		return cpu_part_bits(work->bundle.part, leaf);
	windows = point_windows_read(&piece->search->columns, number);
	return cpu_part_bits(work->bundle.part, leaf) & cpu_leaf_overlaps(piece->index, leaf, &windows);
}

/*
 * Answer the piece's next observations together.
 */
static void
answer_next(struct work *work)
{
	const struct cpu_neighbours_piece *piece = work->piece;
	struct cpu_bundle *bundle = &work->bundle;
	uint32_t	first = piece->answered;
	uint32_t	part = part_of(piece, first);
	uint32_t	home;
	uint32_t	bits;
	uint32_t	count;
	double		area;
	double		radius;

	if (part == piece->index->parts)
	{
		answer_alone(work, first);
		return;
	}
	if (part != bundle->number)
	{
		bundle->number = part;
		bundle->part = cpu_index_part(piece->index, part);
		bundle->compares = piece->index->slabs != NULL && !piece->index->slabs->is_uniform[part];
		work->home = cpu_node_above(bundle->part.first, 0);
		bundle->threshold = INFINITY;
		work->farthest = 0.0;
	}
	home = work->home = home_of(work, first, work->home);
	bits = leaf_bits(work, first, home);
	if (bits == 0)
	{
		answer_alone(work, first);
		return;
	}
	area = leaf_area(piece->index, home);
	radius = first_radius(work, area);
	count = count_bundle(work, area, radius);
	if (count == 1)
	{
		double		proven = proven_radius(work, home, bits, vector_of(piece, first));

		if (proven < radius || (proven < INFINITY && proven * proven < work->collector.widest))
			radius = proven > RADIUS_MIN ? proven : RADIUS_MIN;
	}
	work->farthest = 0.0;
	if (first + count < piece->count)
	{
		work->home = home_of(work, first + count, home);
		prefetch_home(piece->index, work->home);
	}
	answer_some(work, first, count, radius);
	if (work->farthest > 0.0 && area > 0.0)
	{
		double		times = cpu_bundle_few_wanted(bundle) ? SPREAD_TIMES_FEW : SPREAD_TIMES;
		double		spread = times * work->farthest / area;

		spread = spread < 2.0 * work->spread ? spread : 2.0 * work->spread;
		work->spread += (spread - work->spread) * SPREAD_SHARE;
	}
}

void
CPU_PATH_NAME(cpu_neighbours) (struct cpu_neighbours_piece *piece)
{
	const struct search *search = piece->search;
	const struct cpu_index *index = piece->index;
	const struct cpu_references *references = piece->references;
	uint32_t	next_look = piece->bundle > 0 ? NEAREST_UNTIL_LOOK : 0;
	bool		together = piece->task_row != NULL || (index != NULL && index->slabs == NULL && !index->limited);
	struct work work;

	/* the rest is filled when it is needed */
	work.piece = piece;
	work.collector = (struct cpu_collector) {
		.dataset = search->dataset,
		.question = &search->question,
		.cancelled = search->cancelled,
		.x = index != NULL ? index->x : references != NULL ? references->x : NULL,
		.y = index != NULL ? index->y : references != NULL ? references->y : NULL,
		.z = index != NULL ? index->z : references != NULL ? references->z : NULL,
		.start = index != NULL ? index->start : NULL,
		.place = index != NULL ? index->place : NULL,
		.tag = index != NULL ? index->tag : search->dataset->tag,
		.limited = index != NULL ? index->limited : search->dataset->radius != NULL,
		.widest = geonn_metric_radius_limit(search->dataset->metric, search->question.max_distance),
		.room = piece->pairs_max - 1
	};
	work.spread = 0.0;
	work.farthest = 0.0;
	work.pairs = 0;
	work.over = false;
	work.settled.count = 0;
	work.bundle.index = index;
	work.bundle.number = UINT32_MAX;
	work.bundle.wanted = 0;
	work.bundle.most = 0;
	work.bundle.compares = false;
	if (search->question.k > 0)
	{
		work.spread = (search->question.k + 3) / 80.0;	/* of uniform points, about */
		work.bundle.wanted = search->question.k + ((search->dataset->columns & GEONN_COLUMN_EXCLUDED) != 0);
		if (index != NULL && index->party[0] != NULL && index->same_party <= SAME_PARTY_MAX)
		{
			double		own = search->question.k * index->same_party;

			/* want more by so many as are rarely exceeded by positions of the observation's own party, which do not count */
			work.bundle.wanted += (uint32_t) ceil((own + 2.0 * sqrt(own)) / (1.0 - index->same_party));
		}
		together = together && (piece->bundle > 0 || index->party[0] == NULL || index->same_party <= SAME_PARTY_MAX);
		work.bundle.most = FLOATS;
		while (work.bundle.most < work.bundle.wanted + 2.0 * sqrt(work.bundle.wanted) + 6.0)
			work.bundle.most *= 2;
		work.bundle.goal = work.bundle.wanted + (work.bundle.most - work.bundle.wanted) * 2 / 5;
		together = together && work.bundle.most <= SORT_KEYS_MAX;
	}
	work.width = BUNDLE_WIDTH / sqrt(work.bundle.wanted + 1) + BUNDLE_WIDTH_MIN;
	while (piece->answered < piece->count && !work.over)
	{
		uint32_t	row = piece->row[piece->answered];

		if (piece->bundle > 0)
			answer_nearest(&work);
		else if (together && !(row == 0 && search->cutoff.present))
			answer_next(&work);
		else
			answer_alone(&work, piece->answered);
		if (piece->answered < next_look && work.pairs < PAIRS_UNTIL_LOOK && together)
			continue;
		next_look = piece->answered + (piece->bundle > 0 ? NEAREST_UNTIL_LOOK : ROWS_UNTIL_LOOK);
		look(&work);
	}
	CPU_PATH_NAME(cpu_settled_end) (&work.settled, piece);
	CPU_PATH_NAME(cpu_collector_free) (&work.collector);
}
