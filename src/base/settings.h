/*
 * settings.h
 *		The settings geonn.* of this process.
 */
#ifndef GEONN_SETTINGS_H
#define GEONN_SETTINGS_H

#include "utils/guc.h"

/* which statements of PostGIS's the planner may answer by a search (src/sql) */
typedef enum GeonnSqlJoins
{
	GEONN_SQL_JOINS_OFF,
	GEONN_SQL_JOINS_POINTS,		/* those on points, and the nearest lines by <-> */
	GEONN_SQL_JOINS_ON
} GeonnSqlJoins;

extern int	geonn_admission_timeout;	/* milliseconds; 0: no limit */
extern int	geonn_device;		/* enum geonn_device_choice */
extern int	geonn_algorithm;	/* enum geonn_algorithm */
extern int	geonn_compared_pairs_limit;	/* -1: no limit */
extern int	geonn_cpu_threads;	/* 0: one for each core */
extern bool geonn_enabled;		/* whether this process may search at all (base/extension.c) */
extern int	geonn_enable_sql_joins; /* enum GeonnSqlJoins */
extern int	geonn_engine_timeout;	/* seconds */
extern int	geonn_transfer_memory_limit;	/* megabytes */
extern int	geonn_idle_session_timeout; /* milliseconds; 0: no session stays idle */
extern int	geonn_gpu_memory_limit; /* megabytes; 0: as much as is free */
extern int	geonn_kept_memory_limit;	/* megabytes; 0: no dataset is kept */
extern int	geonn_log_keep;		/* how many runs of each cache the log keeps */
extern int	geonn_log_min_duration; /* milliseconds; -1: no call is logged */
extern int	geonn_max_sessions; /* how many processes may have sessions; -1: no limit */
extern int	geonn_session_memory_limit;	/* kilobytes; -1: no limit */

/* the message of the error when geonn_admission_timeout has passed */
#define GEONN_ADMISSION_TIMED_OUT "no session with the geonn engine became free within %d ms"

/*
 * A setting of superusers that the options of this session's connection have set, so that the configuration's value is not
 * known here: without the privilege, or to a value that the setting cannot have.  NULL: none.  geonn_invalid_value is that
 * value; NULL: the privilege was missing.
 */
extern const char *geonn_refused_setting;
extern const char *geonn_invalid_value;

/* the names of geonn_device's and geonn_algorithm's values */
extern const struct config_enum_entry geonn_device_options[];
extern const struct config_enum_entry geonn_algorithm_options[];

/* Called once by _PG_init. */
extern void geonn_define_settings(void);

#endif							/* GEONN_SETTINGS_H */
