/*
 * vertices.h
 *		The vertices of a dataset of arcs, each once.
 */
#ifndef GEONN_SHAPES_VERTICES_H
#define GEONN_SHAPES_VERTICES_H

#include "engine/cpu/base/path.h"
#include "engine/dataset/dataset.h"

struct shape_vertices
{
	struct geonn_vector *vertex;	/* vertices part by part; those of a shape in the order of the dataset */
	uint32_t	count;			/* how many vertices there are; the spare ones may follow */
	size_t		bytes;

	/* for builds alone */
	uint32_t   *first;			/* [arcs of the dataset] the vertex where each arc begins */
	size_t		first_bytes;
	bool		has_lines;		/* some arcs are not of polygons, but of lines or points */
};

/*
 * Make the vertices of a dataset of arcs, which is not empty, on all threads.  of_polygons: make the vertices of polygons
 * alone, and leave other arcs without.  spare: leave room for so many vertices of the caller behind them.  Returns false
 * with the failure if memory is short.  After a build that was cancelled or has failed, the vertices can only be freed.
 */
extern bool shape_vertices_build(struct shape_vertices *vertices, const struct dataset *dataset, bool of_polygons,
								 uint64_t spare, const atomic_bool *cancelled, struct failure *failure);

/* Free what builds alone need. */
extern void shape_vertices_end_build(struct shape_vertices *vertices);

extern void shape_vertices_free(struct shape_vertices *vertices);

#endif							/* GEONN_SHAPES_VERTICES_H */
