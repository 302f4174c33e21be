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
	SESSION_CONNECTED,			/* has sent no message yet */
	SESSION_GREETED,			/* has said hello, and waits for the message welcome */
	SESSION_WELCOME,			/* may ask for the status, open or attach */
	SESSION_MEASURING,			/* waits for the status with gauges */
	SESSION_QUEUED,				/* waits until it is admitted */
	SESSION_COLLECTING,			/* sends references */
	SESSION_SEALING,			/* waits until its references are sorted */
	SESSION_SEARCHING,			/* sends observations */
	SESSION_IDLE,				/* stays for its client's next call */
	SESSION_ENDED				/* has ended, and is freed once no thread works for it any more */
};

/* a slot of the ring of batches */
struct slot
{
	struct batch_memory *memory;	/* NULL until allocated */
	struct geonn_batch_columns columns;
	bool		busy;			/* the slot's search waits, or a device works on it */
	struct search search;
	struct cutoff cutoff;		/* the cutoff with which the slot's search began (device.h) */
	struct dataset *shapes;		/* the arcs of the last search's observations, if these are shapes, sealed once copied; or an
								 * empty dataset, to which the CPU attaches the clusters or the assignment that it is for */
};

/*
 * A client's connection.  Only the server's thread uses a session, with three exceptions: any thread may read `cancelled`;
 * the thread that sorts the references sets the result of the sort; and a device owns the searches that it has taken.
 */
struct session
{
	int			socket;			/* the connection; -1 once the session has ended */
	enum session_state state;
	enum geonn_device_choice choice;
	struct dataset *dataset;	/* the dataset that the session holds, from open or attach on */
	struct dataset *asking;		/* the dataset of observations that it holds, too, from the first search on that assigns
								 * these; or NULL */
	struct call *call;			/* the call that the session works for; NULL: the client has named none */
	int32_t		pid;			/* the process of the present call, or of the last one; 0: none */
	int32_t		leader;			/* the process as which admission counts the session: the leader of a parallel worker,
								 * or the process itself */
	uint32_t	role;			/* the role of the present call, or of the last one */
	enum geonn_phase phase;		/* the phase of the session, as a part of its call (calls.c) */
	struct admission admission;
	struct geonn_open open;		/* the message open that the session has sent */
	bool		has_finished;
	struct geonn_finished finished; /* the message finished that the session has sent */
	struct unsent *unsent;		/* messages that wait to be sent; until they are, the server receives none from the
								 * client */
	int			received;		/* the descriptor that came with the present message, or -1 */
	struct slot slots[GEONN_RING_SLOTS];
	struct batch_share *share;	/* the share of batches of the session's process; NULL until the session needs one */
	struct search_queue queue;
	bool		client_left;	/* the client has unmapped all memory and closed its end of the connection */
	int			under_way;		/* how many slots are busy, plus 1 while a thread sorts the references */
	atomic_bool cancelled;		/* true once the session has ended */

	/* Set by the thread that sorts the session's references. */
	atomic_bool sort_ended;		/* sorted and sort_failure are set, and the thread no longer uses the session */
	bool		sorted;
	struct failure sort_failure;	/* why the references could not be sorted */

	struct session *next;		/* the next of all sessions */

	/* while the session is idle */
	int64_t		idle_since_ms;
	struct session *newer;		/* the neighbours in the order of idle sessions */
	struct session *older;
};

/* Return the first of all sessions, which are linked by next, or NULL. */
extern struct session *session_first(void);

/*
 * Create a session, which takes over a connected socket.  If memory is short, return NULL with
 * errno; the socket then remains the caller's.
 */
extern struct session *session_create(int socket);

/* Handle the messages that the client has sent, up to a fixed number, so that other clients get their turn. */
extern void session_receive(struct session *session);

/* Send welcome to a client whose hello came before the devices were probed. */
extern void session_welcome(struct session *session);

/* Send the status to a client that waits for it with gauges. */
extern void session_measured(struct session *session);

/* Handle the message search. */
extern void session_search(struct session *session, const union geonn_message *message);

/*
 * slot_begin_shapes() gives a slot a dataset of these columns: GEONN_COLUMN_ARC for the arcs of observations, which a device is
 * to copy from the slot's batch; 0 for the clusters or the assignment that a search is for.  It returns false with the failure
 * if memory is short.  slot_forget_shapes() frees the dataset, if the slot has one, with what devices have built of it; clusters
 * and assignments become free soon.
 */
extern bool slot_begin_shapes(struct slot *slot, uint32_t columns, struct failure *failure);
extern void slot_forget_shapes(struct slot *slot);

/* Send the client the results of a search that the scheduler finished. */
extern void session_search_finished(struct search *search);

/*
 * Handle the messages open and attach.  session_open() opens a dataset, or
 * queues the session; session_admitted() then goes on once the session is
 * admitted.
 */
extern void session_open(struct session *session, const union geonn_message *message);
extern void session_admitted(struct session *session);
extern void session_attach(struct session *session, const union geonn_message *message);

/* Handle the messages references, leave and seal. */
extern void session_references(struct session *session, const union geonn_message *message);
extern void session_leave(struct session *session, const union geonn_message *message);
extern void session_seal(struct session *session, const union geonn_message *message);

/* Go on with all sessions whose references have been sorted since the last call. */
extern void session_collect_sealed(void);

/* Handle the message finished. */
extern void session_finished(struct session *session, const union geonn_message *message);

/*
 * session_stay() makes a session that is done with its call idle; the session keeps the batch of slot `kept`, or none if
 * `kept` is GEONN_RING_SLOTS.  session_resume() lets the session go on with its client's next call.
 */
extern void session_stay(struct session *session, uint32_t kept);
extern void session_resume(struct session *session, const union geonn_message *message);

/*
 * Make a session idle, or let an idle one work again.  Changes its state, the order of idle
 * sessions and its process's share.
 */
extern void session_set_idle(struct session *session, bool is_idle);

/* Return the session that has been idle for longest, or NULL; and how many are idle. */
extern struct session *session_oldest_idle(void);
extern uint32_t session_count_idle(void);

/* Set the milliseconds after which an idle session is to end; 0: at once. */
extern void session_set_idle_timeout(uint64_t milliseconds);

/*
 * End the oldest idle session, because another session needs its memory or descriptors.  Returns
 * false if no session is idle.
 */
extern bool session_give_up_idle(void);

/* Return the milliseconds until the oldest idle session's time is over, or -1 if none is idle. */
extern int	session_overdue_within_ms(void);

/* End an idle session whose time is over.  Ends one at a time, because other clients wait for the server's thread. */
extern void session_end_overdue(void);

/* Let the session leave its call; the call ends with its last session. */
extern void session_leave_call(struct session *session);

/* The client has closed its end: look for a message finished that it sent before. */
extern void session_take_last_words(struct session *session);

/*
 * Send a message, with a copy of the descriptor (-1: none), at once or as soon as the kernel accepts
 * the descriptor.  If sending fails, the session ends.
 */
extern void session_send(struct session *session, int type, void *message,
						 int descriptor);

/* If it is time to, try again to send the messages that wait, of all sessions. */
extern void session_send_unsent(void);

/* Return the milliseconds until the server tries again to send messages that wait, or -1: none waits. */
extern int	session_unsent_within_ms(void);

/* End the session with an error, because its client broke the protocol; `what` describes the message. */
extern void session_fail_protocol(struct session *session, const char *what);

/* Send an error, and end the session. */
extern void session_fail(struct session *session, const struct failure *failure);

/* Close the connection and cancel all work for the session. */
extern void session_end(struct session *session);

/* Free all ended sessions for which no device or thread works any more. */
extern void session_free_ended(void);

/*
 * session_idle_slot() returns the slot of this number, which must exist and must not be busy.  session_filled_slot() also
 * requires that its batch has at least `rows` rows.  If a requirement fails, they end the session and return NULL.
 */
extern struct slot *session_idle_slot(struct session *session, uint32_t number);
extern struct slot *session_filled_slot(struct session *session, uint32_t number, uint32_t rows);

#endif							/* GEONN_SESSION_H */
