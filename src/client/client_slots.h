/*
 * client_slots.h
 *		The slots of a session's ring: for client.c, which has the essay.
 */
#ifndef GEONN_CLIENT_SLOTS_H
#define GEONN_CLIENT_SLOTS_H

#include "client/connection.h"
#include "client/question.h"
#include "common/batch_layout.h"

typedef enum SlotState
{
	SLOT_IDLE,
	SLOT_ALLOCATING,			/* it waits for a batch from the engine */
	SLOT_FILLING,				/* the client writes rows into the batch */
	SLOT_RELEASING,				/* the engine copies references from the batch */
	SLOT_SEARCHING,				/* the engine answers the batch's observations */
	SLOT_ANSWERED				/* the client takes pairs from the batch */
} SlotState;

typedef struct Slot
{
	SlotState	state;

	/* the batch; NULL and 0 without one */
	void	   *start;
	size_t		bytes;
	struct geonn_batch_columns columns;
	Datum	   *observation_id; /* [columns.rows] */
	MemoryContext ids;			/* has what ids point to that are not passed by value */

	uint32		target;			/* the batch is sent once it has this many rows */
	uint32		rows;			/* rows that were written into the batch */
	uint64		number;			/* number of the batch's first observation in the session, from 0 on */
	uint32		first;			/* the engine answers from this row on */

	/* while ANSWERED: how far its answers have been taken */
	uint32		end;			/* the engine has answered the rows before this one */
	uint32		pairs;			/* pairs that the engine wrote into the batch */
	bool		one_each;		/* every observation has one pair */
	bool		partial;		/* the last observation has more pairs, which did not fit */
	bool		resumes;		/* the first observation's pairs follow those of the answer before */
	uint32		observation;	/* the present row: the one whose pairs are taken next */
	uint32		left;			/* pairs of the present row that are still to be taken */
	uint32		pair;			/* the place of the next pair in the batch */
	uint64		rank;			/* the rank of the present row's last taken pair, 0 before the first */
} Slot;

struct GeonnClient
{
	GeonnConnection *connection;
	MemoryContext context;
	GeonnQuestion question;
	Slot		slots[GEONN_RING_SLOTS];
	MemoryContextCallback release;

	int			filling;		/* the slot that is being filled, or -1 */
	int			reading;		/* the answered slot whose pairs are taken, or -1 */
	int			resuming;		/* the slot whose answer ended within an observation, whose other
								 * pairs come in the next answer; or -1 */
	int			searching;		/* how many slots are SEARCHING */

	/* sizes of batches */
	uint32		rows_wanted;	/* grows while batches are sent */
	uint32		rows_granted_most;	/* no more are asked for, since the engine gave no more */
	bool		no_more_batches;	/* the engine had none left to give */
	int			batches_of_size;	/* how many were sent since rows_wanted last grew */
	int			batches_granted;	/* how many were sent since rows_granted_most last changed */
	uint64		sent;			/* observations in batches that were sent */
	bool		all_sent;		/* no more observations come */

	GeonnWork	work;

	/* the dataset's references; the values of the one that was added last tell whether the next is in order */
	uint64		references;		/* how many were sent, or the dataset had when it was opened */
	bool		sealed;			/* the dataset takes no more references */
	bool		in_order;		/* the added ones came in the order of (tag, latitude, longitude) */
	int64		last_tag;
	double		last_latitude;	/* degrees */
	double		last_longitude;

	/* the answer to open, attach or seal */
	uint16		awaited;		/* the type of the awaited message, 0 once it has come */
	bool		queued;			/* the engine has queued this session */
	uint64		sealed_references;	/* how many the engine has sealed */

	/* the dataset, and its files */
	uint64		dataset;		/* its number in the engine */
	bool		labelled;		/* open gave labels: the dataset may be a kept one, and be kept */
	bool		keep;			/* seal asks the engine to keep the dataset, */
	uint8		note[GEONN_NOTE_BYTES]; /* with this note */
	int			files[GEONN_FILE_KINDS];	/* descriptors, or -1; by enum geonn_file_kind */
	uint32		files_awaited;	/* files that are to come: bits 1 << enum geonn_file_kind */
};

/*
 * Receive one message from the engine and change its slot's state accordingly.
 * Without waiting, returns false if none has come.
 */
extern bool geonn_client_take_message(GeonnClient *client, GeonnWait wait);

/* How many pairs the slot's present row has; called once, when that row's turn comes. */
extern uint32 geonn_client_present_count(const GeonnClient *client, const Slot *slot);

/* Begin to fill an idle slot that has a batch, and note it in client->filling; false where none has. */
extern bool geonn_client_begin_filling(GeonnClient *client);

/* Give the slot's batch back to the engine, if it is idle and has one. */
extern void geonn_client_return_batch(GeonnClient *client, int number);

/* Unmap the slot's batch, if it has one, without a word to the engine. */
extern void geonn_client_unmap_batch(GeonnClient *client, int number);

/*
 * Give the slot this mapped batch, which is the slot's in the engine already.  Returns false if
 * it is too small for the question.
 */
extern bool geonn_client_use_batch(GeonnClient *client, int number, void *start, size_t bytes,
								   uint32 rows, uint32 room);

/* Set the state of the slot that was being filled and has been sent. */
extern void geonn_client_end_filling(GeonnClient *client, SlotState state);

/* Start with small batches, or with the size that the caller asked for. */
extern void geonn_client_reset_growth(GeonnClient *client);

#endif							/* GEONN_CLIENT_SLOTS_H */
