/*
 * creators.h
 *		Which other roles may create functions where a call of geonn by name looks for one.
 */
#ifndef GEONN_CREATORS_H
#define GEONN_CREATORS_H

/*
 * Raise a WARNING that names the schemas, of the search_path and of geonn, in which other roles than the
 * current one and superusers may create functions.  extension: the schema of geonn.
 */
extern void geonn_warn_of_search_path(Oid extension);

#endif							/* GEONN_CREATORS_H */
