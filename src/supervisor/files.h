/*
 * files.h
 *		The names of the files of a running geonn.
 */
#ifndef GEONN_FILES_H
#define GEONN_FILES_H

#include "pgstat.h"

/*
 * Files of a running geonn.  They are in the folder for short-lived
 * statistics, which base backups leave out.  The names are relative to the
 * data directory, which is every server process's working directory: an
 * absolute path may be too long for a socket.
 */
#define GEONN_SOCKET_FILE	PG_STAT_TMP_DIR "/geonn.sock"
#define GEONN_LOCK_FILE		PG_STAT_TMP_DIR "/geonn.lock"
#define GEONN_STATE_FILE	PG_STAT_TMP_DIR "/geonn.state"
#define GEONN_DEVICES_FILE	PG_STAT_TMP_DIR "/geonn.devices"
#define GEONN_LAUNCH_FILE	PG_STAT_TMP_DIR "/geonn.launch"

#endif							/* GEONN_FILES_H */
