/*
 * placement.c
 *		How the rows of a table are divided among shards.
 *
 * A table has more partitions than servers, so that a server that is added takes over whole
 * partitions, and no row changes its partition.  Each is a table of its own on its server.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"

#include "shard/commands.h"
#include "shard/placement.h"

#define PARTITIONS_OF_A_SERVER 4
#define PARTITIONS_MAX 4096

#define LIST_HINT "Give an array of values for each partition, as in ARRAY['{north,east}', '{south}']."

/* the bounds as they are given; NULL elements are NULL */
typedef struct Bounds
{
	char	  **texts;			/* [count] */
	int			count;
} Bounds;

static Bounds
read_bounds(Datum bounds)
{
	Bounds		read = {0};
	Datum	   *values;
	bool	   *nulls;

	if (bounds == (Datum) 0)
		return read;
	deconstruct_array(DatumGetArrayTypeP(bounds), TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls,
					  &read.count);
	read.texts = palloc0(sizeof(char *) * Max(read.count, 1));
	for (int i = 0; i < read.count; i++)
	{
		if (!nulls[i])
			read.texts[i] = TextDatumGetCString(values[i]);
	}
	return read;
}

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
hash_bounds(const Bounds *bounds, int partitions, int servers)
{
	List	   *list = NIL;

	if (bounds->count > 0)
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

static List *
list_bounds(const Bounds *bounds)
{
	List	   *list = NIL;

	for (int i = 0; i < bounds->count; i++)
	{
		StringInfoData values;
		Bounds		of_partition;

		if (bounds->texts[i] == NULL || bounds->texts[i][0] != '{')
			raise_bounds("list", LIST_HINT);
		of_partition = read_bounds(OidInputFunctionCall(F_ARRAY_IN, bounds->texts[i], TEXTOID, -1));
		if (of_partition.count == 0)
			raise_bounds("list", LIST_HINT);
		initStringInfo(&values);
		for (int value = 0; value < of_partition.count; value++)
			appendStringInfo(&values, "%s%s", value > 0 ? ", " : "",
							 literal(of_partition.texts[value]));
		list = lappend(list, psprintf("FOR VALUES IN (%s)", values.data));
	}
	if (list == NIL)
		raise_bounds("list", LIST_HINT);
	return list;
}

static List *
range_bounds(const Bounds *bounds)
{
	List	   *list = NIL;
	const char *from = "MINVALUE";

	for (int i = 0; i <= bounds->count; i++)
	{
		const char *to = "MAXVALUE";

		if (i < bounds->count)
		{
			if (bounds->texts[i] == NULL)
				raise_bounds("range", "Give the values at which partitions begin, but for the first, as in ARRAY['2026-01-01', '2026-07-01'].");
			to = quote_literal_cstr(bounds->texts[i]);
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

ShardPlacement *
geonn_shard_placement(const ShardTable *table, const char *method, const char *column, int partitions,
					  Datum bounds, int servers)
{
	ShardPlacement *placement = palloc0(sizeof(ShardPlacement));
	Bounds		given = read_bounds(bounds);
	const char *word;

	if (strcmp(method, "hash") == 0)
	{
		word = "HASH";
		placement->bounds = hash_bounds(&given, partitions, servers);
	}
	else if (strcmp(method, "list") == 0)
	{
		word = "LIST";
		placement->bounds = list_bounds(&given);
	}
	else if (strcmp(method, "range") == 0)
	{
		word = "RANGE";
		placement->bounds = range_bounds(&given);
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
	placement->key = psprintf("%s (%s)", word, quote_identifier(key_column(table, column)));
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
