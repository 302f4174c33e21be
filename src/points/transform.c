/*
 * transform.c
 *		Values of another SRID become values of SRID 4326, by PostGIS's own ST_Transform.
 *
 * The reading process calls ST_Transform(geometry, integer) as a query would, so answers are those of a table that
 * had been transformed before.  The function is the one of that name and these types that belongs to the extension
 * postgis: its name is not looked up in search_path, where another role could have planted one.  It is looked up once a
 * statement and side, so that what PostGIS remembers between two calls of a function stays.
 *
 * A value that ST_Transform refuses is one row's mistake.  Nothing needs to be rolled back after such an error, so that a row
 * needs no subtransaction, which parallel workers may not begin: before the first value of an SRID an empty point is transformed,
 * for which PostGIS reads its tables, and raises the errors that are not about a value.
 *
 * ST_Transform knows an SRID by its row in the table spatial_ref_sys.  PostGIS remembers rows, some versions until the
 * session ends.  So a session that has a row's hash keeps it, too: kept datasets, bases and caches of other definitions
 * are not those of this session, and a change of the row counts from the next session on.  If the type of a column names
 * no SRID, any row may be that of its values, which are not read yet: then the versions of all rows stand for it.  Where the
 * role may not call ST_Transform, no value has a meaning but those of 4326: such a role has its own kept datasets and bases, and
 * else the error that reading raises.  A session
 * forgets none of these hashes, some 30 bytes for each SRID that its columns have.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "base/attempt.h"
#include "base/compat.h"
#include "base/extension.h"
#include "points/geometry.h"
#include "points/transform.h"

#define MEANING_REFUSED	0
#define MEANING_UNKNOWN	1
#define MEANING_DENIED	2

struct GeonnTransform
{
	Oid			type;			/* PostGIS's geometry */
	int32		declared;		/* the SRID of the column's type; 0: none */
	int32		srid;			/* the column's SRID; 0: not known yet */
	pg_atomic_uint32 *shared;	/* the SRID that the first of several processes has found; NULL: one process reads */
	bool		is_lenient;		/* values may have several SRIDs */
	bool		is_mixed;		/* they have */
	MemoryContext context;		/* has the transform, and what PostGIS remembers */
	FmgrInfo	function;		/* ST_Transform; its OID is 0 before the first value */
	int32		known;			/* the SRID that PostGIS has looked up last; 0: none */
};

GeonnTransform *
geonn_transform_create(Oid type, int32 srid)
{
	GeonnTransform *transform = palloc0(sizeof(GeonnTransform));

	transform->type = type;
	transform->declared = transform->srid = srid;
	transform->context = CurrentMemoryContext;
	return transform;
}

void
geonn_transform_share(GeonnTransform *transform, pg_atomic_uint32 *srid)
{
	if (transform != NULL)
		transform->shared = srid;
}

/* Return the SRID of the first value that any of the processes has read, which may be this one. */
static int32
first_srid(GeonnTransform *transform, int32 srid)
{
	uint32		first = 0;

	if (transform->shared == NULL || pg_atomic_compare_exchange_u32(transform->shared, &first, (uint32) srid))
		return srid;
	return (int32) first;
}

int32
geonn_transform_note(GeonnTransform *transform, int32 srid)
{
	if (unlikely(transform->srid == 0))
		transform->srid = first_srid(transform, srid);
	if (likely(transform->srid == srid) || !transform->is_lenient)
		return transform->srid;
	transform->is_mixed = true;
	return srid;
}

void
geonn_transform_restart(GeonnTransform *transform, int32 srid, bool is_lenient)
{
	if (transform == NULL)
		return;
	transform->srid = transform->declared != 0 ? transform->declared : srid;
	transform->is_lenient = is_lenient;
	transform->is_mixed = false;
}

bool
geonn_transform_is_mixed(const GeonnTransform *transform)
{
	return transform != NULL && transform->is_mixed;
}

int32
geonn_transform_srid(const GeonnTransform *transform)
{
	return transform->srid;
}

/* ---- the function ---- */

static Oid
find_function(Oid type)
{
	CatCList   *functions = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum("st_transform"));
	Oid			found = InvalidOid;

	for (int i = 0; i < functions->n_members; i++)
	{
		const FormData_pg_proc *function = (Form_pg_proc) GETSTRUCT(&functions->members[i]->tuple);

		if (function->pronargs == 2 && function->proargtypes.values[0] == type &&
			function->proargtypes.values[1] == INT4OID && function->prorettype == type && !function->proretset &&
			strcmp(geonn_extension_of(ProcedureRelationId, function->oid), "postgis") == 0)
			found = function->oid;
	}
	ReleaseSysCacheList(functions);
	return found;
}

static bool
may_execute(Oid function)
{
	return object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
}

static void
look_up_function(GeonnTransform *transform)
{
	Oid			function = find_function(transform->type);

	if (!OidIsValid(function))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("extension postgis has no function ST_Transform(geometry, integer)"),
				 errdetail("geonn reads SRID %d, and has PostGIS transform values of other SRIDs.", GEONN_POINT_SRID),
				 errhint("Update PostGIS, as by ALTER EXTENSION postgis UPDATE.")));
	if (!may_execute(function))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, get_func_name(function));
	InvokeFunctionExecuteHook(function);
	fmgr_info_cxt(function, &transform->function, transform->context);
}

/* Have PostGIS look up an SRID. */
static void
look_up_srid(GeonnTransform *transform, int32 srid)
{
	if (!OidIsValid(transform->function.fn_oid))
		look_up_function(transform);
	(void) FunctionCall2(&transform->function, geonn_empty_point(srid), Int32GetDatum(GEONN_POINT_SRID));
	transform->known = srid;
}

Datum
geonn_transform_value(GeonnTransform *transform, int32 srid, Datum value, const char **reason)
{
	MemoryContext context = CurrentMemoryContext;
	volatile Datum transformed;

	if (unlikely(transform->known != srid))
		look_up_srid(transform, srid);
	transformed = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
	PG_TRY();
	{
		transformed = FunctionCall2(&transform->function, transformed, Int32GetDatum(GEONN_POINT_SRID));
	}
	PG_CATCH();
	{
		ErrorData  *error = geonn_take_error(context);

		/* PostGIS gives its own errors no other code */
		if (error->sqlerrcode != ERRCODE_INTERNAL_ERROR)
			ReThrowError(error);
		*reason = error->message;
	}
	PG_END_TRY();
	return transformed;
}

/* ---- what an SRID means ---- */

static Oid
namespace_of(Oid type)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	Oid			namespace;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", type);
	namespace = ((Form_pg_type) GETSTRUCT(tuple))->typnamespace;
	ReleaseSysCache(tuple);
	return namespace;
}

static uint64
hash_contents(HeapTuple row)
{
	return hash_bytes_extended((const unsigned char *) row->t_data + row->t_data->t_hoff,
							   (int) row->t_len - row->t_data->t_hoff, 0);
}

/* Hash which version of a row this is: a change of the row leaves another one, by another transaction or elsewhere. */
static uint64
hash_version(HeapTuple row)
{
	uint64		rest = (uint64) HeapTupleHeaderGetRawXmin(row->t_data) << 32 | ItemPointerGetOffsetNumber(&row->t_self);

	return hash_bytes_uint32_extended(ItemPointerGetBlockNumber(&row->t_self), rest);
}

/*
 * Return a hash of the SRID's row in the table that PostGIS reads, spatial_ref_sys in its schema; with SRID 0, of the
 * versions of all rows.  0: it has none.
 */
static uint64
hash_rows(Oid type, int32 srid)
{
	Oid			oid = get_relname_relid("spatial_ref_sys", namespace_of(type));
	Relation	table = OidIsValid(oid) ? try_relation_open(oid, AccessShareLock) : NULL;
	AttrNumber	attribute = table != NULL ? get_attnum(oid, "srid") : InvalidAttrNumber;
	uint64		hash = 0;

	if (attribute != InvalidAttrNumber && table->rd_rel->relkind == RELKIND_RELATION &&
		TupleDescAttr(RelationGetDescr(table), attribute - 1)->atttypid == INT4OID)
	{
		ScanKeyData key;
		SysScanDesc scan;
		HeapTuple	row;

		ScanKeyInit(&key, attribute, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(srid));
		scan = systable_beginscan(table, InvalidOid, false, GetActiveSnapshot(), srid != 0 ? 1 : 0, &key);
		while (HeapTupleIsValid(row = systable_getnext(scan)))
			hash = hash_combine64(hash, srid != 0 ? hash_contents(row) : hash_version(row));
		systable_endscan(scan);
	}
	if (table != NULL)
		relation_close(table, AccessShareLock);
	return hash;
}

/* what an SRID means in this session */
typedef struct Meaning
{
	struct
	{
		Oid			type;		/* PostGIS's geometry */
		int32		srid;
	}			key;
	uint64		hash;
} Meaning;

uint64
geonn_transform_meaning(const GeonnTransform *transform)
{
	static HTAB *meanings = NULL;
	Meaning		wanted;
	Meaning    *meaning;
	Oid			function;

	if (transform == NULL)
		return MEANING_REFUSED;
	function = find_function(transform->type);
	if (!OidIsValid(function) || !may_execute(function))
		return MEANING_DENIED;
	if (meanings == NULL)
		meanings = hash_create("geonn SRIDs", 16,
							   &(HASHCTL) {.keysize = sizeof(wanted.key),.entrysize = sizeof(Meaning)},
							   HASH_ELEM | HASH_BLOBS);
	wanted.key.type = transform->type;
	wanted.key.srid = transform->declared;
	meaning = hash_search(meanings, &wanted.key, HASH_FIND, NULL);
	if (meaning != NULL)
		return meaning->hash;
	wanted.hash = hash_rows(transform->type, transform->declared);
	/* A row that is missing may come. */
	if (wanted.hash == 0)
		return MEANING_UNKNOWN;
	meaning = hash_search(meanings, &wanted.key, HASH_ENTER, NULL);
	meaning->hash = wanted.hash;
	return wanted.hash;
}
