/*
 * cache.h
 *		Caches: tables of neighbours that are kept up to date.
 */
#ifndef GEONN_CACHE_H
#define GEONN_CACHE_H

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "utils/array.h"
#include "utils/jsonb.h"
#include "utils/snapshot.h"

#include "join.h"

/* a cache as geonn_cache has it; options as SQL values, NULL where they are */
typedef struct GeonnCache
{
	Oid			schema;			/* of the extension */
	int32		id;				/* 0: not there yet */
	char	   *name;
	Oid			owner;			/* of the target, or InvalidOid */
	Oid			target;
	Oid			obs;
	Oid			ref;
	bool		within;			/* all within radius, instead of k */
	int32		k;
	bool		has_distance;
	double		distance;		/* max_distance or radius */
	text	   *metric;
	ArrayType  *by;				/* or NULL */
	bool		exclude_self;
	bool		keep_unmatched;
	text	   *ties;
	text	   *invalid;
	Jsonb	   *options;
	char	   *changed_since;	/* column, or NULL */
} GeonnCache;

/* the columns of a target, in this order */
typedef enum TargetColumn
{
	TARGET_OBSERVATION_ID,
	TARGET_RANK,
	TARGET_REFERENCE_ID,
	TARGET_DISTANCE
} TargetColumn;

#define TARGET_COLUMNS 4

/* ---- cache_catalog.c: the extension's own tables ---- */

/* The schema of the extension that the called function belongs to. */
extern Oid	geonn_cache_schema(FunctionCallInfo fcinfo);

/* Raises an error on a standby, where no cache can be changed or refreshed. */
extern void geonn_cache_check_primary(void);

/* A relation's owner, or InvalidOid where there is none. */
extern Oid	geonn_relation_owner(Oid relation);

/* Find names in pg_catalog alone, until the settings' nest level ends. */
extern void geonn_set_search_path(void);

/* Have statements planned to look rows up one by one, for as long. */
extern void geonn_plan_by_index(void);

/* Run a command as it is, with SPI connected. */
extern void geonn_run_command(const char *command);

/*
 * Run a statement with a role's privileges, for which unqualified names are those of pg_catalog.  The
 * types of values are given; nulls may be NULL.  Reads with the given snapshot where there
 * is one, else sees the latest.  Returns the rows that were read or changed; those read
 * are in SPI_tuptable.
 */
extern uint64 geonn_run_as(Oid role, const char *statement, Snapshot snapshot,
						   int count, const Oid *types, const Datum *values, const char *nulls);

/*
 * The same on the extension's own tables, with their owner's privileges; $S in it is the
 * extension's schema.
 */
extern uint64 geonn_catalog_run(Oid schema, const char *statement, Snapshot snapshot,
								int count, const Oid *types, const Datum *values,
								const char *nulls);

/*
 * Go on as the owner of the cache's table, which geonn_cache_hold has locked, in a
 * security-restricted operation with a search_path of pg_catalog; and as the caller again.
 * An error undoes it with its (sub)transaction.
 */
typedef struct GeonnIdentity
{
	Oid			user;
	int			context;
	int			level;			/* of settings */
} GeonnIdentity;

extern GeonnIdentity geonn_become_owner(const GeonnCache *cache);
extern void geonn_become_former(GeonnIdentity former);

/*
 * The cache of this name, in the current memory context, to be changed or refreshed.
 * Raises an error where there is none, where the current user is not a member of the role
 * that owns it, and on a standby.  A cache without a table belongs to the extension's owner.
 */
extern GeonnCache *geonn_cache_find(Oid schema, const char *name);

/*
 * The same cache as it is by now; called when it is locked.  Raises an error where it is
 * gone or has another name.
 */
extern GeonnCache *geonn_cache_find_again(const GeonnCache *cache);
__attribute__((noreturn))
extern void geonn_cache_raise_gone(const GeonnCache *cache);

/*
 * Lock the cache's table until the transaction ends, so that it keeps its owner.  Raises an
 * error where the owner is not the one that the cache was found with, and where the current
 * user has that role's privileges no more.
 */
extern void geonn_cache_hold(const GeonnCache *cache, LOCKMODE mode);

/* The names of all caches whose owner the current user is a member of. */
extern List *geonn_cache_names(Oid schema);

/*
 * Let nobody else refresh or change the cache: until the end of the transaction, or with
 * session until geonn_cache_unlock.  Without wait, returns false where somebody does.
 */
extern bool geonn_cache_lock(const GeonnCache *cache, bool wait, bool session);
extern void geonn_cache_unlock(const GeonnCache *cache);

/* Who has it locked: a process id, or 0. */
extern int	geonn_cache_locker(const GeonnCache *cache);

/* What a run did, as geonn_cache_log shows it. */
typedef struct GeonnRunResult
{
	const char *status;			/* succeeded, failed, skipped */
	const char *mode;			/* or NULL */
	const char *reason;			/* or NULL */
	int64		searched;		/* observations, or -1 */
	bool		counted;		/* the rest counts */
	int64		rows;
	int64		inserted;
	int64		updated;
	int64		deleted;
	const char *error;			/* or NULL */
} GeonnRunResult;

/* Note that a run has begun, of which this process makes the row returned; then its result. */
extern int64 geonn_cache_log_start(const GeonnCache *cache);
extern void geonn_cache_log_finish(const GeonnCache *cache, int64 run,
								   const GeonnRunResult *result);

/* ---- cache_drop.c ---- */

/* Delete all that the extension's tables have of a cache, with that snapshot or NULL. */
extern void geonn_cache_forget(const GeonnCache *cache, Snapshot snapshot);

/* ---- cache_schedule.c: refreshes by pg_cron ---- */

/* Remove the cache's jobs, where pg_cron is at hand.  Returns how many there were. */
extern int	geonn_cache_unschedule(const GeonnCache *cache);

/* Have its jobs refresh the cache by its new name. */
extern void geonn_cache_rename_jobs(const GeonnCache *cache, const char *name);

/* ---- cache_search.c: what a cache asks ---- */

/* The join; its sources are looked up and locked as a SELECT does. */
extern GeonnJoin *geonn_cache_join(const GeonnCache *cache);

/* The target's columns: a row type for the join, or their definitions for SQL. */
extern TupleDesc geonn_cache_row_type(const GeonnJoin *join);
extern char *geonn_cache_definitions(const GeonnJoin *join);

/* Their numbers in a target, [TARGET_COLUMNS]. */
extern void geonn_target_attributes(Oid target, AttrNumber *attributes);

/* Raise an error unless observations' ids can be those of a target's primary key. */
extern void geonn_cache_check_ids(const GeonnJoin *join);

/* Raise an error unless the column changed_since, if there is one, is there and suits. */
extern void geonn_cache_check_changed_since(const GeonnCache *cache);

/* The observations that by changed_since are not older than this. */
extern PointSource *geonn_cache_changed_source(const GeonnCache *cache, const PointSource *source,
											   TimestampTz since);

/* ---- cache_target.c: the rows of a target ---- */

/* A target's name with its schema, for SQL. */
extern char *geonn_cache_target_name(const GeonnCache *cache);

/* Raise the error of an observation's id that is there twice, or is NULL. */
__attribute__((noreturn))
extern void geonn_cache_raise_duplicate(const GeonnCache *cache, Oid type, Datum id);
__attribute__((noreturn))
extern void geonn_cache_raise_null(const GeonnCache *cache);

/* Fill a new table, which nobody else sees yet.  Returns how many rows there are. */
extern uint64 geonn_target_fill(const GeonnCache *cache);

/* what to do about a target's row */
typedef enum RowChange
{
	ROW_DELETED,
	ROW_UPDATED,
	ROW_INSERTED
} RowChange;

#define ROW_CHANGES 3

/* Differences between a target's rows and what they should be. */
typedef struct GeonnDifference GeonnDifference;

/* There are none yet; they live as long as the current memory context. */
extern GeonnDifference *geonn_difference_create(const GeonnCache *cache, TupleDesc row_type);

/*
 * One more: of the row at this place of the table (NULL: a new one), and the values that it
 * should have, unless it is deleted.
 */
extern void geonn_difference_add(GeonnDifference *difference, RowChange change,
								 ItemPointer place, const Datum *values, const bool *nulls);

/* Do these rows, [TARGET_COLUMNS], have the same bytes? */
extern bool geonn_same_rows(TupleDesc row_type, const Datum *values, const bool *nulls,
							const Datum *other_values, const bool *other_nulls);

/* bits by the places of a table's rows */
typedef struct PlaceSet
{
	uint8	   *bits;
	uint64		bytes;
} PlaceSet;

/* Add a place to the set, which is in the current memory context; false: it was there. */
extern bool geonn_place_add(PlaceSet *set, ItemPointer place);

/*
 * Compare all rows with those that the search returns, with the active snapshot.  Returns
 * how many there will be.
 */
extern int64 geonn_difference_find(GeonnDifference *difference, const GeonnJoin *join);

/* Raise the error of an id that is twice among the new rows, if one is. */
extern void geonn_difference_check(GeonnDifference *difference);

/* Write them, and count them into the result. */
extern void geonn_difference_write(GeonnDifference *difference, GeonnRunResult *result);

extern void geonn_difference_end(GeonnDifference *difference);

#endif							/* GEONN_CACHE_H */
