/*
 * result.h
 *		The rows that functions return in the extension's own types.
 */
#ifndef GEONN_RESULT_H
#define GEONN_RESULT_H

#include "fmgr.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

/*
 * geonn_rows_begin() begins the result of a function that returns a set of rows; geonn_result_type() looks up
 * the type of a function's single row.  Both raise an error if that type has another number of columns,
 * because the extension's objects are then of another version than the module.
 */
extern ReturnSetInfo *geonn_rows_begin(FunctionCallInfo fcinfo, int columns);
extern TupleDesc geonn_result_type(FunctionCallInfo fcinfo, int columns);

#define ROW_COLUMNS_MAX 40

/* A row of a result; its columns are added one after the other. */
typedef struct Row
{
	int			count;
	Datum		values[ROW_COLUMNS_MAX];
	bool		nulls[ROW_COLUMNS_MAX];
} Row;

static inline void
row_add(Row *row, Datum value, bool is_null)
{
	Assert(row->count < ROW_COLUMNS_MAX);
	row->values[row->count] = value;
	row->nulls[row->count++] = is_null;
}

static inline void
row_add_number(Row *row, uint64 number)
{
	row_add(row, Int64GetDatum((int64) number), false);
}

/* a text, or NULL */
static inline void
row_add_text(Row *row, const char *text)
{
	row_add(row, text == NULL ? (Datum) 0 : CStringGetTextDatum(text), text == NULL);
}

/* a value of type name, or NULL */
static inline void
row_add_name(Row *row, const char *name)
{
	row_add(row, name == NULL ? (Datum) 0 : DirectFunctionCall1(namein, CStringGetDatum(name)), name == NULL);
}

/* Add a time of the engine's, given in microseconds since 1970 (UTC). */
static inline void
row_add_time(Row *row, int64 microseconds, bool is_null)
{
	row_add(row, TimestampTzGetDatum(microseconds - (int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY),
			is_null);
}

static inline void
row_put(Row *row, ReturnSetInfo *result)
{
	Assert(row->count == result->setDesc->natts);
	tuplestore_putvalues(result->setResult, result->setDesc, row->values, row->nulls);
}

#endif							/* GEONN_RESULT_H */
