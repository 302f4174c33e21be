/*
 * collector.c
 *		Collects the candidates of one observation during a search on the CPU.
 *
 * For k neighbours, the k-th smallest squared chord so far gives the limit
 * (geonn_metric_chord_limit() leads to the proofs).  So from time to time the
 * points are sorted by their chords, and those above the limit are dropped.  A
 * point has one reference or several that coincide, and at least one of them is
 * a candidate: so k points are enough.  For all candidates within a radius, only
 * as many as the room holds are needed, and one more to tell that more exist: so
 * k is the room plus one, among the candidates after the cutoff.
 *
 * A reference with a radius is a candidate only if its distance is within that.
 * So its distance is computed before it is added.  The observation's own radius
 * is like max_distance: what lies beyond it is farther than all candidates, and
 * is dropped last.
 *
 * Chords cannot drop points when many share one distance, or when they are so
 * far away on the spheroid that chords say nothing.  When such points become too
 * many, their distances are computed and decide.  With ties, all points at the
 * last distance are kept, and memory grows with them.
 */
#include "engine/cpu/walk/collector.h"

#include <stdlib.h>

#include "common/metric.h"
#include "engine/cpu/walk/walk.h"

#define CAPACITY_MIN 512

/* the limit shrinks again after at least this many points */
#define TRIM_AFTER_MIN 16

/* trim_by_distance() drops points where chords left more than this many */
#define CROWD_MIN 128

static const struct question all = {.max_distance = INFINITY};
static const struct cutoff no_cutoff;

void
CPU_PATH_NAME(cpu_collector_begin) (struct cpu_collector *collector)
{
	const struct dataset *dataset = collector->dataset;
	const struct question *question = collector->question;

	collector->count = 0;
	collector->limit = collector->widest;
	if (collector->max_distance < question->max_distance)
		collector->limit = geonn_metric_radius_limit(dataset->metric, collector->max_distance);
	collector->floor = 0.0;
	collector->k = question->k > 0 ? question->k : collector->room + 1;
	collector->next_trim = collector->k;
	collector->plain = (dataset->columns & GEONN_COLUMN_EXCLUDED) == 0 && !collector->limited &&
		!(collector->cutoff.present && question->k == 0);

	/* pairs that are surely nearer than the cutoff were in an earlier answer */
	if (collector->cutoff.present && question->k == 0 && geonn_metric_chord_decides(dataset->metric))
	{
		uint32_t	place = collector->cutoff.place;
		double		chord = geonn_chord_squared(collector->from,
												geonn_unit_vector(dataset->latitude[place],
																  dataset->longitude[place]));

		/* geonn_chord_limit(floor) < chord */
		collector->floor = chord * (1.0 - 0x1p-45) - 0x1p-999;
	}
}

/* the references of a point */
struct references
{
	const uint32_t *place;
	const int64_t *tag;
	size_t		count;
};

static inline struct references
references_of(const struct cpu_collector *collector, const uint32_t *point)
{
	uint32_t	start;

	if (collector->start == NULL)
		return (struct references) {point, collector->tag + *point, 1};
	start = collector->start[*point];
	return (struct references) {
		collector->place + start, collector->tag + start, collector->start[*point + 1] - start
	};
}

static inline struct geonn_vector
vector_of(const struct cpu_collector *collector, uint32_t point)
{
	const struct dataset *dataset = collector->dataset;

	if (collector->x == NULL)
		return geonn_metric_vector(dataset->metric, dataset->latitude[point], dataset->longitude[point]);
	return (struct geonn_vector) {collector->x[point], collector->y[point], collector->z[point]};
}

static double
distance_of(const struct cpu_collector *collector, const uint32_t *point)
{
	const struct dataset *dataset = collector->dataset;
	uint32_t	place;

	if (geonn_metric_chord_decides(dataset->metric))
		return geonn_metric_distance_of(dataset->metric, collector->from, vector_of(collector, *point));
	place = references_of(collector, point).place[0];
	return geonn_metric_distance(dataset->metric, collector->latitude, collector->longitude,
								 dataset->latitude[place], dataset->longitude[place]);
}

/*
 * Whether reference i of a point is a candidate, if its windows, parties and radius allow it: the observation
 * does not exclude it, and it is beyond the cutoff of a search within a radius.
 */
static inline bool
is_candidate(const struct cpu_collector *collector, double distance, const struct references *of, size_t i)
{
	const struct cutoff *cutoff = &collector->cutoff;
	uint32_t	place = of->place[i];

	if (cpu_tags_have(collector->conditions.excluded, of->tag[i]))
		return false;
	return !cutoff->present || collector->question->k > 0 || distance > cutoff->distance ||
		(distance == cutoff->distance && place > cutoff->place);
}

/* Whether any reference at the point is a candidate, if windows overlap and parties differ. */
static inline bool
has_candidate(const struct cpu_collector *collector, uint32_t point)
{
	const struct dataset *dataset = collector->dataset;
	struct references of = references_of(collector, &point);
	bool		has_radius = collector->limited && dataset->radius[of.place[0]] != INFINITY;
	bool		resumed = collector->cutoff.present && collector->question->k == 0;
	double		distance = resumed || has_radius ? distance_of(collector, &point) : 0.0;

	if (has_radius && !(distance <= dataset->radius[of.place[0]]))
		return false;
	for (size_t i = 0; i < of.count; i++)
		if (is_candidate(collector, distance, &of, i))
			return true;
	return false;
}

bool
CPU_PATH_NAME(cpu_collector_reserve) (struct cpu_collector *collector, size_t count)
{
	size_t		capacity = collector->capacity > 0 ? collector->capacity : CAPACITY_MIN;
	struct candidate *points;
	double	   *distance;

	if (count <= collector->capacity)
		return true;
	while (capacity < count)
		capacity *= 2;
	points = realloc(collector->points, capacity * sizeof(*points));
	if (points != NULL)
		collector->points = points;
	distance = realloc(collector->distance, capacity * sizeof(*distance));
	if (distance != NULL)
		collector->distance = distance;
	collector->short_of_memory = points == NULL || distance == NULL;
	if (!collector->short_of_memory)
		collector->capacity = capacity;
	return !collector->short_of_memory;
}

/*
 * Make room for `count` candidates.
 */
static bool
reserve_chosen(struct cpu_collector *collector, size_t count)
{
	size_t		capacity = count > 2 * collector->chosen_capacity ? count : 2 * collector->chosen_capacity;
	struct candidate *chosen;

	if (count <= collector->chosen_capacity)
		return true;
	chosen = realloc(collector->chosen, capacity * sizeof(*chosen));
	collector->short_of_memory = chosen == NULL;
	if (chosen == NULL)
		return false;
	collector->chosen = chosen;
	collector->chosen_capacity = capacity;
	return true;
}

/*
 * Compute the distances of all points.  False if the search has been cancelled.
 */
static bool
measure(struct cpu_collector *collector)
{
	enum geonn_metric metric = collector->dataset->metric;
	double	   *distance = collector->distance;
	double		farthest = INFINITY;

	collector->measured += collector->count;
	if (geonn_metric_chord_decides(metric))
	{
		farthest = 0.0;
		for (size_t i = 0; i < collector->count; i++)
		{
			distance[i] = geonn_chord_squared(collector->from,
											  vector_of(collector, collector->points[i].place));
			farthest = distance[i] > farthest ? distance[i] : farthest;
		}
	}
	if (farthest <= GEONN_NEAR_CHORD)
		geonn_metric_near_distances(metric, distance, collector->count);
	else
		for (size_t i = 0; i < collector->count; i++)
		{
			if (i % 1024 == 1023 && cpu_collector_stopped(collector))
				return false;
			distance[i] = distance_of(collector, &collector->points[i].place);
		}
	return true;
}

/*
 * Order the points by distance and by their first candidate's place in the dataset.  Drop those
 * after the k-th, but with ties none at its distance.
 */
static void
trim_by_distance(struct cpu_collector *collector)
{
	size_t		count = collector->count;
	bool		ties = collector->question->ties && collector->question->k > 0;
	struct candidate last;

	if (!reserve_chosen(collector, 2 * count) || !measure(collector))
		return;
	for (size_t i = 0; i < count; i++)
	{
		struct references of = references_of(collector, &collector->points[i].place);
		size_t		first = 0;

		while (!is_candidate(collector, collector->distance[i], &of, first))
			first++;
		collector->chosen[i] = (struct candidate) {collector->distance[i], of.place[first], 0};
		collector->chosen[count + i] = collector->chosen[i];
	}
	candidates_choose(collector->chosen, count, &all, &no_cutoff);
	last = collector->chosen[collector->k - 1];
	collector->count = 0;
	for (size_t i = 0; i < count; i++)
	{
		struct candidate here = collector->chosen[count + i];

		if (!candidate_before(last, here) || (ties && here.distance == last.distance))
			collector->points[collector->count++] = collector->points[i];
	}
}

void
CPU_PATH_NAME(cpu_collector_trim) (struct cpu_collector *collector)
{
	double		limit;

	candidates_choose(collector->points, collector->count, &all, &no_cutoff);
	if (collector->count < collector->k)
		return;
	limit = geonn_metric_chord_limit(collector->dataset->metric,
									 collector->points[collector->k - 1].distance);
	if (limit < collector->limit)
		collector->limit = limit;
	while (collector->count > collector->k &&
		   collector->points[collector->count - 1].distance > collector->limit)
		collector->count--;
}

void
CPU_PATH_NAME(cpu_collector_add) (struct cpu_collector *collector, double chord, uint32_t point)
{
	size_t		after;

	if ((!collector->plain && !has_candidate(collector, point)) ||
		!CPU_PATH_NAME(cpu_collector_reserve) (collector, collector->count + 1))
		return;
	collector->points[collector->count++] = (struct candidate) {chord, point, 0};
	if (collector->count < collector->next_trim)
		return;
	CPU_PATH_NAME(cpu_collector_trim) (collector);
	if (collector->count > CROWD_MIN && collector->count / 2 > collector->k)
		trim_by_distance(collector);

	/* a trim takes time in proportion to the points */
	after = collector->k / 2 > TRIM_AFTER_MIN ? collector->k / 2 : TRIM_AFTER_MIN;
	if (after < collector->count / 2)
		after = collector->count / 2;
	collector->next_trim = collector->count + after;
}

void
CPU_PATH_NAME(cpu_collector_drop) (struct cpu_collector *collector, const struct cpu_index *index)
{
	size_t		taken = 0;

	if (collector->plain && index->party[0] == NULL)
		return;
	for (size_t i = 0; i < collector->count; i++)
	{
		uint32_t	position = collector->points[i].place;

		if (cpu_position_differs(index, position, &collector->conditions.parties) &&
			(collector->plain || has_candidate(collector, position)))
			collector->points[taken++] = collector->points[i];
	}
	collector->count = taken;
}

size_t
CPU_PATH_NAME(cpu_collector_end) (struct cpu_collector *collector)
{
	struct question question = *collector->question;
	size_t		most = question.ties && question.k > 0 ? SIZE_MAX : collector->k;
	size_t		found = 0;

	if (!measure(collector))
		return 0;
	for (size_t i = 0; i < collector->count; i++)
	{
		struct references of = references_of(collector, &collector->points[i].place);
		size_t		added = 0;

		if (!reserve_chosen(collector, found + (of.count < most ? of.count : most)))
			return 0;
		for (size_t j = 0; j < of.count && added < most; j++)
			if (collector->plain || is_candidate(collector, collector->distance[i], &of, j))
			{
				collector->chosen[found++] = (struct candidate) {collector->distance[i], of.place[j], 0};
				added++;
			}
	}
	question.max_distance = collector->max_distance;
	return candidates_choose(collector->chosen, found, &question, &collector->cutoff);
}

void
CPU_PATH_NAME(cpu_collector_free) (struct cpu_collector *collector)
{
	free(collector->points);
	free(collector->distance);
	free(collector->chosen);
}
