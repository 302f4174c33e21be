/*
 * protocol.h
 *		The messages between the extension module and the engine.
 *
 * A client (a backend, a test, a benchmark) connects to the engine's Unix
 * socket, of type SOCK_SEQPACKET: one send is one message, a message is one
 * of the fixed structs below, and the end of the connection is the death
 * notice of the other side.  Points never travel through the socket.  They
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
 * A search asks for each observation's k nearest candidates (if the client
 * asks, also all that tie with the k-th), or for all candidates, within
 * max_distance.  The columns of a dataset (GEONN_COLUMN_...) say which
 * references are candidates; without columns all are.  The pairs of an
 * observation are adjacent, in the order (distance, order of the references).
 * That order is the one in which references were sent, or, where seal says so,
 * by (tag, latitude, longitude).
 *
 * The references of a dataset with GEONN_COLUMN_ARC are arcs of great circles
 * (arc.h), and a search finds shapes, each of which is one or more of these
 * arcs.  Latitude and longitude are the place where the arc begins, and further
 * columns have the place where it ends, the number of its shape and that of
 * its polygon.  An arc longer than a quarter circle counts as two, by its middle
 * (geonn_arc_middle()); a point is an arc of no length.  Shapes have numbers from 0
 * on, in the order in which they are sent; their arcs are adjacent, and have the same tag
 * and group.  An arc of a point or a line has polygon 0.  The rings of a polygon are
 * adjacent and closed, each in the order of its vertices; a ring of one vertex is an arc of no length.
 * Their arcs have the polygon's number n, which is greater than those
 * sent before, or -n where an odd number of the polygon's rings hold the north pole
 * (geonn_ring_holds_pole()).  The distance of an observation to a shape is 0 inside
 * one of its polygons and on its border, else the least to its arcs.  Inside a polygon are the
 * points that lie inside an odd number of its rings.  An observation has one pair for each shape: its tag
 * and the distance, in the order (distance, order of the shapes).  That order is the one in which
 * shapes were sent, or, where seal says so, by tag, and of the same tag as
 * sent.  With GEONN_SEARCH_PLACES each pair has its place as well: the place of the shape that
 * is nearest to the observation, in degrees.  Of arcs that are as near it is on the one sent
 * first; inside a polygon, which then stands for its first arc, it is the observation's.  And its
 * fraction: which part of the length of the shape's lines, end to end in the order of sending, comes
 * before the place; NAN where that is not on a line but on a point or a polygon.  A count counts a shape once, however
 * many of its arcs are within a radius, with the weights that all of its arcs have.  Such a dataset has the metric
 * GEONN_METRIC_SPHERE, and of the other columns GEONN_COLUMN_GROUP, GEONN_COLUMN_EXCLUDED and GEONN_COLUMN_WEIGHT alone.
 *
 * A search with radii counts instead: it asks how many candidates each
 * observation has within each radius, and for the exact sums of their weights,
 * the columns GEONN_COLUMN_WEIGHT of the dataset.  An observation then has one
 * pair for each radius and weight, or for each radius if the dataset has no
 * weights: by radius, then by weight.  Its tag is the count, its distance the sum.
 * With GEONN_SEARCH_EXTREMES, a radius with weights has three times as many pairs:
 * the distances of the further ones are the least weights, of which those of no
 * candidate are infinite, and then the greatest ones, -infinite likewise.
 * In a dataset without references it has no pair.
 *
 * If an observation has more pairs than the room, the engine answers it in
 * parts: the results say "partial", and a search with "resume" from that
 * observation on brings the next part.
 *
 * A dataset can stay in the engine after its last session, until its memory is
 * needed: geonn_configure has the limit.  A later session finds it by a label.
 * A label has two parts: the subject says what the references are of, and the
 * version says which state of it they are.  The session that opens the dataset
 * gives the subject, and asks for that when it seals the dataset, with the
 * version that it knows then; from then on any session that opens a dataset with the same label
 * gets the kept one, sealed, with the note that the first session left.  The
 * engine keeps one version of a subject.  A client that can use any of several datasets gives the labels of
 * all of them; if none is kept, the new dataset gets the first one's subject.  A client
 * may also ask for whichever version is kept.  The engine does not interpret
 * labels; clients must not give the same label to different references.
 *
 * Files hold what clients must know of the references beside their tags, so
 * that a session that attaches to a dataset knows it, too.  The engine does not
 * read them.  A dataset has at most one file of each kind.
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/platform.h"
#include "common/version.h"

#define GEONN_PROTOCOL_MAGIC	0x6E6F6567	/* "geon" */
#ifndef GEONN_PROTOCOL_VERSION
#define GEONN_PROTOCOL_VERSION	17
#endif

/* the descriptor at which the engine finds its supervisor */
#define GEONN_SUPERVISOR_DESCRIPTOR 3

/* how many slots for batches a session's ring has */
#define GEONN_RING_SLOTS		4

/* the greatest number of rows, and of pairs, that one batch has room for */
#define GEONN_BATCH_ROWS_MAX	(1 << 22)

/* the greatest number of labels that open may give */
#define GEONN_LABELS_MAX		3

/* the greatest number of references that one dataset may have */
#define GEONN_REFERENCES_MAX	INT32_MAX

/* the greatest number of bytes that a reference takes in the CPU's index */
#define GEONN_INDEX_BYTES		34

/* about how many bytes an arc takes in it: 61 of a line, 69 with fractions, some 94 of a polygon with ten corners */
#define GEONN_ARC_INDEX_BYTES	96

/* bytes of a label's two parts, and of a note */
#define GEONN_SUBJECT_BYTES		480
#define GEONN_VERSION_BYTES		32
#define GEONN_NOTE_BYTES		64

/* bytes of a call's texts, with the zero byte that ends them */
#define GEONN_FUNCTION_BYTES	32
#define GEONN_ARGUMENTS_BYTES	256

/* the greatest length in bytes of a file that stays with a dataset: more than any system has */
#define GEONN_FILE_BYTES_MAX	(UINT64_C(1) << 50)

/* the greatest k: how many pairs an observation may ask for, ties not counted */
#define GEONN_K_MAX				1024

/* the value of a gauge that is not known */
#define GEONN_UNKNOWN			INT32_MIN

/* the greatest number of devices that one engine has: the CPU and its GPUs */
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

/* the kinds of devices, each with its word in SQL */
#define GEONN_DEVICE_KINDS(KIND) \
	KIND(CPU, "cpu") \
	KIND(CUDA, "cuda")

/* GEONN_KIND_CPU ... */
#define GEONN_DEVICE_KIND(NAME, word) GEONN_KIND_##NAME,
enum geonn_device_kind
{
	GEONN_DEVICE_KINDS(GEONN_DEVICE_KIND)
	GEONN_DEVICE_KIND_COUNT
};

/* which devices a session may use; GEONN_DEVICE_CPU ... stand for the devices of one kind */
#define GEONN_DEVICE_CHOICE(NAME, word) GEONN_DEVICE_##NAME,
enum geonn_device_choice
{
	GEONN_DEVICE_AUTO,			/* the GPUs that work or, if none does, the CPU */
	GEONN_DEVICE_KINDS(GEONN_DEVICE_CHOICE)
	GEONN_DEVICE_CHOICE_COUNT
};

/* The choice that allows the devices of this kind alone. */
static inline enum geonn_device_choice
geonn_device_choice_of(enum geonn_device_kind kind)
{
	return (enum geonn_device_choice) (GEONN_DEVICE_AUTO + 1 + (int) kind);
}

/* how the distances that order neighbours are measured */
enum geonn_metric
{
	GEONN_METRIC_SPHERE,		/* along great circles of a sphere (geodesy.h) */
	GEONN_METRIC_SPHEROID		/* along geodesics of WGS84 (spheroid.h) */
};

/* how to search; all algorithms find the same pairs */
enum geonn_algorithm
{
	GEONN_ALGORITHM_AUTO,		/* the one that the device expects to take less time */
	GEONN_ALGORITHM_INDEX,
	GEONN_ALGORITHM_BRUTE
};

/* bits of the columns that the references of a dataset, and its observations, may have */
#define GEONN_COLUMN_GROUP		1u	/* only references of the same group are
									 * candidates */
#define GEONN_COLUMN_EXCLUDED	2u	/* of observations alone: references with tags in the range
									 * that the observation excludes are not candidates */
#define GEONN_COLUMN_RADIUS		4u	/* only references within the observation's radius, and
									 * within their own, are candidates */
#define GEONN_COLUMN_WINDOW		8u	/* << 0 ... GEONN_WINDOWS_MAX - 1: only references whose
									 * window overlaps the observation's are candidates */
#define GEONN_COLUMN_WEIGHT		64u /* << 0 ... GEONN_WEIGHTS_MAX - 1: of references alone: numbers
									 * that a count adds up; NAN: the reference has none */
#define GEONN_COLUMN_PARTY		1024u	/* << 0 ... GEONN_PARTIES_MAX - 1: only references of another
										 * party are candidates */
#define GEONN_COLUMN_ARC		4096u	/* of references alone: they are arcs of shapes */
#define GEONN_COLUMNS_ALL		8191u

/* the greatest number of windows that a point may have (window.h) */
#define GEONN_WINDOWS_MAX		3
#define GEONN_COLUMNS_WINDOWS	(((1u << GEONN_WINDOWS_MAX) - 1) * GEONN_COLUMN_WINDOW)

/* the greatest number of weights that a reference may have */
#define GEONN_WEIGHTS_MAX		4
#define GEONN_COLUMNS_WEIGHTS	(((1u << GEONN_WEIGHTS_MAX) - 1) * GEONN_COLUMN_WEIGHT)

/* the greatest number of parties that a point may have */
#define GEONN_PARTIES_MAX		2
#define GEONN_COLUMNS_PARTIES	(((1u << GEONN_PARTIES_MAX) - 1) * GEONN_COLUMN_PARTY)

/* the greatest number of radii within which one search counts */
#define GEONN_RADII_MAX			16

/* the contents of a file that stays with a dataset */
enum geonn_file_kind
{
	GEONN_FILE_RECORDS,			/* a record of each reference: its id, or the id's offset in the next file */
	GEONN_FILE_VALUES,			/* ids of references that are too long for records */
	GEONN_FILE_GROUPS,			/* the groups' keys with the groups' numbers */
	GEONN_FILE_BASE,			/* the references themselves, for clients that search alone */
	GEONN_FILE_PARTIES			/* + 0 ... GEONN_PARTIES_MAX - 1: the parties' keys with the parties' numbers */
};

#define GEONN_FILE_KINDS		(GEONN_FILE_PARTIES + GEONN_PARTIES_MAX)

/* bits of geonn_search.flags */
#define GEONN_SEARCH_TIES		1u	/* all candidates that tie with the k-th are found, too */
#define GEONN_SEARCH_RESUME		2u	/* the last results ended within the first
									 * observation: begin with its next pair */
#define GEONN_SEARCH_EXTREMES	4u	/* a count has the least and the greatest weights, too */
#define GEONN_SEARCH_PLACES		8u	/* of arcs alone: pairs have their places, and the fractions of these */

/* bits of geonn_results.flags */
#define GEONN_RESULTS_ONE_EACH	1u	/* every observation has one pair; the
									 * counts are not written */
#define GEONN_RESULTS_PARTIAL	2u	/* the observation after the last answered
									 * one has a count, too, and some of its
									 * pairs, behind all other pairs */

enum geonn_error_code
{
	GEONN_ERROR_VERSION = 1,	/* the two sides were not built together;
								 * detail is the engine's release */
	GEONN_ERROR_PROTOCOL,		/* the protocol forbids the message: a bug */
	GEONN_ERROR_MEMORY,			/* host or device memory is short */
	GEONN_ERROR_LIMIT,			/* a limit of the engine or its settings is reached */
	GEONN_ERROR_NO_DEVICE,		/* the engine lacks the device that was asked for */
	GEONN_ERROR_DEVICE			/* a device failed while it worked */
};

enum geonn_device_state
{
	GEONN_DEVICE_READY,
	GEONN_DEVICE_FAILED			/* reason says why */
};

/* which list a client asks for */
enum geonn_listing
{
	GEONN_LIST_CALLS,			/* struct geonn_call_status: calls under way */
	GEONN_LIST_STATISTICS,		/* struct geonn_statistics: calls that ended */
	GEONN_LIST_RESET			/* the statistics, which the engine then begins anew */
};

/*
 * The phases of a call.  At any moment a call is in the latest phase that one
 * of its sessions or batches is in.
 */
enum geonn_phase
{
	GEONN_PHASE_OBSERVATIONS,	/* the engine has nothing to do: the client
								 * reads observations, or works on pairs */
	GEONN_PHASE_QUEUED,			/* the call waits for other sessions to end */
	GEONN_PHASE_REFERENCES,		/* references arrive */
	GEONN_PHASE_SORTING,		/* references are put in order */
	GEONN_PHASE_WAITING,		/* its batches wait for a device */
	GEONN_PHASE_BUILDING,		/* a device builds an index or another structure
								 * of the references, or waits for such a build */
	GEONN_PHASE_SEARCHING		/* a device searches */
};

#define GEONN_PHASES			7

/* Begins every message.  The layouts of the header, of hello and of error never change. */
struct geonn_header
{
	uint32_t	magic;
	uint16_t	version;		/* GEONN_PROTOCOL_VERSION */
	uint16_t	type;			/* enum geonn_message_type */
};

/* hello and welcome */
struct geonn_hello
{
	struct geonn_header header;
	char		release[16];	/* GEONN_VERSION of the sender */
};

/* strings end with a zero byte; detail and hint may be empty */
struct geonn_error
{
	struct geonn_header header;
	uint32_t	code;			/* enum geonn_error_code */
	char		message[256];
	char		detail[256];
	char		hint[256];
};

struct geonn_status
{
	struct geonn_header header;
	uint32_t	gauges;			/* 1: read the gauges of GPUs first, which may take a second */
	uint32_t	unused;
};

struct geonn_engine_status
{
	struct geonn_header header;
	int32_t		pid;
	uint32_t	devices;		/* how many device_status messages follow */
	uint32_t	sessions;		/* how many sessions have a dataset, open or sealed */
	uint32_t	datasets;		/* how many datasets the engine has, kept ones included */
	uint32_t	searches;		/* how many searches wait or run */
	uint32_t	kept;			/* how many datasets are kept */
	uint32_t	queued;			/* how many sessions wait for others to end */
	uint32_t	idle;			/* how many sessions stay for their clients' next calls */
	uint32_t	unused;
	uint64_t	kept_memory;	/* bytes of host memory that kept datasets take */
	uint64_t	base_memory;	/* bytes that the engine took before its first session */
	uint64_t	transfer_memory;	/* bytes that batches take, pooled ones included */
	uint64_t	transfer_memory_limit;	/* bytes */
	int64_t		started_at;		/* microseconds since 1970-01-01 UTC */
	char		release[16];
	char		no_gpu_reason[256]; /* empty where a GPU is ready */
};

struct geonn_device_status
{
	struct geonn_header header;
	uint32_t	number;			/* 0 for the CPU */
	uint32_t	kind;			/* enum geonn_device_kind */
	uint32_t	state;			/* enum geonn_device_state */
	uint32_t	in_use_by_auto; /* 1 where device choice auto uses it */
	uint32_t	capability_major;	/* CUDA's compute capability; 0 where the kind has none */
	uint32_t	capability_minor;
	uint32_t	threads;		/* how many threads of the host it uses; 0 where the kind uses none */
	int32_t		utilization;	/* percent; the three gauges are as last read,
								 * or GEONN_UNKNOWN */
	int32_t		temperature;	/* degrees Celsius */
	int32_t		power;			/* milliwatts */
	uint64_t	memory_total;	/* bytes */
	uint64_t	memory_free;	/* bytes */
	uint64_t	batches;		/* how many it has searched since the engine started */
	char		name[128];
	char		uuid[48];		/* empty where the kind has none */
	char		reason[256];	/* why it failed */
};

struct geonn_list
{
	struct geonn_header header;
	uint32_t	listing;		/* enum geonn_listing */
	uint32_t	unused;
};

/* carries a memfd, sealed against shrinking, growing and writing */
struct geonn_listed
{
	struct geonn_header header;
	uint64_t	entries;		/* how many entries the list has */
	int64_t		since;			/* when statistics began: microseconds since
								 * 1970-01-01 UTC */
};

/*
 * A client's description of a call, for the views of calls: OIDs of a database,
 * a role and two tables, and texts.  The engine compares labels byte by byte, so
 * unused bytes are zero.
 */
struct geonn_call_label
{
	uint32_t	database;
	uint32_t	user;
	uint32_t	observations;	/* the OIDs of the tables; 0: no table */
	uint32_t	references;
	char		function[GEONN_FUNCTION_BYTES];
	char		arguments[GEONN_ARGUMENTS_BYTES];
};

struct geonn_call
{
	struct geonn_header header;
	int32_t		pid;			/* the process id of the calling backend */
	uint32_t	role;			/* the OID of the role that the backend has logged in as, or 0 */
	uint64_t	number;			/* the call's number among that process's calls */
	uint64_t	microseconds;	/* how long ago the call began; since then it has read references */
	uint64_t	expected;		/* how many observations follow; 0: not known */
	struct geonn_call_label label;
};

/* figures of the session's work in its call */
struct geonn_finished
{
	struct geonn_header header;
	uint64_t	rows;			/* how many rows of the result it returned */
	uint64_t	observations_skipped;
	uint64_t	references_skipped;
	uint64_t	unmatched;		/* how many observations, beside skipped ones, have no neighbour */
	uint32_t	stays;			/* 1: the session stays for another call, without its dataset */
	uint32_t	slot;			/* the slot whose batch stays with it; GEONN_RING_SLOTS: none */
	uint32_t	alone;			/* 1: the client has answered the calls alone, and the next three fields are read */
	uint32_t	unused;
	uint64_t	calls;			/* how many calls these are */
	uint64_t	observations;	/* how many observations were answered */
	uint64_t	microseconds;	/* how long the calls have taken */
};

/* an entry of the list of calls under way */
struct geonn_call_status
{
	struct geonn_call_label label;
	int32_t		pid;
	uint32_t	sessions;
	uint32_t	phase;			/* enum geonn_phase */
	uint32_t	unused;
	uint64_t	devices;		/* devices that work for it, or did: a bit
								 * each, by their number; the last bit stands
								 * for all beyond */
	uint64_t	references;
	uint64_t	observations;	/* how many were answered */
	uint64_t	expected;		/* how many observations it has in all; 0: not known */
	int64_t		started_at;		/* microseconds since 1970-01-01 UTC */
};

/* an entry of the statistics: the sums of all calls of a label */
struct geonn_statistics
{
	struct geonn_call_label label;
	uint64_t	calls;
	uint64_t	failed;			/* calls in which a session closed its connection before it sent finished */
	uint64_t	rows;
	uint64_t	observations;	/* how many were answered */
	uint64_t	observations_skipped;
	uint64_t	unmatched;
	uint64_t	references;		/* how many were sent */
	uint64_t	references_skipped;
	uint64_t	kept;			/* calls whose references the engine had kept */
	uint64_t	batches;
	uint64_t	bytes;			/* bytes that went through batches, both ways */
	uint64_t	fallbacks;		/* batches that were smaller than asked for, were searched again for
								 * want of memory, or went to the CPU as no GPU could be used */
	uint64_t	microseconds[GEONN_PHASES];
	int64_t		last_error_at;	/* microseconds since 1970-01-01 UTC; 0: none */
	char		last_error[256];	/* the last error that the engine sent; empty: none */
};

/* compared byte by byte, so unused bytes are zero */
struct geonn_label
{
	uint8_t		subject[GEONN_SUBJECT_BYTES];
	uint8_t		version[GEONN_VERSION_BYTES];
};

struct geonn_open
{
	struct geonn_header header;
	uint32_t	device;			/* enum geonn_device_choice */
	uint32_t	metric;			/* enum geonn_metric */
	uint32_t	columns;		/* GEONN_COLUMN_... */
	uint32_t	labels;			/* number of labels */
	uint32_t	any_version;	/* 1: a kept dataset is found by the subject of a label alone */
	uint32_t	unused;
	struct geonn_label label[GEONN_LABELS_MAX]; /* the best first */
};

struct geonn_queued
{
	struct geonn_header header;
	uint32_t	limit;			/* how many processes may have sessions */
	uint32_t	ahead;			/* how many sessions were queued before this one */
};

struct geonn_attach
{
	struct geonn_header header;
	uint32_t	device;			/* enum geonn_device_choice */
	uint32_t	unused;
	uint64_t	dataset;		/* the dataset's number, from opened; it must be sealed */
};

struct geonn_opened
{
	struct geonn_header header;
	uint64_t	dataset;		/* the dataset's number */
	uint64_t	references;		/* how many it has; 0 where it is new */
	uint32_t	metric;			/* the metric and the columns with which it was opened first */
	uint32_t	columns;
	uint32_t	files;			/* bits 1 << enum geonn_file_kind: a message file
								 * follows for each */
	uint32_t	sealed;			/* 0 where it is new, else 1 */
	uint8_t		note[GEONN_NOTE_BYTES]; /* the note of a kept dataset */
};

/* leave and file: carries a memfd, sealed against shrinking, growing and writing */
struct geonn_file
{
	struct geonn_header header;
	uint32_t	kind;			/* enum geonn_file_kind */
	uint32_t	unused;
};

struct geonn_allocate
{
	struct geonn_header header;
	uint32_t	slot;			/* 0 ... GEONN_RING_SLOTS - 1, idle */
	uint32_t	rows;			/* how many rows the client wants, 1 ... GEONN_BATCH_ROWS_MAX */
	uint32_t	room;			/* how many pairs it wants room for, 1 ... GEONN_BATCH_ROWS_MAX */
	uint32_t	unused;
};

/*
 * Carries the memfd of the slot's new batch.  rows and room are as asked for,
 * or less if the process's share of the transfer memory is short.  If no
 * memory is left and the session has other batches, they are 0, and no memfd
 * comes.  The engine takes back the slot's former batch, which the client must
 * have unmapped before it asked.
 */
struct geonn_batch
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	rows;
	uint32_t	room;
	uint32_t	unused;
};

/* gives back the batch of an idle slot, which the client has unmapped and will not use again */
struct geonn_return
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	unused;
};

struct geonn_references
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	rows;
};

struct geonn_released
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	unused;
};

struct geonn_seal
{
	struct geonn_header header;
	uint32_t	order_by_tag;	/* 0: the order is that of sending; 1: the engine sorts
								 * by (tag, latitude, longitude) */
	uint32_t	keep;			/* 1: the engine keeps the dataset, to be found by its label */
	uint8_t		version[GEONN_VERSION_BYTES];	/* the label's version, where keep is 1 */
	uint8_t		note[GEONN_NOTE_BYTES];
};

struct geonn_sealed
{
	struct geonn_header header;
	uint64_t	references;
};

struct geonn_search
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	first;			/* the first observation to answer */
	uint32_t	rows;			/* observations in the batch; first < rows */
	uint32_t	k;				/* 1 ... GEONN_K_MAX, or 0: all within max_distance */
	uint32_t	algorithm;		/* enum geonn_algorithm */
	uint32_t	flags;			/* GEONN_SEARCH_... */
	double		max_distance;	/* metres, inclusive, at least 0; may be
								 * infinite */
	uint32_t	radii;			/* 0: find pairs; else count within this many radii: k is 0, and flags are 0 or
								 * GEONN_SEARCH_EXTREMES */
	uint32_t	unused;
	double		radius[GEONN_RADII_MAX];	/* metres, inclusive, at least 0, each greater than the one
											 * before; may be infinite */
};

/*
 * Observations first ... first + observations - 1 are answered: their counts have
 * these indexes in the batch's column of counts, and their pairs begin at index 0.
 * At least one observation is answered, unless the results are partial.
 */
struct geonn_results
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	first;
	uint32_t	observations;
	uint32_t	pairs;
	uint32_t	flags;			/* GEONN_RESULTS_... */
	uint32_t	device;			/* number of the device that answered last */
	uint32_t	algorithm;		/* enum geonn_algorithm; auto only where nothing
								 * had to be searched */
	uint32_t	build_microseconds; /* how long devices took to build the structures that it needed */
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
	uint64_t	cpu_threads;	/* at most GEONN_CPU_THREADS_MAX; 0: one for each core */
	uint64_t	idle_session_timeout;	/* milliseconds; 0: no session stays idle */
	uint64_t	max_sessions;	/* backends that have sessions at a time; 0: no limit */
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

/*
 * How many pairs an observation of a count has for each radius, with so many weights; extremes: GEONN_SEARCH_EXTREMES.
 */
static inline uint32_t
geonn_pairs_of_radius(uint32_t weights, bool extremes)
{
	return weights == 0 ? 1 : extremes ? 3 * weights : weights;
}

/*
 * How many bytes a message of this type has; 0 for an unknown type.
 */
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
