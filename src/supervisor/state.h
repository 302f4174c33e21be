/*
 * state.h
 *		What the supervisor tells every backend: that it runs, its engine's
 *		state, and the devices of the engine that answered last; and the names of
 *		all files of a running geonn.
 */
#ifndef GEONN_STATE_H
#define GEONN_STATE_H

#include <sys/types.h>

#include "pgstat.h"

#include "common/protocol.h"

/*
 * Files of a running geonn.  They are in the folder for short-lived statistics, which base backups
 * leave out.  The names are relative to the data directory, which is the working directory of every
 * server process: an absolute path may be too long for a socket.
 */
#define GEONN_SOCKET_FILE	PG_STAT_TMP_DIR "/geonn.sock"
#define GEONN_LOCK_FILE		PG_STAT_TMP_DIR "/geonn.lock"
#define GEONN_STATE_FILE	PG_STAT_TMP_DIR "/geonn.state"
#define GEONN_DEVICES_FILE	PG_STAT_TMP_DIR "/geonn.devices"
#define GEONN_LAUNCH_FILE	PG_STAT_TMP_DIR "/geonn.launch"

typedef enum EngineState
{
	ENGINE_STATE_STARTING,		/* the engine has been started, and does not listen yet */
	ENGINE_STATE_RUNNING,
	ENGINE_STATE_FAILED,		/* the engine has ended, or could not be started; the supervisor tries again later */
	ENGINE_STATE_OFF			/* geonn.enabled is off in the configuration; the supervisor starts an engine when a
								 * session asks */
} EngineState;

typedef struct EngineReport
{
	EngineState state;
	pid_t		supervisor_pid;
	pid_t		engine_pid;		/* 0: none runs */
	uint64		attempt;		/* how often this supervisor has tried to start an engine so far */

	/* the error, for ENGINE_STATE_FAILED; detail and hint may be empty */
	char		message[512];
	char		detail[512];
	char		hint[512];
} EngineReport;

/* For ereport: give the hint of an error about one of these files, or about the engine's socket beside them. */
extern int	geonn_state_hint(void);

/* Raise the error, with errno, that a step (for example: open file) failed with one of these files. */
__attribute__((noreturn))
extern void geonn_state_raise(const char *step, const char *name);

/* Create the folder of these files again, if it was removed. */
extern void geonn_state_make_directory(void);

/*
 * For the supervisor.  geonn_state_lock() makes this process the supervisor until it ends, or returns false if another
 * process is the supervisor.  geonn_state_write() and geonn_state_remove() write and remove the report for backends.
 */
extern bool geonn_state_lock(void);
extern void geonn_state_write(const EngineReport *report);
extern void geonn_state_remove(void);

/* For backends: return the supervisor's process id, or 0 if none runs. */
extern pid_t geonn_state_supervisor(void);

/* Read this supervisor's report.  Returns false if it has not written one yet. */
extern bool geonn_state_read(pid_t supervisor_pid, EngineReport *report);

/* For the supervisor, before a new engine's first message: forget an unfinished status of the last engine. */
extern void known_devices_begin(void);

/*
 * For the supervisor: take a message of the engine's status.  With the last message of a status, all its devices become
 * known, in place of the former ones.  Returns false if the message is out of turn.
 */
extern bool known_devices_receive(const union geonn_message *message);

/*
 * For backends: return how many devices are known, and write them to devices, which has room for GEONN_DEVICES_MAX.
 * Figures that change from moment to moment are as they were when the engine sent them.
 */
extern int	known_devices_read(struct geonn_device_status *devices);

#endif							/* GEONN_STATE_H */
