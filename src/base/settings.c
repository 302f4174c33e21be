/*
 * settings.c
 *		The settings geonn.*: their variables, their ranges, what SHOW says of them.
 *
 * A session that loads the module may have set them before.  PostgreSQL then takes the session's value of each, if the
 * role may set it, or else the default: a value of the configuration that options of the connection have covered is gone.
 * Of a setting that guards something, that is as good as a SET without the privilege.  So such a session does not search.
 * Nor does it where the value is none that the setting can have: nothing says what was meant.
 */
#include "postgres.h"

#include <limits.h>

#include "utils/plancache.h"

#include "base/compat.h"
#include "common/protocol.h"
#include "base/settings.h"

int			geonn_admission_timeout = 0;
int			geonn_device = GEONN_DEVICE_AUTO;
int			geonn_algorithm = GEONN_ALGORITHM_AUTO;
int			geonn_compared_pairs_limit = 100 * 1000 * 1000;
int			geonn_cpu_threads = 0;
bool		geonn_enabled = true;
int			geonn_enable_sql_joins = GEONN_SQL_JOINS_ON;
int			geonn_engine_timeout = 60;
int			geonn_transfer_memory_limit = 1024;
int			geonn_gpu_memory_limit = 0;
int			geonn_idle_session_timeout = 60 * 1000;
int			geonn_kept_memory_limit = 1024;
int			geonn_log_keep = 100;
int			geonn_log_min_duration = -1;
int			geonn_max_sessions = -1;
int			geonn_session_memory_limit = 4 * 1024 * 1024;
const char *geonn_refused_setting = NULL;
const char *geonn_invalid_value = NULL;

static bool was_accepted;		/* some setting that guards something has taken a value other than its default */

#define DEVICE_OPTION(NAME, word) {word, GEONN_DEVICE_##NAME, false},
const struct config_enum_entry geonn_device_options[] = {
	{"auto", GEONN_DEVICE_AUTO, false},
	GEONN_DEVICE_KINDS(DEVICE_OPTION)
	{NULL, 0, false}
};

const struct config_enum_entry geonn_algorithm_options[] = {
	{"auto", GEONN_ALGORITHM_AUTO, false},
	{"index", GEONN_ALGORITHM_INDEX, false},
	{"brute", GEONN_ALGORITHM_BRUTE, false},
	{NULL, 0, false}
};

/* the words of a setting that is on or off, which this one was, are taken, too */
static const struct config_enum_entry sql_joins_options[] = {
	{"on", GEONN_SQL_JOINS_ON, false},
	{"points", GEONN_SQL_JOINS_POINTS, false},
	{"off", GEONN_SQL_JOINS_OFF, false},
	{"true", GEONN_SQL_JOINS_ON, true},
	{"false", GEONN_SQL_JOINS_OFF, true},
	{"yes", GEONN_SQL_JOINS_ON, true},
	{"no", GEONN_SQL_JOINS_OFF, true},
	{"1", GEONN_SQL_JOINS_ON, true},
	{"0", GEONN_SQL_JOINS_OFF, true},
	{NULL, 0, false}
};

typedef struct Setting
{
	const char *name;
	const char *purpose;
	const char *detail;
	int		   *variable;		/* its initial value is the default */
	int			least;
	int			greatest;
	GucContext	context;
	int			flags;
	GucIntCheckHook check;		/* NULL: every value from the least to the greatest is allowed */
	const struct config_enum_entry *words;	/* the allowed words; NULL: the setting is an integer, or on or off */
	bool	   *flag;			/* the variable of a setting that is on or off, in place of `variable` */
} Setting;

/* Check the value of a limit.  0 is refused, because no join could ever run with it. */
static bool
check_limit(int *value, void **extra pg_attribute_unused(), GucSource source)
{
	was_accepted |= source > PGC_S_DEFAULT;
	if (*value != 0)
		return true;
	GUC_check_errdetail("The value must be 1 or more, or -1 for no limit.");
	return false;
}

static bool
check_enabled(bool *enabled pg_attribute_unused(), void **extra pg_attribute_unused(), GucSource source)
{
	was_accepted |= source > PGC_S_DEFAULT;
	return true;
}

/*
 * Have prepared statements planned anew when geonn is switched on or off.
 */
static void
switch_geonn(bool enabled, void *extra pg_attribute_unused())
{
	if (enabled != geonn_enabled)
		ResetPlanCache();
}

static const Setting settings[] = {
	{"geonn.admission_timeout",
		"Time that a statement waits for a session while geonn.max_sessions is reached.",
		"0 means no limit.",
		&geonn_admission_timeout, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL},
	{"geonn.device",
		"Device that this session's searches run on.",
		"auto uses the GPUs of this host, or the CPU where it has none.",
		&geonn_device, 0, 0, PGC_USERSET, 0, NULL, geonn_device_options, NULL},
	{"geonn.algorithm",
		"Algorithm that this session's searches use; the rows are the same.",
		"auto takes the one that is expected to be faster; brute compares every pair.",
		&geonn_algorithm, 0, 0, PGC_USERSET, 0, NULL, geonn_algorithm_options, NULL},
	{"geonn.compared_pairs_limit",
		"Pairs of rows that a nearest-neighbour subquery or a join within a distance compares one by one, where it cannot search.",
		"-1 means no limit.",
		&geonn_compared_pairs_limit, -1, INT_MAX, PGC_USERSET, 0, check_limit, NULL, NULL},
	{"geonn.cpu_threads",
		"Threads with which the engine searches on the CPU.",
		"0 means one for each core.",
		&geonn_cpu_threads, 0, GEONN_CPU_THREADS_MAX, PGC_SIGHUP, 0, NULL, NULL, NULL},
	{"geonn.enabled",
		"Lets geonn search: functions, refreshes of caches, and plan nodes.",
		"off starts no engine, gives the plans that PostgreSQL makes without geonn, and has functions that search refuse.",
		NULL, 0, 0, PGC_SUSET, GUC_EXPLAIN, NULL, NULL, &geonn_enabled},
	{"geonn.enable_sql_joins",
		"Lets the planner answer nearest-neighbour subqueries and joins of PostGIS's by one search for many rows.",
		"points leaves joins with polygons and lines to PostgreSQL, except the nearest lines; off gives the plans that PostgreSQL makes without geonn.",
		&geonn_enable_sql_joins, 0, 0, PGC_USERSET, GUC_EXPLAIN, NULL, sql_joins_options, NULL},
	{"geonn.engine_timeout",
		"Time without an answer after which the engine is killed and started again.",
		"A statement waits as long for the engine to start.",
		&geonn_engine_timeout, 1, 3600, PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL},
	{"geonn.transfer_memory_limit",
		"Memory through which all sessions together exchange rows with the engine.",
		"A session that gets less than it needs works with smaller batches.",
		&geonn_transfer_memory_limit, 16, INT_MAX, PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL},
	{"geonn.gpu_memory_limit",
		"Memory that the engine takes on each GPU.",
		"0 means as much as is free.  A search that gets less than it needs works with smaller batches.",
		&geonn_gpu_memory_limit, 0, INT_MAX, PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL},
	{"geonn.idle_session_timeout",
		"Time for which a server process keeps its session with the engine after a call.",
		"0 means that every call opens a session.",
		&geonn_idle_session_timeout, 0, INT_MAX, PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL},
	{"geonn.kept_memory_limit",
		"Memory in which the engine keeps references for later statements.",
		"0 means that it keeps none.",
		&geonn_kept_memory_limit, 0, INT_MAX, PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL},
	{"geonn.log_keep",
		"Runs of each cache that geonn_cache_log keeps.",
		NULL,
		&geonn_log_keep, 1, INT_MAX, PGC_SUSET, 0, NULL, NULL, NULL},
	{"geonn.log_min_duration",
		"Duration from which on a join is logged, with its figures.",
		"0 logs all joins, -1 none.",
		&geonn_log_min_duration, -1, INT_MAX, PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL},
	{"geonn.max_sessions",
		"Server processes that may have sessions with the engine at a time; others wait.",
		"-1 means no limit.  Parallel workers count with their leader.",
		&geonn_max_sessions, -1, INT_MAX, PGC_SIGHUP, 0, check_limit, NULL, NULL},
	{"geonn.session_memory_limit",
		"Memory that the references of a session's joins, and shapes that ask, may take, in the engine and for their ids.",
		"-1 means no limit.  Joins of parallel workers and open cursors count together.",
		&geonn_session_memory_limit, -1, MAX_KILOBYTES, PGC_SUSET, GUC_UNIT_KB, check_limit, NULL, NULL}
};

/* Return the value that the server or the connection gave the setting before the module was loaded; NULL: none. */
static const char *
value_before(const char *name)
{
	const struct config_generic *setting = geonn_find_setting(name);

	if (setting == NULL || setting->reset_source == PGC_S_DEFAULT)
		return NULL;
	return pstrdup(GetConfigOptionResetString(name));
}

/* Note that PostgreSQL refused this value of a setting, so that the session has the default. */
static void
note_refused(const char *name, const char *value)
{
	geonn_refused_setting = name;
	if (set_config_option(name, value, PGC_SUSET, PGC_S_TEST, GUC_ACTION_SET, false, DEBUG5, false) == 0)
		geonn_invalid_value = value;
}

void
geonn_define_settings(void)
{
	for (int i = 0; i < (int) lengthof(settings); i++)
	{
		const Setting *setting = &settings[i];
		bool		guards = setting->context == PGC_SUSET && (setting->flag != NULL || setting->check != NULL);
		const char *value = guards ? value_before(setting->name) : NULL;

		was_accepted = false;
		if (setting->flag != NULL)
			DefineCustomBoolVariable(setting->name, setting->purpose, setting->detail, setting->flag,
									 *setting->flag, setting->context, setting->flags,
									 setting->flag == &geonn_enabled ? check_enabled : NULL,
									 setting->flag == &geonn_enabled ? switch_geonn : NULL, NULL);
		else if (setting->words != NULL)
			DefineCustomEnumVariable(setting->name, setting->purpose, setting->detail, setting->variable,
									 *setting->variable, setting->words, setting->context,
									 setting->flags, NULL, NULL, NULL);
		else
			DefineCustomIntVariable(setting->name, setting->purpose, setting->detail, setting->variable,
									*setting->variable, setting->least, setting->greatest,
									setting->context, setting->flags,
									setting->check, NULL, NULL);
		if (value != NULL && !was_accepted)
			note_refused(setting->name, value);
	}
	MarkGUCPrefixReserved("geonn");
}
