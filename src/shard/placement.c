/*
 * placement.c
 *		How the rows of a table are divided among shards.
 *
 * A table has more partitions than servers, so that a server that is added takes over whole
 * partitions, and no row changes its partition.  Each is a table of its own on its server.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "shard/array_argument.h"
#include "shard/placement.h"

#define PARTITIONS_OF_A_SERVER 4
#define PARTITIONS_MAX 4096

#define LIST_HINT "Give an array of values for each partition, as in ARRAY['{north,east}', '{south}']."

#define RANGE_HINT "Give the values at which partitions begin, but for the first, as in ARRAY['2026-01-01', '2026-07-01']."

/* the column by which a table is divided */
typedef struct Key
{
	const char *name;			/* bare */
	Oid			type;
	int32		modifier;
	Oid			collation;
} Key;

__attribute__((noreturn))
static void
raise_bounds(const char *method, const char *expected)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("bounds do not fit partition_by => '%s'", method),
			 errhint("%s", expected)));
}

static const char *
literal(const char *text)
{
	return text == NULL ? "NULL" : quote_literal_cstr(text);
}

static List *
hash_bounds(const ShardArray *bounds, int partitions, int servers)
{
	List	   *list = NIL;

	if (bounds != NULL && bounds->count > 0)
		raise_bounds("hash", "Leave out bounds, and give the number of partitions if the default does not do.");
	if (partitions == 0)
		partitions = PARTITIONS_OF_A_SERVER * servers;
	if (partitions < servers || partitions > PARTITIONS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partitions is out of range: %d", partitions),
				 errdetail("The argument partitions is from the number of servers, %d, to %d.",
						   servers, PARTITIONS_MAX),
				 errhint("Leave partitions out for %d of each server.", PARTITIONS_OF_A_SERVER)));
	for (int i = 0; i < partitions; i++)
		list = lappend(list, psprintf("FOR VALUES WITH (MODULUS %d, REMAINDER %d)", partitions, i));
	return list;
}

/*
 * The order of values of the key: below 0, 0 or above, as for strcmp.  A type without an order is
 * left to PostgreSQL's own error.
 */
static int
compare(const Key *key, Datum value, Datum other)
{
	TypeCacheEntry *type = lookup_type_cache(key->type, TYPECACHE_CMP_PROC_FINFO);

	if (!OidIsValid(type->cmp_proc))
		return -1;
	return DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, key->collation, value, other));
}

/*
 * The values of one partition, as SQL.  seen has those of the partitions before as Datum *, NULL for a
 * NULL, and gets these.
 */
static char *
list_values(const ShardArray *given, const Key *key, List **seen)
{
	StringInfoData values;

	initStringInfo(&values);
	for (int i = 0; i < given->count; i++)
	{
		const char *text = given->elements[i];
		Datum	   *value = NULL;
		ListCell   *cell;

		if (text != NULL)
		{
			value = palloc(sizeof(Datum));
			*value = geonn_element_value(given, i, key->type, key->modifier);
		}
		foreach(cell, *seen)
		{
			const Datum *other = lfirst(cell);

			if (value == NULL ? other == NULL :
				other != NULL && compare(key, *value, *other) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("bounds have %s twice", literal(text)),
						 errhint("Give each value of \"%s\" to one partition.", key->name)));
		}
		*seen = lappend(*seen, value);
		appendStringInfo(&values, "%s%s", i > 0 ? ", " : "", literal(text));
	}
	return values.data;
}

static List *
list_bounds(const ShardArray *bounds, const Key *key)
{
	List	   *list = NIL;
	List	   *seen = NIL;

	for (int i = 0; bounds != NULL && i < bounds->count; i++)
	{
		const ShardArray *of_partition;

		if (bounds->elements[i] == NULL || bounds->elements[i][0] != '{')
			raise_bounds("list", LIST_HINT);
		of_partition = geonn_shard_array(geonn_element_value(bounds, i, TEXTARRAYOID, -1),
										 bounds->argument, bounds->hint);
		if (of_partition->count == 0)
			raise_bounds("list", LIST_HINT);
		list = lappend(list, psprintf("FOR VALUES IN (%s)", list_values(of_partition, key, &seen)));
	}
	if (list == NIL)
		raise_bounds("list", LIST_HINT);
	return list;
}

static List *
range_bounds(const ShardArray *bounds, const Key *key)
{
	int			count = bounds == NULL ? 0 : bounds->count;
	List	   *list = NIL;
	const char *from = "MINVALUE";
	Datum		last = 0;

	for (int i = 0; i <= count; i++)
	{
		const char *to = "MAXVALUE";

		if (i < count)
		{
			Datum		value;

			if (bounds->elements[i] == NULL)
				raise_bounds("range", RANGE_HINT);
			value = geonn_element_value(bounds, i, key->type, key->modifier);
			if (i > 0 && compare(key, last, value) >= 0)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("bounds are not in ascending order"),
						 errdetail("The value %s comes after %s.", literal(bounds->elements[i]),
								   literal(bounds->elements[i - 1])),
						 errhint("Give each value of \"%s\" once, the smallest first.", key->name)));
			last = value;
			to = quote_literal_cstr(bounds->elements[i]);
		}
		list = lappend(list, psprintf("FOR VALUES FROM (%s) TO (%s)", from, to));
		from = to;
	}
	return list;
}

/*
 * The column by which the table is divided: PostgreSQL wants it in the primary key.
 */
static const char *
key_column(const ShardTable *table, const char *column)
{
	ListCell   *cell;

	if (column == NULL)
		return linitial(table->key);
	foreach(cell, table->key)
	{
		if (strcmp(lfirst(cell), column) == 0)
			return column;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("column \"%s\" is not in the primary key of \"%s\"", column, table->name),
			 errdetail("A partitioned table has the column that divides it in its primary key."),
			 errhint("Give the table a primary key of its id and this column.")));
}

static Key
describe_key(const ShardTable *table, const char *column)
{
	Key			key = {.name = key_column(table, column)};

	get_atttypetypmodcoll(table->oid, get_attnum(table->oid, key.name), &key.type, &key.modifier,
						  &key.collation);
	return key;
}

ShardPlacement *
geonn_shard_placement(const ShardTable *table, const char *method, const char *column, int partitions,
					  Datum bounds, int servers)
{
	ShardPlacement *placement = palloc0(sizeof(ShardPlacement));
	bool		is_list = strcmp(method, "list") == 0;
	const ShardArray *given = bounds == (Datum) 0 ? NULL :
		geonn_shard_array(bounds, "bounds", is_list ? LIST_HINT : RANGE_HINT);
	Key			key = describe_key(table, column);
	const char *word;

	if (strcmp(method, "hash") == 0)
	{
		word = "HASH";
		placement->bounds = hash_bounds(given, partitions, servers);
	}
	else if (is_list)
	{
		word = "LIST";
		placement->bounds = list_bounds(given, &key);
	}
	else if (strcmp(method, "range") == 0)
	{
		word = "RANGE";
		placement->bounds = range_bounds(given, &key);
	}
	else
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown partition_by: \"%s\"", method),
				 errhint("Give 'hash', 'list' or 'range'.")));
	if (partitions != 0 && partitions != list_length(placement->bounds))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partitions is %d, and bounds are those of %d", partitions,
						list_length(placement->bounds)),
				 errhint("Leave out partitions.")));
	placement->key = psprintf("%s (%s)", word, quote_identifier(key.name));
	return placement;
}

void
geonn_check_placement(Oid partitioned, const ShardPlacement *placement)
{
	Datum		key = DirectFunctionCall1(pg_get_partkeydef, ObjectIdGetDatum(partitioned));

	if (strcmp(TextDatumGetCString(key), placement->key) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table %s is partitioned by %s, not by %s",
						DatumGetCString(DirectFunctionCall1(regclassout, ObjectIdGetDatum(partitioned))),
						TextDatumGetCString(key), placement->key),
				 errhint("Give the arguments with which the table was sharded.")));
}

int
geonn_first_server(int partition, int partitions, int servers)
{
	return (int) ((int64) partition * servers / partitions);
}
