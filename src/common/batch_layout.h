/*
 * batch_layout.h
 *		Lays out the columns of a batch in its memory, for module and engine.
 */
#ifndef GEONN_BATCH_LAYOUT_H
#define GEONN_BATCH_LAYOUT_H

#include "common/assertion.h"
#include "common/protocol.h"

/*
 * The columns of a batch in memory.  Some columns serve twice: the client writes the tags of references, and the engine
 * the tags of answers; the client writes arcs, and the engine the places of answers.
 */
struct geonn_batch_columns
{
	uint32_t	rows;			/* how many points the batch has room for */
	uint32_t	room;			/* how many pairs the batch has room for */
	double	   *latitude;		/* [rows] degrees; with GEONN_COLUMN_ARC [max(rows, room)], for each pair's place on an
								 * observation that is a shape, by pair */
	double	   *longitude;		/* as latitude */
	int64_t    *tag;			/* [max(rows, room)] */
	double	   *distance;		/* [room] metres */
	uint32_t   *count;			/* [rows] pairs of each observation */
	int32_t    *group;			/* [rows], NULL without GEONN_COLUMN_GROUP */
	int64_t    *excluded_first; /* [rows] the first tag that each observation excludes; NULL without
								 * GEONN_COLUMN_EXCLUDED */
	int64_t    *excluded_last;	/* [rows] the last tag that each observation excludes; less than the first: it excludes
								 * none; NULL without GEONN_COLUMN_EXCLUDED */
	double	   *radius;			/* [rows] metres, may be infinite; NULL without GEONN_COLUMN_RADIUS */
	int64_t    *low[GEONN_WINDOWS_MAX]; /* [rows] values of window i's low bounds (window.h) */
	int64_t    *high[GEONN_WINDOWS_MAX];	/* [rows] values of window i's high bounds; NULL without
											 * GEONN_COLUMN_WINDOW << i, as low */
	uint16_t   *edges;			/* [rows] the edges of all windows (window.h); NULL without windows */
	double	   *weight[GEONN_WEIGHTS_MAX];	/* [rows] weight i of each reference, finite or NAN; NULL without
											 * GEONN_COLUMN_WEIGHT << i */
	int32_t    *party[GEONN_PARTIES_MAX];	/* [rows] party i of each point; NULL without GEONN_COLUMN_PARTY << i */
	double	   *end_latitude;	/* [max(rows, room)] degrees: where each arc ends, by row; or each pair's place
								 * (GEONN_SEARCH_PLACES), by pair; NULL without GEONN_COLUMN_ARC, as the next four */
	double	   *end_longitude;	/* [max(rows, room)] degrees, as end_latitude */
	double	   *fraction;		/* [room] the fraction of each pair's place, or NAN */
	int32_t    *shape;			/* [rows] the number of the arc's shape */
	int32_t    *polygon;		/* [rows] number or -number of the arc's polygon, or 0 (protocol_dataset.h) */
	int32_t    *segment;		/* [max(rows, room)] the number of each arc in its shape, by row; or of each pair's arc, by
								 * pair; NULL without GEONN_COLUMN_SEGMENT, as the next */
	int32_t    *part_end;		/* [max(rows, room)] the number of the last arc of the arc's line or ring, by row; or each
								 * pair's side (enum geonn_line_side), by pair */
	double	   *measure;		/* [max(rows, room)] the measure where each arc begins, by row; or of each pair's place, by
								 * pair; NULL without GEONN_COLUMN_MEASURE, as the next */
	double	   *end_measure;	/* [rows] the measure where each arc ends */
};

static inline size_t
geonn_align(size_t bytes, size_t alignment)
{
	return (bytes + alignment - 1) / alignment * alignment;
}

/*
 * Return the address of the next column, and move *offset behind the column.  Returns NULL if the
 * batch does not have the column.
 */
static inline void *
geonn_batch_column(uintptr_t base, size_t *offset, bool present, size_t values, size_t width)
{
	uintptr_t	column = base + *offset;

	if (!present)
		return NULL;
	*offset += geonn_align(values * width, 256);
	return (void *) column;
}

/*
 * Lay out a batch of these rows and room from address start on, and return the bytes that it takes, a multiple of 4096; 0
 * if rows or room are out of range.  With NULL as start, only compute the bytes.  present: the columns that the batch has
 * beside the coordinates, bits GEONN_COLUMN_...  Every column begins at a multiple of 256 bytes.
 */
static inline size_t
geonn_batch_layout(void *start, uint32_t rows, uint32_t room, uint32_t present,
				   struct geonn_batch_columns *columns)
{
	size_t		offset = 0;
	uintptr_t	base = (uintptr_t) start;

	if (rows < 1 || rows > GEONN_BATCH_ROWS_MAX ||
		room < 1 || room > GEONN_BATCH_ROWS_MAX)
		return 0;

#define COLUMN(type, is_present, values) \
	(type *) geonn_batch_column(base, &offset, is_present, values, sizeof(type))
	columns->rows = rows;
	columns->room = room;
	columns->latitude = COLUMN(double, true, present & GEONN_COLUMN_ARC && room > rows ? room : rows);
	columns->longitude = COLUMN(double, true, present & GEONN_COLUMN_ARC && room > rows ? room : rows);
	columns->tag = COLUMN(int64_t, true, rows > room ? rows : room);
	columns->distance = COLUMN(double, true, room);
	columns->count = COLUMN(uint32_t, true, rows);
	columns->group = COLUMN(int32_t, (present & GEONN_COLUMN_GROUP) != 0, rows);
	columns->excluded_first = COLUMN(int64_t, (present & GEONN_COLUMN_EXCLUDED) != 0, rows);
	columns->excluded_last = COLUMN(int64_t, (present & GEONN_COLUMN_EXCLUDED) != 0, rows);
	columns->radius = COLUMN(double, (present & GEONN_COLUMN_RADIUS) != 0, rows);
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		columns->low[i] = COLUMN(int64_t, (present & GEONN_COLUMN_WINDOW << i) != 0, rows);
		columns->high[i] = COLUMN(int64_t, (present & GEONN_COLUMN_WINDOW << i) != 0, rows);
	}
	columns->edges = COLUMN(uint16_t, (present & GEONN_COLUMNS_WINDOWS) != 0, rows);
	for (int i = 0; i < GEONN_WEIGHTS_MAX; i++)
		columns->weight[i] = COLUMN(double, (present & GEONN_COLUMN_WEIGHT << i) != 0, rows);
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		columns->party[i] = COLUMN(int32_t, (present & GEONN_COLUMN_PARTY << i) != 0, rows);
	columns->end_latitude = COLUMN(double, (present & GEONN_COLUMN_ARC) != 0, rows > room ? rows : room);
	columns->end_longitude = COLUMN(double, (present & GEONN_COLUMN_ARC) != 0, rows > room ? rows : room);
	columns->fraction = COLUMN(double, (present & GEONN_COLUMN_ARC) != 0, room);
	columns->shape = COLUMN(int32_t, (present & GEONN_COLUMN_ARC) != 0, rows);
	columns->polygon = COLUMN(int32_t, (present & GEONN_COLUMN_ARC) != 0, rows);
	columns->segment = COLUMN(int32_t, (present & GEONN_COLUMN_SEGMENT) != 0, rows > room ? rows : room);
	columns->part_end = COLUMN(int32_t, (present & GEONN_COLUMN_SEGMENT) != 0, rows > room ? rows : room);
	columns->measure = COLUMN(double, (present & GEONN_COLUMN_MEASURE) != 0, rows > room ? rows : room);
	columns->end_measure = COLUMN(double, (present & GEONN_COLUMN_MEASURE) != 0, rows);
#undef COLUMN
	geonn_assert(offset % 256 == 0);
	return geonn_align(offset, 4096);
}

#endif							/* GEONN_BATCH_LAYOUT_H */
