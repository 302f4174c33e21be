/*
 * baseline.h
 *		Baselines: the points that the last refresh of a cache read.
 */
#ifndef GEONN_CACHE_BASELINE_H
#define GEONN_CACHE_BASELINE_H

#include "lib/stringinfo.h"

#include "cache/definition.h"
#include "common/geodesy.h"

/*
 * entries of the directory in one row of geonn_cache_directory, which takes nearly half a page; by
 * its fillfactor the other half has room for an update
 */
#define BLOCKS_A_ROW		60

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

/* the columns of a baseline's rows */
typedef struct BaselineSchema
{
	BaselineType id;
	int			by_count;
	BaselineType *by;			/* [by_count] */
	Size		limits_bytes;	/* of a row's limits; 0: rows have none */
	bool		keeps_unplaced;	/* it also has rows without coordinates */
} BaselineSchema;

/* what one point's bytes say of it */
typedef struct Fingerprint
{
	uint64		key;			/* its position in the baseline's order */
	uint64		hash[2];		/* hash of all its bytes */
} Fingerprint;

/* a point of a baseline */
typedef struct BaselineRow
{
	bool		placed;			/* the row has coordinates */
	double		latitude;
	double		longitude;
	Datum		id;
	Datum	   *by;				/* [by_count] */
	bool	   *by_is_null;
	GeonnLimits limits;			/* if the schema has them */
} BaselineRow;

/* a block's entry in the directory, as stored */
typedef struct BaselineBlock
{
	uint64		first_key;		/* it has the keys from this one to the next block's first key */
	uint64		hash[2];		/* sums of its rows' hashes */
	struct geonn_vector centre; /* geonn_metric_vector's */
	float		radius;			/* metres from the centre to its farthest row, rounded up; -1: no row has
								 * coordinates */
	float		reach;			/* greatest reach of its rows; -1: none has one */
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
	uint32		count;			/* of blocks; at least one if the baseline exists */
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

/* A baseline for the rows of this source, without blocks yet. */
extern GeonnBaseline *geonn_baseline_create(const GeonnCache *cache, CacheSide side,
											const PointSource *source, int metric,
											bool keeps_unplaced, const uint64 *seed);

/* Read the directory, as the snapshot sees it. */
extern void geonn_baseline_load(GeonnBaseline *baseline, Snapshot snapshot);

/* Append a value's bytes, so that its end can be found again: the same bytes for equal images. */
extern void geonn_baseline_write_value(StringInfo bytes, BaselineType type, Datum value);

/* Does a baseline have such a row? */
extern bool geonn_baseline_has(const BaselineSchema *schema, const PointRow *row);

/* Append a row's bytes, without its reach, and compute its fingerprint. */
extern void geonn_baseline_write(const GeonnBaseline *baseline, const PointRow *row, StringInfo bytes,
								 Fingerprint *fingerprint);

/* A row to read into, with room for its by columns in the current memory context. */
extern BaselineRow geonn_baseline_row(const BaselineSchema *schema);

/*
 * Read a row from its bytes.  Returns the end of the bytes.  Values point into the bytes or are
 * allocated; the caller provides row->by and row->by_is_null.
 */
extern const char *geonn_baseline_read(const BaselineSchema *schema, const char *bytes, BaselineRow *row);

/* The id of the row with these bytes; allocated if it is no value by itself. */
extern Datum geonn_baseline_id(const BaselineSchema *schema, const char *bytes);

/*
 * Points for a search, read from bytes that the callback finds by their number; source is passed to
 * it.  They live as long as the current memory context.
 */
extern const GivenPoints *geonn_baseline_points(const BaselineSchema *schema, uint64 count,
												const void *source,
												const char *(*bytes) (const void *source, uint64 number));

/* The limits of the row with these bytes, in this space; NULL: rows have none. */
extern const GeonnLimits *geonn_baseline_limits(const BaselineSchema *schema, const char *bytes,
												GeonnLimits *limits);

/*
 * Read the next row of a block's contents up to end: its reach, and where its bytes are.  Returns
 * false at the end.
 */
extern bool geonn_baseline_next(const BaselineSchema *schema, const char **contents, const char *end,
								BaselineRow *row, float *reach, const char **bytes, Size *length);

/* The fingerprint of the row with these bytes. */
extern Fingerprint geonn_baseline_fingerprint(const GeonnBaseline *baseline, const char *bytes,
											  Size length);

/* The index of the block to which this key belongs. */
extern uint32 geonn_baseline_find_block(const GeonnBaseline *baseline, uint64 key);

/* The least float that is not smaller. */
extern float geonn_rounded_up(double exact);

/* Prefetch what geonn_baseline_find_block will read for this key. */
extern void geonn_baseline_prefetch(const GeonnBaseline *baseline, uint64 key);

/*
 * Read the contents of these blocks (indexes in baseline->blocks, ascending): for each row its
 * reach (float) and its bytes.  Calls back for each block, in a memory context that is reset afterwards.
 */
typedef void (*BlockConsumer) (void *state, uint32 block, const char *contents, Size length);
extern void geonn_baseline_read_blocks(GeonnBaseline *baseline, const uint32 *blocks, uint32 count,
									   Snapshot snapshot, BlockConsumer consume, void *state);

/* ---- cache/baseline_write.c ---- */

/* writes rows into blocks, in the order of their keys */
typedef struct BaselineWriter BaselineWriter;

/*
 * Begin to write a baseline anew, or to replace blocks of an existing one, which keeps its other
 * blocks.
 */
extern BaselineWriter *geonn_baseline_writer_begin(GeonnBaseline *baseline, bool anew);

/* The rows that are added next replace those of this block, and have keys of its range. */
extern void geonn_baseline_replace(BaselineWriter *writer, uint32 block);

/*
 * This block keeps its rows, and gets these contents with their new reaches, of which reach is the
 * greatest.
 */
extern void geonn_baseline_set_reaches(BaselineWriter *writer, uint32 block, const char *contents,
									   Size length, float reach);

/* Add a row with its reach; the rows of a block in the order of their keys. */
extern void geonn_baseline_add(BaselineWriter *writer, const Fingerprint *fingerprint, float reach,
							   const char *bytes, Size length);

/* After all rows: write the remaining blocks, and the directory. */
extern void geonn_baseline_writer_end(BaselineWriter *writer);

/* Delete the baseline of this side. */
extern void geonn_baseline_delete(const GeonnCache *cache, CacheSide side);

/* ---- cache/baseline_compare.c ---- */

/* a point that was added or removed */
typedef struct BaselineChange
{
	uint32		block;			/* the block to which it belongs */
	uint32		row;			/* of one that was removed: its number in the block */
	Fingerprint fingerprint;
	const char *bytes;
	Size		length;
} BaselineChange;

/*
 * all changes; a point that changed is in both lists: its former state was removed, its present one
 * added
 */
typedef struct BaselineChanges
{
	BaselineChange *added;		/* by block and key */
	uint64		added_count;
	BaselineChange *removed;	/* by block and row */
	uint64		removed_count;
} BaselineChanges;

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
 * searched for; NULL for references.
 */
extern BaselineBuild *geonn_baseline_build_begin(GeonnBaseline *baseline, const GeonnQuestion *question);

/*
 * A baseline with the same seed is stored: let geonn_baseline_build_end find out whether it has the same
 * points.  Before the first point is added.
 */
extern void geonn_baseline_build_compare(BaselineBuild *build);

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
 * Write the baseline in place of the one that is stored, and let go of the points.  may_keep: the stored
 * one is left as it is if it has the same points.  Returns whether it was.
 */
extern bool geonn_baseline_build_end(BaselineBuild *build, bool may_keep);

/*
 * The reach of an observation with these limits (NULL: none) that has so many rows, the last one at
 * this distance; rounded up.  -1: no reference can be a candidate.
 */
extern float geonn_baseline_reach(const GeonnQuestion *question, const GeonnLimits *limits,
								  uint64 rows, double distance);

#endif							/* GEONN_CACHE_BASELINE_H */
