/*
 * commands.c
 *		SQL as text, commands of it, and queries of this server's catalogs.
 *
 * The room writes commands, as rows of its functions, and runs none.  Queries read catalogs alone.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "base/result.h"
#include "shard/commands.h"

static void
append_sql(StringInfo text, const char *format, va_list arguments)
{
	for (const char *p = format; *p != '\0'; p++)
	{
		const char *literal;

		if (*p != '%')
		{
			appendStringInfoChar(text, *p);
			continue;
		}
		switch (*++p)
		{
			case '%':
				appendStringInfoChar(text, '%');
				break;
			case 's':
				appendStringInfoString(text, va_arg(arguments, const char *));
				break;
			case 'I':
				appendStringInfoString(text, quote_identifier(va_arg(arguments, const char *)));
				break;
			case 'L':
				literal = va_arg(arguments, const char *);
				appendStringInfoString(text, literal == NULL ? "NULL" : quote_literal_cstr(literal));
				break;
			case 'u':
				appendStringInfo(text, "%u", va_arg(arguments, Oid));
				break;
			default:
				elog(ERROR, "unknown conversion in \"%s\"", format);
		}
	}
}

char *
geonn_shard_sql(const char *format,...)
{
	StringInfoData text;
	va_list		arguments;

	initStringInfo(&text);
	va_start(arguments, format);
	append_sql(&text, format, arguments);
	va_end(arguments);
	return text.data;
}

void
geonn_shard_add(StringInfo list, const char *format,...)
{
	va_list		arguments;

	if (list->len > 0)
		appendStringInfoString(list, ", ");
	va_start(arguments, format);
	append_sql(list, format, arguments);
	va_end(arguments);
}

/* ---- commands ---- */

void
geonn_command(ReturnSetInfo *commands, const char *server, const char *format,...)
{
	Row			row = {0};
	StringInfoData text;
	va_list		arguments;

	CHECK_FOR_INTERRUPTS();
	initStringInfo(&text);
	va_start(arguments, format);
	append_sql(&text, format, arguments);
	va_end(arguments);
	row_add_name(&row, server);
	row_add_text(&row, text.data);
	row_put(&row, commands);
}

/* ---- queries ---- */

static char **
copy_row(HeapTuple row, int columns, MemoryContext context)
{
	char	  **copy = MemoryContextAllocZero(context, sizeof(char *) * columns);

	for (int i = 0; i < columns; i++)
	{
		char	   *value = SPI_getvalue(row, SPI_tuptable->tupdesc, i + 1);

		if (value != NULL)
			copy[i] = MemoryContextStrdup(context, value);
	}
	return copy;
}

List *
geonn_shard_rows(int columns, const char *query)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *rows = NIL;
	int			result;

	/* See the relations as they are now, instead of as the transaction's snapshot has them. */
	SPI_connect();
	PushActiveSnapshot(GetLatestSnapshot());
	result = SPI_execute(query, true, 0);
	if (result != SPI_OK_SELECT)
		elog(ERROR, "could not run \"%s\": %s", query, SPI_result_code_string(result));
	PopActiveSnapshot();
	MemoryContextSwitchTo(context);
	for (uint64 i = 0; i < SPI_processed; i++)
		rows = lappend(rows, copy_row(SPI_tuptable->vals[i], columns, context));
	SPI_finish();
	return rows;
}

List *
geonn_shard_column(const char *query)
{
	List	   *rows = geonn_shard_rows(1, query);
	ListCell   *cell;

	foreach(cell, rows)
		lfirst(cell) = *(char **) lfirst(cell);
	return rows;
}

char *
geonn_shard_value(const char *query)
{
	List	   *values = geonn_shard_column(query);

	return values == NIL ? NULL : linitial(values);
}

/* ---- names ---- */

List *
geonn_shard_array(ArrayType *array, const char *argument, const char *hint)
{
	bool		of_names = ARR_ELEMTYPE(array) == NAMEOID;
	List	   *elements = NIL;
	Datum	   *values;
	bool	   *nulls;
	int			count;

	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("the argument %s has %d dimensions", argument, ARR_NDIM(array)),
				 errhint("%s", hint)));
	deconstruct_array(array, ARR_ELEMTYPE(array), of_names ? NAMEDATALEN : -1, false,
					  of_names ? TYPALIGN_CHAR : TYPALIGN_INT, &values, &nulls, &count);
	for (int i = 0; i < count; i++)
		elements = lappend(elements, nulls[i] ? NULL : of_names ? NameStr(*DatumGetName(values[i])) :
						   TextDatumGetCString(values[i]));
	return elements;
}

List *
geonn_shard_names(ArrayType *array, const char *argument, const char *hint)
{
	List	   *names = geonn_shard_array(array, argument, hint);

	if (list_member_ptr(names, NULL))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the argument %s has a NULL in it", argument),
				 errhint("%s", hint)));
	return names;
}

bool
geonn_is_named(List *names, const char *name)
{
	ListCell   *cell;

	foreach(cell, names)
	{
		if (strcmp(lfirst(cell), name) == 0)
			return true;
	}
	return false;
}

List *
geonn_add_name(List *names, char *name)
{
	return geonn_is_named(names, name) ? names : lappend(names, name);
}

char *
geonn_names_array(List *names)
{
	Datum	   *values = palloc(sizeof(Datum) * Max(list_length(names), 1));
	Oid			output;
	bool		varies;
	ListCell   *cell;

	foreach(cell, names)
		values[foreach_current_index(cell)] = CStringGetTextDatum(lfirst(cell));
	getTypeOutputInfo(TEXTARRAYOID, &output, &varies);
	return geonn_shard_sql("%L", OidOutputFunctionCall(output, PointerGetDatum(construct_array(values,
														   list_length(names), TEXTOID, -1, false, TYPALIGN_INT))));
}
