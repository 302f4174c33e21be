/*
 * session.h
 *		One client's connection: its dataset and its ring of batches.
 */
#ifndef GEONN_SESSION_H
#define GEONN_SESSION_H

#include "common/channel.h"
#include "engine/calls/calls.h"
#include "engine/search/scheduler.h"
#include "engine/server/admission.h"
#include "engine/server/batch_memory.h"

enum session_state
{
	SESSION_CONNECTED,			/* nothing said yet */
	SESSION_GREETED,			/* said hello, and waits for its welcome */
	SESSION_WELCOME,			/* may ask for the status, open or attach */
	SESSION_MEASURING,			/* waits for the status with gauges */
	SESSION_QUEUED,				/* waits for others to end */
	SESSION_COLLECTING,			/* sends references */
	SESSION_SEALING,			/* waits for its dataset */
	SESSION_SEARCHING,			/* sends observations */
	SESSION_ENDED				/* to be freed once nothing works for it */
};

/* a place in the ring */
struct slot
{
	struct batch_memory *memory;	/* NULL until allocated */
	struct geonn_batch_columns columns;
	bool		busy;			/* search is waiting or running */
	struct search search;
	struct cutoff cutoff;		/* that it began with */
};

/* all of it is the server thread's, but for cancelled and what devices hold */
struct session
{
	int			socket;			/* -1 once ended */
	enum session_state state;
	enum geonn_device_choice choice;
	struct dataset *dataset;	/* a use of it, from open or attach on */
	struct call *call;			/* that it works for; NULL: nobody said */
	enum geonn_phase phase;		/* of its references */
	struct admission admission;
	struct geonn_open open;		/* what it asked for, from open on */
	bool		has_finished;
	struct geonn_finished finished; /* what it said then */
	int			received;		/* descriptor that came with the present message,
								 * or -1 */
	struct slot slots[GEONN_RING_SLOTS];
	struct batch_share *share;	/* of its process in all batches; NULL until it asks for one */
	struct search_queue queue;
	bool		client_left;	/* the client closed, having unmapped all */
	int			under_way;		/* busy slots, and a sealing thread */
	atomic_bool cancelled;		/* becomes true when the session ends */
	struct session *next;		/* among all sessions */
};

/* The first of all sessions, which are linked by next, or NULL. */
extern struct session *session_first(void);

/* Take over a connected socket.  NULL with errno where memory is short; it is the caller's then. */
extern struct session *session_create(int socket);

/* Handle what the client sent, or as much of it as is fair to others. */
extern void session_receive(struct session *session);

/* Answer a client whose hello came before the devices were probed. */
extern void session_welcome(struct session *session);

/* Answer a client that waits for the status with gauges. */
extern void session_measured(struct session *session);

/* Search with a batch of observations. */
extern void session_search(struct session *session, const union geonn_message *message);

/* Pass on the result of a search that the scheduler finished. */
extern void session_search_finished(struct search *search);

/* Open a dataset, in its turn; it is its turn now, or has to be; attach to a dataset. */
extern void session_open(struct session *session, const union geonn_message *message);
extern void session_admitted(struct session *session);
extern void session_urge(struct session *session, const union geonn_message *message);
extern void session_attach(struct session *session, const union geonn_message *message);

/* There are no more references. */
extern void session_seal(struct session *session, const union geonn_message *message);

/* Pass on what sealing threads finished. */
extern void session_collect_sealed(void);

/* The call that it works for; that it has finished; and what it wants to know of calls. */
extern void session_call(struct session *session, const union geonn_message *message);
extern void session_finished(struct session *session, const union geonn_message *message);
extern void session_list(struct session *session, const union geonn_message *message);

/* The client has closed its end: see whether it said that it has finished before. */
extern void session_take_last_words(struct session *session);

/* Send a message (and a copy of the descriptor, or -1), or end the session. */
extern void session_send(struct session *session, int type, void *message,
						 int descriptor);

/* The client said what it must not: end the session. */
extern void session_fail_protocol(struct session *session, const char *what);

/* Send an error, and end the session. */
extern void session_fail(struct session *session, const struct failure *failure);

/* Close the connection and cancel all that goes on for it. */
extern void session_end(struct session *session);

/* Free all sessions that have ended, but for those that something still works for. */
extern void session_free_ended(void);

/*
 * The slot of this number if it exists and is idle, else NULL and the session
 * has ended; and the same for a slot that has a batch with at least these rows.
 */
extern struct slot *session_idle_slot(struct session *session, uint32_t number);
extern struct slot *session_filled_slot(struct session *session, uint32_t number, uint32_t rows);

/* Whether it has a dataset. */
extern bool session_is_open(const struct session *session);

#endif							/* GEONN_SESSION_H */
