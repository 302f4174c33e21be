/*
 * sql.h
 *		Statements of the caches' code, the roles that they run as, and their errors.
 */
#ifndef GEONN_CACHE_SQL_H
#define GEONN_CACHE_SQL_H

#include "fmgr.h"
#include "utils/snapshot.h"

/* The schema of the extension that the called function belongs to. */
extern Oid	geonn_cache_schema(FunctionCallInfo fcinfo);

/* The table geonn_cache of the extension in this schema; raises an error where it is missing. */
extern Oid	geonn_cache_table(Oid schema);

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

/* The present error, copied to this memory context; the error state is flushed. */
extern ErrorData *geonn_take_error(MemoryContext context);

/*
 * Run a step in a subtransaction, so that its failure takes back nothing else.  Returns the error that
 * it ended with, in the current memory context, or NULL.
 */
extern ErrorData *geonn_attempt(void (*step) (void *state), void *state);

#endif							/* GEONN_CACHE_SQL_H */
