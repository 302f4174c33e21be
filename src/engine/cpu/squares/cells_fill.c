/*
 * cells_fill.c
 *		Finds out which references can be the nearest of a point in each square of a
 *		block.
 *
 * For a range of squares, at first the whole block, a walk through the index from
 * the middle of the range keeps the positions that can be the nearest of some
 * point of the range, up to KEPT_MAX.  A quarter of the range has its own among
 * those, and so on down to single squares.  If a range has more, each quarter
 * walks for itself.
 *
 *
 * What is left out
 *
 * cells_range.h says what, and why.  rho is half the square's diagonal on the face, half *
 * sqrt(2), rounded up: for two points outside of the unit sphere, as those of a face are,
 * their vectors of length 1 are not farther from each other than they are themselves, since
 * to go to the nearest point of a ball is a contraction.  When a walk has ended, or KEPT_MAX are kept,
 * each position is compared with each other one.
 *
 * On a path without fused operations, products are rounded, too: (2) of cells_square.h then
 * takes 3 differences and 7 operations, off by 14 e |w| at most, 28 e reach, and
 * cells_margin() has 32.
 */
#include "engine/cpu/squares/cells.h"

#include "engine/cpu/walk/walk.h"

/* a range keeps at most this many candidates */
#define KEPT_MAX 64

/* a walk for a range looks at most at this many leaves */
#define LEAVES_MAX 128

/*
 * A square with more than CANDIDATES candidates is divided if one of them is within NEAR half sides
 * of its middle; a square with more than CPU_CELLS_LIST_MAX candidates is always divided.
 */
#define CANDIDATES 6
#define NEAR 8.0

/*
 * fill_range() compares the candidates of a range with each other if they are more than this many;
 * those of a single square it always compares.
 */
#define COMPARED_MIN 12

/* Squares whose candidates would fit in a list may take up to this share of the blocks of divided squares. */
#define LIST_PART 0.75

/*
 * The positions kept for a range, with vectors from cells_turned(); the columns have LANES more
 * values, so that loads may go past the end.
 */
struct kept
{
	uint32_t	count;
	uint32_t	position[KEPT_MAX];
	double		x[KEPT_MAX + LANES];
	double		y[KEPT_MAX + LANES];
	double		z[KEPT_MAX + LANES];
};

/* a walk through the index for a range */
struct collecting
{
	const struct cpu_index *index;
	uint32_t	face;
	struct cells_range *range;
	struct kept *kept;
	struct cpu_box middle;		/* not turned */
	double		corner[4][3];	/* not turned */
	double		corner_limit[4];	/* limit on squared chords from each corner to a box; or to the box's antipodes, if
									 * the best position is more than a quarter circle from the middle */
	uint32_t	leaves;
	bool		overflow;		/* more candidates came than could be kept */
};

/* a block that is being filled */
struct filling
{
	struct cpu_cells_building *building;
	struct cpu_cells_block block;
	uint32_t   *entry;			/* [CELLS_BLOCK] */

	/* the block's lists; place_lists() moves them to the table */
	uint32_t	listed;
	uint32_t	list[CELLS_BLOCK * CPU_CELLS_LIST_MAX];
};

/* ---- ranges ---- */

static void
begin_range(struct cells_range *range, struct cells_square square)
{
	cells_range_begin(range, square);
	range->rho = square.half * 0x1.6a09e7p0 + 0x1p-48;	/* rho of the essay */
}

static struct geonn_vector
kept_vector(const struct kept *kept, uint32_t number)
{
	return (struct geonn_vector) {kept->x[number], kept->y[number], kept->z[number]};
}

/*
 * Return a bit for each of LANES kept positions from `at` on, set if `first` rules the position
 * out: cells_comes_before(), for lanes.
 */
static inline __attribute__((always_inline)) uint32_t
come_after(const struct kept *kept, uint32_t at, struct geonn_vector first,
		   const struct cells_range *range)
{
	lanes		across = lanes_minus(lanes_all(first.x), lanes_load(kept->x + at));
	lanes		u = lanes_minus(lanes_all(first.y), lanes_load(kept->y + at));
	lanes		v = lanes_minus(lanes_all(first.z), lanes_load(kept->z + at));
	lanes		zero = lanes_all(0.0);
	lanes		middle = lanes_fused(lanes_all(range->square.v), v,
									 lanes_fused(lanes_all(range->square.u), u, across));
	lanes		sides = lanes_minus(lanes_minus(zero, lanes_larger(u, lanes_minus(zero, u))),
									lanes_larger(v, lanes_minus(zero, v)));
	lanes		least = lanes_fused(lanes_all(range->square.half), sides, middle);

	return ~lanes_within(least, lanes_all(range->margin)) & ((1u << LANES) - 1);
}

/* Keep the positions of `from` whose bit is set. */
static void
keep_only(const struct kept *from, uint64_t bits, struct kept *kept)
{
	uint32_t	count = 0;

	for (; bits != 0; bits &= bits - 1)
	{
		uint32_t	number = (uint32_t) __builtin_ctzll(bits);

		kept->position[count] = from->position[number];
		kept->x[count] = from->x[number];
		kept->y[count] = from->y[number];
		kept->z[count++] = from->z[number];
	}
	kept->count = count;
}

static uint64_t
bits_of(const struct kept *kept)
{
	return kept->count < 64 ? (UINT64_C(1) << kept->count) - 1 : UINT64_MAX;
}

/* Drop the kept positions that another kept one rules out. */
static void
compare_with_all(struct kept *kept, const struct cells_range *range)
{
	uint64_t	after = 0;

	for (uint32_t i = 0; i < kept->count; i++)
		for (uint32_t at = 0; at < kept->count && (after >> i & 1) == 0; at += LANES)
			after |= (uint64_t) come_after(kept, at, kept_vector(kept, i), range) << at;
	keep_only(kept, bits_of(kept) & ~after, kept);
}

/* Find out which candidates of a larger range are candidates of this range.  Both ranges may be the same. */
static void
choose(struct cells_range *range, const struct kept *larger, struct kept *kept)
{
	double		chords[KEPT_MAX + LANES];
	uint32_t	best = 0;
	uint32_t	at = 0;
	uint64_t	bits = 0;

	do
		lanes_store(chords + at,
					lanes_chord(lanes_minus(lanes_load(larger->x + at), lanes_all(range->middle.x)),
								lanes_minus(lanes_load(larger->y + at), lanes_all(range->middle.y)),
								lanes_minus(lanes_load(larger->z + at), lanes_all(range->middle.z))));
	while ((at += LANES) < larger->count);
	for (uint32_t i = 1; i < larger->count; i++)
		best = chords[i] < chords[best] ? i : best;
	cells_range_see(range, kept_vector(larger, best), chords[best]);
	for (at = 0; at < larger->count; at += LANES)
		bits |= (uint64_t) (lanes_within(lanes_load(chords + at), lanes_all(range->limit)) &
							~come_after(larger, at, range->best, range)) << at;
	keep_only(larger, bits & bits_of(larger), kept);
}

/* Drop the kept positions that are the nearest nowhere in the range. */
static void
reduce(struct cells_range *range, struct kept *kept)
{
	choose(range, kept, kept);
	compare_with_all(kept, range);
}

/* ---- the walk ---- */

/* Set the corners' limits, by the best position so far. */
static void
limit_corners(struct collecting *collecting)
{
	const struct cells_range *range = collecting->range;
	struct geonn_vector best = cells_turned_back(collecting->face, range->best);

	for (int i = 0; i < 4; i++)
	{
		const double *at = collecting->corner[i];
		struct geonn_vector corner = {at[0], at[1], at[2]};

		collecting->corner_limit[i] = cells_range_corner_limit(range, corner, best);
	}
}

/*
 * Return whether the best position is nearer than a box's positions to each corner of the range,
 * and so to each point in it.
 */
static bool
is_behind(const struct collecting *collecting, uint32_t node)
{
	const struct cpu_index *index = collecting->index;
	bool		is_near = cells_range_is_near(collecting->range);

	for (int i = 0; i < 4; i++)
	{
		double		sum = 0.0;

		for (int axis = 0; axis < 3; axis++)
		{
			double		place = collecting->corner[i][axis];
			double		low = index->low[axis][node];
			double		high = index->high[axis][node];
			double		far = is_near ? fmax(fmax(low - place, place - high), 0.0) :
				fmax(fabs(place + low), fabs(place + high));

			sum += far * far;
		}
		if (is_near ? sum <= collecting->corner_limit[i] : sum >= collecting->corner_limit[i])
			return false;
	}
	return true;
}

static void
keep(struct collecting *collecting, struct geonn_vector vector, uint32_t position)
{
	struct kept *kept = collecting->kept;

	if (kept->count == KEPT_MAX)
		reduce(collecting->range, kept);
	if (kept->count == KEPT_MAX)
	{
		collecting->overflow = true;
		return;
	}
	kept->position[kept->count] = position;
	kept->x[kept->count] = vector.x;
	kept->y[kept->count] = vector.y;
	kept->z[kept->count++] = vector.z;
}

static void
look_through(struct collecting *collecting, uint32_t leaf)
{
	const struct cpu_index *index = collecting->index;
	struct cells_range *range = collecting->range;
	struct geonn_vector middle = {
		collecting->middle.low[0], collecting->middle.low[1], collecting->middle.low[2]
	};
	uint32_t	first = leaf * INDEX_WIDTH;
	double		chords[INDEX_WIDTH];
	double		smallest = cpu_leaf_chords(index, leaf, middle, chords);
	uint32_t	bits;

	if (smallest < range->best_square)
	{
		uint32_t	best = first + (uint32_t) __builtin_ctz(cpu_within(chords, smallest));

		cells_range_see(range, cells_turned(collecting->face, (struct geonn_vector) {
											index->x[best], index->y[best], index->z[best]
											}), smallest);
		limit_corners(collecting);
	}
	bits = cpu_within(chords, range->limit) & cpu_first_bits(index->shape.positions - first);
	for (; bits != 0 && !collecting->overflow; bits &= bits - 1)
	{
		uint32_t	position = first + (uint32_t) __builtin_ctz(bits);
		struct geonn_vector vector = cells_turned(collecting->face, (struct geonn_vector) {
												  index->x[position], index->y[position],
												  index->z[position]
												  });

		if (!cells_comes_before(range->best, vector, &range->square, range->margin))
			keep(collecting, vector, position);
	}
	if (++collecting->leaves == LEAVES_MAX)
		collecting->overflow = true;
}

static void
walk(struct collecting *collecting, int level, struct cpu_nodes nodes)
{
	const struct cpu_index *index = collecting->index;
	struct cells_range *range = collecting->range;
	uint32_t	node = index->shape.first[level] + nodes.first;
	struct cpu_part all = {0, index->shape.positions};
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, node, &collecting->middle, bounds);
	left = cpu_within(bounds, range->limit) & cpu_first_bits(nodes.count);
	while (left != 0 && !collecting->overflow)
	{
		uint32_t	nearest = cpu_nearest_of(bounds, left);

		if (bounds[nearest] > range->limit)
			return;
		left &= ~(UINT32_C(1) << nearest);
		if (range->best_square < INFINITY && is_behind(collecting, node + nearest))
			continue;
		if (level > 0)
			walk(collecting, level - 1, cpu_part_children(all, level, nodes.first + nearest));
		else
			look_through(collecting, nodes.first + nearest);
	}
}

/* Find a range's candidates.  Returns false if the range has too many. */
static bool
collect(const struct cpu_index *index, uint32_t face, struct cells_range *range, struct kept *kept)
{
	struct collecting collecting = {.index = index,.face = face,.range = range,.kept = kept};
	struct geonn_vector middle = cells_turned_back(face, range->middle);
	int			level;
	struct cpu_nodes top = cpu_part_top((struct cpu_part) {0, index->shape.positions}, &level);

	for (int i = 0; i < 4; i++)
	{
		struct geonn_vector corner = cells_turned_back(face, cells_range_corner(range, (uint32_t) i));

		collecting.corner[i][0] = corner.x;
		collecting.corner[i][1] = corner.y;
		collecting.corner[i][2] = corner.z;
	}
	collecting.middle = (struct cpu_box) {
		{middle.x, middle.y, middle.z}, {middle.x, middle.y, middle.z}
	};
	kept->count = 0;
	walk(&collecting, level, top);
	if (collecting.overflow)
		return false;
	reduce(range, kept);
	return true;
}

/* ---- entries ---- */

/* Divide a square.  Returns false if the table has no block left. */
static bool
divide(struct filling *filling, uint32_t column, uint32_t row, double part)
{
	struct cpu_cells_building *building = filling->building;
	const struct cpu_cells *cells = building->cells;
	uint32_t	blocks_max = cells->blocks_max - cells->face_blocks;
	uint32_t	number;

	if (filling->block.shift == 0 ||
		atomic_load_explicit(&building->blocks, memory_order_relaxed) >= part * blocks_max)
		return false;
	number = (uint32_t) atomic_fetch_add(&building->blocks, 1);
	if (number >= blocks_max)
		return false;
	building->block[number] = (struct cpu_cells_block) {
		filling->block.u + (column << filling->block.shift),
		filling->block.v + (row << filling->block.shift),
		filling->block.face,
		(uint8_t) (filling->block.shift - CELLS_SIDE_BITS)
	};
	filling->entry[row * CELLS_SIDE + column] =
		CPU_CELLS_DIVIDED << CPU_CELLS_KIND_SHIFT | (cells->face_blocks + number);
	return true;
}

/*
 * Set a square's entry from its candidates; NULL as kept: they are too many.  The entry of a list
 * has an index in the block's own lists until place_lists().
 */
static void
set_entry(struct filling *filling, uint32_t column, uint32_t row, const struct cells_range *range,
		  const struct kept *kept)
{
	uint32_t   *entry = &filling->entry[row * CELLS_SIDE + column];

	if (kept == NULL || kept->count > CPU_CELLS_LIST_MAX)
	{
		(void) divide(filling, column, row, 1.0);
		return;
	}
	if (kept->count == 1)
	{
		*entry = CPU_CELLS_ONE << CPU_CELLS_KIND_SHIFT | kept->position[0];
		return;
	}
	if (kept->count > CANDIDATES && sqrt(range->best_square) < NEAR * range->square.half &&
		divide(filling, column, row, LIST_PART))
		return;
	*entry = CPU_CELLS_LIST << CPU_CELLS_KIND_SHIFT |
		(kept->count - 1) << CPU_CELLS_LENGTH_SHIFT | filling->listed;
	for (uint32_t i = 0; i < kept->count; i++)
		filling->list[filling->listed++] = kept->position[i];
}

/* Set the entries of a range's squares.  larger: the candidates of a larger range, or NULL if that had too many. */
static void
fill_range(struct filling *filling, uint32_t column, uint32_t row, uint32_t side_bits,
		   const struct kept *larger)
{
	const struct cpu_cells_block *block = &filling->block;
	const struct cpu_cells_building *building = filling->building;
	uint32_t	side = 1u << side_bits;
	struct cells_range range;
	struct kept kept;
	bool		few = true;

	begin_range(&range, cells_square_of(block->u + (column << block->shift),
										block->v + (row << block->shift),
										side << block->shift, building->cells->scale));
	if (larger != NULL)
	{
		choose(&range, larger, &kept);
		if (side_bits == 0 || kept.count > COMPARED_MIN)
			compare_with_all(&kept, &range);
	}
	else
		few = collect(building->index, block->face, &range, &kept);
	if (side_bits == 0)
	{
		set_entry(filling, column, row, &range, few ? &kept : NULL);
		return;
	}
	if (few && kept.count == 1)
	{
		for (uint32_t i = 0; i < side * side; i++)
			filling->entry[(row + i / side) * CELLS_SIDE + column + i % side] =
				CPU_CELLS_ONE << CPU_CELLS_KIND_SHIFT | kept.position[0];
		return;
	}
	for (uint32_t i = 0; i < 4; i++)
		fill_range(filling, column + (i & 1) * side / 2, row + (i >> 1) * side / 2, side_bits - 1,
				   few ? &kept : NULL);
}

/* Move the block's lists to the table; if the table is full, the squares of these lists become crowded. */
static void
place_lists(struct filling *filling)
{
	struct cpu_cells_building *building = filling->building;
	const struct cpu_cells *cells = building->cells;
	uint64_t	first = atomic_fetch_add(&building->listed, filling->listed);
	bool		has_room = first + filling->listed <= cells->list_max;

	for (uint32_t i = 0; i < CELLS_BLOCK; i++)
		if (filling->entry[i] >> CPU_CELLS_KIND_SHIFT == CPU_CELLS_LIST)
			filling->entry[i] = has_room ? filling->entry[i] + (uint32_t) first :
				CPU_CELLS_CROWDED_ENTRY;
	if (has_room)
		for (uint32_t i = 0; i < filling->listed; i++)
			cells->list[first + i] = filling->list[i];
}

void
CPU_PATH_NAME(cpu_cells_fill) (struct cpu_cells_building *building, uint32_t number)
{
	const struct cpu_cells *cells = building->cells;
	struct filling filling;

	filling.building = building;
	filling.entry = cells->entry + (size_t) number * CELLS_BLOCK;
	filling.listed = 0;
	if (number >= cells->face_blocks)
		filling.block = building->block[number - cells->face_blocks];
	else
		filling.block = (struct cpu_cells_block) {
			number % cells->side << CELLS_UNIT_BITS,
			number / cells->side % cells->side << CELLS_UNIT_BITS,
			(uint8_t) (number / (cells->side * cells->side)),
			CELLS_FIRST_SHIFT
		};
	fill_range(&filling, 0, 0, CELLS_SIDE_BITS, NULL);
	place_lists(&filling);
}
