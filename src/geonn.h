/*
 * geonn.h
 *		Vocabulary of the extension module: its settings and its files.
 */
#ifndef GEONN_H
#define GEONN_H

#include "pgstat.h"
#include "utils/guc.h"

#include "common/protocol.h"

/*
 * Files of the running geonn.  They stand in the folder for short-lived
 * statistics, which base backups leave out, and are named relative to the
 * data directory: that is every server process's working directory, and an
 * absolute path may be too long for a socket.
 */
#define GEONN_SOCKET_FILE	PG_STAT_TMP_DIR "/geonn.sock"
#define GEONN_LOCK_FILE		PG_STAT_TMP_DIR "/geonn.lock"
#define GEONN_STATE_FILE	PG_STAT_TMP_DIR "/geonn.state"
#define GEONN_LAUNCH_FILE	PG_STAT_TMP_DIR "/geonn.launch"

/* the program, beside the module in PostgreSQL's library directory */
#define GEONN_ENGINE_PROGRAM "geonn-engine"

/* settings, defined in module.c */
extern int	geonn_admission_timeout;	/* milliseconds; 0: no limit */
extern int	geonn_device;		/* enum geonn_device_choice */
extern int	geonn_algorithm;	/* enum geonn_algorithm */
extern int	geonn_cpu_threads;	/* 0: one for each core */
extern int	geonn_engine_timeout;	/* seconds */
extern int	geonn_transfer_memory_limit;	/* megabytes */
extern int	geonn_gpu_memory_limit; /* megabytes; 0: what is free */
extern int	geonn_kept_memory_limit;	/* megabytes; 0: no dataset is kept */
extern int	geonn_log_keep;		/* runs of each cache */
extern int	geonn_log_min_duration; /* milliseconds; -1: no call is logged */
extern int	geonn_max_sessions; /* processes that have some; -1: no limit */
extern int	geonn_session_memory_limit;	/* kilobytes; -1: no limit */

/* the names of geonn_device's and geonn_algorithm's values */
extern const struct config_enum_entry geonn_device_options[];
extern const struct config_enum_entry geonn_algorithm_options[];

/* what a process waits for */
typedef enum GeonnWait
{
	GEONN_NO_WAIT,				/* it does not */
	GEONN_WAIT_START,			/* an engine that is ready */
	GEONN_WAIT_ADMISSION,		/* others that have sessions end */
	GEONN_WAIT_ENGINE,			/* an answer that takes the engine no time */
	GEONN_WAIT_BATCH,			/* memory for a batch */
	GEONN_WAIT_REFERENCES,		/* the engine has taken references */
	GEONN_WAIT_SEAL,			/* it has put them in order */
	GEONN_WAIT_SEARCH,			/* pairs */
	GEONN_WAIT_SUPERVISOR		/* the supervisor's: something to do */
} GeonnWait;

/* the wait event that pg_stat_activity shows meanwhile */
extern uint32 geonn_wait_event(GeonnWait wait);

#endif							/* GEONN_H */
