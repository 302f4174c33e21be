/*
 * arcs.h
 *		The index of references that are arcs of shapes.
 */
#ifndef GEONN_CPU_ARCS_H
#define GEONN_CPU_ARCS_H

#include "engine/shapes/boxes.h"
#include "engine/shapes/polygons.h"
#include "engine/search/device.h"

#define CPU_ARCS_LEAF 8

/* pieces of arcs */
struct cpu_arcs_leaf
{
	uint32_t	vertex[CPU_ARCS_LEAF];	/* each arc goes from this vertex to the next one */
	uint32_t	arc[CPU_ARCS_LEAF]; /* in the dataset */
	uint32_t	shape[CPU_ARCS_LEAF];
};

/* the place where each part of the references begins, along the curve */
struct cpu_arcs_parts
{
	uint32_t	count;
	uint32_t   *arc;			/* the part's first arc in the dataset */
	struct geonn_vector *vector;
	struct shape_boxes boxes;
	void	   *memory;
	size_t		bytes;
};

struct cpu_arcs
{
	size_t		count;			/* how many pieces of arcs the index has: more than the dataset has arcs, if some are cut */
	uint32_t	shapes;			/* how many shapes the dataset has */
	uint32_t	shape_arc[GEONN_K_MAX]; /* the first arc in the dataset of each of its first shapes */
	struct shape_vertices vertices; /* behind them the vertices of arcs that are cut, of each arc from end to end */
	uint32_t   *measured;		/* [vertices of arcs that are cut] the vertex where the arc begins that is measured for
								 * the piece */
	struct cpu_arcs_leaf *leaf; /* copies of the last arc fill up the last leaf */
	struct shape_boxes boxes;		/* of leaves */
	struct shape_polygons polygons;
	void	   *memory;
	size_t		bytes;
	double	   *_Atomic fraction;	/* [arcs of the dataset] the fraction of the length of its shape's lines that lies
									 * before each arc; NULL: no search has asked for fractions */
	size_t		fraction_bytes;
	struct cpu_arcs_parts *_Atomic parts;	/* parts_built; NULL: no search has asked for parts */
	struct cpu_arcs_parts parts_built;
};

/* Return where the arc begins that is measured for the piece that begins at this vertex.  The arc ends at the next vertex. */
static inline uint32_t
cpu_arcs_measured(const struct cpu_arcs *arcs, uint32_t vertex)
{
	return vertex < arcs->vertices.count ? vertex : arcs->measured[vertex - arcs->vertices.count];
}

/* the nearest place of a shape */
struct cpu_place
{
	double		latitude;		/* degrees */
	double		longitude;
	double		fraction;		/* the fraction of the length of the shape's lines that lies before the place; NAN: the
								 * place is on no line */
	double		measure;		/* the measure at the place, or NAN */
	int32_t		segment;		/* the number of the arc in its shape, or 0 (protocol_search.h) */
	enum geonn_line_side side;	/* the observation's side; GEONN_LINE_NO_SIDE if the dataset has no numbers of arcs */
	double		own_latitude;	/* of an observation that is a shape: its own nearest place, in degrees */
	double		own_longitude;
};

/*
 * Build the index of a dataset of arcs, which is not empty, on all threads.  Returns NULL with the
 * failure if memory is short, or soon after the search is cancelled.
 */
extern struct cpu_arcs *cpu_arcs_build(const struct dataset *dataset, const atomic_bool *cancelled,
									   struct failure *failure);

/* Return the bytes of memory that an index takes. */
extern size_t cpu_arcs_bytes(const struct cpu_arcs *arcs);

extern void cpu_arcs_free(struct cpu_arcs *arcs);

/* Return whether the fractions of arcs should be computed before the search's next turn. */
extern bool cpu_arcs_wants_fractions(const struct cpu_arcs *arcs, const struct search *search);

/*
 * Compute the fractions of arcs.  Returns false with the failure if memory is short, or soon after the search is
 * cancelled.
 */
extern bool cpu_arcs_add_fractions(struct cpu_arcs *arcs, const struct search *search, struct failure *failure);

/* Return whether the parts should be found before the search's next turn: its observations have polygons. */
extern bool cpu_arcs_wants_parts(const struct cpu_arcs *arcs, const struct search *search);

/* Find the parts.  Returns false with the failure if memory is short, or soon after the search is cancelled. */
extern bool cpu_arcs_add_parts(struct cpu_arcs *arcs, const struct search *search, struct failure *failure);

struct cpu_observation;

/*
 * Find the place of a pair: on the arc, which has this distance to the observation, or inside the polygon that
 * holds the observation.
 */
extern struct cpu_place cpu_arcs_place(const struct cpu_arcs *arcs, const struct dataset *dataset,
									   const struct cpu_observation *observation, double distance, uint32_t arc);

struct candidate;
struct cpu_probes;

/* Find the places of a pair of an observation that is the shape of this number, one on each of the two. */
extern struct cpu_place cpu_arcs_place_of_shape(const struct cpu_arcs *arcs, const struct dataset *dataset,
												const struct cpu_probes *probes, uint32_t shape,
												const struct candidate *pair);

struct cpu_neighbours_piece;

/*
 * Answer the observations of a piece, as cpu_neighbours() does, by the index piece->arcs.  A pair's `place`
 * is the first of the shape's nearest arcs; if a polygon holds the observation, the polygon's first arc.  Observations that
 * are shapes go to cpu_arcs_probe().
 */
extern void CPU_PATH_NAME(cpu_arcs_search) (struct cpu_neighbours_piece *piece);

struct cpu_count_piece;

/* The same for observations that are shapes, piece->probes; a part inside of an observation stands for its first arc. */
extern void CPU_PATH_NAME(cpu_arcs_probe) (struct cpu_neighbours_piece *piece);

/*
 * Count the shapes within radii of the observations of a piece, as cpu_count() counts references, by
 * the index piece->arcs.
 */
extern void cpu_arcs_count(struct cpu_count_piece *piece);

#endif							/* GEONN_CPU_ARCS_H */
