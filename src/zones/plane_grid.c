/*
 * plane_grid.c
 *		Cells of a plane, and which polygons a cell is in, or may be in.
 *
 * A grid of equal cells covers the boxes of all polygons.  A polygon's edges are drawn into the cells of its box.  Between cells
 * with edges, a run of cells of a row without any is inside or outside as a whole: outside where it reaches the
 * box's edge, as cells of the row above that it touches, or as one of its points, which is asked of the polygon.  So most points
 * find what they are in by one look; the others ask polygons with edges in their cell.
 *
 *
 * Why a point of a cell without edges is as sure as the one that was asked
 *
 * No edge passes a run, so all its points have the same winding numbers, exactly computed.  PostGIS's are the same where no
 * edge at the point's height leaves doubt.  By the bound in plane_side.h, the one from a to b leaves none if
 * |(b.x - a.x) (p.y - a.y) - (p.x - a.x) (b.y - a.y)|, which is h |b.y - a.y| where h is the distance from p to the edge along
 * the horizontal, exceeds 2^-49 of the products and 2^-1022.  The products are at most W |b.y - a.y| each, where W is the
 * width of the grid.  So h > 2^-48 W + 2^-1022 / |b.y - a.y| suffices.  There are at most 2^13 columns: the first term is
 * at most 2^-35 of a cell.  The second is less if 2^-36 of a cell times |b.y - a.y| exceeds 2^-1022.  Edges for which it is not,
 * or that PostGIS may leave out, are delicate: they are drawn into all cells of their rows in the polygon's box, where
 * they may change winding numbers.
 *
 * A place in the grid, (x - least) * scale, is within 3 * 2^-53 of its size, and so 2^-38 of a cell.  An edge is drawn into
 * each row that its places reach, widened by SLACK, 2^-20 of a cell, from the least to the greatest place in x that it has in
 * that row, widened by SLACK both in y, before, and in x, after it is computed.  The slack in y covers what the slope
 * makes of the error of a place in y, that in x the rest.  So a point in a cell without the edge is more than SLACK less
 * 2^-36 of a cell from it, along the horizontal.
 *
 *
 * How a cell is kept
 *
 * A number a cell.  Its lowest bit says that the cell has one item, the rest of the number; else the rest is the position of
 * the cell's list: how many items it has, and these.  The list at position 0 has none.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "zones/plane_grid.h"

#define SLACK 0x1p-20
#define MOST_PLACES 8192		/* 2^13, as the essay says */
#define FEWEST_CELLS 1024
#define MOST_CELLS (UINT32_C(1) << 29)	/* lists of as many items have positions below 2^31 */

/* edges or items between two looks at whether the statement is to be cancelled */
#define PAUSE 65536

/* what is known of a cell of the box of a polygon */
typedef enum CellState
{
	CELL_UNKNOWN,
	CELL_HAS_EDGES,
	CELL_OUTSIDE,
	CELL_INSIDE
} CellState;

/* the cells of a polygon's box */
typedef struct Canvas
{
	const PlaneGrid *grid;
	uint32		column;			/* the first */
	uint32		row;
	uint32		columns;
	uint32		rows;
	uint8	   *states;			/* a CellState for each, row by row */
} Canvas;

/* a vertex, in places of the grid */
typedef struct Place
{
	double		u;
	double		v;
} Place;

/* an item of a cell */
typedef struct CellItem
{
	uint32		cell;
	uint32		item;
} CellItem;

/* ---- drawing edges ---- */

static inline Place
place_of(const PlaneGrid *grid, struct geonn_plane_point p)
{
	/* with one place, the difference may be infinite */
	return (Place) {
		grid->columns == 1 ? 0 : (p.x - grid->x_least) * grid->x_scale,
		grid->rows == 1 ? 0 : (p.y - grid->y_least) * grid->y_scale
	};
}

/* Return the column or row of a place among those of the canvas; places are at least -SLACK. */
static inline uint32
within(double place, uint32 first, uint32 count)
{
	uint32		number = place < first ? 0 : (uint32) place - first;

	return Min(number, count - 1);
}

static void
draw_span(Canvas *canvas, uint32 row, double from, double to)
{
	uint32		first = within(from - SLACK, canvas->column, canvas->columns);
	uint32		last = within(to + SLACK, canvas->column, canvas->columns);

	memset(canvas->states + (Size) row * canvas->columns + first, CELL_HAS_EDGES, last - first + 1);
}

/* Draw an edge between two places, with a.v <= b.v. */
static void
draw_edge(Canvas *canvas, Place a, Place b)
{
	uint32		first = within(a.v - SLACK, canvas->row, canvas->rows);
	uint32		last = within(b.v + SLACK, canvas->row, canvas->rows);
	double		slope = (b.u - a.u) / (b.v - a.v);

	if (first == last)
	{
		draw_span(canvas, first, Min(a.u, b.u), Max(a.u, b.u));
		return;
	}
	for (uint32 row = first; row <= last; row++)
	{
		double		bottom = (double) (canvas->row + row) - SLACK;
		double		top = (double) (canvas->row + row + 1) + SLACK;
		double		from = bottom <= a.v ? a.u : a.u + (bottom - a.v) * slope;
		double		to = top >= b.v ? b.u : a.u + (top - a.v) * slope;

		/* rounding may lead beyond the ends; a slope of 0 / 0 is of places with the same v, which are both ends */
		from = Max(Min(from, Max(a.u, b.u)), Min(a.u, b.u));
		to = Max(Min(to, Max(a.u, b.u)), Min(a.u, b.u));
		draw_span(canvas, row, Min(from, to), Max(from, to));
	}
}

static inline bool
is_delicate(const PlaneGrid *grid, struct geonn_plane_point a, struct geonn_plane_point b)
{
	double		climb = fabs(b.y - a.y);

	return climb > 0 && (geonn_plane_edge_is_tiny(a, b) || !(climb > 0x1p-980 * grid->x_scale));
}

static void
draw_ring(Canvas *canvas, const PlaneRing *ring, uint32 stride)
{
	struct geonn_plane_point a = plane_vertex(ring, stride, 0);
	Place		from = place_of(canvas->grid, a);

	for (uint32 edge = 0; edge < ring->edges; edge++)
	{
		struct geonn_plane_point b = plane_vertex(ring, stride, edge + 1);
		Place		to = place_of(canvas->grid, b);

		if (edge % PAUSE == 0)
			CHECK_FOR_INTERRUPTS();
		if (is_delicate(canvas->grid, a, b))
			for (uint32 row = within(Min(from.v, to.v) - SLACK, canvas->row, canvas->rows);
				 row <= within(Max(from.v, to.v) + SLACK, canvas->row, canvas->rows); row++)
				memset(canvas->states + (Size) row * canvas->columns, CELL_HAS_EDGES, canvas->columns);
		else if (from.v <= to.v)
			draw_edge(canvas, from, to);
		else
			draw_edge(canvas, to, from);
		a = b;
		from = to;
	}
}

/* ---- runs without edges ---- */

/* Ask the polygon about the middle of a cell of the canvas. */
static CellState
ask(const Canvas *canvas, uint32 row, uint32 column, const PlanePolygon *polygon, const PlaneRing *rings)
{
	const PlaneGrid *grid = canvas->grid;
	struct geonn_plane_point middle = {
		grid->x_least + (canvas->column + column + 0.5) / grid->x_scale,
		grid->y_least + (canvas->row + row + 0.5) / grid->y_scale
	};

	/* where numbers are far apart, rounding may lead out of the cell */
	if (!(middle.x >= grid->x_least && middle.y >= grid->y_least) ||
		plane_grid_place(middle.x, grid->x_least, grid->x_scale, grid->columns) != canvas->column + column ||
		plane_grid_place(middle.y, grid->y_least, grid->y_scale, grid->rows) != canvas->row + row)
		return CELL_HAS_EDGES;
	switch (plane_polygon_side(polygon, rings, middle))
	{
		case PLANE_INSIDE:
			return CELL_INSIDE;
		case PLANE_OUTSIDE:
			return CELL_OUTSIDE;
		default:
			return CELL_HAS_EDGES;
	}
}

/* Find out on which side the cells from first to last of a row are, none of which has edges. */
static CellState
side_of_run(const Canvas *canvas, uint32 row, uint32 first, uint32 last, const PlanePolygon *polygon, const PlaneRing *rings)
{
	if (first == 0 || last == canvas->columns - 1)
		return CELL_OUTSIDE;
	if (row > 0)
	{
		const uint8 *before = canvas->states + (Size) (row - 1) * canvas->columns;

		for (uint32 column = first; column <= last; column++)
			if (before[column] != CELL_HAS_EDGES)
				return before[column];
	}
	return ask(canvas, row, first + (last - first) / 2, polygon, rings);
}

static void
fill_runs(Canvas *canvas, const PlanePolygon *polygon, const PlaneRing *rings)
{
	for (uint32 row = 0; row < canvas->rows; row++)
	{
		uint8	   *states = canvas->states + (Size) row * canvas->columns;

		CHECK_FOR_INTERRUPTS();
		for (uint32 first = 0; first < canvas->columns; first++)
		{
			uint32		last = first;

			if (states[first] == CELL_HAS_EDGES)
				continue;
			while (last + 1 < canvas->columns && states[last + 1] == CELL_UNKNOWN)
				last++;
			memset(states + first, side_of_run(canvas, row, first, last, polygon, rings), last - first + 1);
			first = last;
		}
	}
}

/* ---- the grid ---- */

/* Set the columns and rows for about so many cells, of the same width and height where that is possible. */
static void
set_places(PlaneGrid *grid, double cells)
{
	double		width = grid->x_greatest - grid->x_least;
	double		height = grid->y_greatest - grid->y_least;
	double		columns = sqrt(cells * (width / height));
	double		rows;

	/* NaN: no width and no height, or more than float64 has */
	columns = columns > 1 ? Min(columns, Min(cells, MOST_PLACES)) : 1;
	rows = Max(1, Min(cells / floor(columns), MOST_PLACES));
	grid->columns = (uint32) columns;
	grid->rows = (uint32) rows;
	grid->x_scale = grid->columns / width;
	grid->y_scale = grid->rows / height;
	if (grid->columns == 1 || !(grid->x_scale > DBL_MIN && grid->x_scale < DBL_MAX))
	{
		grid->columns = 1;
		grid->x_scale = 0;
	}
	if (grid->rows == 1 || !(grid->y_scale > DBL_MIN && grid->y_scale < DBL_MAX))
	{
		grid->rows = 1;
		grid->y_scale = 0;
	}
}

static void
set_canvas(Canvas *canvas, const PlaneGrid *grid, const PlanePolygon *polygon)
{
	canvas->grid = grid;
	canvas->column = plane_grid_place(polygon->x_least, grid->x_least, grid->x_scale, grid->columns);
	canvas->columns = plane_grid_place(polygon->x_greatest, grid->x_least, grid->x_scale, grid->columns) - canvas->column + 1;
	canvas->row = plane_grid_place(polygon->y_least, grid->y_least, grid->y_scale, grid->rows);
	canvas->rows = plane_grid_place(polygon->y_greatest, grid->y_least, grid->y_scale, grid->rows) - canvas->row + 1;
}

/* Return how many cells the boxes of polygons with so many edges may have, in sum. */
static Size
most_cells(Size edges)
{
	return Min(2 * Max(edges, FEWEST_CELLS), MOST_CELLS);
}

/*
 * Set the grid's box, and its columns and rows: about a cell for each edge, and less where boxes of polygons lie on each
 * other.  Sets *largest to the most cells that a polygon's box has.  Returns how many the boxes have in sum.
 */
static Size
lay_out(PlaneGrid *grid, const PlanePolygon *polygons, uint32 count, Size *largest)
{
	Size		edges = 0;
	Size		sum;
	double		cells;

	for (uint32 i = 0; i < count; i++)
	{
		grid->x_least = Min(grid->x_least, polygons[i].x_least);
		grid->x_greatest = Max(grid->x_greatest, polygons[i].x_greatest);
		grid->y_least = Min(grid->y_least, polygons[i].y_least);
		grid->y_greatest = Max(grid->y_greatest, polygons[i].y_greatest);
		edges += polygons[i].edges;
	}
	for (cells = Max(edges, FEWEST_CELLS);; cells /= 2)
	{
		sum = 0;
		*largest = 0;
		set_places(grid, cells);
		for (uint32 i = 0; i < count; i++)
		{
			Canvas		canvas;
			Size		size;

			set_canvas(&canvas, grid, &polygons[i]);
			size = (Size) canvas.columns * canvas.rows;
			*largest = Max(*largest, size);
			sum += size;
		}
		CHECK_FOR_INTERRUPTS();
		if (sum <= most_cells(edges) || cells <= 1)
			return sum;
	}
}

/* Draw all polygons, one after another in this room for states.  Writes the items of all cells, and returns how many. */
static Size
draw(const PlaneGrid *grid, const PlanePolygon *polygons, uint32 first, uint32 count, const PlaneRing *rings, uint8 *room,
	 CellItem *items)
{
	Size		written = 0;

	for (uint32 i = first; i < first + count; i++)
	{
		const PlanePolygon *polygon = &polygons[i];
		Canvas		canvas = {.states = room};
		const uint8 *states = room;

		set_canvas(&canvas, grid, polygon);
		memset(room, CELL_UNKNOWN, (Size) canvas.columns * canvas.rows);
		for (uint32 r = 0; r < polygon->rings; r++)
			draw_ring(&canvas, &rings[polygon->first_ring + r], polygon->stride);
		fill_runs(&canvas, polygon, rings);
		for (uint32 row = 0; row < canvas.rows; row++)
			for (uint32 column = 0; column < canvas.columns; column++)
			{
				CellState	state = *states++;

				if (state != CELL_OUTSIDE)
					items[written++] = (CellItem) {
						.cell = (canvas.row + row) * grid->columns + canvas.column + column,
						.item = i << 1 | (state == CELL_INSIDE ? PLANE_ITEM_IS_SURE : 0)
					};
			}
	}
	return written;
}

/* Give each cell its items: a single one, or a list. */
static void
list_items(PlaneGrid *grid, const CellItem *items, Size count, MemoryContext context)
{
	Size		cells = (Size) grid->columns * grid->rows;
	Size		size = 1;

	grid->cells = MemoryContextAllocExtended(context, cells * sizeof(uint32), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (Size i = 0; i < count; i++)
	{
		if (i % PAUSE == 0)
			CHECK_FOR_INTERRUPTS();
		grid->cells[items[i].cell]++;
	}
	/* a cell with several items gets the position of its list */
	for (Size cell = 0; cell < cells; cell++)
	{
		uint32		of_cell = grid->cells[cell];

		if (of_cell <= 1)
			continue;
		grid->cells[cell] = (uint32) size << 1;
		size += of_cell + (Size) 1;
	}
	grid->list_size = size;
	grid->lists = MemoryContextAllocExtended(context, size * sizeof(uint32), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (Size i = 0; i < count; i++)
	{
		uint32	   *cell = &grid->cells[items[i].cell];

		if (i % PAUSE == 0)
			CHECK_FOR_INTERRUPTS();
		/* 1: it has the only item, which is to take its place */
		if (*cell == 1)
			*cell = items[i].item << 1 | 1;
		else
		{
			uint32	   *list = grid->lists + (*cell >> 1);

			list[++list[0]] = items[i].item;
		}
	}
}

PlaneGrid *
plane_grid_make(const PlanePolygon *polygons, uint32 first, uint32 count, const PlaneRing *rings, MemoryContext context)
{
	PlaneGrid  *grid = MemoryContextAllocZero(context, sizeof(PlaneGrid));
	Size		largest;
	Size		most;
	uint8	   *states;
	CellItem   *items;

	Assert(count > 0 && first + count <= PLANE_MOST_POLYGONS);
	grid->x_least = grid->y_least = INFINITY;
	grid->x_greatest = grid->y_greatest = -INFINITY;
	most = lay_out(grid, polygons + first, count, &largest);
	states = palloc_extended(largest + 1, MCXT_ALLOC_HUGE);
	items = palloc_extended((most + 1) * sizeof(CellItem), MCXT_ALLOC_HUGE);
	list_items(grid, items, draw(grid, polygons, first, count, rings, states, items), context);
	pfree(states);
	pfree(items);
	return grid;
}

Size
plane_grid_bytes(const PlaneGrid *grid)
{
	return sizeof(PlaneGrid) + ((Size) grid->columns * grid->rows + grid->list_size) * sizeof(uint32);
}

Size
plane_grid_bytes_at_most(Size edges)
{
	/* a list of two items has three numbers */
	return sizeof(PlaneGrid) + (Max(edges, FEWEST_CELLS) + most_cells(edges) / 2 * 3 + 1) * sizeof(uint32);
}
