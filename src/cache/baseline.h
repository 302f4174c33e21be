/*
 * baseline.h
 *		Baselines: the points that the last refresh of a cache read.
 */
#ifndef GEONN_CACHE_BASELINE_H
#define GEONN_CACHE_BASELINE_H

#include "lib/stringinfo.h"

#include "cache/block_table.h"
#include "cache/definition.h"
#include "common/geodesy.h"

/*
 * how many blocks a row of geonn_cache_directory describes: it takes nearly half a page, and by the
 * fillfactor the other half has room for an update
 */
#define BLOCKS_A_ROW		60

/* how many of a key's first bits index GeonnBaseline.jumps */
#define BASELINE_JUMP_BITS	16

/* the two sides of a cache */
typedef enum CacheSide
{
	SIDE_OBSERVATIONS,
	SIDE_REFERENCES
} CacheSide;

#define CACHE_SIDES 2

/* typbyval and typlen of a type */
typedef struct BaselineType
{
	bool		by_value;
	int16		length;
} BaselineType;

/* the columns of a baseline's points */
typedef struct BaselineSchema
{
	BaselineType id;
	int			by_count;
	BaselineType *by;			/* [by_count] */
	Size		limits_bytes;	/* bytes of a point's radius and windows; 0: none */
	bool		keeps_unplaced; /* the baseline also has points without coordinates */
} BaselineSchema;

/* the head of a point's bytes; limits, id and values of `by` follow */
typedef struct PointHead
{
	float		reach;			/* geonn_baseline_reach's result */
	uint32		length;			/* the point's length in bytes, with this head */
	double		latitude;		/* NaN: the point has no coordinates */
	double		longitude;
} PointHead;

/* a point's fingerprint, computed from its bytes */
typedef struct Fingerprint
{
	uint64		key;			/* its position in the baseline's order */
	uint64		hash[2];		/* hash of its bytes except reach and length */
} Fingerprint;

/* a point of a side */
typedef struct BaselinePoint
{
	Fingerprint fingerprint;
	const char *bytes;
	uint32		length;
	float		reach;			/* its reach now; the bytes have that of the last run */
	uint32		block;			/* the block to which it belongs */
	int32		row;			/* its index in that block; -1: a new point */
} BaselinePoint;

/* points with their bytes */
typedef struct PointList
{
	MemoryContext context;
	BaselinePoint *points;		/* [count] */
	uint64		count;
	uint64		room;
} PointList;

/*
 * all changes of a side; a point that changed is in both lists: its former state was removed, its
 * present one added
 */
typedef struct BaselineChanges
{
	PointList	added;			/* by block and key */
	PointList	removed;		/* by block and row */
} BaselineChanges;

/*
 * A bag (multiset) of rows, stored as the 128-bit sum of their hashes.  Equal bags have equal sums.
 * Different bags have equal sums by an accident that is less likely than any other fault of a machine, as
 * with the checksums of file systems and version control.  The hashes (cache/siphash.h) have a secret key, so
 * such an accident cannot be arranged.
 */
typedef struct Bag
{
	uint64		sum[2];			/* both are 0 for an empty bag */
} Bag;

static inline void
geonn_bag_add(Bag *bag, const uint64 *hash)
{
	bag->sum[0] += hash[0];
	bag->sum[1] += hash[1];
}

static inline void
geonn_bag_remove(Bag *bag, const uint64 *hash)
{
	bag->sum[0] -= hash[0];
	bag->sum[1] -= hash[1];
}

static inline bool
geonn_bag_is(const Bag *bag, const Bag *other)
{
	return bag->sum[0] == other->sum[0] && bag->sum[1] == other->sum[1];
}

/* a block's entry in the directory, as stored */
typedef struct BaselineBlock
{
	uint64		first_key;		/* its keys begin here, and end before the next block's */
	Bag			bag;			/* the bag of its points */
	struct geonn_vector centre; /* geonn_metric_vector's */
	float		radius;			/* metres from the centre to its farthest point, rounded up; -1: no
								 * point has coordinates */
	float		reach;			/* the greatest reach of its points; -1: none has one */
	uint32		number;			/* the number of its row in geonn_cache_block */
	uint32		rows;			/* how many points it has */
} BaselineBlock;

/* pages of tables that may have changed; see cache/changed_pages.h */
typedef struct ChangedPages ChangedPages;

typedef struct GeonnBaseline
{
	const GeonnCache *cache;
	CacheSide	side;
	BaselineSchema schema;
	int			metric;
	uint64		seed[2];		/* the secret key of the hashes of points */
	BlockTable *directory;		/* the tables are open from geonn_baseline_create to geonn_baseline_close */
	BlockTable *contents;
	BlockTable *lists;			/* lists of pages; see cache/changed_pages.c */
	uint32		count;			/* how many blocks it has; at least one after geonn_baseline_load */
	BaselineBlock *blocks;		/* [count], in the order of first_key */
	uint32		next_number;	/* the number of the next new block */
	uint64		rows;			/* how many points it has */
	ChangedPages *pages;		/* which pages of its tables have changed; NULL: all of them are read */
	MemoryContext context;		/* has all that belongs to it */
	uint64	   *first_keys;		/* [count]; see geonn_baseline_find_block */
	uint32	   *jumps;
} GeonnBaseline;

/* The source of a side. */
static inline const PointSource *
geonn_side_source(const GeonnJoin *join, CacheSide side)
{
	return side == SIDE_OBSERVATIONS ? join->observations : join->references;
}

/*
 * Create the baseline of a side, without blocks yet, and open its tables.  Until geonn_baseline_close, it
 * uses the present memory context and the snapshot that is active now.
 */
extern GeonnBaseline *geonn_baseline_create(const GeonnCache *cache, const GeonnJoin *join,
											CacheSide side, const uint64 *seed);

/* Read the directory. */
extern void geonn_baseline_load(GeonnBaseline *baseline);

/* Delete the baseline's stored rows and its lists of pages. */
extern void geonn_baseline_delete(GeonnBaseline *baseline);

/* Close the tables; the transaction's next command sees what was written. */
extern void geonn_baseline_close(GeonnBaseline *baseline);

/* Append a value's bytes, after their length if that varies; equal images give the same bytes. */
extern void geonn_baseline_write_value(StringInfo bytes, BaselineType type, Datum value);

/* Does a baseline of this schema have the row as a point? */
extern bool geonn_baseline_has(const BaselineSchema *schema, const PointRow *row);

/* Append the bytes of a row's point, and fill in *point, which points to these bytes. */
extern void geonn_baseline_write(const GeonnBaseline *baseline, const PointRow *row, StringInfo bytes,
								 BaselinePoint *point);

/* The head of the point with these bytes, which may lie at any address. */
static inline PointHead
geonn_point_head(const char *bytes)
{
	PointHead	head;

	memcpy(&head, bytes, sizeof(head));
	return head;
}

/* The id of the point with these bytes; a copy, unless its type is passed by value. */
extern Datum geonn_baseline_id(const BaselineSchema *schema, const char *bytes);

/*
 * Read the next point of a block's contents into *point, which geonn_baseline_first initializes.  Returns
 * false at the end.  Computes no fingerprint.
 */
extern bool geonn_baseline_next(const char **contents, const char *end, BaselinePoint *point);
#define geonn_baseline_first(number) {.block = (number), .row = -1}

/* Set the point's fingerprint by its bytes. */
extern void geonn_baseline_fingerprint(const GeonnBaseline *baseline, BaselinePoint *point);

/* Add a point with a copy of its bytes.  A new list has nothing set but its context. */
extern void geonn_point_list_add(PointList *list, const BaselinePoint *point);

/*
 * The points of a list as GivenPoints of a search.  The result lives as long as the current memory context.
 */
extern const GivenPoints *geonn_baseline_points(const BaselineSchema *schema, const PointList *list);

/* The index of the block to which this key belongs. */
extern uint32 geonn_baseline_find_block(const GeonnBaseline *baseline, uint64 key);

/* Prefetch what geonn_baseline_find_block will read for this key. */
static inline void
geonn_baseline_prefetch(const GeonnBaseline *baseline, uint64 key)
{
	__builtin_prefetch(&baseline->first_keys[baseline->jumps[key >> (64 - BASELINE_JUMP_BITS)]]);
}

/*
 * Read the contents of these blocks (indexes in baseline->blocks, ascending).  Calls back for each
 * block, in a memory context that is reset afterwards.
 */
typedef void (*BlockConsumer) (void *state, uint32 block, const char *contents, Size length);
extern void geonn_baseline_read_blocks(GeonnBaseline *baseline, const uint32 *blocks, uint32 count,
									   BlockConsumer consume, void *state);

/* The least float that is not smaller than this number. */
extern float geonn_rounded_up(double exact);

/*
 * The reach, in metres, of a point with so many rows, the last at this distance: no reference beyond it
 * changes them.  Rounded up; -1: no candidates.
 */
extern float geonn_baseline_reach(const BaselineSchema *schema, const GeonnQuestion *question,
								  const char *bytes, uint64 rows, double distance);

/* ---- cache/baseline_write.c ---- */

/* a sort of a baseline's points by their keys; points with equal keys come in any order */
typedef struct BaselineSort BaselineSort;

/* Create a sort without points, in the current memory context. */
extern BaselineSort *geonn_baseline_sort_begin(const GeonnBaseline *baseline);

/* Add a point, copying its bytes, with a number of the caller's.  May allocate in the current memory context. */
extern void geonn_baseline_sort_add(BaselineSort *sort, const BaselinePoint *point, uint64 number);

/*
 * Get the next point, whose bytes are valid until the next call, and its number.  Returns false after the
 * last one.  No points can be added after the first call.
 */
extern bool geonn_baseline_sort_next(BaselineSort *sort, BaselinePoint *point, uint64 *number);
extern void geonn_baseline_sort_end(BaselineSort *sort);

/* writes points into blocks, in the order of their keys */
typedef struct BaselineWriter BaselineWriter;

/* If anew, begin to write a whole baseline; else, to replace blocks of it (cache/baseline_write.c). */
extern BaselineWriter *geonn_baseline_writer_begin(GeonnBaseline *baseline, bool anew);

/* Add a point.  The points of a block come in the order of their keys. */
extern void geonn_baseline_add(BaselineWriter *writer, const BaselinePoint *point);

/* Called after all points: write the remaining blocks, and the directory. */
extern void geonn_baseline_writer_end(BaselineWriter *writer);

/*
 * Apply to the baseline the changes, and the new reaches of points that stay, ordered by block and row.
 */
extern void geonn_baseline_update(GeonnBaseline *baseline, const BaselineChanges *changes,
								  const BaselinePoint *reaches, uint64 reach_count);

/* ---- cache/baseline_compare.c ---- */

/*
 * Compare the side's rows in the active snapshot with the baseline, whose points were geometries of this SRID (0: not
 * known, or no geometries), and update the lists of pages.  Invalid rows are treated as in the join's search.  Returns
 * false, and incomplete changes, if these need more than `memory` bytes.  They live as long as the current memory context.
 */
extern bool geonn_baseline_compare(GeonnBaseline *baseline, const GeonnJoin *join, int32 srid, Size memory,
								   BaselineChanges *changes);

/* a baseline that is being made of all points of its side; see cache/full_search.h */
typedef struct BaselineBuild BaselineBuild;

#endif							/* GEONN_CACHE_BASELINE_H */
