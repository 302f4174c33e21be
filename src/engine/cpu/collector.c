/*
 * collector.c
 *		Collects the candidates of one observation during a search on the CPU.
 *
 * For k neighbours, the k-th smallest squared chord so far gives the limit
 * (geonn_metric_chord_limit() leads to the proofs).  So from time to time the
 * collected candidates are partitioned at the k-th, and those above the limit
 * are dropped.  For all candidates within a radius, only as many as the room
 * holds are needed, and one more to tell that more exist: so k is the room
 * plus one, among the candidates after the cutoff.
 *
 * A reference with a radius is a candidate only if its distance is within that.
 * So its distance is computed before it counts as one of the k.  The
 * observation's own radius is like max_distance: what lies beyond it is farther
 * than all candidates, and is dropped last.
 *
 * Chords cannot drop candidates when many share one distance, or when they are
 * so far away on the spheroid that chords say nothing.  When such candidates
 * become too many, their distances are computed and decide.  With ties, all
 * candidates at the last distance are kept, and memory grows with them.
 */
#include "engine/cpu/collector.h"

#include <stdlib.h>

#include "common/metric.h"

#define CAPACITY_MIN 128

/* how many candidates come at least before the limit shrinks again */
#define TRIM_AFTER_MIN 16

void
cpu_collector_begin(struct cpu_collector *collector)
{
	const struct question *question = collector->question;

	collector->count = 0;
	collector->limit = collector->widest;
	if (collector->max_distance < question->max_distance)
		collector->limit = geonn_metric_radius_limit(collector->dataset->metric,
													 collector->max_distance);
	collector->floor = 0.0;
	collector->k = question->k > 0 ? question->k : collector->room + 1;
	collector->next_trim = collector->k;

	/* pairs that are surely nearer than the cutoff were in an earlier answer */
	if (collector->cutoff.present && question->k == 0 &&
		geonn_metric_chord_decides(collector->dataset->metric))
	{
		uint32_t	place = collector->cutoff.place;
		double		chord = geonn_chord_squared(collector->from,
												geonn_unit_vector(collector->dataset->latitude[place],
																  collector->dataset->longitude[place]));

		/* geonn_chord_limit(floor) < chord */
		collector->floor = chord * (1.0 - 0x1p-45) - 0x1p-999;
	}
}

static double
distance_of(const struct cpu_collector *collector, uint32_t place, uint32_t point)
{
	const struct dataset *dataset = collector->dataset;
	struct geonn_vector there = {
		collector->x[point], collector->y[point], collector->z[point]
	};

	if (geonn_metric_chord_decides(dataset->metric))
		return geonn_metric_distance_of(dataset->metric, collector->from, there);
	return geonn_metric_distance(dataset->metric, collector->latitude, collector->longitude,
								 dataset->latitude[place], dataset->longitude[place]);
}

/*
 * Fill in the distances that are not known.  Until the candidates have been
 * partitioned, references at one point follow each other.
 */
static void
measure(struct cpu_collector *collector)
{
	const struct dataset *dataset = collector->dataset;
	struct collected *before = NULL;

	for (size_t i = 0; i < collector->count; i++)
	{
		struct collected *item = &collector->items[i];

		if (i % 1024 == 0 && cpu_collector_stopped(collector))
			return;
		if (item->distance < 0.0)
		{
			bool		known = before != NULL && before->point == item->point;

			/*
			 * in brute force every reference is a point of its own; coincident
			 * ones show by their coordinates
			 */
			if (!known && before != NULL && !geonn_metric_chord_decides(dataset->metric))
				known = before->chord == item->chord &&
					dataset->latitude[before->place] == dataset->latitude[item->place] &&
					dataset->longitude[before->place] == dataset->longitude[item->place];
			item->distance = known ? before->distance :
				distance_of(collector, item->place, item->point);
		}
		before = item;
	}
}

static bool
chord_before(const struct collected *a, const struct collected *b)
{
	return a->chord < b->chord;
}

static bool
distance_before(const struct collected *a, const struct collected *b)
{
	return a->distance < b->distance ||
		(a->distance == b->distance && a->place < b->place);
}

static void
swap(struct collected *a, struct collected *b)
{
	struct collected item = *a;

	*a = *b;
	*b = item;
}

/*
 * Bring the first k of the order to the front; the k-th stands at k - 1.  The
 * range that holds it is split around a median of three, into three parts
 * (before, equal, after), so that equal items do no harm.
 */
static inline __attribute__((always_inline)) void
partition(struct collected *items, size_t count, size_t k,
		  bool (*before) (const struct collected *, const struct collected *))
{
	size_t		low = 0;
	size_t		high = count;	/* end of the range */

	while (high - low > 1)
	{
		struct collected *a = &items[low];
		struct collected *b = &items[low + (high - low) / 2];
		struct collected *c = &items[high - 1];
		struct collected pivot = before(a, b) ? (before(b, c) ? *b : before(a, c) ? *c : *a) :
			(before(a, c) ? *a : before(b, c) ? *c : *b);
		size_t		smaller = low;	/* end of the items before the pivot */
		size_t		larger = high;	/* begin of the items after the pivot */
		size_t		at = low;

		while (at < larger)
		{
			if (before(&items[at], &pivot))
				swap(&items[at++], &items[smaller++]);
			else if (before(&pivot, &items[at]))
				swap(&items[at], &items[--larger]);
			else
				at++;
		}
		if (k - 1 < smaller)
			high = smaller;
		else if (k - 1 >= larger)
			low = larger;
		else
			return;
	}
}

/*
 * Lower the limit, and drop the candidates above it.
 */
static void
trim_by_chord(struct cpu_collector *collector)
{
	double		last;
	double		limit;
	size_t		kept = collector->k;

	partition(collector->items, collector->count, collector->k, chord_before);
	last = collector->items[collector->k - 1].chord;
	limit = geonn_metric_chord_limit(collector->dataset->metric, last);
	if (limit < collector->limit)
		collector->limit = limit;
	for (size_t i = collector->k; i < collector->count; i++)
		if (collector->items[i].chord <= collector->limit)
			collector->items[kept++] = collector->items[i];
	collector->count = kept;
}

/*
 * Keep the first k of the order, and the candidates that tie with the k-th.
 */
static void
trim_by_distance(struct cpu_collector *collector)
{
	size_t		kept = collector->k;
	double		last;

	measure(collector);
	partition(collector->items, collector->count, collector->k, distance_before);
	last = collector->items[collector->k - 1].distance;
	if (collector->question->ties && collector->question->k > 0)
		for (size_t i = collector->k; i < collector->count; i++)
			if (collector->items[i].distance == last)
				collector->items[kept++] = collector->items[i];
	collector->count = kept;
}

/*
 * Whether too many candidates remain after trim_by_chord().
 */
static bool
is_crowded(const struct cpu_collector *collector)
{
	return collector->count > CAPACITY_MIN && collector->count / 2 > collector->k;
}

static void
trim(struct cpu_collector *collector)
{
	size_t		after;

	trim_by_chord(collector);
	if (is_crowded(collector))
		trim_by_distance(collector);
	after = collector->k / 2 > TRIM_AFTER_MIN ? collector->k / 2 : TRIM_AFTER_MIN;

	/* each trim costs time in proportion to the candidates */
	if (after < collector->count / 2)
		after = collector->count / 2;
	collector->next_trim = collector->count + after;
}

static bool
make_room(struct cpu_collector *collector)
{
	size_t		capacity = collector->capacity > 0 ? 2 * collector->capacity : CAPACITY_MIN;
	struct collected *items = realloc(collector->items, capacity * sizeof(*items));

	if (items == NULL)
	{
		collector->short_of_memory = true;
		return false;
	}
	collector->items = items;
	collector->capacity = capacity;
	return true;
}

/*
 * Whether a reference comes after the cutoff.
 */
static bool
is_after_cutoff(const struct cpu_collector *collector, double distance, uint32_t place)
{
	return distance > collector->cutoff.distance ||
		(distance == collector->cutoff.distance && place > collector->cutoff.place);
}

void
cpu_collector_add(struct cpu_collector *collector, double chord, uint32_t point,
				  const uint32_t *places, size_t count)
{
	const struct dataset *dataset = collector->dataset;
	const struct question *question = collector->question;

	/* k neighbours are known as the first k in order; the cutoff, if present, is applied last */
	bool		resumed = collector->cutoff.present && question->k == 0;
	bool		has_radius = dataset->radius != NULL && dataset->radius[places[0]] != INFINITY;
	double		distance = resumed || has_radius ? distance_of(collector, places[0], point) : -1.0;
	size_t		most = question->ties && question->k > 0 ? SIZE_MAX : collector->k;
	bool		excludes = (dataset->columns & GEONN_COLUMN_EXCLUDED) != 0;
	size_t		added = 0;

	if (has_radius && !(distance <= dataset->radius[places[0]]))
		return;
	for (size_t i = 0; i < count && added < most; i++)
	{
		uint32_t	place = places[i];

		if (excludes && dataset->tag[place] >= collector->excluded_first &&
			dataset->tag[place] <= collector->excluded_last)
			continue;
		if (resumed && !is_after_cutoff(collector, distance, place))
			continue;
		if (collector->count == collector->capacity && !make_room(collector))
			return;
		collector->items[collector->count++] = (struct collected) {
			.chord = chord,
			.distance = distance,
			.place = place,
			.point = point
		};
		added++;
	}
	if (collector->count >= collector->next_trim)
		trim(collector);
}

size_t
cpu_collector_end(struct cpu_collector *collector)
{
	struct question question;

	if (collector->count > collector->k)
		trim_by_chord(collector);
	measure(collector);
	if (collector->count > collector->chosen_capacity)
	{
		struct candidate *chosen = realloc(collector->chosen,
										   collector->capacity * sizeof(*chosen));

		if (chosen == NULL)
		{
			collector->short_of_memory = true;
			return 0;
		}
		collector->chosen = chosen;
		collector->chosen_capacity = collector->capacity;
	}
	question = *collector->question;
	question.max_distance = collector->max_distance;
	for (size_t i = 0; i < collector->count; i++)
		collector->chosen[i] = (struct candidate) {
			collector->items[i].distance, collector->items[i].place
		};
	return candidates_choose(collector->chosen, collector->count, &question, &collector->cutoff);
}

void
cpu_collector_free(struct cpu_collector *collector)
{
	free(collector->items);
	free(collector->chosen);
}
