/*
 * files.h
 *		The files of the running geonn, and the engine's program.
 */
#ifndef GEONN_FILES_H
#define GEONN_FILES_H

#include "pgstat.h"

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

#endif							/* GEONN_FILES_H */
