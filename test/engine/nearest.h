/*
 * nearest.h
 *		What the tests of the engine without PostgreSQL share: their command
 *		line and verdicts, points from random numbers, and searches for the
 *		nearest reference, held against the definition.
 */
#ifndef GEONN_TEST_NEAREST_H
#define GEONN_TEST_NEAREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../lib/engine_client.h"
#include "../lib/verdict.h"

/* what the command line asked for: ENGINE [cpu|cuda [SEED [sanitized]]] */
struct request
{
	const char *engine_program;
	enum geonn_device_choice device;
	uint64_t	seed;			/* of all points below */
	bool		sanitized;		/* the engine runs under a sanitizer */
};

extern struct request request;

/* columns that points_free() frees */
struct points
{
	size_t		count;
	double	   *latitude;		/* [count] degrees */
	double	   *longitude;		/* [count] degrees */
	int64_t    *tag;			/* [count], the place unless a test sets it */
};

/* Read the command line and say what is tested; ends the program if it is wrong. */
extern void tests_begin(int argument_count, char **words);

/* So many points at 0, 0. */
extern struct points points_create(size_t count);
extern void points_free(struct points *points);

extern struct points uniform_points(size_t count);

/* clusters of 200 points, up to so many degrees off their middle */
extern struct points clustered_points(size_t count, double degrees);

/* a grid of this step, poles and both ends of the longitudes included */
extern struct points grid_points(double step);

extern struct points antipodes_of(const struct points *points);

/* some points many times over */
extern struct points repeated_points(size_t count, size_t different);

/*
 * Whether the answers to these observations are the definition's.  Only each
 * stride'th is looked at.
 */
extern bool answers_right(const struct points *references, const struct points *observations,
						  const struct answer *answers, size_t stride);

/*
 * Send the references, search the observations in so many slots' batches of
 * this shape, and say whether all answers are right.
 */
extern bool search_right(const struct engine *engine, const struct points *references,
						 const struct points *observations, uint32_t rows, uint32_t room,
						 int slots, size_t stride);

#endif							/* GEONN_TEST_NEAREST_H */
