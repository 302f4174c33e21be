/*
 * protocol_figures.h
 *		Messages of figures: the status of the engine and its devices, calls, and statistics.
 */
#ifndef GEONN_PROTOCOL_FIGURES_H
#define GEONN_PROTOCOL_FIGURES_H

#include <stdint.h>

#include "common/protocol_header.h"

/* the value of a gauge that is not known */
#define GEONN_UNKNOWN			INT32_MIN

/* the bytes of a call's texts, including the zero byte at the end */
#define GEONN_FUNCTION_BYTES	32
#define GEONN_ARGUMENTS_BYTES	256

enum geonn_device_state
{
	GEONN_DEVICE_READY,
	GEONN_DEVICE_FAILED			/* reason says why */
};

/* which list a client asks for */
enum geonn_listing
{
	GEONN_LIST_CALLS,			/* calls under way: struct geonn_call_status */
	GEONN_LIST_STATISTICS,		/* statistics of ended calls: struct geonn_statistics */
	GEONN_LIST_RESET			/* statistics of ended calls; the engine then begins new ones */
};

/*
 * The phases of a call.  At any moment a call is in the latest phase that one
 * of its sessions or batches is in.
 */
enum geonn_phase
{
	GEONN_PHASE_OBSERVATIONS,	/* the engine has nothing to do: the client reads observations, or works on pairs */
	GEONN_PHASE_QUEUED,			/* the call waits for other sessions to end */
	GEONN_PHASE_REFERENCES,		/* references arrive */
	GEONN_PHASE_SORTING,		/* references are put in order */
	GEONN_PHASE_WAITING,		/* batches of the call wait for a device */
	GEONN_PHASE_BUILDING,		/* a device builds an index or another structure of the references, or waits for such a
								 * build */
	GEONN_PHASE_SEARCHING		/* a device searches */
};

#define GEONN_PHASES			7

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
	uint32_t	queued;			/* how many sessions wait until others end */
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
	uint32_t	in_use_by_auto; /* 1: device choice auto uses the device */
	uint32_t	capability_major;	/* CUDA's compute capability; 0 where the kind has none */
	uint32_t	capability_minor;
	uint32_t	threads;		/* how many threads of the host the device uses; 0: its kind uses none */
	int32_t		utilization;	/* percent; utilization, temperature and power are as the engine last read them, or
								 * GEONN_UNKNOWN */
	int32_t		temperature;	/* degrees Celsius */
	int32_t		power;			/* milliwatts */
	uint64_t	memory_total;	/* bytes */
	uint64_t	memory_free;	/* bytes */
	uint64_t	batches;		/* how many batches the device has searched since the engine started */
	char		name[128];
	char		uuid[48];		/* empty where the kind has none */
	char		reason[256];	/* why the device failed */
};

struct geonn_list
{
	struct geonn_header header;
	uint32_t	listing;		/* enum geonn_listing */
	uint32_t	unused;
};

/* The answer to the message list.  It carries a memfd, sealed against shrinking, growing and writing. */
struct geonn_listed
{
	struct geonn_header header;
	uint64_t	entries;		/* how many entries the list has */
	int64_t		since;			/* when the statistics began: microseconds since 1970-01-01 UTC */
};

/*
 * A client's description of a call, for the views of calls: the OIDs of a database, a role and two
 * tables, and texts.  The engine compares labels byte by byte, so clients set unused bytes to zero.
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
	int32_t		leader;			/* if the calling backend is a parallel worker, the process id of its leader; otherwise 0 */
	uint32_t	unused;
	uint64_t	number;			/* the call's number among the calls of that process */
	uint64_t	microseconds;	/* how long ago the call began; the client has read references since then */
	uint64_t	expected;		/* how many observations follow; 0: not known */
	struct geonn_call_label label;
};

/* Figures of the session's work in its call. */
struct geonn_finished
{
	struct geonn_header header;
	uint64_t	rows;			/* how many rows of the result the client returned */
	uint64_t	observations_skipped;
	uint64_t	references_skipped;
	uint64_t	unmatched;		/* how many observations have no neighbour, skipped ones not counted */
	uint32_t	stays;			/* 1: the session stays for another call, without its dataset */
	uint32_t	slot;			/* the slot whose batch stays with the session; GEONN_RING_SLOTS: none */
	uint32_t	alone;			/* 1: the client has answered the calls by itself, and the next three fields count */
	uint32_t	unused;
	uint64_t	calls;			/* how many calls the client has answered */
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
	uint64_t	devices;		/* devices that work or worked for the call: one bit each, by their number; the last
								 * bit stands for all devices beyond */
	uint64_t	references;
	uint64_t	observations;	/* how many were answered */
	uint64_t	expected;		/* how many observations the call has in all; 0: not known */
	int64_t		started_at;		/* microseconds since 1970-01-01 UTC */
};

/* an entry of the statistics: the sums of all calls of a label */
struct geonn_statistics
{
	struct geonn_call_label label;
	uint64_t	calls;
	uint64_t	failed;			/* calls in which a session closed its connection before it sent the message finished */
	uint64_t	rows;
	uint64_t	observations;	/* how many were answered */
	uint64_t	observations_skipped;
	uint64_t	unmatched;
	uint64_t	references;		/* how many were sent */
	uint64_t	references_skipped;
	uint64_t	kept;			/* calls for whose references the engine had kept a dataset */
	uint64_t	batches;
	uint64_t	bytes;			/* bytes that went through batches, both ways */
	uint64_t	fallbacks;		/* batches that were smaller than asked for, that were searched again for want of
								 * memory, or that went to the CPU because no GPU could be used */
	uint64_t	microseconds[GEONN_PHASES];
	int64_t		last_error_at;	/* when the last error was: microseconds since 1970-01-01 UTC; 0: none */
	char		last_error[256];	/* the text of the last error that the engine sent; empty: none */
};

#endif							/* GEONN_PROTOCOL_FIGURES_H */
