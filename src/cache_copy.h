/*
 * cache_copy.h
 *		What the last refresh of a cache saw: copies of its points.
 */
#ifndef GEONN_CACHE_COPY_H
#define GEONN_CACHE_COPY_H

#include "lib/stringinfo.h"

#include "cache_search.h"

/* entries of the directory in one row of geonn_cache_directory */
#define PARTS_A_ROW		1024

/* the two sides of a cache */
typedef enum CacheSide
{
	SIDE_OBSERVATIONS,
	SIDE_REFERENCES
} CacheSide;

#define CACHE_SIDES 2

/* a value's type, as far as it is stored */
typedef struct CopyType
{
	bool		by_value;
	int16		length;
} CopyType;

/* what rows of a copy are */
typedef struct CopyShape
{
	CopyType	id;
	int			by_count;
	CopyType   *by;				/* [by_count] */
	bool		keeps_unplaced; /* rows without a place are in it, too */
} CopyShape;

/* what is found of a point without looking at others */
typedef struct CopyPlace
{
	uint64		key;			/* where it is in the copy's order */
	uint64		hash[2];		/* of all its bytes */
} CopyPlace;

/* a point of a copy */
typedef struct CopyRow
{
	bool		placed;			/* it has coordinates */
	double		latitude;
	double		longitude;
	Datum		id;
	Datum	   *by;				/* [by_count] */
	bool	   *by_is_null;
} CopyRow;

/* the entry of a part in the directory, as it is stored */
typedef struct CopyPart
{
	uint64		first_key;		/* it has the keys from here to the next part's */
	uint64		hash[2];		/* sums of its rows' */
	double		latitude;		/* of its centre */
	double		longitude;
	double		radius;			/* metres from there to its farthest row; -1: no row is placed */
	float		bound;			/* greatest of its rows' */
	uint32		number;			/* by which its contents are found */
	uint32		rows;
	uint32		unused;
} CopyPart;

typedef struct GeonnCopy
{
	const GeonnCache *cache;
	CacheSide	side;
	CopyShape	shape;
	int			metric;
	uint64		seed[2];
	uint32		count;			/* of parts, at least one where the copy exists */
	CopyPart   *parts;			/* [count], by first_key */
	uint32		next_number;
	uint64		rows;
	MemoryContext context;		/* of what belongs to it */
	bytea	  **kept;			/* [count]: contents that were read, or NULL */
	Size		keep_room;		/* bytes that more of them may take */
	uint64	   *first_keys;		/* [count]; see geonn_copy_find */
	uint32	   *jumps;
} GeonnCopy;

/* A copy without parts, of what this source reads. */
extern GeonnCopy *geonn_copy_create(const GeonnCache *cache, CacheSide side,
									const PointSource *source, int metric,
									bool keeps_unplaced, const uint64 *seed);

/* Read its directory, as the snapshot sees it. */
extern void geonn_copy_load(GeonnCopy *copy, Snapshot snapshot);

/* Is this row one of a copy? */
extern bool geonn_copy_has(const CopyShape *shape, const PointRow *row);

/* Add a row's bytes without its bound, and find its place. */
extern void geonn_copy_write(const GeonnCopy *copy, const PointRow *row, StringInfo bytes,
							 CopyPlace *place);

/* A row to read into, with room for its by columns in the current memory context. */
extern CopyRow geonn_copy_row(const CopyShape *shape);

/*
 * The row of such bytes; returns what follows them.  Values point into them or are
 * allocated; row->by and row->by_is_null are the caller's.
 */
extern const char *geonn_copy_read(const CopyShape *shape, const char *bytes, CopyRow *row);

/*
 * Points that a search is given, from bytes that are found by their number; source is passed
 * through.  They live as long as the current memory context.
 */
extern const GivenPoints *geonn_copy_points(const CopyShape *shape, uint64 count,
											const void *source,
											const char *(*bytes) (const void *source, uint64 number));

/* Where the id is in such bytes, and how long it is. */
extern const char *geonn_copy_id(const CopyShape *shape, const char *bytes, Size *length);

/*
 * The next row of a part's contents, which end there: its bound, and where its bytes are.  False
 * at the end.
 */
extern bool geonn_copy_next(const CopyShape *shape, const char **contents, const char *end,
							CopyRow *row, float *bound, const char **bytes, Size *length);

/* Their place, of bytes with this length. */
extern CopyPlace geonn_copy_place(const GeonnCopy *copy, const char *bytes, Size length);

/* The number, from 0 on, of the part that has this key. */
extern uint32 geonn_copy_find(const GeonnCopy *copy, uint64 key);

/* It is going to be asked for soon. */
extern void geonn_copy_prefetch(const GeonnCopy *copy, uint64 key);

/*
 * Contents of parts: each row is its bound (float) and its bytes, one after the other.
 * Calls back for each of these parts (indexes in copy->parts, ascending), in a memory
 * context that goes soon.
 */
typedef void (*CopyPartConsumer) (void *state, uint32 part, const char *contents, Size length);
extern void geonn_copy_read_parts(GeonnCopy *copy, const uint32 *parts, uint32 count,
								  Snapshot snapshot, CopyPartConsumer consume, void *state);

/* ---- cache_copy_write.c ---- */

/* rows on their way into parts, in the order of their keys */
typedef struct CopyWriter CopyWriter;

/*
 * Begin to write a copy anew, or with replaced rows of one that is there: the parts of
 * the copy that are not written again stay as they are.
 */
extern CopyWriter *geonn_copy_writer_begin(GeonnCopy *copy, bool anew);

/* The rows that follow are in place of those of this part, which had these keys. */
extern void geonn_copy_replace(CopyWriter *writer, uint32 part);

/* This part has the same rows as before, but with these bounds, of which bound is the greatest. */
extern void geonn_copy_rebound(CopyWriter *writer, uint32 part, const char *contents, Size length,
							   float bound);

/* Another row, with its bound; those of a part in the order of their keys. */
extern void geonn_copy_add(CopyWriter *writer, const CopyPlace *place, float bound,
						   const char *bytes, Size length);

/* All rows have been added: write what is left, and the directory. */
extern void geonn_copy_writer_end(CopyWriter *writer);

/* Forget the copy of this side. */
extern void geonn_copy_delete(const GeonnCache *cache, CacheSide side);

/* ---- cache_compare.c ---- */

/* a point that came or went */
typedef struct CopyChange
{
	uint32		part;			/* where it belongs */
	uint32		row;			/* of one that went: which one of the part's */
	CopyPlace	place;
	const char *bytes;
	Size		length;
} CopyChange;

/* of one that changed, its former state went and its present one came */
typedef struct CopyChanges
{
	CopyChange *added;			/* by part and key */
	uint64		added_count;
	CopyChange *gone;			/* by part and row */
	uint64		gone_count;
} CopyChanges;

/*
 * Compare what the source has now, by the active snapshot, with the copy.  Returns false
 * where more has changed than fits into so many bytes of memory, and then finds
 * nothing.  What is found is in the current memory context.
 */
extern bool geonn_copy_compare(GeonnCopy *copy, const PointSource *source,
							   InvalidPolicy invalid, Size memory, CopyChanges *changes);

/*
 * The same of a source that has only some of the rows, all those that changed among them.  A
 * point of the copy has gone only if the source has its id.
 */
extern bool geonn_copy_compare_some(GeonnCopy *copy, const PointSource *source,
									InvalidPolicy invalid, Size memory, CopyChanges *changes);

/* ---- cache_copy_build.c ---- */

/*
 * Make a copy of all that the source has now, with the active snapshot.  For observations
 * the join is searched, to know their bounds.
 */
extern void geonn_copy_build(GeonnCopy *copy, const PointSource *source, GeonnJoin *join);

/* How far an observation's neighbours reach: rows of it, the last one at this distance. */
extern float geonn_copy_bound(const GeonnQuestion *question, uint64 rows, double distance);

#endif							/* GEONN_CACHE_COPY_H */
