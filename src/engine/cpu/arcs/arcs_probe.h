/*
 * arcs_probe.h
 *		What the CPU makes of observations that are shapes.
 */
#ifndef GEONN_CPU_ARCS_PROBE_H
#define GEONN_CPU_ARCS_PROBE_H

#include "engine/dataset/dataset_arcs.h"
#include "engine/search/device.h"
#include "engine/shapes/polygons.h"

/*
 * Where on an observation its pair with a reference is: the number of a vertex that a polygon of the reference holds;
 * OWN_POLYGON, which holds a part of the reference; or OWN_ARC and the number of the vertex where an arc begins.  Of what is
 * at the pair's distance, the first arc of the reference counts, and for that arc the least of these numbers.
 */
#define OWN_POLYGON (1u << 30)
#define OWN_ARC (1u << 31)

/* an arc of an observation, or a piece of one */
struct cpu_probe_side
{
	struct geonn_vector a;
	struct geonn_vector b;
	uint32_t	vertex;			/* where the arc begins that is measured for the piece; it ends at the next vertex */
};

struct work;
struct candidate;

/* What a turn has found of an observation, for the next turn to go on with.  Only one observation at a time is left so. */
struct cpu_probes_left
{
	struct work *work;			/* NULL: no search is left (arcs_found.h) */
	uint32_t	shape;			/* the observation */
	void		(*forget) (struct work *work);
	struct candidate *pair;		/* [pairs] all of an observation whose search has ended; NULL: none are left to be written */
	uint32_t	pairs;
	uint32_t	written;		/* how many are in the batch */
};

/* The shapes of a search.  What is said of a shape has its number as index; its entries end where those of the next begin. */
struct cpu_probes
{
	const struct dataset *dataset;
	uint32_t	count;			/* how many shapes there are */
	uint32_t   *arc;			/* [count + 1] the first arc in the dataset */
	uint32_t   *first_side;		/* [count + 1] */
	struct cpu_probe_side *side;
	uint32_t   *first_polygon;	/* [count + 1] */
	uint32_t   *polygon;		/* numbers among `polygons` */
	struct shape_vertices vertices; /* with `first` of each arc */
	struct shape_polygons polygons;
	struct cpu_probes_left left;
	void	   *memory;
	size_t		bytes;
};

/*
 * Copy the arcs of a search's observations from the batch into search->shapes, unless that is sealed, and make probes of them.
 * Returns NULL with the failure if memory is short, if the arcs break the protocol's rules, or soon after the search is
 * cancelled.
 */
extern struct cpu_probes *cpu_probes_build(const struct search *search, struct failure *failure);

/* Return the bytes of memory that probes take. */
extern size_t cpu_probes_bytes(const struct cpu_probes *probes);

/* Forget what a turn has left: it belongs to a search that has ended early, or that begins again. */
extern void cpu_probes_forget_left(struct cpu_probes *probes);

extern void cpu_probes_free(struct cpu_probes *probes);

/* Return whether an arc of the observations is the first one of a part of its shape. */
static inline bool
cpu_probes_begins_part(const struct cpu_probes *probes, uint32_t arc)
{
	return arc == 0 || !dataset_arc_goes_on(probes->dataset, arc);
}

#endif							/* GEONN_CPU_ARCS_PROBE_H */
