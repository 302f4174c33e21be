/*
 * protocol.h
 *		The messages between the extension module and the engine.
 *
 * A client (a backend, a test, a benchmark) connects to the engine's Unix
 * socket, of type SOCK_SEQPACKET: one send is one message, a message is one
 * of the fixed structs of these headers, and the end of the connection is the
 * death notice of the other side.  Points never travel through the socket.  They
 * lie in batches: sealed memfds that the engine allocates and hands over,
 * each with room for some rows going in and some pairs coming back
 * (batch_layout.h).
 *
 * A session, in the order of its messages ("->" from the client, "<-" from the
 * engine):
 *
 *	hello ->				versions; the engine answers welcome, or error
 *	<- welcome				once its devices have been probed
 *	open ->					a new dataset (or attach -> to one that exists)
 *	<- queued				only where it has to wait for others to end
 *	<- opened
 *	<- file (+ memfd)		each file that was left with the dataset
 *	allocate ->				ask for the batch of a slot; again to get a larger
 *	<- batch (+ memfd)		one, while the slot is idle
 *	return ->				the batch of an idle slot is the engine's again
 *	references ->			rows of the batch are references: latitude,
 *	<- released				longitude, tag, and the further columns that the
 *							dataset has.  The engine has copied them.
 *	leave (+ memfd) ->		a file that stays with the dataset
 *	seal ->					no more references
 *	<- sealed
 *	search ->				rows of the batch are observations
 *	<- results				a count per observation and packed runs of
 *							(tag, distance).  Where the room ran out before
 *							the rows did, another search goes on from there.
 *	finished ->				the client is done; its session ends, or stays
 *
 * What references a dataset has, and how a later session finds it, is in
 * protocol_dataset.h; what a search asks, and which pairs answer it, in
 * protocol_search.h.
 *
 * "allocate", "references" and "search" name a slot of the session's ring;
 * each slot has one request under way at most, and different slots are
 * answered in any order.  An error ends the session.
 *
 * A client unmaps its batches before it closes its end, so that the engine can
 * give them to the next client.  The batches of a session that ended with an
 * error are not used again.
 *
 * Both sides distrust what they read: they check sizes, counts and indexes
 * against what was agreed before they use them, and a memfd's seals and size
 * before they map it.  A client that reads a file checks its contents.
 *
 * A client that is done may stay, with the batch of one slot, after it has
 * unmapped all others.  Its session is idle then: it has no dataset and no
 * call, and only its share of the batches' memory.  It goes on with call, for
 * the same process and role, and open or attach; if the batch has no room for
 * the columns of that dataset, the client returns it before call.  The engine
 * ends an idle session without an error, after some time or when it needs the
 * memory.  Therefore a client that goes on touches the batch only after the
 * engine has answered, and connects again if it finds the connection closed.
 *
 * Between welcome and open or attach, a session may name the call that it
 * works for, with a label for the views of calls.  Sessions that give the same
 * process and number belong to one call.  At its end each session sends
 * finished, with the figures that only it knows; a session that ends without
 * that was cancelled, or failed.  Calls that a client has answered alone, by a
 * file that stays with a dataset, are counted by a later session of the same
 * label, which is for no call itself.
 *
 * geonn_configure may limit the backends that have sessions at a time.  A
 * client that opens a dataset beyond the limit gets queued, and opened follows
 * in its turn.
 *
 * A session that only reads figures sends hello, and then status, or list: of
 * calls under way, or of statistics.
 *
 * The supervisor is connected to the engine by a socketpair of the same type,
 * the engine's descriptor 3, in this order (supervisor ->, <- engine):
 *
 *	configure ->			the engine's settings, as the first message, and again
 *							when one of them changes
 *	<- pong					number 0: the engine listens at its socket
 *	ping ->					from time to time; the engine answers at any time
 *	<- pong					with the number of the ping
 *
 * An engine that gets its settings in another version of the protocol sends
 * pong, too, so that the supervisor sees the engine's version; it does not
 * listen.
 */
#ifndef GEONN_PROTOCOL_H
#define GEONN_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "common/platform.h"
#include "common/protocol_dataset.h"
#include "common/protocol_figures.h"
#include "common/protocol_header.h"
#include "common/protocol_search.h"
#include "common/version.h"

/* the descriptor at which the engine finds its supervisor */
#define GEONN_SUPERVISOR_DESCRIPTOR 3

/* an engine has at most this many devices: the CPU and its GPUs */
#define GEONN_DEVICES_MAX		65

/*
 * All messages: the type, its number, the struct and its name in the union.  The numbers
 * of hello and error never change.
 */
#define GEONN_MESSAGES(MESSAGE) \
	/* from a client */ \
	MESSAGE(GEONN_HELLO, 1, geonn_hello, hello) \
	MESSAGE(GEONN_STATUS, 2, geonn_status, status) \
	MESSAGE(GEONN_LIST, 3, geonn_list, list) \
	MESSAGE(GEONN_CALL, 4, geonn_call, call) \
	MESSAGE(GEONN_OPEN, 5, geonn_open, open) \
	MESSAGE(GEONN_ATTACH, 6, geonn_attach, attach) \
	MESSAGE(GEONN_ALLOCATE, 7, geonn_allocate, allocate) \
	MESSAGE(GEONN_REFERENCES, 8, geonn_references, references) \
	MESSAGE(GEONN_LEAVE, 9, geonn_file, leave) \
	MESSAGE(GEONN_SEAL, 10, geonn_seal, seal) \
	MESSAGE(GEONN_SEARCH, 11, geonn_search, search) \
	MESSAGE(GEONN_FINISHED, 12, geonn_finished, finished) \
	MESSAGE(GEONN_RETURN, 13, geonn_return, give_back) \
	/* from the engine */ \
	MESSAGE(GEONN_WELCOME, 33, geonn_hello, welcome) \
	MESSAGE(GEONN_ENGINE_STATUS, 34, geonn_engine_status, engine_status) \
	MESSAGE(GEONN_DEVICE_STATUS, 35, geonn_device_status, device_status) \
	MESSAGE(GEONN_LISTED, 36, geonn_listed, listed) \
	MESSAGE(GEONN_OPENED, 37, geonn_opened, opened) \
	MESSAGE(GEONN_FILE, 38, geonn_file, file) \
	MESSAGE(GEONN_BATCH, 39, geonn_batch, batch) \
	MESSAGE(GEONN_RELEASED, 40, geonn_released, released) \
	MESSAGE(GEONN_SEALED, 41, geonn_sealed, sealed) \
	MESSAGE(GEONN_RESULTS, 42, geonn_results, results) \
	MESSAGE(GEONN_ERROR, 43, geonn_error, error) \
	MESSAGE(GEONN_QUEUED, 44, geonn_queued, queued) \
	/* between supervisor and engine */ \
	MESSAGE(GEONN_PING, 65, geonn_ping, ping) \
	MESSAGE(GEONN_PONG, 66, geonn_ping, pong) \
	MESSAGE(GEONN_CONFIGURE, 67, geonn_configure, configure)

/* All texts in messages: the message's type, and the text in the union. */
#define GEONN_TEXTS(TEXT) \
	TEXT(GEONN_HELLO, hello.release) \
	TEXT(GEONN_CALL, call.label.function) \
	TEXT(GEONN_CALL, call.label.arguments) \
	TEXT(GEONN_WELCOME, welcome.release) \
	TEXT(GEONN_ENGINE_STATUS, engine_status.release) \
	TEXT(GEONN_ENGINE_STATUS, engine_status.no_gpu_reason) \
	TEXT(GEONN_DEVICE_STATUS, device_status.name) \
	TEXT(GEONN_DEVICE_STATUS, device_status.uuid) \
	TEXT(GEONN_DEVICE_STATUS, device_status.reason) \
	TEXT(GEONN_ERROR, error.message) \
	TEXT(GEONN_ERROR, error.detail) \
	TEXT(GEONN_ERROR, error.hint)

enum geonn_message_type
{
#define GEONN_MESSAGE_NUMBER(type, number, structure, member) type = number,
	GEONN_MESSAGES(GEONN_MESSAGE_NUMBER)
#undef GEONN_MESSAGE_NUMBER
};

enum geonn_error_code
{
	GEONN_ERROR_VERSION = 1,	/* the client and the engine were not built together; detail is the engine's release */
	GEONN_ERROR_PROTOCOL,		/* the protocol forbids the message: a bug */
	GEONN_ERROR_MEMORY,			/* host or device memory is short */
	GEONN_ERROR_LIMIT,			/* a limit of the engine or its settings is reached */
	GEONN_ERROR_NO_DEVICE,		/* the engine does not have the device that the client asked for */
	GEONN_ERROR_DEVICE,			/* a device failed while it worked */
	GEONN_ERROR_NO_DATASET,		/* the engine does not have the dataset, which another engine had */
	GEONN_ERROR_SAME_TAG		/* references have one tag, where each needs its own */
};

/* hello and welcome */
struct geonn_hello
{
	struct geonn_header header;
	char		release[16];	/* GEONN_VERSION of the sender */
};

/* The engine sends the reason, and ends the session.  Strings end with a zero byte; detail and hint may be empty. */
struct geonn_error
{
	struct geonn_header header;
	uint32_t	code;			/* enum geonn_error_code */
	char		message[256];
	char		detail[256];
	char		hint[256];
};

struct geonn_ping
{
	struct geonn_header header;
	uint64_t	number;			/* pong returns it */
};

/* the greatest number of threads of the CPU: more than machines have cores */
#define GEONN_CPU_THREADS_MAX	1024

/* the engine's settings; the table of engine/server/server.c has the maximum of each */
struct geonn_configure
{
	struct geonn_header header;
	uint64_t	cpu_threads;	/* how many threads work on the CPU, at most GEONN_CPU_THREADS_MAX; 0: one for each core */
	uint64_t	idle_session_timeout;	/* milliseconds; 0: no session stays idle */
	uint64_t	max_sessions;	/* how many backends may have sessions at a time; 0: no limit */
	uint64_t	transfer_memory_limit;	/* bytes */
	uint64_t	gpu_memory_limit;	/* bytes on each GPU; 0: all that is free */
	uint64_t	kept_memory_limit;	/* bytes; 0: no dataset is kept */
};

union geonn_message
{
	struct geonn_header header;
#define GEONN_MESSAGE_MEMBER(type, number, structure, member) struct structure member;
	GEONN_MESSAGES(GEONN_MESSAGE_MEMBER)
#undef GEONN_MESSAGE_MEMBER
};

/* Return how many bytes a message of this type has; 0 for an unknown type. */
static inline size_t
geonn_message_size(int type)
{
	switch (type)
	{
#define GEONN_MESSAGE_SIZE(type, number, structure, member) case type: return sizeof(struct structure);
		GEONN_MESSAGES(GEONN_MESSAGE_SIZE)
#undef GEONN_MESSAGE_SIZE
	}
	return 0;
}

#endif							/* GEONN_PROTOCOL_H */
