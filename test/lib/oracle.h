/*
 * oracle.h
 *		Are answers right?  For the benchmark and for test/helpers/nearest_oracle.c.
 */
#ifndef GEONN_TEST_ORACLE_H
#define GEONN_TEST_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* what is allowed to an answer, in nanometres */
#define ORACLE_FARTHER_LIMIT 20.0	/* than the nearest of that rank */
#define ORACLE_ERROR_LIMIT	10.0	/* of a distance */

/* the answer that an observation was given */
struct sample
{
	uint64_t	observation;	/* its number */
	double		latitude;		/* degrees */
	double		longitude;
	uint32_t	count;			/* of its neighbours */
	int64_t    *reference;		/* [count] numbers, nearest first */
	double	   *distance;		/* [count] metres */
};

struct verdict
{
	bool		right;
	uint32_t	checked;		/* samples */
	double		farther_nm;		/* at most, than the nearest of that rank */
	double		error_nm;		/* of a distance, at most */
	char		wrong[256];		/* the first one found, where not right */
};

/*
 * Hold the answers to "which are the k nearest references?" against the
 * truth: each neighbour hardly farther than the true one of that rank, each
 * distance as it is but for the limits above, k neighbours, or as many as exist,
 * none twice, in the order of their distances.
 */
extern struct verdict oracle_check(const double *latitude, const double *longitude,
								   size_t references, uint32_t k, const struct sample *samples,
								   uint32_t count);

#endif							/* GEONN_TEST_ORACLE_H */
