/*
 * options.h
 *		The argument options: which columns to use, and how to search.
 */
#ifndef GEONN_OPTIONS_H
#define GEONN_OPTIONS_H

#include "utils/jsonb.h"

/* as the catalog spells them; NULL: to be found */
typedef struct GeonnColumnNames
{
	char	   *id;
	char	   *latitude;		/* NULL where longitude is */
	char	   *longitude;
	char	   *point;			/* NULL where latitude is not */
} GeonnColumnNames;

typedef struct GeonnOptions
{
	GeonnColumnNames observation;
	GeonnColumnNames reference;
	int			device;			/* enum geonn_device_choice */
	int			algorithm;		/* enum geonn_algorithm */
	int			batch_rows;		/* 1 ... GEONN_BATCH_ROWS_MAX; 0: as suits */
} GeonnOptions;

/* which keys there are */
typedef enum GeonnOptionsScope
{
	GEONN_OPTIONS_JOIN,			/* of both sides, and of the search */
	GEONN_OPTIONS_POINTS,		/* the same, but for the observations' */
	GEONN_OPTIONS_RELATION		/* of one relation: id, lat, lon, geog; they
								 * go to reference */
} GeonnOptionsScope;

/*
 * What the object says, and the session's settings for what it leaves out.
 * Strings are palloc'd.  Anything that is not known, not of its type or in
 * contradiction is an error that says what is expected.
 */
extern void geonn_parse_options(Jsonb *json, GeonnOptionsScope scope,
								GeonnOptions *options);

#endif							/* GEONN_OPTIONS_H */
