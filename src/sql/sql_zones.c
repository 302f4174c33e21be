/*
 * sql_zones.c
 *		Joins of points with the polygons of a plane that have them inside, in PostGIS's words.
 *
 *	FROM p [LEFT] JOIN z ON ST_Contains(z.g, p.g) AND ...
 *
 * asks for the polygons that have a point inside, by the coordinates as they are, whatever the SRID.  So do ST_Within, ST_Covers,
 * ST_CoveredBy and ST_Intersects, which differ for points on the boundary alone.  The node of sql_within.c keeps the polygons in
 * an index (zones/plane.h), in each process, and finds those of one point after the other: that takes less time than
 * telling the engine of a point.
 *
 * PostGIS decides.  The index computes as it does, and knows where rounding may make a difference: there the node calls
 * the function, by the clause as it is written.  So it does for each pair with a value that the index does not take: a
 * coordinate that is not finite, or a ring that is not closed.
 *
 * Before it computes, PostGIS's function compares boxes, rounded outwards to float4, as && does.  So && of both is true for
 * each pair that the index is sure of, and is tested only where the function is asked: it may be false for coordinates that
 * are not finite, and keep the function from an error for two SRIDs.  Operators ~ and @ are false for some points that
 * ST_Intersects takes to be on the boundary.
 *
 * A column whose type names no SRID can have values of any, and PostGIS fails for a pair of two SRIDs.  The index has the
 * polygons of the first one's SRID.  A column of geometry alone can have anything.  Pairs of other values are PostGIS's.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "base/compat.h"
#include "plan/lateral_path.h"
#include "sql/sql_distance.h"
#include "sql/sql_zones.h"

/*
 * What begins a node, in the units of lateral_path.h; and in operators, what a point takes, and each byte of a polygon, to
 * be read from a TOAST table and indexed
 */
#define COST_OF_PLANE 25
#define OPERATORS_A_POINT 20
#define OPERATORS_A_BYTE 1.5

/* ---- the planner ---- */

/* what values of geometry are */
typedef enum ValueKind
{
	VALUE_OTHER,				/* or of another type */
	VALUE_POINTS,
	VALUE_POLYGONS,
	VALUE_OPEN					/* neither their type nor statistics say so */
} ValueKind;

/*
 * What a type says, through domains.  Of a column that may have any values, statistics say how long they are: a point is short.
 */
static ValueKind
kind_of(const List *range_table, Node *value)
{
	int32		typmod;
	int32		bytes;

	value = geonn_value_of_point(value);
	typmod = exprTypmod(value);
	if (geonn_point_kind(getBaseTypeAndTypmod(exprType(value), &typmod)) != GEONN_POINT_GEOMETRY)
		return VALUE_OTHER;
	if (geonn_point_typmod_is_point(typmod))
		return VALUE_POINTS;
	if (geonn_typmod_is_polygons(typmod))
		return VALUE_POLYGONS;
	if (!IsA(value, Var) || !geonn_typmod_is_any(typmod))
		return VALUE_OTHER;
	bytes = geonn_average_bytes(range_table, (const Var *) value);
	if (bytes == 0)
		return VALUE_OPEN;
	return bytes <= POINT_BYTES ? VALUE_POINTS : VALUE_POLYGONS;
}

const char *
geonn_zones_problem(const List *range_table, Node *point, Node *zone)
{
	ValueKind	of_point = kind_of(range_table, point);
	ValueKind	of_zone = kind_of(range_table, zone);

	if (of_point == VALUE_POLYGONS)
		return "the side that is not searched has polygons, or values as long";
	if (of_point == VALUE_OTHER)
		return "its points are neither of a type that says so, as geometry(Point,4326), nor a column of geometry";
	return of_zone != VALUE_POLYGONS && of_zone != VALUE_OPEN ?
		"its polygons are neither of a type that says so, as geometry(MultiPolygon,4326), nor a column of geometry with values "
		"as long" : NULL;
}

bool
geonn_zones_imply(const Node *clause, const Node *point, const Node *zone)
{
	const OpExpr *comparison = (const OpExpr *) clause;
	const char *name;
	bool		is_of_point;	/* the point is on the left */

	if (!IsA(clause, OpExpr) || list_length(comparison->args) != 2)
		return false;
	is_of_point = equal(linitial(comparison->args), point);
	if (!equal(linitial(comparison->args), is_of_point ? point : zone) ||
		!equal(lsecond(comparison->args), is_of_point ? zone : point))
		return false;
	name = get_func_name(get_opcode(comparison->opno));
	return name != NULL && strcmp(name, "geometry_overlaps") == 0 &&
		geonn_is_of_extension(get_opcode(comparison->opno), "postgis");
}

/*
 * A call takes far less than PostGIS says where its polygon stays the same, and as much where the polygon is read for each call,
 * of which PostgreSQL counts nothing.  So what points take is scaled, and the polygons are counted as they are.
 */
static double
scale_of(Cost call)
{
	return Max(call / COST_OF_CALL, 1);
}

Cost
geonn_zones_cost(Cost call, const Path *zones)
{
	return zones->total_cost + scale_of(call) * COST_OF_PLANE +
		cpu_operator_cost * zones->rows * (OPERATORS_A_REFERENCE + OPERATORS_A_BYTE * zones->pathtarget->width);
}

Cost
geonn_zones_cost_of_points(Cost call, double points, double pairs)
{
	return scale_of(call) * (OPERATORS_A_POINT * cpu_operator_cost * points + cpu_tuple_cost * pairs);
}

/* ---- polygons ---- */

void
geonn_zones_begin(Zones *zones)
{
	zones->plane = geonn_plane_create();
	zones->has_srid = false;
	zones->counted = 0;
}

PointStatus
geonn_zones_add(Zones *zones, uint64 number, const NullableDatum *value)
{
	int32		srid;

	if (value->isnull)
		return POINT_NULL;
	srid = geonn_value_srid(value->value);
	if (!zones->has_srid)
		zones->srid = srid;
	zones->has_srid = true;
	return srid == zones->srid && geonn_plane_add(zones->plane, number, value->value) ? POINT_VALID : POINT_NOT_FINITE;
}

bool
geonn_zones_count(Zones *zones, ReferenceMemory *memory)
{
	Size		bytes = geonn_plane_bytes(zones->plane);

	if (bytes <= zones->counted)
		return true;
	if (!geonn_reference_memory_has_room(bytes - zones->counted))
		return false;
	geonn_reference_memory_add_bytes(memory, bytes - zones->counted, "polygons");
	zones->counted = bytes;
	return true;
}

void
geonn_zones_end(Zones *zones)
{
	geonn_plane_build(zones->plane);
}

/* ---- points ---- */

PointStatus
geonn_zones_read_point(const Zones *zones, const NullableDatum *value, double *x, double *y)
{
	GeonnPointState state;
	int32		srid;

	if (value->isnull)
		return POINT_NULL;
	state = geonn_point_decode(GEONN_POINT_GEOMETRY, value->value, y, x, &srid);
	if (state == GEONN_POINT_OK)
		srid = GEONN_POINT_SRID;
	if (state == GEONN_POINT_EMPTY && srid == zones->srid)
		return POINT_NULL;
	if ((state != GEONN_POINT_OK && state != GEONN_POINT_WRONG_SRID) || srid != zones->srid || !isfinite(*x) || !isfinite(*y))
		return POINT_NOT_FINITE;
	return POINT_VALID;
}

void
geonn_zones_begin_round(Zones *zones)
{
	zones->next_row = 0;
	zones->left = 0;
}

/* Compare two polygons by their numbers. */
static int
compare_numbers(const void *one, const void *other)
{
	uint64		number = ((const PlaneFound *) one)->number;
	uint64		other_number = ((const PlaneFound *) other)->number;

	return number < other_number ? -1 : number > other_number;
}

void
geonn_zones_find(Zones *zones, double x, double y)
{
	zones->left = geonn_plane_find(zones->plane, x, y, &zones->found);
	/* the array is the index's, which overwrites it when the next point is looked up */
	if (zones->left > 1)
		qsort(unconstify(PlaneFound *, zones->found), zones->left, sizeof(PlaneFound), compare_numbers);
}

/*
 * Look up the point of the next row; false: none is left.
 */
static bool
look_up(Zones *zones, const Round *round, bool one_will_do)
{
	uint64		number = zones->next_row;

	if (number >= round->given.count)
		return false;
	zones->next_row++;
	if (number % 1024 == 0)
		CHECK_FOR_INTERRUPTS();
	if (isnan(round->longitudes[number]))
		return true;
	zones->left = geonn_plane_find(zones->plane, round->longitudes[number], round->latitudes[number], &zones->found);
	for (uint32 i = 0; one_will_do && i < zones->left; i++)
	{
		if (!zones->found[i].is_sure)
			continue;
		zones->found += i;
		zones->left = 1;
	}
	return true;
}

const PlaneFound *
geonn_zones_next(Zones *zones, const Round *round, bool asks_whether, bool one_will_do, uint64 *number)
{
	if (zones->left > 0 && asks_whether && round->rows[zones->next_row - 1].is_matched)
		zones->left = 0;
	while (zones->left == 0)
	{
		if (!look_up(zones, round, one_will_do))
			return NULL;
	}
	*number = zones->next_row - 1;
	zones->left--;
	return zones->found++;
}
