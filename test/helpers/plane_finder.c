/*
 * plane_finder.c
 *		The index of polygons of a plane, src/zones, as functions of SQL.
 *
 * It is linked with the module's objects, so that a server that has not loaded geonn may call it.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "base/compat.h"
#include "points/geometry.h"
#include "zones/plane.h"

PG_FUNCTION_INFO_V1(plane_find);

/* Get the values of an array of geometry, none of which is NULL. */
static int
values_of(ArrayType *array, Datum **values)
{
	bool	   *nulls;
	int			count;

	deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_DOUBLE, values, &nulls, &count);
	return count;
}

/*
 * plane_find(polygons geometry[], points geometry[]) returns table (polygon int, point int, is_sure bool)
 *
 * Numbers begin at 1.  A polygon that is not taken has all points, none for sure.
 */
Datum
plane_find(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GeonnPlane *plane = geonn_plane_create();
	Datum	   *polygons;
	Datum	   *points;
	int			polygon_count = values_of(PG_GETARG_ARRAYTYPE_P(0), &polygons);
	int			point_count = values_of(PG_GETARG_ARRAYTYPE_P(1), &points);
	PlaneFound *refused = palloc((polygon_count + 1) * sizeof(PlaneFound));
	uint32		refused_count = 0;
	Size		promised;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < polygon_count; i++)
		if (!geonn_plane_add(plane, i + 1, polygons[i]))
			refused[refused_count++] = (PlaneFound) {.number = i + 1};
	promised = geonn_plane_bytes(plane);
	geonn_plane_build(plane);
	if (geonn_plane_bytes(plane) > promised)
		elog(ERROR, "an index of %zu bytes has %zu", promised, geonn_plane_bytes(plane));
	for (int i = 0; i < point_count; i++)
	{
		double		x;
		double		y;
		int32		detail;
		const PlaneFound *found;
		uint32		count;

		if (geonn_point_decode(GEONN_POINT_GEOMETRY, points[i], &y, &x, &detail) == GEONN_POINT_EMPTY)
			continue;
		count = geonn_plane_find(plane, x, y, &found);
		for (uint32 f = 0; f < count + refused_count; f++)
		{
			const PlaneFound *one = f < count ? &found[f] : &refused[f - count];
			Datum		values[3] = {Int32GetDatum((int32) one->number), Int32GetDatum(i + 1), BoolGetDatum(one->is_sure)};
			bool		nulls[3] = {false};

			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		}
	}
	return (Datum) 0;
}
