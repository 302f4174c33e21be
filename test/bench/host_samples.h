/*
 * host_samples.h
 *		What a run through the engine is, and the samples of its answers that are checked.
 */
#ifndef GEONN_HOST_SAMPLES_H
#define GEONN_HOST_SAMPLES_H

#include <pthread.h>

#include "../lib/engine_client.h"
#include "host_run.h"
#include "shapes.h"

#define FAILURE_SIZE 512

/* what the clients do when they leave the barrier */
enum order
{
	ORDER_SEARCH,
	ORDER_EXPORT,
	ORDER_END
};

struct host_client
{
	struct host_run *run;
	struct client client;
	pthread_t	thread;
	uint64_t	first;			/* of its observations */
	uint32_t	slots;
	uint32_t	rows[GEONN_RING_SLOTS];
	uint32_t	next[GEONN_RING_SLOTS]; /* first row not answered yet */
	char		failure[FAILURE_SIZE];	/* of the last search; empty: none */
};

struct host_run
{
	struct engine engine;
	uint64_t	observations;
	uint32_t	references;
	uint32_t	k;				/* of a count: how many pairs an observation has */
	uint32_t	radii;
	double		radius[GEONN_RADII_MAX];
	uint32_t	batch_rows;
	struct conditions conditions;
	uint64_t	seed;
	double		sent_ms;		/* references sent and sealed */

	double	   *latitude;		/* of the references, unless they are arcs */
	double	   *longitude;
	struct shapes shapes;		/* else all 0 */

	int			clients;
	int			threads;		/* of them, started */
	struct host_client *client; /* [clients] */

	/* written before the clients pass the barrier */
	pthread_barrier_t barrier;
	enum order	order;
	enum geonn_algorithm algorithm;
	uint32_t	rows_limit;		/* of each client's first batch alone, or 0: all
								 * rows of all batches */
	struct sample *samples;		/* in the order of the observations */
	uint32_t	sample_count;
	double	   *exported_reference;	/* [observations * k] */
	double	   *exported_distance;
};

/* Choose the samples by the seed: observations in order, each once. */
extern void host_samples_make(struct host_run *run, const struct problem *problem);
extern void host_samples_free(struct host_run *run);

/* Copy the samples' answers out of a batch's results. */
extern void host_samples_take(const struct host_run *run, const struct geonn_batch_columns *columns,
							  const struct geonn_results *results, uint64_t batch_first);

/* Check the samples' answers by a loop over all references. */
extern struct verdict host_samples_check(const struct host_run *run);

#endif							/* GEONN_HOST_SAMPLES_H */
