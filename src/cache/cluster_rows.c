/*
 * cluster_rows.c
 *		The rows of a cache of clusters.
 *
 * A search numbers clusters from 1 on, by rising least ids of core points.  So a cluster that appears or goes changes the
 * numbers of all that come after it, and a table with these numbers would get new rows for points around which nothing has
 * changed.  In a cache's table a cluster is therefore the least id of its core points.  It stays where that point stays the
 * first one, and does not depend on what the table had before: so each way of a refresh writes the same rows.
 *
 * The search returns rows by rising ids.  Border points may come before all core points of their cluster.  So rows wait in a
 * tuplestore, which spills to disk, until the search has ended.  Meanwhile the first core point of each cluster shows its
 * name, in the order of the numbers.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "base/compat.h"
#include "cache/cluster_rows.h"
#include "cache/target.h"
#include "join/reference_memory.h"

/* first room of the names */
#define FIRST_NAMES		1024

/* The names of the clusters found so far. */
typedef struct ClusterNames
{
	Form_pg_attribute id;		/* the type of ids */
	ReferenceMemory *memory;	/* counts what the names take */
	Datum	   *names;			/* [count] */
	int64		count;
	int64		room;
} ClusterNames;

static void
add_name(ClusterNames *names, Datum id)
{
	Datum		name = datumCopy(id, names->id->attbyval, names->id->attlen);

	if (names->count == names->room)
	{
		int64		room = Max(names->room * 2, FIRST_NAMES);

		geonn_reference_memory_add_bytes(names->memory, (room - names->room) * sizeof(Datum), "ids");
		names->names = names->names == NULL ? palloc(room * sizeof(Datum)) :
			repalloc_huge(names->names, room * sizeof(Datum));
		names->room = room;
	}
	if (!names->id->attbyval)
		geonn_reference_memory_add_bytes(names->memory, GetMemoryChunkSpace(DatumGetPointer(name)), "ids");
	names->names[names->count++] = name;
}

static bool
is_core(const text *kind)
{
	return VARSIZE_ANY_EXHDR(kind) == strlen("core") && memcmp(VARDATA_ANY(kind), "core", strlen("core")) == 0;
}

/* Note the row of a point, with a cluster's number: if it is the first core point of its cluster, it gives the name. */
static void
note_row(ClusterNames *names, const Datum *values, const bool *nulls)
{
	int64		number = nulls[TARGET_CLUSTER] ? 0 : DatumGetInt64(values[TARGET_CLUSTER]);

	if (number > names->count && is_core(DatumGetTextPP(values[TARGET_CLUSTER + 1])))
	{
		if (number != names->count + 1)
			elog(ERROR, "cluster " INT64_FORMAT " comes after cluster " INT64_FORMAT, number, names->count);
		add_name(names, values[TARGET_OBSERVATION_ID]);
	}
}

static Datum
name_of(const ClusterNames *names, int64 number)
{
	if (number < 1 || number > names->count)
		elog(ERROR, "cluster " INT64_FORMAT " has no core point", number);
	return names->names[number - 1];
}

/* Return the type of the search's rows: those of the table, with numbers of clusters. */
static TupleDesc
numbered_type(TupleDesc row_type)
{
	TupleDesc	type = CreateTupleDescCopy(row_type);

	TupleDescInitEntry(type, TARGET_CLUSTER + 1, "cluster", INT8OID, -1, 0);
	TupleDescFinalize(type);
	return type;
}

/* Search, store the rows, and note the names of the clusters. */
static void
find_clusters(const GeonnJoin *join, TupleDesc type, Tuplestorestate *store, ClusterNames *names)
{
	GeonnSearch *search = geonn_search_begin(join, type);
	Datum		values[TARGET_COLUMNS_MAX];
	bool		nulls[TARGET_COLUMNS_MAX];
	GeonnReport report;

	while (geonn_search_next(search, values, nulls))
	{
		tuplestore_putvalues(store, type, values, nulls);
		note_row(names, values, nulls);
	}
	report = geonn_search_report(search);
	geonn_search_log(search, &report);
	geonn_search_end(search);
}

uint64
geonn_visit_clusters(const GeonnJoin *join, TupleDesc row_type, ClusterVisitor visit, void *state)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn clusters", ALLOCSET_DEFAULT_SIZES);
	MemoryContext row_context = AllocSetContextCreate(context, "geonn row", ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	TupleDesc	type = numbered_type(row_type);
	Tuplestorestate *store = tuplestore_begin_heap(false, false, maintenance_work_mem / DIFFERENCE_SHARES);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(type, &TTSOpsMinimalTuple);
	ClusterNames names = {
		.id = TupleDescAttr(row_type, TARGET_OBSERVATION_ID),
		.memory = geonn_name_memory_create(join->references->title)
	};
	uint64		rows = 0;

	find_clusters(join, type, store, &names);
	while (tuplestore_gettupleslot(store, true, false, slot))
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		if (!slot->tts_isnull[TARGET_CLUSTER])
			slot->tts_values[TARGET_CLUSTER] = name_of(&names, DatumGetInt64(slot->tts_values[TARGET_CLUSTER]));
		MemoryContextSwitchTo(row_context);
		visit(state, slot->tts_values, slot->tts_isnull);
		MemoryContextSwitchTo(context);
		MemoryContextReset(row_context);
		rows++;
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(store);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return rows;
}
