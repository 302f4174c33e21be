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
	SESSION_GREETED,			/* has said hello, and waits for its welcome */
	SESSION_WELCOME,			/* may ask for the status, open or attach */
	SESSION_MEASURING,			/* waits for the status with gauges */
	SESSION_QUEUED,				/* waits until it is admitted */
	SESSION_COLLECTING,			/* sends references */
	SESSION_SEALING,			/* waits until its references are sorted */
	SESSION_SEARCHING,			/* sends observations */
	SESSION_IDLE,				/* stays for its client's next call */
	SESSION_ENDED				/* has ended; freed once no thread works for it any more */
};

/* a slot of the ring of batches */
struct slot
{
	struct batch_memory *memory;	/* NULL until allocated */
	struct geonn_batch_columns columns;
	bool		busy;			/* its search waits, or a device works on it */
	struct search search;
	struct cutoff cutoff;		/* the cutoff with which its search began (device.h) */
};

/*
 * Only the server's thread uses a session, with three exceptions.  Any thread may
 * read `cancelled`; the thread that sorts the references sets the result of the
 * sort; and a device owns the searches that it has taken.
 */
struct session
{
	int			socket;			/* the connection; -1 once the session has ended */
	enum session_state state;
	enum geonn_device_choice choice;
	struct dataset *dataset;	/* the dataset that it holds, from open or attach on */
	struct call *call;			/* the call that it works for; NULL: the client has named none */
	int32_t		pid;			/* the process and the role of that call, or of the last one; 0: none */
	int32_t		leader;			/* the process that admission counts that one for: its leader, or itself */
	uint32_t	role;
	enum geonn_phase phase;		/* the phase of the session, as a part of its call (calls.c) */
	struct admission admission;
	struct geonn_open open;		/* the message open that it sent */
	bool		has_finished;
	struct geonn_finished finished; /* the message finished that it sent */
	struct unsent *unsent;		/* messages that wait to be sent; until they are, none is
								 * received from the client */
	int			received;		/* the descriptor that came with the present message, or -1 */
	struct slot slots[GEONN_RING_SLOTS];
	struct batch_share *share;	/* its process's share of batches; NULL until it needs one */
	struct search_queue queue;
	bool		client_left;	/* the client has unmapped all memory and closed its end */
	int			under_way;		/* how many slots are busy, plus 1 while a thread sorts */
	atomic_bool cancelled;		/* true once the session has ended */

	/* set by the thread that sorts its references */
	atomic_bool sort_ended;		/* the next two are set, and that thread is done with the session */
	bool		sorted;
	struct failure sort_failure;	/* why the references could not be sorted */

	struct session *next;		/* the next of all sessions */

	/* while the session is idle */
	int64_t		idle_since_ms;
	struct session *newer;		/* the next ones in the order of idle sessions */
	struct session *older;
};

/* The first of all sessions, which are linked by next, or NULL. */
extern struct session *session_first(void);

/*
 * Create a session, which takes over a connected socket.  NULL with errno if
 * memory is short: then the socket remains the caller's.
 */
extern struct session *session_create(int socket);

/* Handle the messages that the client sent, up to a fixed number, so that other clients get their
 * turn. */
extern void session_receive(struct session *session);

/* Answer a client whose hello came before the devices were probed. */
extern void session_welcome(struct session *session);

/* Answer a client that waits for the status with gauges. */
extern void session_measured(struct session *session);

/* Handle the message search. */
extern void session_search(struct session *session, const union geonn_message *message);

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

/* Go on with the sessions whose references have been sorted. */
extern void session_collect_sealed(void);

/* Handle the message finished. */
extern void session_finished(struct session *session, const union geonn_message *message);

/*
 * session_stay() makes a session idle that is done with its call; it keeps the
 * batch of slot `kept`, or none if that is GEONN_RING_SLOTS.  session_resume()
 * lets it go on with its client's next call.
 */
extern void session_stay(struct session *session, uint32_t kept);
extern void session_resume(struct session *session, const union geonn_message *message);

/*
 * Make a session idle, or an idle one work again: changes its state, the order of idle sessions and
 * its process's share.
 */
extern void session_set_idle(struct session *session, bool is_idle);

/* The session that has been idle for longest, or NULL; and how many are idle. */
extern struct session *session_oldest_idle(void);
extern uint32_t session_count_idle(void);

/* Set the milliseconds after which an idle session is to end; 0: at once. */
extern void session_set_idle_timeout(uint64_t milliseconds);

/* End the oldest idle session, as another session needs its memory or descriptors; false: none is
 * idle. */
extern bool session_give_up_idle(void);

/* Milliseconds until the oldest idle session's time is over, or -1 if none is idle. */
extern int	session_overdue_within_ms(void);

/* End an idle session whose time is over: one at a time, as others wait for the server's thread. */
extern void session_end_overdue(void);

/* Let the session leave its call; the call ends if this was its last session. */
extern void session_leave_call(struct session *session);

/* When the client has closed its end, look for a message finished that it sent before. */
extern void session_take_last_words(struct session *session);

/*
 * Send a message, with a copy of the descriptor (-1: none), at once or as soon as the kernel takes the
 * descriptor.  If that fails, the session ends.
 */
extern void session_send(struct session *session, int type, void *message,
						 int descriptor);

/* Try again to send the messages of all sessions that wait, if it is time. */
extern void session_send_unsent(void);

/* Milliseconds until messages that wait are to be tried again, or -1: none waits. */
extern int	session_unsent_within_ms(void);

/* End the session with an error, as its client broke the protocol; `what` describes the message. */
extern void session_fail_protocol(struct session *session, const char *what);

/* Send an error, and end the session. */
extern void session_fail(struct session *session, const struct failure *failure);

/* Close the connection and cancel all work for the session. */
extern void session_end(struct session *session);

/* Free all ended sessions that no device or thread works for any more. */
extern void session_free_ended(void);

/*
 * session_idle_slot() returns the slot of this number if it exists and is not
 * busy; session_filled_slot() requires, too, that its batch has at least this
 * many rows.  Otherwise they end the session, and return NULL.
 */
extern struct slot *session_idle_slot(struct session *session, uint32_t number);
extern struct slot *session_filled_slot(struct session *session, uint32_t number, uint32_t rows);

#endif							/* GEONN_SESSION_H */
