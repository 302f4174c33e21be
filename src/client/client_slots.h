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
	SLOT_ALLOCATING,			/* waits for a batch */
	SLOT_FILLING,
	SLOT_RELEASING,				/* the engine copies references */
	SLOT_SEARCHING,
	SLOT_ANSWERED
} SlotState;

typedef struct Slot
{
	SlotState	state;

	/* the batch; NULL and 0 without one */
	void	   *start;
	size_t		bytes;
	struct geonn_batch_columns columns;
	Datum	   *observation_id; /* [columns.rows] */
	MemoryContext ids;			/* what they point to, if not by value */

	uint32		target;			/* the batch is sent with this many rows */
	uint32		rows;			/* in the batch */
	uint64		number;			/* of its first observation, from 0 on */
	uint32		first;			/* row from which on the engine is to answer */

	/* while ANSWERED: how far its answers have been taken */
	uint32		end;			/* row before which answers end */
	uint32		pairs;			/* in the batch */
	bool		one_each;		/* every observation has one pair */
	bool		partial;		/* the last observation has more pairs than these */
	bool		resumes;		/* the first observation's pairs go on from before */
	uint32		observation;	/* the present row */
	uint32		left;			/* pairs that it still has */
	uint32		pair;			/* the next one */
	uint64		rank;			/* of the present row's last pair, 0 before it */
} Slot;

struct GeonnClient
{
	GeonnConnection *connection;
	MemoryContext context;
	GeonnQuestion question;
	Slot		slots[GEONN_RING_SLOTS];
	MemoryContextCallback release;

	int			filling;		/* slot, or -1 */
	int			reading;		/* answered slot, or -1 */
	int			resuming;		/* slot whose last observation has more pairs, or -1 */
	int			searching;		/* the number of slots that are */

	/* sizes of batches */
	uint32		rows_wanted;
	uint32		rows_granted_most;	/* less where the engine gave less */
	bool		no_more_batches;	/* the engine had none left to give */
	int			batches_of_size;	/* sent with rows_wanted */
	int			batches_granted;	/* sent since the engine last gave less */
	uint64		sent;			/* observations in batches that were sent */
	bool		all_sent;		/* no more observations come */

	GeonnWork	work;

	/* references so far: their number, and whether they are in order */
	uint64		references;
	bool		sealed;
	bool		in_order;
	int64		last_tag;
	double		last_latitude;
	double		last_longitude;

	/* the answer to open, attach or seal */
	uint16		awaited;		/* message type, 0 once it has come */
	bool		queued;			/* the engine has queued this session */
	uint64		sealed_references;

	/* the dataset, and its files */
	uint64		dataset;
	bool		labelled;
	bool		keep;			/* have the engine keep it once sealed, */
	uint8		note[GEONN_NOTE_BYTES]; /* with this note */
	int			files[GEONN_FILE_KINDS];	/* descriptors, or -1 */
	uint32		files_awaited;	/* bits 1 << enum geonn_file_kind */
};

/*
 * Receive one message from the engine and change its slot's state accordingly.
 * Without waiting, returns false if none has come.
 */
extern bool geonn_client_take_message(GeonnClient *client, GeonnWait wait);

/* Pairs of the slot's present observation; call it when that one's turn comes. */
extern uint32 geonn_client_present_count(const GeonnClient *client, const Slot *slot);

/* Begin to fill a slot, client->filling; false where none is idle. */
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
