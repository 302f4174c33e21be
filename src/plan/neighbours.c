/*
 * neighbours.c
 *		How many references observations have near them, by samples of both.
 *
 * A sample of n references among N has each reference with the probability n / N.  So an observation with c
 * of the sampled ones within the radius is expected to have c N / n of all.  Where c is small, the
 * sampled references that are nearest say how dense they are around this observation: with the third
 * at the distance d, a disc of radius r has about 2.5 (r / d)^2 of them.  That holds
 * for radii far below the distances in the sample, as long as points are not on lines
 * or at few places.  With the third rather than the first, what one observation has is less a matter of chance;
 * with much more than that, cities blur.
 *
 * Windows may be so narrow, and groups so small, that most observations have no candidate in the
 * sample.  That is no sign that they have none in the table.  An observation with the mean m of candidates in
 * samples of that size has none of them with the probability exp(-m), and one with m exp(-m).  So
 * where n0 observations have none in this sample, and n1 have one, the n0 are expected to have a mean of
 * n1 / n0, whatever the means of all observations are (Robbins' estimate).  With n1 = 0, half a one is
 * counted.  The share of those candidates within the radius is that of all references, or with groups, which
 * may be of one place each, that of the candidates that other observations have, if that is greater.
 * Only an observation whose windows are NULL or empty, or whose columns to join by are NULL, has none
 * for certain.
 *
 * References are then taken as strewn by chance at that density: the number near an observation is
 * Poisson's, which tells how many observations have none, and the mean of the k nearest.  On cities,
 * airports and uniform points this is within a factor of 3 of the truth from 300 m to 300 km.
 */
#include "postgres.h"

#include <math.h>

#include "common/geodesy.h"
#include "plan/neighbours.h"

/* the nearest sampled references that are looked for */
#define NEAREST 3

/* more neighbours than these need no distribution */
#define POISSON_MAX 64

/* with more of them in the sample, every second one is looked at */
#define OBSERVATIONS_TAKEN 300

/* observations without a candidate whose surroundings are looked at */
#define WITHOUT_TAKEN 50

/* answers that are kept */
#define ANSWERS_KEPT 8

typedef struct Answer
{
	uint64		observations;	/* the samples' numbers */
	uint64		references;
	NeighboursAsked asked;
	NeighboursExpected expected;
} Answer;

/* the greatest squared chord */
#define CHORD_MAX 4.0

/* an observation and the sampled references that may be its candidates */
typedef struct Surroundings
{
	int			within;			/* those within the radius */
	int			all;
	double		nearest[NEAREST];	/* their squared chords, in ascending order */
} Surroundings;

/* observations without a candidate in the sample */
typedef struct Without
{
	int			count;
	int			numbers[SAMPLE_POINTS];

	/* the others */
	int			with_one;		/* that have one candidate */
	int			others;			/* candidates of all of them, where points have groups */
	int			others_within;	/* of these, within the radius */
} Without;

/*
 * The squared chords from an observation to all places of the sample of references, also those that
 * are not in use: the compiler then makes vectors of them.
 */
static void
measure(const PointSample *observations, int number, const PointSample *references, double *chords)
{
	double		x = observations->x[number];
	double		y = observations->y[number];
	double		z = observations->z[number];

	for (int i = 0; i < SAMPLE_POINTS; i++)
	{
		double		dx = references->x[i] - x;
		double		dy = references->y[i] - y;
		double		dz = references->z[i] - z;

		chords[i] = dx * dx + dy * dy + dz * dz;
	}
}

static void
insert(double *nearest, double chord)
{
	int			place = NEAREST - 1;

	for (; place > 0 && chord < nearest[place - 1]; place--)
		nearest[place] = nearest[place - 1];
	nearest[place] = chord;
}

/*
 * Do the windows of an observation overlap those of a reference?
 */
static bool
windows_overlap(const PointSample *observations, int number, const PointSample *references,
				int reference)
{
	const GeonnLimits *a = &observations->limits[number];
	const GeonnLimits *b = &references->limits[reference];

	for (int i = 0; i < Min(observations->windows, references->windows); i++)
	{
		if (!geonn_windows_overlap(i, a->windows[i].low, a->windows[i].high, a->edges,
								   b->windows[i].low, b->windows[i].high, b->edges))
			return false;
	}
	return true;
}

/*
 * A chord as a share of the limit that the radius of a point sets, of this limit for all.  With radiuses
 * of different lengths, shares of them count, and not distances.
 */
static double
share_of_radius(const GeonnLimits *limits, double limit, double chord)
{
	double		own = Min(geonn_radius_limit(limits->radius), CHORD_MAX);

	return own >= limit ? chord : own > 0 ? chord * (limit / own) : INFINITY;
}

/*
 * The chord from an observation to a reference, with regard to their radiuses.
 */
static double
chord_by_radius(const PointSample *observations, int number, const PointSample *references,
				int reference, double limit, double chord)
{
	double		farther = chord;

	if (observations->has_radius)
		farther = Max(farther, share_of_radius(&observations->limits[number], limit, chord));
	if (references->has_radius)
		farther = Max(farther, share_of_radius(&references->limits[reference], limit, chord));
	return farther;
}

/*
 * Has the observation a radius, a window or a group with which no reference can be a candidate?
 */
static bool
has_none(const PointSample *observations, int number, const PointSample *references)
{
	return (observations->limits != NULL && observations->limits[number].none) ||
		(observations->grouped && references->grouped &&
		 observations->groups[number] == SAMPLE_NO_GROUP);
}

/*
 * Look at the observation's candidates in the sample; without by_columns at those that it would have
 * if windows and groups did not matter.
 */
static void
look_around(const PointSample *observations, int number, const PointSample *references,
			double limit, bool by_columns, Surroundings *found)
{
	bool		grouped = by_columns && observations->grouped && references->grouped;
	bool		has_windows = by_columns && observations->windows > 0 && references->windows > 0;
	bool		has_radius = observations->has_radius || references->has_radius;
	uint32		group = observations->groups[number];
	int			itself = observations == references ? number : -1;
	double		chords[SAMPLE_POINTS];

	measure(observations, number, references, chords);
	found->within = 0;
	found->all = 0;
	for (int i = 0; i < NEAREST; i++)
		found->nearest[i] = INFINITY;
	for (int i = 0; i < references->count; i++)
	{
		if (i == itself || (grouped && references->groups[i] != group) ||
			(references->limits != NULL && references->limits[i].none) ||
			(has_windows && !windows_overlap(observations, number, references, i)))
			continue;
		if (has_radius)
		{
			chords[i] = chord_by_radius(observations, number, references, i, limit, chords[i]);
			if (isinf(chords[i]))
				continue;
		}
		found->all++;
		if (chords[i] <= limit)
			found->within++;
		if (chords[i] < found->nearest[NEAREST - 1])
			insert(found->nearest, chords[i]);
	}
}

/*
 * The references expected within the limit, of which each sampled one stands for so many.
 */
static double
expect(const Surroundings *found, double limit, double weight)
{
	int			known = Min(found->all, NEAREST);

	if (weight <= 1 || found->within >= NEAREST || known == 0)
		return found->within * weight;
	return (known - 0.5) * Min(1, limit / found->nearest[known - 1]) * weight;
}

/*
 * The mean of the smaller of k and a number that is Poisson's with this mean.
 */
static double
mean_of_smaller(double k, double mean)
{
	double		probability = exp(-mean);
	double		sum = 0;
	double		below = 0;

	if (k > POISSON_MAX || mean > 4 * POISSON_MAX)
		return Min(k, mean);
	for (int i = 0; i < (int) k; i++)
	{
		below += probability;
		sum += 1 - below;
		probability *= mean / (i + 1);
	}
	return sum;
}

/*
 * Add observations of which each is expected to have this many references.
 */
static void
add_mean(NeighboursExpected *sum, double k, double mean, double observations)
{
	sum->each += observations * mean_of_smaller(k, mean);
	sum->unmatched += observations * exp(-mean);
}

/*
 * The share of other observations' candidates that is within the radius, less its standard deviation: one
 * of many may be there by chance.
 */
static double
share_of_others(const Without *without)
{
	double		within = without->others_within;

	if (without->others == 0)
		return 0;
	return (within - sqrt(within * (1 - within / without->others))) / without->others;
}

/*
 * Add the observations that have no candidate in the sample.
 */
static void
add_without(NeighboursExpected *sum, const PointSample *observations, const Without *without,
			const PointSample *references, double k, double limit, double weight)
{
	double		candidates = Min(Max(without->with_one, 0.5) / Max(1, without->count), NEAREST) * weight;
	double		local_share = share_of_others(without);
	int			step = without->count / WITHOUT_TAKEN + 1;

	if (isinf(limit))
		step = Max(1, without->count);
	for (int i = 0; i < without->count; i += step)
	{
		double		share = 1;

		if (!isinf(limit))
		{
			Surroundings all;

			look_around(observations, without->numbers[i], references, limit, false, &all);
			share = Max(local_share, expect(&all, limit, weight) / (Max(1, all.all) * weight));
		}
		add_mean(sum, k, candidates * share, Min(step, without->count - i));
	}
}

/*
 * Where all observations of a sample have no candidate for certain, others of the table may.  Add
 * half a one, with all references as its candidates.
 */
static void
add_unseen(NeighboursExpected *sum, const PointSample *observations, const PointSample *references,
		   double k, double limit, double weight)
{
	Surroundings all;

	look_around(observations, 0, references, limit, false, &all);
	add_mean(sum, k, expect(&all, limit, weight), 0.5);
}

static NeighboursExpected
expect_neighbours(const PointSample *observations, const PointSample *references,
				  const NeighboursAsked *asked)
{
	bool		have_radius = observations->has_radius || references->has_radius;
	double		limit = Min(geonn_radius_limit(asked->radius), have_radius ? CHORD_MAX : INFINITY);
	double		sampled = references->count - (observations == references ? 1 : 0);
	double		weight = references->complete ? 1 : Max(1, asked->references / Max(1, sampled));
	double		others = asked->itself ? asked->k - 1 : asked->k;
	int			step = observations->count > OBSERVATIONS_TAKEN ? 2 : 1;
	int			taken = 0;
	int			none = 0;
	Without		without = {0};
	NeighboursExpected sum = {0, 0};

	for (int i = 0; i < observations->count; i += step, taken++)
	{
		Surroundings found;
		double		mean;

		if (has_none(observations, i, references))
		{
			none++;
			continue;
		}
		look_around(observations, i, references, limit, true, &found);
		if (found.all == 0 && weight > 1)
		{
			without.numbers[without.count++] = i;
			continue;
		}
		without.with_one += found.all == 1;
		if (observations->grouped)
		{
			without.others += found.all;
			without.others_within += found.within;
		}
		mean = expect(&found, limit, weight);
		if (weight <= 1)
		{
			sum.each += Min(others, mean);
			sum.unmatched += mean == 0;
		}
		else
			add_mean(&sum, others, mean, 1);
	}
	add_without(&sum, observations, &without, references, others, limit, weight);
	if (none == taken && !observations->complete)
		add_unseen(&sum, observations, references, others, limit, weight);
	sum.unmatched += none;
	sum.each /= taken;
	sum.unmatched /= taken;
	if (asked->itself)
	{
		sum.each += 1;
		sum.unmatched = 0;
	}
	return sum;
}

/*
 * A statement's estimates are asked for several times while it is planned: the latest answers are kept.
 */
NeighboursExpected
geonn_expect_neighbours(const PointSample *observations, const PointSample *references,
						const NeighboursAsked *asked)
{
	static Answer answers[ANSWERS_KEPT];
	static int	next;
	Answer	   *answer;

	for (int i = 0; i < ANSWERS_KEPT; i++)
	{
		answer = &answers[i];
		if (answer->observations == observations->number && answer->references == references->number &&
			answer->asked.radius == asked->radius && answer->asked.k == asked->k &&
			answer->asked.references == asked->references && answer->asked.itself == asked->itself)
			return answer->expected;
	}
	answer = &answers[next];
	next = (next + 1) % ANSWERS_KEPT;
	answer->observations = observations->number;
	answer->references = references->number;
	answer->asked = *asked;
	answer->expected = expect_neighbours(observations, references, asked);
	return answer->expected;
}
