/*
 * citus.c
 *		Tables of Citus: which shard a reference table is read by.
 *
 * A reference table of Citus is an empty table, and a shard with all rows on each node.  By its own name it is
 * read through Citus's executor: geonn does not see its pages, so the engine cannot keep its references; and
 * a call that Citus has sent to a node may not read it at all, as a distributed query within another.
 * So it is read by the shard of this database, wherever Citus's catalogs say that it has one.
 * Citus itself reads reference tables by that shard.
 *
 * Catalogs count as Citus's only in pg_catalog and as members of the extension citus: superusers alone can
 * bring that about.  A table counts as the shard only as a plain table of the same owner, whom the readers
 * trust already.  So a role that may create tables in the schema cannot plant one.
 *
 * The relation is read by its own name
 *	- where row-level security is enabled for it: what its policies mean for shards is Citus's to say;
 *	- where this transaction holds a lock on it that writers take: Citus may have written by another
 *	  connection, and only that connection sees these rows yet;
 *	- where anything is not as expected: the name with the shard's number is too long, or a catalog has
 *	  other columns.
 *
 * Two checks of privileges have to pass: that of the relation that the caller named, here, and the executor's
 * of the shard that is read.  The first is what REVOKE speaks of.  The second refuses nothing more, as long as
 * Citus grants on shards what is granted on their table; where it does refuse, the call shows no more than
 * a SELECT by the shard's name.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "points/citus.h"

#define EXTENSION "citus"

/* values of partmethod, repmodel and shardstate */
#define NOT_DIVIDED 'n'
#define REPLICATED_TO_ALL 't'
#define ACTIVE 1

#define COLUMNS_MOST 3

typedef struct CatalogColumn
{
	const char *name;
	Oid			type;
} CatalogColumn;

typedef struct Catalog
{
	const char *name;
	const char *index;			/* index of the first column, by which rows are found; NULL: all rows are wanted */
	RegProcedure equal;
	CatalogColumn columns[COLUMNS_MOST];
} Catalog;

static const Catalog partitions = {
	"pg_dist_partition", "pg_dist_partition_logical_relid_index", F_OIDEQ,
	{{"logicalrelid", REGCLASSOID}, {"partmethod", CHAROID}, {"repmodel", CHAROID}}
};
static const Catalog shards = {
	"pg_dist_shard", "pg_dist_shard_logical_relid_index", F_OIDEQ,
	{{"logicalrelid", REGCLASSOID}, {"shardid", INT8OID}}
};
static const Catalog placements = {
	"pg_dist_placement", "pg_dist_placement_shardid_index", F_INT8EQ,
	{{"shardid", INT8OID}, {"groupid", INT4OID}, {"shardstate", INT4OID}}
};
static const Catalog local_group = {
	"pg_dist_local_group", NULL, InvalidOid,
	{{"groupid", INT4OID}}
};

/* Open a catalog, and find its columns.  Returns NULL unless the catalog belongs to the extension and has the columns. */
static Relation
open_catalog(Oid extension, const Catalog *catalog, AttrNumber *attributes)
{
	Oid			oid = get_relname_relid(catalog->name, PG_CATALOG_NAMESPACE);
	Relation	relation;
	bool		as_expected;

	if (!OidIsValid(oid) || getExtensionOfObject(RelationRelationId, oid) != extension)
		return NULL;
	relation = try_relation_open(oid, AccessShareLock);
	if (relation == NULL)
		return NULL;
	as_expected = relation->rd_rel->relkind == RELKIND_RELATION;
	for (int i = 0; i < COLUMNS_MOST && catalog->columns[i].name != NULL; i++)
	{
		attributes[i] = get_attnum(oid, catalog->columns[i].name);
		as_expected = as_expected && attributes[i] > 0 && get_atttype(oid, attributes[i]) == catalog->columns[i].type;
	}
	if (as_expected)
		return relation;
	relation_close(relation, AccessShareLock);
	return NULL;
}

/* Return the rows with this key, as arrays of Datum; all columns are passed by value. */
static List *
find_rows(Oid extension, const Catalog *catalog, Datum key)
{
	AttrNumber	attributes[COLUMNS_MOST] = {0};
	Relation	relation = open_catalog(extension, catalog, attributes);
	Oid			index = InvalidOid;
	ScanKeyData keys[1];
	SysScanDesc scan;
	HeapTuple	tuple;
	List	   *rows = NIL;

	if (relation == NULL)
		return NIL;
	if (catalog->index != NULL)
	{
		index = get_relname_relid(catalog->index, PG_CATALOG_NAMESPACE);
		ScanKeyInit(&keys[0], attributes[0], BTEqualStrategyNumber, catalog->equal, key);
	}
	scan = systable_beginscan(relation, index, OidIsValid(index), NULL, catalog->index != NULL ? 1 : 0, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Datum	   *row = palloc0(COLUMNS_MOST * sizeof(Datum));
		bool		has_null = false;

		for (int i = 0; i < COLUMNS_MOST && attributes[i] > 0; i++)
		{
			bool		is_null;

			row[i] = heap_getattr(tuple, attributes[i], RelationGetDescr(relation), &is_null);
			has_null |= is_null;
		}
		if (!has_null)
			rows = lappend(rows, row);
	}
	systable_endscan(scan);
	relation_close(relation, AccessShareLock);
	return rows;
}

/* Return whether the shard with this number is on this node. */
static bool
is_here(Oid extension, Datum shard)
{
	List	   *groups = find_rows(extension, &local_group, (Datum) 0);
	ListCell   *cell;

	if (list_length(groups) != 1)
		return false;
	foreach(cell, find_rows(extension, &placements, shard))
	{
		const Datum *placement = lfirst(cell);

		if (DatumGetInt32(placement[1]) == DatumGetInt32(((Datum *) linitial(groups))[0]) &&
			DatumGetInt32(placement[2]) == ACTIVE)
			return true;
	}
	return false;
}

/* Open the shard with this number.  Returns NULL if no table can be that shard. */
static Relation
open_shard(Relation table, int64 number)
{
	char	   *name = psprintf("%s_" INT64_FORMAT, RelationGetRelationName(table), number);
	Oid			schema = RelationGetNamespace(table);
	Oid			oid = strlen(name) < NAMEDATALEN ? get_relname_relid(name, schema) : InvalidOid;
	Relation	shard = OidIsValid(oid) ? try_relation_open(oid, AccessShareLock) : NULL;

	if (shard == NULL)
		return NULL;
	/* Check the name again: it could have changed before the table was locked. */
	if (shard->rd_rel->relkind == RELKIND_RELATION && shard->rd_rel->relowner == table->rd_rel->relowner &&
		RelationGetNamespace(shard) == schema && strcmp(RelationGetRelationName(shard), name) == 0)
		return shard;
	relation_close(shard, AccessShareLock);
	return NULL;
}

bool
geonn_citus_is_written(Oid oid)
{
	Relation	relation = try_relation_open(oid, AccessShareLock);
	bool		written;

	if (relation == NULL)
		return false;
	written = CheckRelationLockedByMe(relation, RowExclusiveLock, true);
	relation_close(relation, NoLock);
	return written;
}

Relation
geonn_citus_shard(Relation relation, CitusKind *kind)
{
	Oid			extension;
	List	   *rows;
	const Datum *partition;
	Datum		number;

	*kind = CITUS_UNKNOWN;
	if (relation->rd_rel->relkind != RELKIND_RELATION && relation->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return NULL;
	/*
	 * In most databases the function ends here, after a lookup in PostgreSQL's cache of relation names;
	 * a lookup of an extension has no cache.
	 */
	if (!OidIsValid(get_relname_relid(partitions.name, PG_CATALOG_NAMESPACE)))
		return NULL;
	extension = get_extension_oid(EXTENSION, true);
	if (!OidIsValid(extension))
		return NULL;
	rows = find_rows(extension, &partitions, ObjectIdGetDatum(RelationGetRelid(relation)));
	if (list_length(rows) != 1)
		return NULL;
	partition = linitial(rows);
	*kind = DatumGetChar(partition[1]) == NOT_DIVIDED ? CITUS_WHOLE : CITUS_DIVIDED;
	if (*kind == CITUS_DIVIDED || DatumGetChar(partition[2]) != REPLICATED_TO_ALL ||
		relation->rd_rel->relrowsecurity || geonn_citus_is_written(RelationGetRelid(relation)))
		return NULL;
	rows = find_rows(extension, &shards, ObjectIdGetDatum(RelationGetRelid(relation)));
	if (list_length(rows) != 1)
		return NULL;
	number = ((Datum *) linitial(rows))[1];
	return is_here(extension, number) ? open_shard(relation, DatumGetInt64(number)) : NULL;
}

bool
geonn_citus_may_read_named(const PointSource *source)
{
	Oid			named = source->named;
	Oid			role = GetUserId();

	if (named == source->relation || pg_class_aclcheck(named, role, ACL_SELECT) == ACLCHECK_OK)
		return true;
	for (int i = 0; i < source->column_count; i++)
	{
		const char *name = source->columns[i].name;
		AttrNumber	attribute = name != NULL ? get_attnum(named, name) : InvalidAttrNumber;

		if (name != NULL && (attribute == InvalidAttrNumber ||
							 pg_attribute_aclcheck(named, attribute, role, ACL_SELECT) != ACLCHECK_OK))
			return false;
	}
	return true;
}

void
geonn_citus_check_named(const PointSource *source)
{
	if (!geonn_citus_may_read_named(source))
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(source->named)),
					   get_rel_name(source->named));
}

void
geonn_citus_tell(const PointSource *source)
{
	if (source->named != source->relation)
		ereport(NOTICE,
				(errmsg("%s is a reference table of Citus, and is read by its shard \"%s\" on this server",
						source->title, source->name)));
	else if (source->citus == CITUS_DIVIDED)
		ereport(NOTICE,
				(errmsg("%s is distributed by Citus: a join by its name brings all of its rows to this server",
						source->title),
				 errhint("Have Citus send the join to the shards: documentation page citus.md shows how.")));
}
