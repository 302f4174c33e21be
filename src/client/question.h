/*
 * question.h
 *		What a session asks of the engine, and what it gets back.
 */
#ifndef GEONN_QUESTION_H
#define GEONN_QUESTION_H

/* a session with the engine */
typedef struct GeonnClient GeonnClient;

typedef struct GeonnQuestion
{
	int			device;			/* enum geonn_device_choice */
	int			algorithm;		/* enum geonn_algorithm */
	int			metric;			/* enum geonn_metric */
	uint32		columns;		/* GEONN_COLUMN_...: what points have */
	uint32		k;				/* 0: all within max_distance */
	bool		ties;			/* also all that tie with the k-th */
	double		max_distance;	/* metres, inclusive; may be infinite */
	bool		unmatched;		/* also return observations without a neighbour */
	uint32		batch_rows;		/* observations of a batch; 0: the client decides */
	bool		shared;			/* other processes attach to the same dataset */

	/* of the observations' ids */
	bool		id_by_value;
	int16		id_length;
} GeonnQuestion;

/* an observation with one of its neighbours, or alone if it has none */
typedef struct GeonnPair
{
	Datum		observation_id; /* valid until the next pair is taken */
	uint64		number;			/* of the observation among those that were added, from 0 on */
	double		observation_latitude;
	double		observation_longitude;
	bool		matched;		/* false: only the observation is set */
	int64		tag;			/* of the reference */
	double		distance;		/* metres */
	uint64		rank;			/* among the observation's, from 1 on */
} GeonnPair;

/* what the engine has done for a client */
typedef struct GeonnWork
{
	uint64		batches;		/* of observations */
	uint64		pairs;			/* taken from batches */
	uint64		unmatched;		/* observations that have no neighbour */
	uint64		devices;		/* bits by their number: these searched */
	uint32		algorithms;		/* bits by enum geonn_algorithm */
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
	uint32		end;
	uint64		number;			/* of the first observation, as in GeonnPair */
	const Datum *observation_id;
	const double *observation_latitude;
	const double *observation_longitude;
	const int64 *tag;
	const double *distance;
} GeonnRun;

#endif							/* GEONN_QUESTION_H */
