/*
 * options.h
 *		The argument options: which columns to use, and how to search.
 */
#ifndef GEONN_OPTIONS_H
#define GEONN_OPTIONS_H

#include "nodes/pg_list.h"
#include "utils/jsonb.h"

/* column names as the catalog spells them; NULL: to be found by name or type */
typedef struct GeonnColumnNames
{
	const char *prefix;			/* prefix of the options that name them: obs_, ref_ or nothing */
	bool		paired;			/* arguments may name a pair: a column of this side, and one of the other */
	char	   *id;
	char	   *latitude;		/* NULL where longitude is */
	char	   *longitude;
	char	   *point;			/* NULL where latitude is not */
	bool		takes_shapes;	/* shapes may be in the place of points */
	char	   *shape;			/* NULL where point or latitude is not */
	char	   *radius;			/* NULL: points have none */
	List	   *weights;		/* of char *; not an option, but the argument weights */
	List	   *differs;		/* one side's names in the argument differs */
} GeonnColumnNames;

typedef struct GeonnOptions
{
	GeonnColumnNames observation;
	GeonnColumnNames reference;
	int			device;			/* enum geonn_device_choice */
	int			algorithm;		/* enum geonn_algorithm */
	int			batch_rows;		/* 1 ... GEONN_BATCH_ROWS_MAX; 0: the client decides */
} GeonnOptions;

/* which keys the object may have */
typedef enum GeonnOptionsScope
{
	GEONN_OPTIONS_JOIN,			/* columns of both sides, and how to search */
	GEONN_OPTIONS_POINTS,		/* columns of the references, and how to search */
	GEONN_OPTIONS_RELATION		/* columns of one relation: id, lat, lon, geog, shape, radius;
								 * GeonnOptions.reference gets them */
} GeonnOptionsScope;

/*
 * Read the object; what it leaves out comes from the session's settings.
 * Strings are palloc'd.  An unknown key, a value of a wrong type or a
 * contradiction is an error that says what is expected.
 */
extern void geonn_parse_options(Jsonb *json, GeonnOptionsScope scope,
								GeonnOptions *options);

#endif							/* GEONN_OPTIONS_H */
