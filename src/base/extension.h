/*
 * extension.h
 *		Which extension an object belongs to, and whether geonn may search here for the current role.
 */
#ifndef GEONN_EXTENSION_H
#define GEONN_EXTENSION_H

/*
 * Return the name of the extension to which this object of this catalog belongs; "" if it belongs to none.  It is valid until the
 * next call.
 */
extern const char *geonn_extension_of(Oid catalog, Oid object);

/* Return whether geonn may search in this database for the current role.  Raises no error. */
extern bool geonn_may_search(void);

/* Raise an error if geonn may not search in this database for the current role; the error says why, and what to do. */
extern void geonn_check_may_search(void);

/* Raise an error if geonn.enabled is off. */
extern void geonn_check_enabled(void);

/* Return the function on which a role needs EXECUTE to search; InvalidOid: the extension is not in this database. */
extern Oid	geonn_search_privilege(void);

#endif							/* GEONN_EXTENSION_H */
