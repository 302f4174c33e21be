/*
 * hostile_client.h
 *		A client of the engine that says and does what it must not.
 */
#ifndef GEONN_HOSTILE_CLIENT_H
#define GEONN_HOSTILE_CLIENT_H

#include "common/batch_layout.h"
#include "common/channel.h"
#include "steps.h"

/* what a step can have it do */
enum hostile_action
{
	HOSTILE_CONNECT,
	HOSTILE_HELLO,
	HOSTILE_STATUS,
	HOSTILE_LIST,
	HOSTILE_CALL,
	HOSTILE_OPEN,
	HOSTILE_ATTACH,
	HOSTILE_ALLOCATE,
	HOSTILE_FILL,				/* write points to a batch */
	HOSTILE_REFERENCES,
	HOSTILE_LEAVE,
	HOSTILE_SEAL,
	HOSTILE_SEARCH,
	HOSTILE_FINISHED,
	HOSTILE_SCRIBBLE,			/* begin to change a batch's memory */
	HOSTILE_RECEIVE,
	HOSTILE_HALF_CLOSE,
	HOSTILE_CLOSE,
	HOSTILE_RETURN,
	HOSTILE_CONFIGURE,			/* as if it were the supervisor */
	HOSTILE_ACTIONS
};

struct hostile_slot
{
	void	   *start;			/* NULL: no batch */
	bool		let_go;			/* it had one, which may be searched for still */
	size_t		bytes;
	struct geonn_batch_columns columns;
	uint32_t	answered;		/* observations, of the last search */
};

struct hostile
{
	int			socket;			/* -1: not connected */
	uint64_t	dataset;
	uint32_t	columns;
	uint32_t	references;		/* of a sealed dataset; a search for clusters has them as observations */
	struct hostile_slot slots[GEONN_RING_SLOTS];
};

/* So many clients of the engine that listens there; none is connected yet. */
extern void hostile_begin(struct hostile *hostiles, int count, const char *path);

/* Do what the step says; connect first, where that is not done. */
extern void hostile_act(struct hostile *hostile, const struct step *step);

/* All leave, and no memory changes any more. */
extern void hostile_end(struct hostile *hostiles, int count);

#endif							/* GEONN_HOSTILE_CLIENT_H */
