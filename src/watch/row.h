/*
 * row.h
 *		A row of a view: its columns are added one after the other.
 */
#ifndef GEONN_WATCH_ROW_H
#define GEONN_WATCH_ROW_H

#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "base/result.h"

#define ROW_COLUMNS_MAX 40

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

/* a time of the engine's; 0: none */
static inline void
row_add_time(Row *row, int64 microseconds)
{
	row_add(row, TimestampTzGetDatum(geonn_timestamp_from_unix(microseconds)), microseconds == 0);
}

static inline void
row_put(Row *row, ReturnSetInfo *result)
{
	Assert(row->count == result->setDesc->natts);
	tuplestore_putvalues(result->setResult, result->setDesc, row->values, row->nulls);
}

#endif							/* GEONN_WATCH_ROW_H */
