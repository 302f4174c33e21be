/*
 * columns.h
 *		Where points are read from: a relation or a query, and which of its
 *		columns are the id, the coordinates, the columns to join by, and those
 *		with the points' limits.
 */
#ifndef GEONN_COLUMNS_H
#define GEONN_COLUMNS_H

#include "access/attnum.h"
#include "access/tupdesc.h"
#include "nodes/pg_list.h"

#include "points/geometry.h"
#include "points/transform.h"
#include "points/window_column.h"

typedef enum ColumnRole
{
	COLUMN_ID,
	COLUMN_LATITUDE,
	COLUMN_LONGITUDE,
	COLUMN_POINT,				/* the column has both coordinates, in place of a latitude and a longitude */
	COLUMN_SHAPE,				/* the column has lines, polygons and other shapes, in place of points */
	COLUMN_RADIUS				/* has the radius of each point, in metres */
} ColumnRole;

#define COLUMN_ROLES (COLUMN_RADIUS + 1)

/* what the weights of references are for */
typedef enum WeightUse
{
	WEIGHTS_SUMMED,
	WEIGHTS_PRIORITY,			/* one weight, by which references are ranked */
	WEIGHTS_CAPACITY			/* one weight, how many observations the reference may have */
} WeightUse;

/* words for messages about weights */
typedef struct WeightWords
{
	const char *role;			/* of a column, and of a value */
	const char *argument;		/* what names the columns, as: the argument weights */
	const char *range;			/* which values they may have, in a sentence */
	const char *nothing;		/* the value of a row that has none */
} WeightWords;

/* by WeightUse */
extern const WeightWords geonn_weight_words[];

/* the columns of one side that options and arguments name */
typedef struct GeonnColumnNames
{
	const char *prefix;			/* prefix of the options that name them: obs_, ref_ or nothing */
	bool		paired;			/* arguments may name a pair: a column of this side, and one of the other */
	bool		refuses_srids;	/* values of other SRIDs than 4326 are not transformed */
	bool		points_alone;	/* no option has a column be read as shapes */

	/*
	 * By ColumnRole, as the catalog spells them; NULL: to be found by name or type, and from COLUMN_RADIUS on none.  A shape
	 * is named alone, a point without latitude and longitude, and these two together.
	 */
	char	   *names[COLUMN_ROLES];
	List	   *weights;		/* of char *; not an option, but an argument */
	WeightUse	weights_are;	/* what for, and so which argument */
	List	   *differs;		/* one side's names in the argument differs */
} GeonnColumnNames;

typedef struct PointColumn
{
	char	   *name;			/* NULL: the source has no such column */
	Oid			type;			/* the declared type */
	int32		typmod;			/* the modifier of base_type */
	Oid			collation;
	Oid			base_type;		/* the type below any domain */
	const char *reason;			/* why this column was chosen */
	AttrNumber	attribute;		/* number of the column in the rows that the source's query returns */
} PointColumn;

/* Return the modifier of a column's declared type; a domain has none of its own. */
static inline int32
geonn_declared_typmod(const PointColumn *column)
{
	return column->type == column->base_type ? column->typmod : -1;
}

/* what a relation is to Citus */
typedef enum CitusKind
{
	CITUS_UNKNOWN,				/* nothing */
	CITUS_WHOLE,				/* a table with all rows on one node, or with all rows on each node */
	CITUS_DIVIDED				/* a table whose rows are divided among shards */
} CitusKind;

typedef struct PointSource
{
	Oid			relation;		/* the relation that is read; InvalidOid: the source is the caller's query */
	Oid			named;			/* the relation that the caller named; it differs from `relation` if Citus has shards
								 * of it (citus.c) */
	CitusKind	citus;
	char	   *title;			/* the source's name in messages: relation "city", query obs_sql */
	char	   *query;			/* the SQL that returns the rows */
	int			query_columns;	/* how many columns the rows have */
	const char *option_prefix;	/* prefix of the options that name columns: obs_, ref_ or nothing */
	bool		paired;			/* arguments may name a pair: a column of this side, and a column of the other side */
	bool		refuses_srids;	/* values of other SRIDs than 4326 are not transformed */
	bool		points_alone;	/* no option has a column be read as shapes */
	PointColumn unused_shape;	/* a column of shapes that is not used because the relation also has points, and no
								 * option names either column */
	bool		quiet;			/* an error about columns sets unclear, instead of being raised */
	bool		unclear;
	int			column_count;
	PointColumn *columns;		/* [column_count] by ColumnRole; behind them the columns to join by, those that differ,
								 * those with windows, and those with weights */
	GeonnPointKind point_kind;	/* the kind of the column of points or shapes, if the source has one */
	bool		may_have_shapes;		/* the column of points may have shapes, too: a reading ends at the first one, and its
								 * caller begins anew after geonn_read_as_shapes(); or goes on with shapes, where its
								 * caller says so (geonn_reading_go_on_with_shapes) */
	GeonnTransform *transform;	/* of that column's values; NULL: those of other SRIDs than 4326 are errors */
	int			by_count;
	PointColumn *by;			/* [by_count] among the columns: those of the argument by, then those of the argument
								 * differs */
	int			differs_count;	/* how many of the columns `by` are those of the argument differs */
	int			window_count;
	PointColumn *windows;		/* [window_count] among the columns */
	WindowType	window_types[GEONN_WINDOWS_MAX];
	int			weight_count;
	PointColumn *weights;		/* [weight_count] among the columns */
	WeightUse	weights_are;

	/*
	 * boolean expressions that rows must meet to be read (geonn_plan_query); NIL: all rows are
	 * read.  The caller adds them before the source is read
	 */
	List	   *conditions;

	uint64		remembered;		/* number under which this process remembers the table (remembered_source.c); 0: it
								 * does not */

	/* set where the source is a relation */
	char	   *name;			/* the name of the relation that is read */
	char	   *schema;
	char	   *quoted_name;	/* the name of the relation that the caller named, with its schema, as SQL */
} PointSource;

/* The name of a role, as geonn_describe shows it; the option that names its column, without obs_ or ref_. */
extern const char *geonn_role_name(ColumnRole role);
extern const char *geonn_role_option(ColumnRole role);

/*
 * Choose a new source's columns, whose attributes become those of the descriptor: those that are named, and the others by
 * their names and types.  by and overlaps are lists of names (char *); overlaps has the columns with windows.  Raises an
 * error if that fails; where the source is quiet, sets unclear.
 */
extern void geonn_find_columns(PointSource *source, TupleDesc descriptor, const GeonnColumnNames *named, List *by,
							   List *overlaps);

/* Return how many columns of the source are columns to join by. */
static inline int
geonn_group_columns(const PointSource *source)
{
	return source->by_count - source->differs_count;
}

/* Have a column of points that may have shapes be read as shapes from now on.  Does nothing if it is so already. */
extern void geonn_read_as_shapes(PointSource *source);

/* Are the source's rows shapes? */
static inline bool
geonn_has_shapes(const PointSource *source)
{
	return source->columns[COLUMN_SHAPE].attribute > 0;
}

/* Do points of the source have a radius? */
static inline bool
geonn_has_radius(const PointSource *source)
{
	return source->columns[COLUMN_RADIUS].attribute > 0;
}

/* Return whether points of the source have a radius, windows or weights (GeonnLimits). */
static inline bool
geonn_has_limits(const PointSource *source)
{
	return geonn_has_radius(source) || source->window_count > 0 || source->weight_count > 0;
}

/* The bytes that the limits of a point of the source take. */
static inline Size
geonn_limits_bytes_of(const PointSource *source)
{
	return geonn_has_limits(source) ? geonn_limits_bytes(source->window_count, source->weight_count) : 0;
}

/* The source's column of windows with this number, from 0 on, for messages. */
extern NamedWindow geonn_named_window(const PointSource *source, int number);

#endif							/* GEONN_COLUMNS_H */
