/*
 * own_names.h
 *		What the names in the module's own statements are.
 */
#ifndef GEONN_OWN_NAMES_H
#define GEONN_OWN_NAMES_H

/* a statement that is about to be prepared or executed */
typedef struct GeonnOwnNames
{
	const char *statement;
	Oid			target;			/* the table that it writes; or InvalidOid: see own_names.c */
} GeonnOwnNames;

/*
 * Look at the names of this statement, NULL for none, whenever it is analyzed, until another
 * call.  Returns what was looked at before, which the caller puts back, after an error as well.
 */
extern const GeonnOwnNames *geonn_look_at_names(const GeonnOwnNames *names);

/* Does the relation belong to this extension? */
extern bool geonn_is_own_relation(Oid relation);

/* Called once by _PG_init. */
extern void geonn_own_names(void);

#endif							/* GEONN_OWN_NAMES_H */
