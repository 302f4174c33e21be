/*
 * module.c
 *		What happens when the module is loaded: settings, hooks, and the
 *		supervisor where geonn is in shared_preload_libraries.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "cache/sql.h"
#include "common/protocol.h"
#include "base/compat.h"
#include "pages/kept_dataset.h"
#include "live/live.h"
#include "join/reference_fate.h"
#include "plan/lateral.h"
#include "plan/lateral_path.h"
#include "plan/scan.h"
#include "sql/sql_reasons.h"
#include "sql/sql_statement.h"
#include "base/settings.h"
#include "supervisor/supervisor.h"

PG_MODULE_MAGIC_EXT(.name = "geonn",.version = GEONN_VERSION);

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	geonn_define_settings();
	geonn_register_reference_fate(&geonn_live_fate);
	geonn_register_reference_fate(&geonn_kept_fate);
	geonn_register_reference_fate(&geonn_counted_fate);
	geonn_register_reference_fate(&geonn_kept_meanwhile_fate);
	geonn_register_reference_fate(&geonn_read_fate);
	geonn_plan_scans();
	geonn_plan_lateral_joins();
	geonn_register_lateral_form(&geonn_call_form);
	geonn_plan_sql_statements();
	geonn_explain_reasons();
	geonn_own_statements();
	if (process_shared_preload_libraries_in_progress)
		geonn_supervisor_register();
}
