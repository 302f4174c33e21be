/*
 * client_slots.h
 *		The slots of a session's ring: for client.c, which has the essay.
 */
#ifndef GEONN_CLIENT_SLOTS_H
#define GEONN_CLIENT_SLOTS_H

#include "client/client.h"
#include "client/connection.h"
#include "client/question.h"
#include "common/batch_layout.h"

typedef enum SlotState
{
	SLOT_IDLE,
	SLOT_ALLOCATING,			/* the slot waits for a batch from the engine */
	SLOT_FILLING,				/* the client writes rows into the batch */
	SLOT_RELEASING,				/* the engine copies references out of the batch */
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
	MemoryContext ids;			/* memory for the values of ids that are not passed by value */

	uint32		target;			/* the client sends the batch once it has this many rows */
	uint32		rows;			/* rows that were written into the batch: points, or arcs */
	uint32		observations;	/* how many observations they are; 0: they are references */
	uint64		shape_bytes;	/* what the engine takes beside the batch for observations that are shapes */
	uint64		number;			/* number of the batch's first observation in the session, from 0 on */
	uint32		first;			/* the engine answers from this observation on */

	/* while ANSWERED */
	uint32		end;			/* the engine has answered the observations before this one */
	uint32		pairs;			/* pairs that the engine wrote into the batch */
	bool		one_each;		/* every observation has one pair */
	bool		partial;		/* the last observation has more pairs than fitted into the batch */
	bool		resumes;		/* the first observation's pairs follow those of the last answer */
} Slot;

struct GeonnClient
{
	GeonnConnection *connection;
	MemoryContext context;
	GeonnQuestion question;
	Slot		slots[GEONN_RING_SLOTS];
	MemoryContextCallback release;

	int			filling;		/* the slot that is being filled, or -1 */
	int			reading;		/* the answered slot from which the caller takes pairs, or -1 */
	GeonnBlock	block;			/* the pairs of the slot `reading` */
	int			resuming;		/* the slot whose answer ended within an observation, so that the next answer has the
								 * rest of its pairs; or -1 */
	int			searching;		/* how many slots are SEARCHING */

	/* sizes of batches */
	uint32		rows_wanted;	/* rows of the next batch; the number grows as the client sends batches */
	uint32		rows_most;		/* up to so many */
	uint32		rows_granted_most;	/* the client asks for at most this many rows, after the engine has given fewer
									 * than asked for */
	bool		no_more_batches;	/* the engine had no further batch to give */
	int			batches_of_size;	/* how many batches the client has sent since rows_wanted last grew */
	int			batches_granted;	/* how many batches the client has sent since rows_granted_most last changed */
	uint64		sent;			/* observations in batches that were sent */
	bool		all_sent;		/* no more observations come */

	GeonnWork	work;

	/* The dataset's references.  The values of the reference added last tell whether the next one is in order. */
	uint64		references;		/* how many references this client sent, or the opened dataset already had */
	bool		sealed;			/* the dataset takes no more references */
	bool		in_order;		/* the added references came in the order (tag, latitude, longitude) */
	int64		last_tag;
	double		last_latitude;	/* degrees */
	double		last_longitude;

	uint64		asking;			/* the number of the dataset of observations that are assigned; 0: none */

	/* the answer to open, attach or seal */
	uint16		awaited;		/* the type of the message that the client awaits; 0 once it has come */
	bool		queued;			/* the engine has queued this session */
	struct geonn_sealed sealing;	/* the answer to seal */

	/* the dataset, and its files */
	uint64		dataset;		/* the dataset's number in the engine */
	bool		labelled;		/* the message open gave labels, by which the engine finds kept datasets */
	bool		keep;			/* the message seal asks the engine to keep the dataset, with the version and the note */
	uint8		version[GEONN_VERSION_BYTES];
	uint8		note[GEONN_NOTE_BYTES]; /* the note for the engine to keep, or that of the kept dataset that was opened */
	int			files[GEONN_FILE_KINDS];	/* descriptors of files that have come, by enum geonn_file_kind; -1: none */
	uint32		files_awaited;	/* files that have still to come: bits 1 << enum geonn_file_kind */
};

/*
 * Receive a message from the engine and change the client's state accordingly.
 * With GEONN_NO_WAIT, returns false if none has come.
 */
extern bool geonn_client_take_message(GeonnClient *client, GeonnWait wait);

/*
 * Begin to fill an idle slot (client->filling), with a new batch if needed, which has room for at least this many rows.
 * Returns false if no slot can be filled so.
 */
extern bool geonn_client_begin_filling(GeonnClient *client, uint32 least);

/* Write points into the slot's batch.  present: the columns that the points have beside coordinates and tags. */
extern void geonn_client_write_points(uint32 present, Slot *slot, uint32 rows, const double *latitudes,
									  const double *longitudes, const GeonnPointColumns *columns);

/* Have the engine search for the slot's observations, from slot->first on. */
extern void geonn_client_send_search(GeonnClient *client, int number);

/* Send the batch that is being filled, if there is one, and let it go if it is empty. */
extern void geonn_client_send_filling(GeonnClient *client);

/* Give the slot's batch back to the engine, if the slot is idle and has a batch. */
extern void geonn_client_return_batch(GeonnClient *client, int number);

/* Unmap the slot's batch, if it has one, without a message to the engine. */
extern void geonn_client_unmap_batch(GeonnClient *client, int number);

/*
 * Let the slot use this mapped batch, which the engine has for the same slot.  Returns false if the
 * batch is too small for the question.
 */
extern bool geonn_client_use_batch(GeonnClient *client, int number, void *start, size_t bytes,
								   uint32 rows, uint32 room);

/* Set the state of the slot that was being filled, and the size of the next batch. */
extern void geonn_client_end_filling(GeonnClient *client, SlotState state);

/* Start again with small batches, or with the size that the question asks for. */
extern void geonn_client_reset_growth(GeonnClient *client);

#endif							/* GEONN_CLIENT_SLOTS_H */
