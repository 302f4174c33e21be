/*
 * question.h
 *		What a session asks of the engine, and what it gets back.
 */
#ifndef GEONN_QUESTION_H
#define GEONN_QUESTION_H

#include "common/protocol.h"

/* a session with the engine */
typedef struct GeonnClient GeonnClient;

typedef struct GeonnQuestion
{
	int			device;			/* enum geonn_device_choice */
	int			algorithm;		/* enum geonn_algorithm */
	int			metric;			/* enum geonn_metric */
	uint32		columns;		/* the columns that points have: bits GEONN_COLUMN_... */
	uint32		k;				/* 1 ... GEONN_K_MAX; 0: all references within max_distance; for a count, how many
								 * pairs of the batch each observation has */
	bool		ties;			/* the answer also has all references that tie with the k-th */
	double		max_distance;	/* metres, inclusive; may be infinite */
	uint32		radii;			/* 0: the question asks for pairs; otherwise it counts references within this many radii */
	double		radius[GEONN_RADII_MAX];	/* metres, inclusive, rising; may be infinite */
	uint32		min_points;		/* 0: no clusters; otherwise the question is for clusters of the references, whose radius is
								 * max_distance (protocol_search.h); k is then 1: each has one pair */
	bool		thins;			/* it is for a thinning in place of clusters; min_points is 1 */
	bool		assigns;		/* observations, which another client has made a dataset, are assigned to references
								 * (protocol_search.h); k is then 1 */
	uint32		capacity;		/* how many observations each reference may have, if references have no weights */
	uint32		weights;		/* how many weights of the references a count adds up; 1 of a thinning with priorities, and of
								 * an assignment whose references have their capacities as weights */
	bool		extremes;		/* a count also finds the least and the greatest of each weight */
	bool		places;			/* pairs have the shapes' nearest places; for arcs alone */
	bool		shapes;			/* observations are shapes; for arcs alone */
	bool		unmatched;		/* the answer also has observations without a neighbour */
	uint32		batch_rows;		/* how many observations a batch has, or arcs of shapes; 0: the client decides */
	bool		shared;			/* other processes search the dataset at the same time */

	/* the type of the observations' ids */
	bool		id_by_value;
	int16		id_length;		/* as typlen */
} GeonnQuestion;

/* Figures of the engine's work for a client. */
typedef struct GeonnWork
{
	uint64		batches;		/* how many batches of observations were sent */
	uint64		pairs;			/* how many pairs were taken from batches */
	uint64		unmatched;		/* how many observations have no neighbour */
	uint64		devices;		/* devices that searched: a bit each, by their number */
	uint32		algorithms;		/* algorithms that the devices used: a bit each, by enum geonn_algorithm */
	uint32		ways[GEONN_DEVICE_KIND_COUNT];	/* by kind of device: how it answered, bits 1 << enum geonn_way */
	uint32		cpu_reasons;	/* why the CPU did: bits 1 << enum geonn_cpu_reason */
	double		building;		/* ms that batches waited for an index */
	double		waiting;		/* ms that this process waited for answers */
} GeonnWork;

/* Add the figures of some work to a sum. */
static inline void
geonn_work_add(GeonnWork *sum, GeonnWork work)
{
	sum->batches += work.batches;
	sum->pairs += work.pairs;
	sum->unmatched += work.unmatched;
	sum->devices |= work.devices;
	sum->algorithms |= work.algorithms;
	for (int kind = 0; kind < GEONN_DEVICE_KIND_COUNT; kind++)
		sum->ways[kind] |= work.ways[kind];
	sum->cpu_reasons |= work.cpu_reasons;
	sum->building += work.building;
	sum->waiting += work.waiting;
}

/* Return how many pairs of a batch a radius of a count has. */
static inline uint32
geonn_question_pairs_of_radius(const GeonnQuestion *question)
{
	return geonn_pairs_of_radius(question->weights, question->extremes);
}

#endif							/* GEONN_QUESTION_H */
