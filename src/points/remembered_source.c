/*
 * remembered_source.c
 *		Tables whose columns were chosen, and whose plan was made, by an earlier call of this process.
 *
 * To choose a table's columns, and to plan and begin the query that reads it, takes longer than to find the nearest of
 * a million references.  So a process keeps both, as PostgreSQL keeps plans of prepared statements, and
 * forgets them where it would forget such a plan: when anything about the relation changes, or its schema's name does.
 * Privileges are checked at each call, as for a plan that is executed again.  A table with row-level security
 * that concerns the role is planned anew, and so is any if another extension checks privileges, too.
 *
 * Callers get copies, since a table may be forgotten while they work.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_namespace.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "points/citus.h"
#include "points/remembered_source.h"
#include "points/sources.h"
#include "points/table_reader.h"

/* A process remembers at most this many tables; a further one replaces the table that was remembered first. */
#define REMEMBERED_MOST	16

typedef struct RememberedSource
{
	uint64		number;			/* PointSource.remembered; never used twice */
	bool		valid;			/* nothing about the relation has changed */
	MemoryContext context;		/* memory for all fields below */
	PointSource *source;
	PlannedStmt *plan;			/* only the range table and the permissions of the plan; NULL: not made yet */
	PlainTable *table;			/* the table that the source reads */
} RememberedSource;

static RememberedSource remembered[REMEMBERED_MOST];
static uint64 last_number;
static uint64 changes;			/* how many changes this process has heard of that may concern a table */

/* ---- what is forgotten ---- */

static void
forget_relation(Datum argument pg_attribute_unused(), Oid relation)
{
	changes++;
	for (int i = 0; i < REMEMBERED_MOST; i++)
	{
		const PointSource *source = remembered[i].valid ? remembered[i].source : NULL;

		if (source != NULL && (relation == InvalidOid || source->relation == relation || source->named == relation))
			remembered[i].valid = false;
	}
}

static void
forget_all(Datum argument, int cache pg_attribute_unused(), uint32 hash pg_attribute_unused())
{
	forget_relation(argument, InvalidOid);
}

static void
register_callbacks(void)
{
	static bool registered = false;

	if (registered)
		return;
	registered = true;
	CacheRegisterRelcacheCallback(forget_relation, (Datum) 0);
	CacheRegisterSyscacheCallback(NAMESPACEOID, forget_all, (Datum) 0);
	CacheRegisterSyscacheCallback(TYPEOID, forget_all, (Datum) 0);
}

/* ---- copies ---- */

static char *
copy_text(const char *text)
{
	return text == NULL ? NULL : pstrdup(text);
}

/* Copy a source that has no columns to join by, no windows and no weights. */
static PointSource *
copy_source(const PointSource *source)
{
	PointSource *copy = palloc(sizeof(PointSource));

	Assert(source->by_count == 0 && source->window_count == 0 && source->weight_count == 0);
	*copy = *source;
	copy->title = copy_text(source->title);
	copy->query = copy_text(source->query);
	copy->name = copy_text(source->name);
	copy->schema = copy_text(source->schema);
	copy->quoted_name = copy_text(source->quoted_name);
	copy->columns = palloc(source->column_count * sizeof(PointColumn));
	memcpy(copy->columns, source->columns, source->column_count * sizeof(PointColumn));
	copy->by = copy->windows = copy->weights = copy->columns + source->column_count;
	for (int i = 0; i < source->column_count; i++)
	{
		copy->columns[i].name = copy_text(source->columns[i].name);
		copy->columns[i].reason = copy_text(source->columns[i].reason);
	}
	return copy;
}

static PlainTable *
copy_table(const PlainTable *table, int columns)
{
	PlainTable *copy = palloc(sizeof(PlainTable));
	AttrNumber *attributes = palloc(columns * sizeof(AttrNumber));

	memcpy(attributes, table->attributes, columns * sizeof(AttrNumber));
	copy->table = table->table;
	copy->attributes = attributes;
	return copy;
}

/* ---- sources ---- */

/*
 * Remember the source, which was made of a table.
 */
static void
remember_source(PointSource *source)
{
	RememberedSource *entry = &remembered[last_number % REMEMBERED_MOST];
	MemoryContext former;

	Assert(source->remembered == 0 && OidIsValid(source->relation));
	entry->valid = false;
	if (entry->context != NULL)
		MemoryContextDelete(entry->context);
	entry->context = NULL;
	entry->plan = NULL;
	entry->context = AllocSetContextCreate(TopMemoryContext, "geonn remembered source", ALLOCSET_SMALL_SIZES);
	source->remembered = ++last_number;
	former = MemoryContextSwitchTo(entry->context);
	entry->source = copy_source(source);
	MemoryContextSwitchTo(former);
	entry->number = source->remembered;
	entry->valid = true;
}

/* Return whether a call would now read this table for its relation, which is locked. */
static bool
is_read_now(const RememberedSource *entry)
{
	const PointSource *source = entry->source;

	if (source->relation == source->named)
		return true;
	LockRelationOid(source->relation, AccessShareLock);
	return entry->valid && !geonn_citus_is_written(source->named);
}

static bool
is_any_named(const GeonnColumnNames *named)
{
	bool		is_any = named->weights != NIL || named->differs != NIL;

	for (int role = 0; role < COLUMN_ROLES; role++)
		is_any = is_any || named->names[role] != NULL;
	return is_any;
}

PointSource *
geonn_remembered_source(Oid relation, const GeonnColumnNames *named)
{
	PointSource *source;
	uint64		changes_before;

	if (is_any_named(named))
		return geonn_relation_source(relation, named, NIL, NIL);

	/* Taking the lock makes this process hear of all earlier changes, and forget what they concern. */
	register_callbacks();
	LockRelationOid(relation, AccessShareLock);
	for (int i = 0; i < REMEMBERED_MOST; i++)
	{
		if (remembered[i].valid && remembered[i].source->named == relation && is_read_now(&remembered[i]))
			return copy_source(remembered[i].source);
	}
	/* The schema is not locked, so its name may change meanwhile: see whether something changed. */
	changes_before = changes;
	source = geonn_relation_source(relation, named, NIL, NIL);
	/* A table of Citus that is read itself may be read so in this transaction only: do not remember it. */
	if (changes == changes_before && (source->relation != relation || source->citus != CITUS_WHOLE) &&
		get_rel_relkind(relation) == RELKIND_RELATION && source->point_kind == GEONN_POINT_NONE)
		remember_source(source);
	return source;
}

/* ---- plans ---- */

static RememberedSource *
find_remembered(const PointSource *source)
{
	RememberedSource *entry = &remembered[(source->remembered - 1) % REMEMBERED_MOST];

	return source->remembered > 0 && entry->number == source->remembered && entry->valid ? entry : NULL;
}

/* Return whether the role may read the table, and all of its rows. */
static bool
may_read(const RememberedSource *entry)
{
	Oid			relation = entry->source->relation;

	Assert(entry->plan != NULL && entry->table->table == relation);
	return object_aclcheck(NamespaceRelationId, get_rel_namespace(relation), GetUserId(),
						   ACL_USAGE) == ACLCHECK_OK &&
		check_enable_rls(relation, InvalidOid, true) == RLS_NONE &&
		geonn_citus_may_read_named(entry->source) && geonn_check_permissions(entry->plan, false);
}

List *
geonn_remembered_tables(const PointSource *source)
{
	const RememberedSource *entry = find_remembered(source);

	if (entry == NULL || entry->plan == NULL || ExecutorCheckPerms_hook != NULL || !may_read(entry))
		return NIL;
	return list_make1(copy_table(entry->table, source->query_columns));
}

void
geonn_remember_tables(const PointSource *source, const PlannedStmt *plan, const List *tables)
{
	RememberedSource *entry = find_remembered(source);
	PlannedStmt permissions = {.type = T_PlannedStmt};
	MemoryContext former;

	if (entry == NULL || entry->plan != NULL || list_length(tables) != 1 ||
		((PlainTable *) linitial(tables))->table != source->relation)
		return;
	geonn_permissions_of(&permissions, plan);
	former = MemoryContextSwitchTo(entry->context);
	entry->table = copy_table(linitial(tables), source->query_columns);
	entry->plan = copyObject(&permissions);
	MemoryContextSwitchTo(former);
}
