/*
 * given_points.c
 *		Points that are given, in place of a source's rows.
 */
#include "postgres.h"

#include "join/given_points.h"

PointRow
geonn_given_row(const GivenPoints *given, uint64 number)
{
	PointRow	row = {.status = POINT_NULL};

	given->point(given->state, number, &row);
	if (!row.latitude_is_null && !row.longitude_is_null)
		row.status = geonn_point_status(row.latitude, row.longitude);
	return row;
}

void
geonn_warn_of_given(const uint64 *counts, bool kept)
{
	geonn_warn_of_rows(NULL, "the arrays lat and lon", counts, kept,
					   "With invalid => 'error' the first of them is named.");
}

void
geonn_check_given(const GivenPoints *given)
{
	for (uint64 i = 0; i < given->count; i++)
	{
		PointRow	row = geonn_given_row(given, i);

		if (row.status != POINT_VALID && row.status != POINT_NULL)
			geonn_raise_invalid(row.status, row.latitude, row.longitude,
								psprintf("point " UINT64_FORMAT " of the arrays",
										 given->each_alone ? 1 : i + 1));
	}
}
