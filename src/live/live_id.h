/*
 * live_id.h
 *		Ids of references as a base of a table, and the rows that were added to it, have them: by numbers.
 */
#ifndef GEONN_LIVE_ID_H
#define GEONN_LIVE_ID_H

#include "client/memory_file.h"
#include "pages/page_points.h"

/* Append to a file an id that was read, and return its number, for the base. */
extern int64 geonn_live_id_append(const PageIdType *type, MemoryFile *values, int64 id);

/* where the ids of a table are that have these numbers */
typedef struct LiveIds
{
	PageIdType	type;
	const MemoryFile *values;	/* those of the base; NULL: numbers are the ids themselves */
	MemoryContext context;		/* of those that were added */
	Datum	   *added;			/* [room] by the numbers of rows that were added; 0: no id */
	uint32		room;
	uint64		bytes;			/* how many they take */
} LiveIds;

/* Begin with those of a base; what is added lives in the current memory context. */
extern LiveIds geonn_live_ids_begin(const PageIdType *type, const MemoryFile *values);

/* Copy an id that was read, of the row with this number that is added; returns the id's own number. */
extern int64 geonn_live_id_add(LiveIds *ids, uint32 row, int64 id);

/* Let go of the id of a row that was added. */
extern void geonn_live_id_remove(LiveIds *ids, uint32 row);

/* The value of the id with a number. */
extern Datum geonn_live_id_value(const LiveIds *ids, int64 number);

/* Are the id with a number and one that was read the same, to the bit? */
extern bool geonn_live_id_is_same(const LiveIds *ids, int64 number, int64 id);

/* Does the id with one number come before that with another one, in their order? */
extern bool geonn_live_id_is_before(const LiveIds *ids, int64 number, int64 other);

#endif							/* GEONN_LIVE_ID_H */
