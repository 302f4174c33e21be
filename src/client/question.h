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
	uint32		k;				/* 1 ... GEONN_K_MAX; 0: all references within max_distance; of a count, how many
								 * pairs of the batch each observation has */
	bool		ties;			/* the answer has all references that tie with the k-th, too */
	double		max_distance;	/* metres, inclusive; may be infinite */
	uint32		radii;			/* 0: pairs are asked for; else references are counted within this many radii */
	double		radius[GEONN_RADII_MAX];	/* metres, inclusive, rising; may be infinite */
	uint32		weights;		/* how many weights of the references a count adds up */
	bool		extremes;		/* a count finds the least and the greatest of each weight, too */
	bool		places;			/* pairs have the shapes' nearest places; of arcs alone */
	bool		unmatched;		/* observations without a neighbour are returned, too */
	uint32		batch_rows;		/* how many observations a batch has; 0: the client decides */
	bool		shared;			/* other processes search the same dataset at the same time */

	/* the type of the observations' ids */
	bool		id_by_value;
	int16		id_length;		/* as typlen */
} GeonnQuestion;

/* an observation with one of its neighbours, or alone if it has none; or with what is counted within a radius */
typedef struct GeonnPair
{
	Datum		observation_id; /* valid until the next pair is taken */
	uint64		number;			/* the observation's number among those that were added, from 0 on */
	double		observation_latitude;
	double		observation_longitude;
	bool		matched;		/* false: the observation has no neighbour, and the rest is not set */
	int64		tag;			/* the reference's tag; or how many references are within the radius */
	double		distance;		/* metres */
	double		place_latitude; /* where the question has places: the shape's nearest place and its fraction
								 * (protocol_search.h); of pairs that this process found alone: the reference's point, and NaN */
	double		place_longitude;
	double		place_fraction;
	uint64		rank;			/* the pair's rank among the observation's pairs, or the number of the radius, from 1 on */
	/* the sums of a count's weights, [weights]; with extremes, then the least ones, Infinity where none is there, and the
	 * greatest ones, -Infinity likewise; valid as long as observation_id; NULL: of pairs */
	const double *sums;
} GeonnPair;

/* what a pair of a question without counts has for callers that need no rows of a type */
typedef struct GeonnFound
{
	Datum		observation_id; /* as in GeonnPair */
	int64		tag;			/* as in GeonnPair */
	double		distance;
} GeonnFound;

/* figures of the engine's work for a client */
typedef struct GeonnWork
{
	uint64		batches;		/* how many batches of observations were sent */
	uint64		pairs;			/* how many pairs were taken from batches */
	uint64		unmatched;		/* how many observations have no neighbour */
	uint64		devices;		/* devices that searched: a bit each, by their number */
	uint32		algorithms;		/* algorithms that the devices used: a bit each, by enum geonn_algorithm */
	double		building;		/* ms that batches waited for an index */
	double		waiting;		/* ms that this process waited for answers */
} GeonnWork;

/*
 * Pairs of observations that have one each.  The arrays are those of a batch:
 * valid until the next pair or run is taken.
 */
typedef struct GeonnRun
{
	uint32		next;			/* the first pair not yet taken */
	uint32		end;			/* the index after the last pair */
	uint64		number;			/* the number of the first observation, as in GeonnPair */
	const Datum *observation_id;
	const double *observation_latitude;
	const double *observation_longitude;
	const int64 *tag;
	const double *distance;
	const double *place_latitude;	/* NULL where the question has no places; so are the next two */
	const double *place_longitude;
	const double *place_fraction;
} GeonnRun;

/* How many pairs of a batch a radius of a count has. */
static inline uint32
geonn_question_pairs_of_radius(const GeonnQuestion *question)
{
	return geonn_pairs_of_radius(question->weights, question->extremes);
}

#endif							/* GEONN_QUESTION_H */
