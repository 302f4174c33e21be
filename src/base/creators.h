/*
 * creators.h
 *		Which other roles may create functions where a call of geonn by name looks for one.
 */
#ifndef GEONN_CREATORS_H
#define GEONN_CREATORS_H

/*
 * If roles other than the current one and superusers may create functions in schemas of the search_path, or
 * in that of geonn, raise a WARNING that names these schemas.  extension: the schema of geonn.
 */
extern void geonn_warn_of_search_path(Oid extension);

#endif							/* GEONN_CREATORS_H */
