/*
 * creators.h
 *		Which other roles may create functions where a call of geonn by name looks for one.
 */
#ifndef GEONN_CREATORS_H
#define GEONN_CREATORS_H

/*
 * Raise a WARNING if roles other than the current one and superusers may create functions in schemas of the
 * search_path, or in the schema of geonn (`extension`).  The WARNING names these schemas.
 */
extern void geonn_warn_of_search_path(Oid extension);

#endif							/* GEONN_CREATORS_H */
