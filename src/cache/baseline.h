/*
 * baseline.h
 *		Baselines: the points that the last refresh of a cache read.
 */
#ifndef GEONN_CACHE_BASELINE_H
#define GEONN_CACHE_BASELINE_H

#include "lib/stringinfo.h"

#include "cache/bag.h"
#include "cache/block_table.h"
#include "cache/definition.h"
#include "common/geodesy.h"

/*
 * entries of the directory in one row of geonn_cache_directory, which takes nearly half a page; by
 * its fillfactor the other half has room for an update
 */
#define BLOCKS_A_ROW		60

/* first bits of a key, by which jumps are indexed */
#define BASELINE_JUMP_BITS	16

/* the two sides of a cache */
typedef enum CacheSide
{
	SIDE_OBSERVATIONS,
	SIDE_REFERENCES
} CacheSide;

#define CACHE_SIDES 2

/* what storing a value needs to know of its type */
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
	Size		limits_bytes;	/* of a point's limits; 0: points have none */
	bool		keeps_unplaced; /* it also has points without coordinates */
} BaselineSchema;

/* how the bytes of a point begin; its limits, id and by columns follow */
typedef struct PointHead
{
	float		reach;			/* -1: it has none */
	uint32		length;			/* of all bytes */
	double		latitude;		/* NaN: the point has no coordinates */
	double		longitude;
} PointHead;

/* what a point's bytes say of it */
typedef struct Fingerprint
{
	uint64		key;			/* its position in the baseline's order */
	uint64		hash[2];		/* hash of its bytes, but for reach and length */
} Fingerprint;

/* a point of a side */
typedef struct BaselinePoint
{
	Fingerprint fingerprint;
	const char *bytes;
	uint32		length;
	float		reach;			/* from now on; the bytes have the former one */
	uint32		block;			/* the block to which it belongs */
	int32		row;			/* its number in that block; -1: it was added */
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

/* a block's entry in the directory, as stored */
typedef struct BaselineBlock
{
	uint64		first_key;		/* it has the keys from this one to the next block's first key */
	Bag			bag;			/* of its points */
	struct geonn_vector centre; /* geonn_metric_vector's */
	float		radius;			/* metres from the centre to its farthest point, rounded up; -1: no
								 * point has coordinates */
	float		reach;			/* greatest reach of its points; -1: none has one */
	uint32		number;			/* number of its row in geonn_cache_block */
	uint32		rows;
} BaselineBlock;

/* pages of tables that may have changed; see cache/changed_pages.h */
typedef struct ChangedPages ChangedPages;

typedef struct GeonnBaseline
{
	const GeonnCache *cache;
	CacheSide	side;
	BaselineSchema schema;
	int			metric;
	uint64		seed[2];
	BlockTable *directory;		/* both tables are open from the first use until geonn_baseline_close */
	BlockTable *contents;
	uint32		count;			/* of blocks; at least one if the baseline was loaded */
	BaselineBlock *blocks;		/* [count], by first_key */
	uint32		next_number;
	uint64		rows;
	ChangedPages *pages;		/* of the tables from which it is made or compared; NULL: not known */
	MemoryContext context;		/* of all that belongs to it */
	bytea	  **kept;			/* [count]: contents that were read, or NULL */
	Size		keep_room;		/* bytes left for more contents */
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
 * A baseline for the points of a side, without blocks yet.  The current memory context and the active
 * snapshot are those of all that follows, until geonn_baseline_close.
 */
extern GeonnBaseline *geonn_baseline_create(const GeonnCache *cache, const GeonnJoin *join,
											CacheSide side, const uint64 *seed);

/* Read the directory. */
extern void geonn_baseline_load(GeonnBaseline *baseline);

/* Delete what is stored of the baseline. */
extern void geonn_baseline_delete(GeonnBaseline *baseline);

/* What was written becomes visible to the transaction's next command. */
extern void geonn_baseline_close(GeonnBaseline *baseline);

/* Append a value's bytes, so that its end can be found again: the same bytes for equal images. */
extern void geonn_baseline_write_value(StringInfo bytes, BaselineType type, Datum value);

/* Does a baseline have such a row? */
extern bool geonn_baseline_has(const BaselineSchema *schema, const PointRow *row);

/* Append a row's bytes, and describe the point, whose bytes stay where they are. */
extern void geonn_baseline_write(const GeonnBaseline *baseline, const PointRow *row, StringInfo bytes,
								 BaselinePoint *point);

/* How the bytes of a point begin. */
static inline PointHead
geonn_point_head(const char *bytes)
{
	PointHead	head;

	memcpy(&head, bytes, sizeof(head));
	return head;
}

/* The id of the point with these bytes; allocated unless its type is passed by value. */
extern Datum geonn_baseline_id(const BaselineSchema *schema, const char *bytes);

/*
 * Go to the next point of a block's contents.  Returns false at the end.  A visit of the contents begins
 * with geonn_baseline_first, and does not compute fingerprints.
 */
extern bool geonn_baseline_next(const char **contents, const char *end, BaselinePoint *point);
#define geonn_baseline_first(number) {.block = (number), .row = -1}

/* Compute the point's fingerprint. */
extern void geonn_baseline_fingerprint(const GeonnBaseline *baseline, BaselinePoint *point);

/* Add a point, with a copy of its bytes; the list is empty at first, but for its context. */
extern void geonn_point_list_add(PointList *list, const BaselinePoint *point);

/*
 * The points of a list, or of two, as those of a search.  They live as long as the current memory
 * context.
 */
extern const GivenPoints *geonn_baseline_points(const BaselineSchema *schema, const PointList *first,
												const PointList *second);

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

/* The least float that is not smaller. */
extern float geonn_rounded_up(double exact);

/*
 * The reach of a point that has so many rows, the last one at this distance; rounded up.  -1: no
 * reference can be a candidate.
 */
extern float geonn_baseline_reach(const BaselineSchema *schema, const GeonnQuestion *question,
								  const char *bytes, uint64 rows, double distance);

/* ---- cache/baseline_write.c ---- */

/* writes points into blocks, in the order of their keys */
typedef struct BaselineWriter BaselineWriter;

/* Begin to write a baseline anew; or to replace blocks of it, which cache/baseline_write.c does. */
extern BaselineWriter *geonn_baseline_writer_begin(GeonnBaseline *baseline, bool anew);

/* Add a point; the points of a block in the order of their keys. */
extern void geonn_baseline_add(BaselineWriter *writer, const BaselinePoint *point);

/* After all points: write the remaining blocks, and the directory. */
extern void geonn_baseline_writer_end(BaselineWriter *writer);

/*
 * Bring the baseline up to date with the changes, and with the new reaches of these points that stay, by
 * block and row.
 */
extern void geonn_baseline_update(GeonnBaseline *baseline, const BaselineChanges *changes,
								  const BaselinePoint *reaches, uint64 reach_count);

/* ---- cache/baseline_compare.c ---- */

/*
 * Compare what the source has now, by the active snapshot, with the baseline.  Returns false if the
 * changes need more than so many bytes of memory; the changes are then incomplete.  The result is
 * in the current memory context.
 */
extern bool geonn_baseline_compare(GeonnBaseline *baseline, const PointSource *source,
								   InvalidPolicy invalid, Size memory, BaselineChanges *changes);

/* ---- cache/baseline_build.c ---- */

/* a baseline that is being made of all points of its side */
typedef struct BaselineBuild BaselineBuild;

/*
 * No points yet, in the current memory context.  The question is the one by which observations are
 * searched for; NULL for references.  compares: a baseline with the same seed is stored, which may have
 * the same points.
 */
extern BaselineBuild *geonn_baseline_build_begin(GeonnBaseline *baseline, const GeonnQuestion *question,
												 bool compares);

/*
 * Add a point.  Those that are searched for are numbered from 0 on, in the order of these calls; so
 * far each has the reach of an observation without rows.
 */
extern void geonn_baseline_build_add(BaselineBuild *build, const PointRow *row, bool is_searched);

/* Add all points of the source, with the active snapshot, without searching for any. */
extern void geonn_baseline_build_read(BaselineBuild *build, const PointSource *source);

/* The last row so far of the observation of this number. */
extern void geonn_baseline_build_reach(BaselineBuild *build, uint64 number, uint64 rank, double distance);

/*
 * Write the baseline in place of the one that is stored, close it, and let go of the points.  may_keep:
 * the stored one is left as it is if it has the same points.  Returns whether it was.
 */
extern bool geonn_baseline_build_end(BaselineBuild *build, bool may_keep);

#endif							/* GEONN_CACHE_BASELINE_H */
