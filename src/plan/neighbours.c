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
 * Windows may be so narrow that those of most observations overlap none in the sample.  Of these, each is
 * expected to have as many candidates as the share of all sampled pairs that overlap says.
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
 * The chord from an observation to a reference, with regard to limits; infinite: it is no candidate, however
 * near.
 */
static double
limited_chord(const PointSample *observations, int number, const PointSample *references,
			  int reference, double limit, double chord)
{
	const GeonnLimits *a = observations->limits != NULL ? &observations->limits[number] : NULL;
	const GeonnLimits *b = references->limits != NULL ? &references->limits[reference] : NULL;
	double		farther = chord;

	if ((a != NULL && a->none) || (b != NULL && b->none) ||
		(a != NULL && b != NULL && !windows_overlap(observations, number, references, reference)))
		return INFINITY;
	if (a != NULL && observations->has_radius)
		farther = Max(farther, share_of_radius(a, limit, chord));
	if (b != NULL && references->has_radius)
		farther = Max(farther, share_of_radius(b, limit, chord));
	return farther;
}

static void
look_around(const PointSample *observations, int number, const PointSample *references,
			double limit, Surroundings *found)
{
	bool		grouped = observations->grouped && references->grouped;
	bool		limited = observations->limits != NULL || references->limits != NULL;
	uint32		group = observations->groups[number];
	double		chords[SAMPLE_POINTS];

	measure(observations, number, references, chords);
	if (observations == references)
		chords[number] = INFINITY;
	found->within = 0;
	found->all = grouped || limited ? 0 : references->count;
	for (int i = 0; i < NEAREST; i++)
		found->nearest[i] = INFINITY;
	for (int i = 0; i < references->count; i++)
	{
		if (grouped)
		{
			if (references->groups[i] != group || group == SAMPLE_NO_GROUP)
				continue;
		}
		if (limited)
		{
			chords[i] = i == number && observations == references ? INFINITY :
				limited_chord(observations, number, references, i, limit, chords[i]);
			if (isinf(chords[i]))
				continue;
		}
		if (grouped || limited)
			found->all++;
		if (chords[i] <= limit)
			found->within++;
		if (chords[i] < found->nearest[NEAREST - 1])
			insert(found->nearest, chords[i]);
	}
	if (observations == references && !limited && (!grouped || group != SAMPLE_NO_GROUP))
	{
		found->all--;
		if (isinf(limit))
			found->within--;
	}
}

/*
 * The references expected within the limit, of which each sampled one stands for so many.
 */
static double
expect(const Surroundings *found, double limit, double weight)
{
	int			known = Min(found->all, NEAREST);

	/* a group of which no reference is in the sample, but may be in the table */
	if (known == 0 && weight > 1 && isinf(limit))
		return weight / 2;
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
 * Add an observation that is expected to have this many references.
 */
static void
add_mean(NeighboursExpected *sum, double k, double mean, double observations)
{
	sum->each += observations * mean_of_smaller(k, mean);
	sum->unmatched += observations * exp(-mean);
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
	bool		has_windows = Min(observations->windows, references->windows) > 0;
	double		overlapping = 0;
	double		without = 0;
	NeighboursExpected sum = {0, 0};

	for (int i = 0; i < observations->count; i += step, taken++)
	{
		Surroundings found;
		double		mean;

		look_around(observations, i, references, limit, &found);
		overlapping += found.all;
		if (has_windows && found.all == 0 && weight > 1 && isinf(limit))
		{
			without++;
			continue;
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
	if (without > 0)
		add_mean(&sum, others, Max(overlapping, 0.5) / (taken * Max(1, sampled)) * asked->references,
				 without);
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
