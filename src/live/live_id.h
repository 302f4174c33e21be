/*
 * live_id.h
 *		Ids of references as a base of a table, and the rows that were added to it, have them: by numbers.
 */
#ifndef GEONN_LIVE_ID_H
#define GEONN_LIVE_ID_H

#include "client/memory_file.h"
#include "pages/page_points.h"

/* Append an id that was read to a file of ids, and return its number for the base. */
extern int64 geonn_live_id_append(const PageIdType *type, MemoryFile *values, int64 id);

/* Where the ids of a table are, by their numbers. */
typedef struct LiveIds
{
	PageIdType	type;
	const MemoryFile *values;	/* the ids of the base; NULL: numbers are the ids themselves */
	MemoryContext context;		/* memory for the ids of added rows */
	Datum	   *added;			/* [room] ids of added rows, by the numbers of the rows; 0: no id */
	uint32		room;
	uint64		bytes;			/* how many bytes the ids of added rows take */
} LiveIds;

/* Begin with the ids of a base.  Ids that are added live in the current memory context. */
extern LiveIds geonn_live_ids_begin(const PageIdType *type, const MemoryFile *values);

/* Copy an id that was read, for the added row with number `row`.  Returns the number of the id. */
extern int64 geonn_live_id_add(LiveIds *ids, uint32 row, int64 id);

/* Let go of the id of an added row. */
extern void geonn_live_id_remove(LiveIds *ids, uint32 row);

/* Return the value of the id with this number. */
extern Datum geonn_live_id_value(const LiveIds *ids, int64 number);

/* Return whether the id with a number and an id that was read are the same, bit by bit. */
extern bool geonn_live_id_is_same(const LiveIds *ids, int64 number, int64 id);

/* Return whether the id with one number comes before the id with the other number in the order of ids. */
extern bool geonn_live_id_is_before(const LiveIds *ids, int64 number, int64 other);

#endif							/* GEONN_LIVE_ID_H */
