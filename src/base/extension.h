/*
 * extension.h
 *		Which extension an object belongs to, and whether geonn may search here for the current role.
 */
#ifndef GEONN_EXTENSION_H
#define GEONN_EXTENSION_H

/* The name of the extension that the object of this catalog belongs to; an empty string if it belongs to none. */
extern const char *geonn_extension_of(Oid catalog, Oid object);

/* May geonn search in this database for the current role?  Raises no error. */
extern bool geonn_may_search(void);

/* Raise an error that says why not, and what to do, if geonn may not search here. */
extern void geonn_check_may_search(void);

/* Raise the first of these errors if geonn.enabled is off. */
extern void geonn_check_enabled(void);

/* The function on which a role needs EXECUTE; InvalidOid: the extension is not in this database. */
extern Oid	geonn_search_privilege(void);

#endif							/* GEONN_EXTENSION_H */
