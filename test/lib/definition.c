/*
 * definition.c
 *		What the answers are by definition.
 */
#include "definition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/geodesy.h"
#include "common/spheroid_distance.h"
#include "ranges.h"

static void *
allocate(size_t count, size_t size)
{
	void	   *memory = calloc(count + 1, size);

	if (memory == NULL)
	{
		fprintf(stderr, "not enough memory for %zu answers\n", count);
		exit(EXIT_FAILURE);
	}
	return memory;
}

static int
compare_neighbours(const void *left, const void *right)
{
	const struct neighbour *a = left;
	const struct neighbour *b = right;

	if (a->distance != b->distance)
		return a->distance < b->distance ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

static bool
windows_overlap(const struct points *a, size_t i, const struct points *b, size_t j)
{
	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
		if (a->low[window] != NULL && b->low[window] != NULL &&
			!ranges_overlap(window, a->low[window][i], a->high[window][i], a->edges[i],
										b->low[window][j], b->high[window][j], b->edges[j]))
			return false;
	return true;
}

static bool
parties_differ(const struct points *observations, size_t i, const struct points *references, size_t j)
{
	for (int party = 0; party < GEONN_PARTIES_MAX; party++)
		if (observations->party[party] != NULL && observations->party[party][i] == references->party[party][j])
			return false;
	return true;
}

struct definition
definition_create(const struct points *references, const struct points *observations,
				  enum geonn_metric metric, size_t depth)
{
	struct definition definition = {
		.observations = observations->count,
		.candidates = allocate(observations->count, sizeof(struct candidates))
	};
	bool		groups = references->group != NULL && observations->group != NULL;
	bool		excludes = references->tag != NULL && observations->excluded_first != NULL;
	bool		radiuses = references->radius != NULL && observations->radius != NULL;
	size_t		room = references->count < 4 * depth ? references->count : 4 * depth;
	struct neighbour *list = allocate(room, sizeof(*list));
	struct geonn_vector *vectors = allocate(references->count, sizeof(*vectors));

	for (size_t i = 0; i < references->count; i++)
		vectors[i] = geonn_unit_vector(references->latitude[i], references->longitude[i]);

	for (size_t i = 0; i < observations->count; i++)
	{
		struct candidates *candidates = &definition.candidates[i];
		struct geonn_vector vector = geonn_unit_vector(observations->latitude[i],
													   observations->longitude[i]);
		double		limit = INFINITY;
		size_t		count = 0;

		for (size_t j = 0; j < references->count; j++)
		{
			double		distance;

			if ((groups && references->group[j] != observations->group[i]) ||
				(excludes && references->tag[j] >= observations->excluded_first[i] &&
				 references->tag[j] <= observations->excluded_last[i]) ||
				!windows_overlap(observations, i, references, j) ||
				!parties_differ(observations, i, references, j))
				continue;
			if (metric == GEONN_METRIC_SPHERE)
				distance = geonn_distance_of(vector, vectors[j]);
			else
				distance = geonn_spheroid_distance(observations->latitude[i], observations->longitude[i],
												   references->latitude[j], references->longitude[j]);
			if (radiuses && !(distance <= observations->radius[i] && distance <= references->radius[j]))
				continue;
			candidates->all++;

			/* at the limit, it stands behind those that are kept */
			if (distance >= limit)
				continue;
			if (count == room)
			{
				qsort(list, count, sizeof(*list), compare_neighbours);
				count = depth;
				limit = list[depth - 1].distance;
				if (distance >= limit)
					continue;
			}
			list[count++] = (struct neighbour) {distance, (uint32_t) j};
		}
		qsort(list, count, sizeof(*list), compare_neighbours);
		candidates->kept = count < depth ? count : depth;
		candidates->list = allocate(candidates->kept, sizeof(*list));
		memcpy(candidates->list, list, candidates->kept * sizeof(*list));
	}
	free(list);
	free(vectors);
	return definition;
}

size_t
definition_answer(const struct definition *definition, size_t observation,
				  const struct client_question *question)
{
	const struct candidates *candidates = &definition->candidates[observation];
	const struct neighbour *list = candidates->list;
	uint32_t	k = question->k;
	size_t		count = 0;

	while (count < candidates->kept && list[count].distance <= question->max_distance &&
		   (k == 0 || count < k ||
			(question->ties && list[count].distance == list[k - 1].distance)))
		count++;
	if (count == candidates->kept && candidates->kept < candidates->all &&
		(k == 0 || count < k || question->ties))
	{
		fprintf(stderr, "a definition of %zu neighbours is not deep enough\n", candidates->kept);
		exit(EXIT_FAILURE);
	}
	return count;
}

size_t
definition_count(const struct definition *definition, size_t observation, double radius)
{
	const struct client_question within = {.max_distance = radius};

	/* all candidates, also those that the definition has not kept */
	if (radius == INFINITY)
		return definition->candidates[observation].all;
	return definition_answer(definition, observation, &within);
}

/*
 * Add a value to partial sums: numbers of rising size of which no two overlap, and whose sum is exactly that of all
 * values (Shewchuk's expansions).  Returns how many these are then.
 */
static size_t
add_partial(double *partial, size_t count, double value)
{
	size_t		kept = 0;

	for (size_t i = 0; i < count; i++)
	{
		double		large = fabs(value) < fabs(partial[i]) ? partial[i] : value;
		double		small = fabs(value) < fabs(partial[i]) ? value : partial[i];
		double		rest;

		value = large + small;
		rest = small - (value - large);
		if (rest != 0)
			partial[kept++] = rest;
	}
	partial[kept++] = value;
	return kept;
}

/*
 * The sum of partial sums, rounded to the nearest, of two to the even one.
 */
static double
rounded_sum(const double *partial, size_t count)
{
	double		sum = 0;
	double		rest = 0;

	while (count > 0 && rest == 0)
	{
		double		before = sum;

		sum = before + partial[--count];
		rest = partial[count] - (sum - before);
	}

	/* halfway, and what is left shows which way */
	if (count > 0 && rest != 0 && (rest < 0) == (partial[count - 1] < 0))
	{
		double		farther = sum + 2 * rest;

		if (farther - sum == 2 * rest)
			sum = farther;
	}
	return sum;
}

/*
 * How many candidates a count has, all of which the definition has kept.
 */
static size_t
kept_count(const struct definition *definition, size_t observation, double radius)
{
	size_t		count = definition_count(definition, observation, radius);

	if (count > definition->candidates[observation].kept)
	{
		fprintf(stderr, "a definition of %zu neighbours is not deep enough\n",
				definition->candidates[observation].kept);
		exit(EXIT_FAILURE);
	}
	return count;
}

double
definition_sum(const struct definition *definition, size_t observation, double radius, const double *weight)
{
	const struct candidates *candidates = &definition->candidates[observation];
	size_t		count = kept_count(definition, observation, radius);
	double		partial[2112];	/* no two overlap, and float64 values have 2,098 bits */
	size_t		partials = 0;

	for (size_t i = 0; i < count; i++)
	{
		double		of_candidate = weight[candidates->list[i].place];

		if (!isnan(of_candidate))
			partials = add_partial(partial, partials, of_candidate);
	}
	return rounded_sum(partial, partials);
}

double
definition_extreme(const struct definition *definition, size_t observation, double radius, const double *weight,
				   bool greatest)
{
	const struct candidates *candidates = &definition->candidates[observation];
	size_t		count = kept_count(definition, observation, radius);
	double		extreme = greatest ? -INFINITY : INFINITY;

	for (size_t i = 0; i < count; i++)
	{
		double		of_candidate = weight[candidates->list[i].place];

		if (greatest ? of_candidate > extreme : of_candidate < extreme)
			extreme = of_candidate;
	}
	return extreme == 0 ? 0 : extreme;
}

void
definition_free(struct definition *definition)
{
	for (size_t i = 0; i < definition->observations; i++)
		free(definition->candidates[i].list);
	free(definition->candidates);
	*definition = (struct definition) {0};
}
