/*
 * oracle.c
 *		The nearest references in 128-bit floating point, by comparing all.
 *
 * No code and no formula is the engine's.  With D and S the difference and
 * the sum of two latitudes, L the difference of the longitudes,
 *
 *		sin^2(d/2) = sin^2(D/2) cos^2(L/2) + cos^2(S/2) sin^2(L/2)
 *		cos^2(d/2) = cos^2(D/2) cos^2(L/2) + sin^2(S/2) sin^2(L/2)
 *
 * and d = 2 atan2 of their roots, which has some 30 good digits for any two
 * points.
 *
 * 128-bit arithmetic takes a microsecond a pair, so the haversine formula in
 * float64 goes over all references first and keeps whatever may be among the
 * k nearest.  Its h = sin^2(D/2) + cos cos sin^2(L/2) has relative errors of
 * some 2^-50 from its sines, cosines (which are sines of the distance to the
 * pole, exact to a rounding) and roundings, for all terms are positive; and the
 * difference of two longitudes, computed, is off by 3 nm at most.  What is as
 * near as the k-th nearest has sqrt(h) <= sqrt(h of the k-th) (1 + 2^-49) + 3e-16,
 * and everything up to sqrt(h) (1 + 1e-12) + 1e-13, a micrometre more, is kept.
 */
#include "oracle.h"

#include <math.h>
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>

#include "parallel.h"

/* the sphere's radius is 6371008.7714150598 m */
#define RADIUS_QUOTIENT ((__float128) 63710087714150598)
#define RADIUS_DIVISOR ((__float128) 10000000000)

struct check
{
	const double *latitude;
	const double *longitude;
	size_t		references;
	uint32_t	k;
	const struct sample *samples;
	struct verdict *verdicts;	/* one a sample */
};

/* references that may be among the nearest of an observation */
struct candidates
{
	size_t		count;
	size_t		capacity;
	__float128 *distance;		/* metres */
};

static __float128
true_distance(double latitude1, double longitude1, double latitude2, double longitude2)
{
	const __float128 half_degree = M_PIq / 360;
	__float128	sine_d;
	__float128	cosine_d;
	__float128	sine_s;
	__float128	cosine_s;
	__float128	sine_l;
	__float128	cosine_l;

	sincosq(((__float128) latitude1 - latitude2) * half_degree, &sine_d, &cosine_d);
	sincosq(((__float128) latitude1 + latitude2) * half_degree, &sine_s, &cosine_s);
	sincosq(((__float128) longitude1 - longitude2) * half_degree, &sine_l, &cosine_l);
	return 2 * (RADIUS_QUOTIENT / RADIUS_DIVISOR) *
		atan2q(hypotq(sine_d * cosine_l, cosine_s * sine_l),
			   hypotq(cosine_d * cosine_l, sine_s * sine_l));
}

/* the cosine of a latitude, precise to a rounding at the poles too */
static double
cosine_of_latitude(double latitude)
{
	return sin((90.0 - fabs(latitude)) * (M_PI / 180.0));
}

/* h, the square of the sine of half the distance */
static double
haversine(const struct check *check, size_t reference, double latitude, double longitude,
		  double cosine)
{
	double		l = fabs(check->longitude[reference] - longitude);
	double		sine_d = sin((check->latitude[reference] - latitude) * (M_PI / 360.0));
	double		sine_l = sin((l > 180.0 ? 360.0 - l : l) * (M_PI / 360.0));

	return sine_d * sine_d +
		cosine * cosine_of_latitude(check->latitude[reference]) * sine_l * sine_l;
}

/*
 * Beyond which difference of latitudes, in degrees, is h larger than this?
 */
static double
latitude_window(double h)
{
	return h < 1.0 ? 2.0 * asin(sqrt(h)) * (180.0 / M_PI) * (1.0 + 1e-9) + 1e-12 : 180.0;
}

/* Put a number into a heap with the largest on top, in the top's place. */
static void
replace_top(double *heap, size_t count, double number)
{
	size_t		hole = 0;

	for (;;)
	{
		size_t		child = 2 * hole + 1;

		if (child >= count)
			break;
		if (child + 1 < count && heap[child + 1] > heap[child])
			child++;
		if (heap[child] <= number)
			break;
		heap[hole] = heap[child];
		hole = child;
	}
	heap[hole] = number;
}

/*
 * The k-th smallest h of all references.
 */
static double
smallest_haversine(const struct check *check, const struct sample *sample, size_t k,
				   double *heap)
{
	double		cosine = cosine_of_latitude(sample->latitude);
	double		window = 180.0;

	for (size_t i = 0; i < k; i++)
		heap[i] = INFINITY;
	for (size_t i = 0; i < check->references; i++)
	{
		double		h;

		if (fabs(check->latitude[i] - sample->latitude) > window)
			continue;
		h = haversine(check, i, sample->latitude, sample->longitude, cosine);
		if (h < heap[0])
		{
			replace_top(heap, k, h);
			window = latitude_window(heap[0]);
		}
	}
	return heap[0];
}

static void
keep(struct candidates *candidates, __float128 distance)
{
	if (candidates->count == candidates->capacity)
	{
		candidates->capacity = 2 * candidates->capacity + 64;
		candidates->distance = realloc(candidates->distance,
									   candidates->capacity * sizeof(__float128));
		if (candidates->distance == NULL)
		{
			fprintf(stderr, "not enough memory for the oracle\n");
			exit(EXIT_FAILURE);
		}
	}
	candidates->distance[candidates->count++] = distance;
}

static int
compare_distances(const void *left, const void *right)
{
	__float128	a = *(const __float128 *) left;
	__float128	b = *(const __float128 *) right;

	return (a > b) - (a < b);
}

/*
 * All that may be among the nearest, by true distance.
 */
static struct candidates
find_candidates(const struct check *check, const struct sample *sample, size_t k,
				double *heap)
{
	struct candidates candidates = {0};
	double		root = sqrt(smallest_haversine(check, sample, k, heap)) * (1.0 + 1e-12) + 1e-13;
	double		window = latitude_window(root * root);
	double		cosine = cosine_of_latitude(sample->latitude);

	for (size_t i = 0; i < check->references; i++)
		if (fabs(check->latitude[i] - sample->latitude) <= window &&
			haversine(check, i, sample->latitude, sample->longitude, cosine) <= root * root)
			keep(&candidates, true_distance(sample->latitude, sample->longitude,
											check->latitude[i], check->longitude[i]));
	qsort(candidates.distance, candidates.count, sizeof(__float128), compare_distances);
	return candidates;
}

static void
blame(struct verdict *verdict, const struct sample *sample, const char *what, uint32_t rank)
{
	if (!verdict->right)
		return;
	verdict->right = false;
	snprintf(verdict->wrong, sizeof(verdict->wrong),
			 "observation %llu (%.17g, %.17g), neighbour %u, reference %lld at %.10f m: %s",
			 (unsigned long long) sample->observation, sample->latitude, sample->longitude,
			 rank + 1, rank < sample->count ? (long long) sample->reference[rank] : -1LL,
			 rank < sample->count ? sample->distance[rank] : NAN, what);
}

static void
judge(const struct check *check, const struct sample *sample,
	  const struct candidates *candidates, size_t k, struct verdict *verdict)
{
	if (sample->count != k)
	{
		blame(verdict, sample, "a wrong number of neighbours", sample->count);
		return;
	}
	for (uint32_t i = 0; i < sample->count; i++)
	{
		int64_t		reference = sample->reference[i];
		__float128	distance;
		double		farther_nm;
		double		error_nm;

		if (reference < 0 || reference >= (int64_t) check->references)
		{
			blame(verdict, sample, "no such reference", i);
			return;
		}
		distance = true_distance(sample->latitude, sample->longitude,
								 check->latitude[reference], check->longitude[reference]);
		farther_nm = (double) ((distance - candidates->distance[i]) * 1000000000);
		error_nm = fabs((double) ((sample->distance[i] - distance) * 1000000000));
		if (farther_nm > verdict->farther_nm)
			verdict->farther_nm = farther_nm;
		if (!(error_nm <= verdict->error_nm))
			verdict->error_nm = error_nm;
		if (farther_nm > ORACLE_FARTHER_LIMIT)
			blame(verdict, sample, "another one is nearer", i);
		if (!(error_nm <= ORACLE_ERROR_LIMIT))
			blame(verdict, sample, "it is at another distance", i);
		if (i > 0 && sample->distance[i] < sample->distance[i - 1])
			blame(verdict, sample, "it is nearer than the one before it", i);
		for (uint32_t j = 0; j < i; j++)
			if (sample->reference[j] == reference)
				blame(verdict, sample, "it comes twice", i);
	}
}

static void
check_samples(void *argument, size_t begin, size_t end)
{
	const struct check *check = argument;
	size_t		k = check->k < check->references ? check->k : check->references;
	double	   *heap = malloc(k * sizeof(double));

	if (heap == NULL)
	{
		fprintf(stderr, "not enough memory for the oracle\n");
		exit(EXIT_FAILURE);
	}
	for (size_t i = begin; i < end; i++)
	{
		const struct sample *sample = &check->samples[i];
		struct candidates candidates = find_candidates(check, sample, k, heap);

		check->verdicts[i] = (struct verdict) {.right = true,.checked = 1};
		judge(check, sample, &candidates, k, &check->verdicts[i]);
		free(candidates.distance);
	}
	free(heap);
}

struct verdict
oracle_check(const double *latitude, const double *longitude, size_t references,
			 uint32_t k, const struct sample *samples, uint32_t count)
{
	struct verdict all = {.right = true};
	struct check check = {
		.latitude = latitude,
		.longitude = longitude,
		.references = references,
		.k = k,
		.samples = samples,
		.verdicts = calloc(count, sizeof(struct verdict))
	};

	if (check.verdicts == NULL)
	{
		fprintf(stderr, "not enough memory for the oracle\n");
		exit(EXIT_FAILURE);
	}
	parallel(count, 1, check_samples, &check);
	for (uint32_t i = 0; i < count; i++)
	{
		const struct verdict *one = &check.verdicts[i];

		all.checked++;
		all.farther_nm = fmax(all.farther_nm, one->farther_nm);
		all.error_nm = fmax(all.error_nm, one->error_nm);
		if (!one->right && all.right)
		{
			all.right = false;
			snprintf(all.wrong, sizeof(all.wrong), "%s", one->wrong);
		}
	}
	free(check.verdicts);
	return all;
}
