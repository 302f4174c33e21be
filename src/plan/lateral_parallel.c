/*
 * lateral_parallel.c
 *		A lateral join below a Gather.
 *
 * The outer plan divides its rows between the processes, and each searches for its own.  The leader
 * reads the references when workers are about to be launched, with a search that has no points, so
 * that they are those of one snapshot and read once.  That search lives until the leader's end of
 * execution, which comes after the workers'.  The leader also tells the workers which relations its
 * arguments have named, and once all have taken their rows, it tells of the points of all.
 *
 * Without shared memory, as in a cursor, the node of such a plan searches alone (lateral_scan.c).
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "base/compat.h"
#include "plan/lateral_state.h"

static Size
shared_size(int processes)
{
	return MAXALIGN(offsetof(SharedLateral, reports) + processes * sizeof(GeonnReport));
}

Size
geonn_lateral_estimate_shared(CustomScanState *node pg_attribute_unused(),
							  ParallelContext *parallel)
{
	return shared_size(parallel->nworkers + 1);
}

void
geonn_lateral_end_preparation(LateralState *state)
{
	if (state->prepared != NULL)
	{
		geonn_lateral_add_search(&state->sum, state->prepared);
		geonn_lateral_add_search(&state->together, state->prepared);
		geonn_search_log(state->prepared, &state->together);
		geonn_search_end(state->prepared);
	}
	memset(&state->together, 0, sizeof(state->together));
	if (state->preparation != NULL)
		MemoryContextDelete(state->preparation);
	state->prepared = NULL;
	state->preparation = NULL;
}

/*
 * Read the references, and share them.
 */
static void
prepare(LateralState *state, SharedLateral *shared)
{
	MemoryContext former;
	GeonnJoin  *join;
	TupleDesc	row_type;

	state->shared = NULL;
	state->preparation = AllocSetContextCreate(state->custom.ss.ps.state->es_query_cxt,
											   "geonn lateral references", ALLOCSET_SMALL_SIZES);
	former = MemoryContextSwitchTo(state->preparation);
	join = geonn_lateral_join(state, &row_type);
	join->given = palloc0(sizeof(GivenPoints));
	state->prepared = geonn_search_begin(join, row_type);
	geonn_search_project(state->prepared, state->descriptor, state->attributes);
	shared->references = geonn_search_references(state->prepared);
	shared->observation_table = join->observations != NULL ? join->observations->relation :
		InvalidOid;
	shared->reference_table = join->references->relation;
	pg_atomic_init_u32(&shared->begun, 0);
	pg_atomic_init_u32(&shared->ended, 0);
	for (int i = 0; i < POINT_STATUSES; i++)
		pg_atomic_init_u64(&shared->counts[i], 0);
	MemoryContextSwitchTo(former);
	state->shared = shared;
}

void
geonn_lateral_initialize_shared(CustomScanState *node, ParallelContext *parallel, void *memory)
{
	LateralState *state = (LateralState *) node;
	SharedLateral *shared = memory;

	memset(shared, 0, shared_size(parallel->nworkers + 1));
	shared->processes = parallel->nworkers + 1;
	geonn_lateral_end_execution(state);
	geonn_lateral_end_preparation(state);
	prepare(state, shared);
}

/*
 * For the leader: tell of the points of all processes, if all have taken all of their rows.
 */
static void
tell_of_all(const LateralState *state, SharedLateral *shared)
{
	uint64		counts[POINT_STATUSES];

	if (pg_atomic_read_u32(&shared->begun) != pg_atomic_read_u32(&shared->ended))
		return;
	for (int i = 0; i < POINT_STATUSES; i++)
		counts[i] = pg_atomic_read_u64(&shared->counts[i]);
	geonn_lateral_tell(geonn_search_join(state->prepared), counts);
}

void
geonn_lateral_reinitialize_shared(CustomScanState *node,
								  ParallelContext *parallel pg_attribute_unused(), void *memory)
{
	LateralState *state = (LateralState *) node;

	if (state->shared != NULL)
		tell_of_all(state, memory);
	geonn_lateral_end_execution(state);
	geonn_lateral_end_preparation(state);
	prepare(state, memory);
}

void
geonn_lateral_initialize_worker(CustomScanState *node, shm_toc *toc pg_attribute_unused(),
								void *memory)
{
	((LateralState *) node)->shared = memory;
}

/*
 * Report while the shared memory still exists.  If not all rows were asked for, workers may still be
 * at work.
 */
void
geonn_lateral_shut_down(CustomScanState *node)
{
	LateralState *state = (LateralState *) node;
	SharedLateral *shared = state->shared;

	state->shared = NULL;
	if (shared == NULL)
		return;
	if (state->prepared == NULL)
	{
		GeonnReport *report = &shared->reports[ParallelWorkerNumber + 1];

		geonn_report_add(report, &state->sum);
		geonn_report_add(report, &state->present);
		if (state->round != NULL)
			geonn_lateral_add_search(report, state->round->search);
		return;
	}
	tell_of_all(state, shared);
	geonn_reports_take(&state->processes, shared->reports, shared->processes, &state->together,
					   state->custom.ss.ps.state->es_query_cxt);
}
