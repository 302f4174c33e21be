/*
 * host_samples.c
 *		Samples of the answers of a run through the engine, which are checked.
 */
#include "host_samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void
host_samples_make(struct host_run *run, const struct problem *problem)
{
	uint64_t	count = problem->checked < run->observations ? problem->checked : run->observations;

	run->samples = bench_allocate(count, sizeof(struct sample));
	run->sample_count = (uint32_t) count;
	for (uint64_t i = 0; i < count; i++)
	{
		struct sample *sample = &run->samples[i];
		const struct host_client *client;
		const struct geonn_batch_columns *columns;
		uint64_t	begin = run->observations / count * i;
		uint64_t	width = run->observations / count;
		uint64_t	row;

		sample->observation = begin + (uint64_t) (points_random(problem->seed + 3, i) * (double) width);
		client = &run->client[sample->observation / run->batch_rows / GEONN_RING_SLOTS];
		row = sample->observation - client->first;
		columns = &client->client.slots[row / run->batch_rows].columns;
		sample->latitude = columns->latitude[row % run->batch_rows];
		sample->longitude = columns->longitude[row % run->batch_rows];
		sample->reference = bench_allocate(run->k, sizeof(int64_t));
		sample->distance = bench_allocate(run->k, sizeof(double));
	}
}

void
host_samples_free(struct host_run *run)
{
	for (uint32_t i = 0; i < run->sample_count; i++)
	{
		free(run->samples[i].reference);
		free(run->samples[i].distance);
	}
	free(run->samples);
	run->samples = NULL;
	run->sample_count = 0;
}

/*
 * The sample of an observation, or the first one of a later observation.
 */
static uint32_t
first_sample(const struct host_run *run, uint64_t observation)
{
	uint32_t	low = 0;
	uint32_t	high = run->sample_count;

	while (low < high)
	{
		uint32_t	middle = (low + high) / 2;

		if (run->samples[middle].observation < observation)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void
host_samples_take(const struct host_run *run, const struct geonn_batch_columns *columns,
				  const struct geonn_results *results, uint64_t batch_first)
{
	bool		one_each = (results->flags & GEONN_RESULTS_ONE_EACH) != 0;
	uint32_t	pair = 0;
	uint32_t	row = results->first;

	for (uint32_t i = first_sample(run, batch_first + results->first); i < run->sample_count; i++)
	{
		struct sample *sample = &run->samples[i];
		uint64_t	wanted = sample->observation - batch_first;

		if (wanted >= (uint64_t) results->first + results->observations)
			break;
		for (; row < wanted; row++)
			pair += one_each ? 1 : columns->count[row];
		sample->count = one_each ? 1 : columns->count[row];
		if (sample->count > run->k)
			sample->count = run->k;
		for (uint32_t j = 0; j < sample->count; j++)
		{
			/* bench_tag() is its own inverse */
			sample->reference[j] = bench_tag((uint64_t) columns->tag[pair + j]);
			sample->distance[j] = columns->distance[pair + j];
		}
	}
}

/*
 * Check a sample among the references that the conditions leave: these get
 * numbers of their own.
 */
static struct verdict
check_sample(const struct host_run *run, struct sample *sample, double *latitude, double *longitude)
{
	struct geonn_vector from = geonn_unit_vector(sample->latitude, sample->longitude);
	size_t		left = 0;
	int64_t    *number = bench_allocate(run->k, sizeof(int64_t));
	struct sample renumbered = *sample;
	struct verdict verdict;

	renumbered.reference = number;
	for (uint32_t j = 0; j < sample->count; j++)
		number[j] = -1;
	for (uint32_t i = 0; i < run->references; i++)
	{
		double		distance = geonn_distance_of(from, geonn_unit_vector(run->latitude[i], run->longitude[i]));

		if (!conditions_hold(&run->conditions, run->seed, sample->observation, i, distance))
			continue;
		for (uint32_t j = 0; j < sample->count; j++)
			if (sample->reference[j] == i)
				number[j] = (int64_t) left;
		latitude[left] = run->latitude[i];
		longitude[left++] = run->longitude[i];
	}
	verdict = oracle_check(latitude, longitude, left, run->k, &renumbered, 1);
	for (uint32_t j = 0; j < sample->count; j++)
		if (number[j] < 0)
		{
			verdict.right = false;
			snprintf(verdict.wrong, sizeof(verdict.wrong), "observation %llu has reference %lld, which is no candidate",
					 (unsigned long long) sample->observation, (long long) sample->reference[j]);
		}
	free(number);
	return verdict;
}

static struct verdict
check_conditions(const struct host_run *run)
{
	double	   *latitude = bench_allocate(run->references, sizeof(double));
	double	   *longitude = bench_allocate(run->references, sizeof(double));
	struct verdict sum = {.right = true};

	for (uint32_t i = 0; i < run->sample_count && sum.right; i++)
	{
		struct verdict verdict = check_sample(run, &run->samples[i], latitude, longitude);

		verdict.checked += sum.checked;
		verdict.farther_nm = fmax(verdict.farther_nm, sum.farther_nm);
		verdict.error_nm = fmax(verdict.error_nm, sum.error_nm);
		sum = verdict;
	}
	free(latitude);
	free(longitude);
	return sum;
}

/*
 * Check the samples' counts by a loop over all references.
 */
static struct verdict
check_counts(const struct host_run *run)
{
	struct verdict verdict = {.right = true};

	for (uint32_t i = 0; i < run->sample_count && verdict.right; i++)
	{
		const struct sample *sample = &run->samples[i];
		struct geonn_vector from = geonn_unit_vector(sample->latitude, sample->longitude);
		int64_t		expected[GEONN_RADII_MAX] = {0};
		double		sum[GEONN_RADII_MAX][GEONN_WEIGHTS_MAX] = {{0}};

		for (uint32_t j = 0; j < run->references; j++)
		{
			double		distance = geonn_distance_of(from, geonn_unit_vector(run->latitude[j], run->longitude[j]));

			for (uint32_t radius = run->radii; radius-- > 0 && distance <= run->radius[radius];)
				if (conditions_hold(&run->conditions, run->seed, sample->observation, j, distance))
				{
					expected[radius]++;
					for (uint32_t i = 0; i < run->conditions.weights; i++)
						sum[radius][i] += conditions_weight(run->seed, j, i);
				}
		}
		verdict.checked++;
		for (uint32_t pair = 0; pair < run->k && verdict.right; pair++)
		{
			uint32_t	radius = pair / (run->k / run->radii);

			/* a sample has tags as numbers of references; the benchmark's own sums are rounded */
			int64_t		found = pair < sample->count ? bench_tag((uint64_t) sample->reference[pair]) : -1;
			double		expected_sum = sum[radius][pair % (run->k / run->radii)];

			if (found == expected[radius] && fabs(sample->distance[pair] - expected_sum) <= 1e-9 * expected_sum)
				continue;
			verdict.right = false;
			snprintf(verdict.wrong, sizeof(verdict.wrong),
					 "observation %llu has %lld references within %g m with the sum %g, not %lld with %g",
					 (unsigned long long) sample->observation, (long long) expected[radius], run->radius[radius],
					 expected_sum, (long long) found, sample->distance[pair]);
		}
	}
	return verdict;
}

struct verdict
host_samples_check(const struct host_run *run)
{
	if (run->radii > 0)
		return check_counts(run);
	if (run->shapes.count > 0)
		return shapes_check(&run->shapes, run->k, run->samples, run->sample_count);
	if (conditions_any(&run->conditions))
		return check_conditions(run);
	return oracle_check(run->latitude, run->longitude, run->references, run->k, run->samples, run->sample_count);
}
