/*
 * baseline.h
 *		Baselines: the points that the last refresh of a cache read.
 */
#ifndef GEONN_CACHE_BASELINE_H
#define GEONN_CACHE_BASELINE_H

#include "lib/stringinfo.h"

#include "cache/definition.h"

/* entries of the directory in one row of geonn_cache_directory */
#define BLOCKS_A_ROW		1024

/* the two sides of a cache */
typedef enum CacheSide
{
	SIDE_OBSERVATIONS,
	SIDE_REFERENCES
} CacheSide;

#define CACHE_SIDES 2

/* a value's type, as far as it is stored */
typedef struct BaselineType
{
	bool		by_value;
	int16		length;
} BaselineType;

/* what rows of a baseline are */
typedef struct BaselineSchema
{
	BaselineType id;
	int			by_count;
	BaselineType *by;			/* [by_count] */
	bool		keeps_unplaced;	/* rows without coordinates are in it, too */
} BaselineSchema;

/* what is found of a point without looking at others */
typedef struct Fingerprint
{
	uint64		key;			/* where it is in the baseline's order */
	uint64		hash[2];		/* of all its bytes */
} Fingerprint;

/* a point of a baseline */
typedef struct BaselineRow
{
	bool		placed;			/* it has coordinates */
	double		latitude;
	double		longitude;
	Datum		id;
	Datum	   *by;				/* [by_count] */
	bool	   *by_is_null;
} BaselineRow;

/* the entry of a block in the directory, as it is stored */
typedef struct BaselineBlock
{
	uint64		first_key;		/* it has the keys from here to the next block's */
	uint64		hash[2];		/* sums of its rows' */
	double		latitude;		/* of its centre */
	double		longitude;
	double		radius;			/* metres from there to its farthest row; -1: no row has coordinates */
	float		reach;			/* greatest of its rows' */
	uint32		number;			/* by which its contents are found */
	uint32		rows;
	uint32		unused;
} BaselineBlock;

typedef struct GeonnBaseline
{
	const GeonnCache *cache;
	CacheSide	side;
	BaselineSchema schema;
	int			metric;
	uint64		seed[2];
	uint32		count;			/* of blocks, at least one where the baseline exists */
	BaselineBlock *blocks;		/* [count], by first_key */
	uint32		next_number;
	uint64		rows;
	MemoryContext context;		/* of what belongs to it */
	bytea	  **kept;			/* [count]: contents that were read, or NULL */
	Size		keep_room;		/* bytes that more of them may take */
	uint64	   *first_keys;		/* [count]; see geonn_baseline_find_block */
	uint32	   *jumps;
} GeonnBaseline;

/* A baseline without blocks, of what this source reads. */
extern GeonnBaseline *geonn_baseline_create(const GeonnCache *cache, CacheSide side,
											const PointSource *source, int metric,
											bool keeps_unplaced, const uint64 *seed);

/* Read its directory, as the snapshot sees it. */
extern void geonn_baseline_load(GeonnBaseline *baseline, Snapshot snapshot);

/* Is this row one of a baseline? */
extern bool geonn_baseline_has(const BaselineSchema *schema, const PointRow *row);

/* Add a row's bytes without its reach, and find its fingerprint. */
extern void geonn_baseline_write(const GeonnBaseline *baseline, const PointRow *row, StringInfo bytes,
								 Fingerprint *fingerprint);

/* A row to read into, with room for its by columns in the current memory context. */
extern BaselineRow geonn_baseline_row(const BaselineSchema *schema);

/*
 * The row of such bytes; returns what follows them.  Values point into them or are
 * allocated; row->by and row->by_is_null are the caller's.
 */
extern const char *geonn_baseline_read(const BaselineSchema *schema, const char *bytes, BaselineRow *row);

/*
 * Points that a search is given, from bytes that are found by their number; source is passed
 * through.  They live as long as the current memory context.
 */
extern const GivenPoints *geonn_baseline_points(const BaselineSchema *schema, uint64 count,
												const void *source,
												const char *(*bytes) (const void *source, uint64 number));

/* Where the id is in such bytes, and how long it is. */
extern const char *geonn_baseline_id(const BaselineSchema *schema, const char *bytes, Size *length);

/*
 * The next row of a block's contents, which end there: its reach, and where its bytes are.  False
 * at the end.
 */
extern bool geonn_baseline_next(const BaselineSchema *schema, const char **contents, const char *end,
								BaselineRow *row, float *reach, const char **bytes, Size *length);

/* The fingerprint of bytes with this length. */
extern Fingerprint geonn_baseline_fingerprint(const GeonnBaseline *baseline, const char *bytes, Size length);

/* The number, from 0 on, of the block that has this key. */
extern uint32 geonn_baseline_find_block(const GeonnBaseline *baseline, uint64 key);

/* It is going to be asked for soon. */
extern void geonn_baseline_prefetch(const GeonnBaseline *baseline, uint64 key);

/*
 * Contents of blocks: each row is its reach (float) and its bytes, one after the other.
 * Calls back for each of these blocks (indexes in baseline->blocks, ascending), in a memory
 * context that goes soon.
 */
typedef void (*BlockConsumer) (void *state, uint32 block, const char *contents, Size length);
extern void geonn_baseline_read_blocks(GeonnBaseline *baseline, const uint32 *blocks, uint32 count,
									   Snapshot snapshot, BlockConsumer consume, void *state);

/* ---- cache/baseline_write.c ---- */

/* rows on their way into blocks, in the order of their keys */
typedef struct BaselineWriter BaselineWriter;

/*
 * Begin to write a baseline anew, or with replaced rows of one that is there: the blocks of
 * the baseline that are not written again stay as they are.
 */
extern BaselineWriter *geonn_baseline_writer_begin(GeonnBaseline *baseline, bool anew);

/* The rows that follow replace those of this block, and have keys of its range. */
extern void geonn_baseline_replace(BaselineWriter *writer, uint32 block);

/* This block has the same rows as before, but with these reaches, of which reach is the greatest. */
extern void geonn_baseline_set_reaches(BaselineWriter *writer, uint32 block, const char *contents, Size length,
									   float reach);

/* Another row, with its reach; those of a block in the order of their keys. */
extern void geonn_baseline_add(BaselineWriter *writer, const Fingerprint *fingerprint, float reach,
							   const char *bytes, Size length);

/* All rows have been added: write what is left, and the directory. */
extern void geonn_baseline_writer_end(BaselineWriter *writer);

/* Forget the baseline of this side. */
extern void geonn_baseline_delete(const GeonnCache *cache, CacheSide side);

/* ---- cache/baseline_compare.c ---- */

/* a point that was added or removed */
typedef struct BaselineChange
{
	uint32		block;			/* where it belongs */
	uint32		row;			/* of one that was removed: its number in the block */
	Fingerprint fingerprint;
	const char *bytes;
	Size		length;
} BaselineChange;

/* a point that changed is in both: its former state was removed, its present one added */
typedef struct BaselineChanges
{
	BaselineChange *added;		/* by block and key */
	uint64		added_count;
	BaselineChange *removed;	/* by block and row */
	uint64		removed_count;
} BaselineChanges;

/*
 * Compare what the source has now, by the active snapshot, with the baseline.  Returns false
 * where more has changed than fits into so many bytes of memory, and then finds
 * nothing.  What is found is in the current memory context.
 */
extern bool geonn_baseline_compare(GeonnBaseline *baseline, const PointSource *source,
								   InvalidPolicy invalid, Size memory, BaselineChanges *changes);

/*
 * The same of a source that has only some of the rows, all those that changed among them.  A
 * point of the baseline was removed only if the source has its id.
 */
extern bool geonn_baseline_compare_some(GeonnBaseline *baseline, const PointSource *source,
										InvalidPolicy invalid, Size memory, BaselineChanges *changes);

/* ---- cache/baseline_build.c ---- */

/*
 * Make a baseline of all that the source has now, with the active snapshot.  For observations
 * the join is searched, to know their reaches.
 */
extern void geonn_baseline_build(GeonnBaseline *baseline, const PointSource *source, GeonnJoin *join);

/* How far an observation's neighbours reach: rows of it, the last one at this distance. */
extern float geonn_baseline_reach(const GeonnQuestion *question, uint64 rows, double distance);

#endif							/* GEONN_CACHE_BASELINE_H */
