/*
 * groups.c
 *		Numbers for the groups that a join is by: equal keys, equal numbers.
 *
 * The engine knows groups as int32 numbers.  A key is the values of all by
 * columns of a row; a hash table over the references' keys gives them numbers
 * from 0 on, and observations look theirs up: one that is not there has no
 * candidate, and so has one with a NULL, which equals nothing.  Keys are
 * compared by the default equality of their type and the references' collation.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "common/protocol.h"
#include "groups.h"
#include "value.h"

typedef struct GroupEntry
{
	Datum	   *key;			/* [by_count] */
	uint32		hash;
	int32		number;
	char		status;			/* simplehash's */
} GroupEntry;

typedef struct GroupColumn
{
	FmgrInfo   *hash;
	FmgrInfo   *equal;
	Oid			collation;
	bool		by_value;
	int16		length;
} GroupColumn;

struct GeonnGroups
{
	struct grouptable_hash *table;
	MemoryContext context;		/* of the keys */
	int			by_count;
	GroupColumn *columns;		/* [by_count] */
};

static uint32
key_hash(const GeonnGroups *groups, const Datum *key)
{
	uint32		hash = 0;

	for (int i = 0; i < groups->by_count; i++)
	{
		const GroupColumn *column = &groups->columns[i];
		uint32		value = DatumGetUInt32(FunctionCall1Coll(column->hash, column->collation,
															 key[i]));

		hash = hash_combine(hash, value);
	}
	return murmurhash32(hash);
}

static bool
keys_equal(const GeonnGroups *groups, const Datum *a, const Datum *b)
{
	for (int i = 0; i < groups->by_count; i++)
	{
		const GroupColumn *column = &groups->columns[i];

		if (!DatumGetBool(FunctionCall2Coll(column->equal, column->collation, a[i], b[i])))
			return false;
	}
	return true;
}

#define SH_PREFIX grouptable
#define SH_ELEMENT_TYPE GroupEntry
#define SH_KEY_TYPE Datum *
#define SH_KEY key
#define SH_HASH_KEY(table, key) key_hash((table)->private_data, key)
#define SH_EQUAL(table, a, b) keys_equal((table)->private_data, a, b)
#define SH_SCOPE static inline
#define SH_STORE_HASH
#define SH_GET_HASH(table, entry) (entry)->hash
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

static void
prepare_column(GroupColumn *column, const PointSource *observations,
			   const PointSource *references, int number)
{
	const PointColumn *observation = &observations->by[number];
	const PointColumn *reference = &references->by[number];
	TypeCacheEntry *type;

	if (observation->base_type != reference->base_type)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of the argument by has two types", reference->name),
				 errdetail("It is of type %s in %s, and of type %s in %s.",
						   format_type_be(observation->type), observations->title,
						   format_type_be(reference->type), references->title),
				 errhint("Cast one of them in a view, or in a query of geonn_nearest_sql.")));

	type = lookup_type_cache(reference->base_type,
							 TYPECACHE_HASH_PROC_FINFO | TYPECACHE_EQ_OPR_FINFO);
	if (!OidIsValid(type->hash_proc_finfo.fn_oid) || !OidIsValid(type->eq_opr_finfo.fn_oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("column \"%s\" of the argument by has type %s, which cannot be hashed",
						reference->name, format_type_be(reference->type)),
				 errhint("Cast it to a type that can, such as text, in a view.")));
	column->hash = &type->hash_proc_finfo;
	column->equal = &type->eq_opr_finfo;
	column->collation = reference->collation;
	get_typlenbyval(reference->base_type, &column->length, &column->by_value);
}

GeonnGroups *
geonn_groups_create(const PointSource *observations, const PointSource *references)
{
	GeonnGroups *groups = palloc0(sizeof(GeonnGroups));

	groups->context = CurrentMemoryContext;
	groups->by_count = references->by_count;
	groups->columns = palloc0(groups->by_count * sizeof(GroupColumn));
	for (int i = 0; i < groups->by_count; i++)
		prepare_column(&groups->columns[i], observations, references, i);
	groups->table = grouptable_create(CurrentMemoryContext, 256, groups);
	return groups;
}

static bool
has_null(const GeonnGroups *groups, const bool *is_null)
{
	for (int i = 0; i < groups->by_count; i++)
	{
		if (is_null[i])
			return true;
	}
	return false;
}

/*
 * Make the entry's key its own.
 */
static void
keep_key(GeonnGroups *groups, GroupEntry *entry, const Datum *key)
{
	MemoryContext former = MemoryContextSwitchTo(groups->context);

	entry->key = palloc(groups->by_count * sizeof(Datum));
	for (int i = 0; i < groups->by_count; i++)
	{
		const GroupColumn *column = &groups->columns[i];

		entry->key[i] = geonn_copy_value(key[i], column->by_value, column->length);
	}
	MemoryContextSwitchTo(former);
}

int32
geonn_groups_add(GeonnGroups *groups, const Datum *key, const bool *is_null)
{
	GroupEntry *entry;
	bool		found;

	if (has_null(groups, is_null))
		return GEONN_NO_GROUP;
	if (groups->table->members == PG_INT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the references have more than %d groups", PG_INT32_MAX)));
	entry = grouptable_insert(groups->table, unconstify(Datum *, key), &found);
	if (!found)
	{
		entry->number = (int32) groups->table->members - 1;
		keep_key(groups, entry, key);
	}
	return entry->number;
}

int32
geonn_groups_find(GeonnGroups *groups, const Datum *key, const bool *is_null)
{
	GroupEntry *entry;

	if (has_null(groups, is_null))
		return GEONN_NO_GROUP;
	entry = grouptable_lookup(groups->table, unconstify(Datum *, key));
	return entry != NULL ? entry->number : GEONN_NO_GROUP;
}
