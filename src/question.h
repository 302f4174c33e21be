/*
 * question.h
 *		What a session asks the engine, and what comes back.
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
	uint32		neighbours;		/* k, or 0: all within max_distance */
	bool		ties;			/* and all that tie with the k-th */
	double		max_distance;	/* metres, inclusive; may be infinite */
	bool		unmatched;		/* give observations without a neighbour, too */
	uint32		batch_rows;		/* observations sent at a time; 0: as suits */
	bool		shared;			/* other processes ask it, too */

	/* of the observations' ids */
	bool		id_by_value;
	int16		id_length;
} GeonnQuestion;

/* a neighbour; or, where there is none, an observation alone */
typedef struct GeonnPair
{
	Datum		observation_id; /* it lives until the next pair is taken */
	double		observation_latitude;
	double		observation_longitude;
	bool		matched;		/* else there is nothing but the observation */
	int64		reference;		/* tag */
	double		distance;		/* metres */
	uint64		rank;			/* among the observation's, from 1 on */
} GeonnPair;

/* what the engine has done for a client */
typedef struct GeonnWork
{
	uint64		batches;		/* of observations */
	uint64		pairs;			/* that were taken */
	uint64		unmatched;		/* observations that have no neighbour */
	uint64		devices;		/* bits by their number, that did */
	uint32		algorithms;		/* bits by enum geonn_algorithm */
	double		building;		/* ms that batches waited for an index */
	double		waiting;		/* ms that this process waited for answers */
} GeonnWork;

/*
 * Pairs of observations that have one each.  The arrays are those of a batch: they
 * live until a pair or a run is taken next.
 */
typedef struct GeonnRun
{
	uint32		next;			/* the first that has not been taken */
	uint32		end;
	const Datum *observation_id;
	const double *observation_latitude;
	const double *observation_longitude;
	const int64 *reference;
	const double *distance;
} GeonnRun;

#endif							/* GEONN_QUESTION_H */
