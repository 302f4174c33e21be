/*
 * plane_grid.h
 *		Cells of a plane, and which polygons a cell is in, or may be in.
 */
#ifndef GEONN_PLANE_GRID_H
#define GEONN_PLANE_GRID_H

#include "zones/plane_polygon.h"

/* Polygons that a cell's points are in: the number of one, shifted, and this bit if all points are, for sure. */
#define PLANE_ITEM_IS_SURE 1

/* polygons of a grid have numbers below */
#define PLANE_MOST_POLYGONS (UINT32_C(1) << 30)

typedef struct PlaneGrid
{
	double		x_least;
	double		x_greatest;
	double		y_least;
	double		y_greatest;
	double		x_scale;		/* columns a unit of x */
	double		y_scale;
	uint32		columns;
	uint32		rows;
	uint32	   *cells;			/* row by row; what each has is explained in plane_grid.c */
	uint32	   *lists;
	Size		list_size;		/* numbers in lists */
} PlaneGrid;

/*
 * Make a grid of so many polygons from the first one on, in a memory context; their edges are sorted.  There is at least one.
 * Items have the numbers of polygons among all of them.
 */
extern PlaneGrid *plane_grid_make(const PlanePolygon *polygons, uint32 first, uint32 count, const PlaneRing *rings,
								  MemoryContext context);

/* Return how many bytes a grid takes. */
extern Size plane_grid_bytes(const PlaneGrid *grid);

/* Return how many bytes a grid of polygons with so many edges would take at most. */
extern Size plane_grid_bytes_at_most(Size edges);

/* Return the column of an x, or the row of a y, which is not less than least. */
static inline uint32
plane_grid_place(double number, double least, double scale, uint32 places)
{
	/* with one place, the difference may be infinite */
	uint32		place = places == 1 ? 0 : (uint32) ((number - least) * scale);

	return Min(place, places - 1);
}

/*
 * Find the polygons that a point may be in.  Returns how many items it has, and sets *items to them; single has room for
 * one, and is used for that.
 */
static inline uint32
plane_grid_items(const PlaneGrid *grid, struct geonn_plane_point p, uint32 *single, const uint32 **items)
{
	uint32		column;
	uint32		row;
	uint32		cell;

	/* NaN fails the comparisons */
	if (!(p.x >= grid->x_least && p.x <= grid->x_greatest && p.y >= grid->y_least && p.y <= grid->y_greatest))
		return 0;
	column = plane_grid_place(p.x, grid->x_least, grid->x_scale, grid->columns);
	row = plane_grid_place(p.y, grid->y_least, grid->y_scale, grid->rows);
	cell = grid->cells[(Size) row * grid->columns + column];
	if (cell & 1)
	{
		*single = cell >> 1;
		*items = single;
		return 1;
	}
	*items = grid->lists + (cell >> 1) + 1;
	return grid->lists[cell >> 1];
}

#endif							/* GEONN_PLANE_GRID_H */
