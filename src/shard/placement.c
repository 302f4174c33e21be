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
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "shard/commands.h"
#include "shard/placement.h"

#define PARTITIONS_OF_A_SERVER 4
#define PARTITIONS_MAX 4096

#define LIST_HINT "Give an array of values for each partition, as in ARRAY['{north,east}', '{south}']."

#define RANGE_HINT "Give the values at which partitions begin, but for the first, as in ARRAY['2026-01-01', '2026-07-01']."

/* the column by which a table is divided */
typedef struct Key
{
	const char *name;			/* the column's name, bare */
	Oid			type;
	int32		modifier;
	Oid			collation;
	TypeCacheEntry *order;		/* how to compare values of the key; set by prepare_reading() */
} Key;

/* A value in the bounds of a table divided by LIST; each value may occur only once. */
typedef struct ListValue
{
	const char *text;			/* NULL: an SQL NULL */
	Datum		value;
} ListValue;

__attribute__((noreturn))
static void
raise_bounds(const char *method, const char *expected)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("bounds do not fit partition_by => '%s'", method),
			 errhint("%s", expected)));
}

/* Return the message and the detail of an error as one text, without a full stop at its end. */
static const char *
text_of(const ErrorData *error)
{
	size_t		length = error->detail == NULL ? 0 : strlen(error->detail);

	if (length == 0)
		return error->message;
	return psprintf("%s. %.*s", error->message,
					(int) (error->detail[length - 1] == '.' ? length - 1 : length), error->detail);
}

/*
 * Read an element of the argument bounds as a value of this type.  PostgreSQL's error about an invalid
 * element does not name the argument, so it becomes the detail of an error that does.  No subtransaction is
 * needed, because the statement fails in any case.
 */
static Datum
read_element(const char *element, Oid type, int32 modifier, const char *hint)
{
	MemoryContext context = CurrentMemoryContext;
	ErrorData  *error = NULL;
	Oid			function;
	Oid			parameter;
	volatile Datum value = 0;

	CHECK_FOR_INTERRUPTS();
	getTypeInputInfo(type, &function, &parameter);
	PG_TRY();
	{
		value = OidInputFunctionCall(function, unconstify(char *, element), parameter, modifier);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_DATA_EXCEPTION &&
			ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION)
			PG_RE_THROW();
		FlushErrorState();
		ereport(ERROR,
				(errcode(error->sqlerrcode),
				 errmsg("the argument bounds has an invalid element: \"%s\"", element),
				 errdetail("As %s: %s.", format_type_be(type), text_of(error)),
				 errhint("%s", hint)));
	}
	PG_END_TRY();
	return value;
}

static List *
hash_bounds(List *bounds, int partitions, int servers)
{
	List	   *list = NIL;

	if (bounds != NIL)
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
	Assert(partitions >= servers && servers > 0);
	for (int i = 0; i < partitions; i++)
		list = lappend(list, psprintf("FOR VALUES WITH (MODULUS %d, REMAINDER %d)", partitions, i));
	return list;
}

/*
 * Return whether reading and comparing values of this type runs only code of PostgreSQL or of a superuser, as
 * for base types.  Domains have checks of their owners; rows, arrays and ranges may have domains in them.
 */
static bool
is_readable(Oid type)
{
	Oid			part = get_element_type(type);

	if (!OidIsValid(part) && type_is_multirange(type))
		part = get_multirange_range(type);
	if (!OidIsValid(part) && type_is_range(type))
		part = get_range_subtype(type);
	if (OidIsValid(part))
		return is_readable(part);
	return get_typtype(type) == TYPTYPE_BASE || get_typtype(type) == TYPTYPE_ENUM;
}

/*
 * Set key->type to the type by which bounds are read: the key's own type or, if that is a domain, its base
 * type.  Reading bounds then runs no check, which would be code of the domain's owner.
 */
static void
prepare_reading(Key *key)
{
	Oid			declared = key->type;

	key->type = getBaseTypeAndTypmod(declared, &key->modifier);
	if (!is_readable(key->type))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("column \"%s\" of type %s does not divide a table by bounds", key->name,
						format_type_be(declared)),
				 errdetail("To read its values could run checks of domains."),
				 errhint("Divide the table by hash, or by another column.")));
	key->order = lookup_type_cache(key->type, TYPECACHE_CMP_PROC_FINFO);
}

/*
 * Compare two values of the key, and return a number as strcmp() does.  For a type without an order,
 * return -1: PostgreSQL raises its own error about the type later.
 */
static int
compare(const Key *key, Datum value, Datum other)
{
	CHECK_FOR_INTERRUPTS();
	if (!OidIsValid(key->order->cmp_proc))
		return -1;
	return DatumGetInt32(FunctionCall2Coll(&key->order->cmp_proc_finfo, key->collation, value, other));
}

/* Compare two values, for qsort_arg(): NULLs are equal to each other, and come last. */
static int
compare_values(const void *a, const void *b, void *key)
{
	const ListValue *value = a;
	const ListValue *other = b;

	if (value->text == NULL || other->text == NULL)
		return (value->text == NULL) - (other->text == NULL);
	return compare(key, value->value, other->value);
}

/*
 * Raise an error if two of the values are equal.
 */
static void
check_values(ListValue *values, int count, Key *key)
{
	if (!OidIsValid(key->order->cmp_proc))
		return;
	qsort_arg(values, count, sizeof(ListValue), compare_values, key);
	for (int i = 1; i < count; i++)
	{
		if (compare_values(&values[i - 1], &values[i], key) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("bounds have %s twice", geonn_shard_sql("%L", values[i].text)),
					 errhint("Give each value of \"%s\" to one partition.", key->name)));
	}
}

/* Read the values of one partition.  Returns them as SQL. */
static char *
list_values(List *given, const Key *key, ListValue *values)
{
	StringInfoData list;
	ListCell   *cell;

	initStringInfo(&list);
	foreach(cell, given)
	{
		values->text = lfirst(cell);
		if (values->text != NULL)
			values->value = read_element(values->text, key->type, key->modifier, LIST_HINT);
		geonn_shard_add(&list, "%L", values->text);
		values++;
	}
	return list.data;
}

static List *
list_bounds(List *bounds, Key *key)
{
	List	   *list = NIL;
	ListValue  *values = palloc(0);
	int			count = 0;
	ListCell   *cell;

	prepare_reading(key);
	foreach(cell, bounds)
	{
		const char *element = lfirst(cell);
		List	   *of_partition = NIL;

		if (element != NULL && element[0] == '{')
			of_partition = geonn_shard_array(DatumGetArrayTypeP(read_element(element, TEXTARRAYOID, -1, LIST_HINT)),
											 "bounds", LIST_HINT);
		if (of_partition == NIL)
			raise_bounds("list", LIST_HINT);
		values = repalloc_huge(values, sizeof(ListValue) * (count + list_length(of_partition)));
		list = lappend(list, psprintf("FOR VALUES IN (%s)",
									  list_values(of_partition, key, values + count)));
		count += list_length(of_partition);
	}
	if (list == NIL)
		raise_bounds("list", LIST_HINT);
	check_values(values, count, key);
	return list;
}

static List *
range_bounds(List *bounds, Key *key)
{
	List	   *list = NIL;
	const char *from = "MINVALUE";
	Datum		last = 0;
	ListCell   *cell;

	prepare_reading(key);
	foreach(cell, bounds)
	{
		const char *to;
		Datum		value;

		if (lfirst(cell) == NULL)
			raise_bounds("range", RANGE_HINT);
		to = quote_literal_cstr(lfirst(cell));
		value = read_element(lfirst(cell), key->type, key->modifier, RANGE_HINT);
		if (list != NIL && compare(key, last, value) >= 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("bounds are not in ascending order"),
					 errdetail("The value %s comes after %s.", to, from),
					 errhint("Give each value of \"%s\" once, the smallest first.", key->name)));
		list = lappend(list, psprintf("FOR VALUES FROM (%s) TO (%s)", from, to));
		from = to;
		last = value;
	}
	return lappend(list, psprintf("FOR VALUES FROM (%s) TO (MAXVALUE)", from));
}

/* Return the column by which the table is divided; PostgreSQL requires that it is in the primary key. */
static Key
describe_key(const ShardTable *table, const char *column)
{
	Key			key = {.name = column == NULL ? linitial(table->key) : column};

	if (!geonn_is_named(table->key, key.name))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("column \"%s\" is not in the primary key of \"%s\"", column, table->name),
				 errdetail("A partitioned table has the column that divides it in its primary key."),
				 errhint("Give the table a primary key of its id and this column.")));
	get_atttypetypmodcoll(table->oid, get_attnum(table->oid, key.name), &key.type, &key.modifier,
						  &key.collation);
	return key;
}

ShardPlacement *
geonn_shard_placement(const ShardTable *table, const GeonnArguments *arguments, int servers)
{
	static const char *const words[] = {
		[GEONN_PARTITION_BY_HASH] = "HASH",
		[GEONN_PARTITION_BY_LIST] = "LIST",
		[GEONN_PARTITION_BY_RANGE] = "RANGE"
	};
	ShardPlacement *placement = palloc0(sizeof(ShardPlacement));
	GeonnPartitioning method = arguments->partition_by;
	int			partitions = arguments->partitions;
	List	   *given = arguments->bounds == NULL ? NIL :
		geonn_shard_array(arguments->bounds, "bounds",
						  method == GEONN_PARTITION_BY_LIST ? LIST_HINT : RANGE_HINT);
	Key			key = describe_key(table, arguments->key);

	placement->bounds = method == GEONN_PARTITION_BY_HASH ? hash_bounds(given, partitions, servers) :
		method == GEONN_PARTITION_BY_LIST ? list_bounds(given, &key) : range_bounds(given, &key);
	Assert(placement->bounds != NIL);
	if (partitions != 0 && partitions != list_length(placement->bounds))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partitions is %d, and bounds are those of %d", partitions,
						list_length(placement->bounds)),
				 errhint("Leave out partitions.")));
	placement->key = psprintf("%s (%s)", words[method], quote_identifier(key.name));
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
