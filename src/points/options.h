/*
 * options.h
 *		The argument options: which columns to use, and how to search.
 */
#ifndef GEONN_OPTIONS_H
#define GEONN_OPTIONS_H

#include "utils/jsonb.h"

#include "points/columns.h"

typedef struct GeonnOptions
{
	GeonnColumnNames observation;
	GeonnColumnNames reference;
	int			device;			/* enum geonn_device_choice */
	int			algorithm;		/* enum geonn_algorithm */
	int			batch_rows;		/* 1 ... GEONN_BATCH_ROWS_MAX; 0: the client decides */
	bool		transform;		/* values of other SRIDs than 4326 are transformed */
} GeonnOptions;

/* which keys the object may have */
typedef enum GeonnOptionsScope
{
	GEONN_OPTIONS_JOIN,			/* columns of both sides, and how to search */
	GEONN_OPTIONS_POINTS,		/* columns of the references, and how to search */
	GEONN_OPTIONS_RELATION,		/* columns of one relation, without a prefix; GeonnOptions.reference gets them */
	GEONN_OPTIONS_CLUSTERS		/* those of one relation of points without radiuses, and how to search */
} GeonnOptionsScope;

/*
 * Read the object.  Options that it leaves out come from the session's settings.  Strings are palloc'd.  An unknown key, a
 * value of a wrong type or a contradiction is an error that says what is expected.
 */
extern void geonn_parse_options(Jsonb *json, GeonnOptionsScope scope,
								GeonnOptions *options);

#endif							/* GEONN_OPTIONS_H */
