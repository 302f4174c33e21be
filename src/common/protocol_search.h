/*
 * protocol_search.h
 *		Messages of batches, and of searches and their results.
 *
 * A search asks for each observation's k nearest candidates, or for all candidates, within max_distance.  If the
 * client asks for ties, it has all candidates that tie with the k-th, too.  The pairs of an observation are
 * adjacent, in the order (distance, order of the references).  Which references are candidates, and what their
 * order is, protocol_dataset.h says.
 *
 * If an observation has more pairs than the room, the engine answers it in parts: the results say "partial", and a
 * search with "resume" from that observation on brings the next part.
 *
 * Of a dataset of arcs an observation has one pair for each shape: the shape's tag and the distance, in the order
 * (distance, order of the shapes).  With GEONN_SEARCH_PLACES each pair has its place as well, in degrees: the place
 * of the shape that is nearest to the observation.  Of arcs that are as near it is on the one sent first; inside a
 * polygon, which then stands for its first arc, it is the observation's.  With the place comes its fraction: which
 * part of the length of the shape's lines, end to end in the order of sending, comes before the place.  It is NAN
 * where the place is on a point or a polygon.  A dataset with GEONN_COLUMN_SEGMENT brings the number of the arc that the
 * place is on, 0 on a point and inside a polygon, and the observation's side of it (enum geonn_line_side), one with
 * GEONN_COLUMN_MEASURE the measure at the place, linear along the arc, or NAN.
 *
 * With GEONN_SEARCH_SHAPES the observations are shapes: the rows of the batch are their arcs, by the rules for arcs
 * that are references, but without tags.  A shape begins and ends in one batch, and counts as one observation; its first
 * row has its conditions.  Such a search is only of a dataset of arcs.  When it begins with observation 0, and does not
 * resume, the engine copies the rows; a search that goes on from there is of the same rows, until all are answered.
 *
 * With GEONN_SEARCH_PLACES such a pair has a place on each of the two shapes: the reference's in the columns of ends, as above,
 * and the observation's in the columns of latitudes and longitudes, which lose the rows.  They are the nearest places of the
 * first arc of the reference at the pair's distance and of the first arc of the observation that is as near to that arc.  Where
 * the shapes meet, both places are the same, and the side, if the place has one, is GEONN_LINE_ON.  Then a polygon that holds the
 * first vertex of a part of the observation stands for its first arc, as for points, and that vertex, the first such, is the
 * place.  A part of the reference whose first vertex a polygon of the observation holds stands for its first arc, too, and that
 * vertex is the place.  Of other arcs that meet, the place is an end of one on the other, or where they cross.
 *
 * A search with radii counts instead: it asks how many candidates each observation has within each radius, and for
 * the exact sums of their weights, the columns GEONN_COLUMN_WEIGHT of the dataset.  An observation then has one pair
 * for each radius and weight, or for each radius if the dataset has no weights: by radius, then by weight.  Its tag
 * is the count, its distance the sum.  With GEONN_SEARCH_EXTREMES, a radius with weights has three times as many
 * pairs: the distances of the further ones are the least weights, of which those of no candidate are infinite, and
 * then the greatest ones, -infinite likewise.  In a dataset without references an observation has no pair.  A count
 * counts a shape once, however many of its arcs are within a radius, with the weights that all of its arcs have.
 *
 * A search with min_points is for clusters of the references, points without parties, radiuses and excluded tags, and without
 * weights unless GEONN_SEARCH_THIN is set.  Two references are neighbours if each would be a candidate of the other within
 * max_distance; each is its own neighbour.  One with at least min_points neighbours is core.  Core references that are
 * neighbours are of one cluster, and so are all that a chain of such pairs connects.  Clusters have numbers from 1 on, in the
 * order of their first core references.  A reference that is not core, but has core neighbours, is a border point of the
 * cluster of the nearest of them, by (distance, order of the references).  All others are noise.  The observations of the
 * search are the references, in their order: rows is their number, and the client writes none into the batch.  Each has one
 * pair: the reference's tag, and as its distance the number of its cluster, negative for a border point, and 0 for noise.  The
 * algorithm does not matter.  Searches that go on with the next references, in the same slot and with the same question, find
 * the clusters of the first one; another slot or question begins anew.
 *
 * With GEONN_SEARCH_THIN, and min_points 1, such a search thins the references out in place of finding clusters.  They are
 * ranked by their weights, the column GEONN_COLUMN_WEIGHT, the greatest first and NAN last, and then in their order; without
 * that column in their order alone.  A reference is kept unless a kept one before it, by rank, is its neighbour.  The keeper
 * of one that is not kept is the nearest of its kept neighbours, by (distance, rank), and a kept one is its own.  The pair of
 * a reference has its tag, and in the place of a distance the 64 bits of its keeper's tag.  If a reference that is not kept
 * has the tag of its keeper, the search fails, because the pair would be that of a kept one.
 *
 * A search with a dataset of observations assigns these to references: pairs are taken in the order (distance, order of the
 * observations, order of the references), each whose observation has no reference yet, and whose reference has fewer observations
 * than its capacity.  That is the reference's first weight if the dataset has one, rounded down, and otherwise the search's.  The
 * dataset of observations is sealed, and has the columns of the references but for weights; rows is their number, and the client
 * writes none into the batch.  The answer has two pairs for each observation, with the same distance: first the observation's
 * tag, then the tag of its reference.  The distance is NAN if the observation has none.  Searches that go on with the next
 * observations find the assignment of the first one, as those for clusters do.
 */
#ifndef GEONN_PROTOCOL_SEARCH_H
#define GEONN_PROTOCOL_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/protocol_dataset.h"
#include "common/way.h"

/* how many slots for batches a session's ring has */
#define GEONN_RING_SLOTS		4

/* a batch has room for at most this many rows, and at most this many pairs */
#define GEONN_BATCH_ROWS_MAX	(1 << 22)

/* the greatest k: an observation may ask for this many pairs, ties not counted */
#define GEONN_K_MAX				1024

/* how to search; all algorithms find the same pairs */
enum geonn_algorithm
{
	GEONN_ALGORITHM_AUTO,		/* the device takes the algorithm that it expects to be faster */
	GEONN_ALGORITHM_INDEX,
	GEONN_ALGORITHM_BRUTE
};

/* one search counts within at most this many radii */
#define GEONN_RADII_MAX			16

/* bits of geonn_search.flags */
#define GEONN_SEARCH_TIES		1u	/* the answer also has all candidates that tie with the k-th */
#define GEONN_SEARCH_RESUME		2u	/* the last results ended within the pairs of the first observation: begin with the
									 * next of them */
#define GEONN_SEARCH_EXTREMES	4u	/* a count also finds the least and the greatest weights */
#define GEONN_SEARCH_PLACES		8u	/* of arcs alone: each pair has its place, and the fraction of the place */
#define GEONN_SEARCH_SHAPES		16u /* of arcs alone: the observations are shapes, too */
#define GEONN_SEARCH_THIN		32u /* with min_points 1 alone: thin the references out */

/*
 * While the engine searches for shapes, each of their arcs takes at most so many bytes beside the batch; a part takes
 * GEONN_LINE_INDEX_BYTES or GEONN_RING_INDEX_BYTES more, and each piece of a long arc behind the first one
 * GEONN_OBSERVED_PIECE_BYTES.
 */
#define GEONN_OBSERVED_ARC_BYTES	156
#define GEONN_OBSERVED_PIECE_BYTES	56

/* While the engine finds clusters, each reference takes at most so many bytes; a search takes 512 more. */
#define GEONN_CLUSTER_BYTES			13

/* While the engine thins references out, each takes at most so many bytes; a search takes 512 more. */
#define GEONN_THIN_BYTES			24

/* While the engine assigns, each observation and each reference takes at most so many bytes; a search takes 2048 more. */
#define GEONN_ASSIGN_BYTES			56

/* on which side of a line or ring an observation lies, seen along it */
enum geonn_line_side
{
	GEONN_LINE_NO_SIDE,
	GEONN_LINE_LEFT,
	GEONN_LINE_RIGHT,
	GEONN_LINE_ON				/* on the great circle of the arc, which decides */
};

/* bits of geonn_results.flags */
#define GEONN_RESULTS_ONE_EACH	1u	/* every observation has one pair, or the two of an assignment; the engine has written no
									 * counts */
#define GEONN_RESULTS_PARTIAL	2u	/* the observation after the last answered one has some of its pairs, behind all
									 * other pairs, and their number as its count */

struct geonn_allocate
{
	struct geonn_header header;
	uint32_t	slot;			/* 0 ... GEONN_RING_SLOTS - 1, idle */
	uint32_t	rows;			/* how many rows the client wants, 1 ... GEONN_BATCH_ROWS_MAX */
	uint32_t	room;			/* how many pairs the client wants room for, 1 ... GEONN_BATCH_ROWS_MAX */
	uint32_t	unused;
};

/*
 * The message that carries the memfd of the slot's new batch.  rows and room are as the client asked, or less if the
 * process's share of the transfer memory is short.  If no memory is left and the session has other batches, both are 0,
 * and no memfd comes.  The engine takes back the slot's former batch, which the client must have unmapped before it asked.
 */
struct geonn_batch
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	rows;
	uint32_t	room;
	uint32_t	unused;
};

/* The client gives back the batch of an idle slot, which it has unmapped and will not use again. */
struct geonn_return
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	unused;
};

struct geonn_search
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	first;			/* the first observation to answer */
	uint32_t	rows;			/* rows in the batch: observations, or arcs of them; first is less than the observations */
	uint32_t	k;				/* 1 ... GEONN_K_MAX, or 0: all within max_distance */
	uint32_t	algorithm;		/* enum geonn_algorithm */
	uint32_t	flags;			/* GEONN_SEARCH_... */
	double		max_distance;	/* metres, inclusive, at least 0; may be
								 * infinite */
	uint32_t	radii;			/* 0: find pairs; otherwise count within this many radii, with k 0, and no flags but
								 * GEONN_SEARCH_EXTREMES and GEONN_SEARCH_SHAPES */
	uint32_t	min_points;		/* 0: not for clusters; otherwise k and radii are 0, without flags but GEONN_SEARCH_THIN */
	double		radius[GEONN_RADII_MAX];	/* metres, inclusive, at least 0, each greater than the radius before; may
											 * be infinite */
	uint64_t	asking;			/* 0: no assignment; otherwise the number of the dataset of observations, the same for
								 * all searches of a session; k, radii and min_points are then 0, without flags */
	uint32_t	capacity;		/* of each reference, if the dataset has no weights */
	uint32_t	unused;
};

/*
 * The engine has answered observations first ... first + observations - 1: their counts have these
 * indexes in the batch's column of counts, and their pairs begin at index 0.  At least one
 * observation is answered, unless the results are partial.
 */
struct geonn_results
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	first;
	uint32_t	observations;
	uint32_t	pairs;
	uint32_t	flags;			/* GEONN_RESULTS_... */
	uint32_t	device;			/* number of the device that answered last */
	uint32_t	algorithm;		/* enum geonn_algorithm; auto only if nothing had to be searched */
	uint32_t	build_microseconds; /* how long devices took to build the structures that the search needed */
	uint32_t	ways[GEONN_DEVICE_KIND_COUNT];	/* by kind of device: how it has answered, bits 1 << enum geonn_way */
	uint32_t	cpu_reason;		/* enum geonn_cpu_reason; NONE if the CPU has answered nothing */
	uint32_t	unused;
};

/*
 * Return how many pairs an observation of a count has for each radius, with so many weights.  extremes: with
 * GEONN_SEARCH_EXTREMES.
 */
static inline uint32_t
geonn_pairs_of_radius(uint32_t weights, bool extremes)
{
	return weights == 0 ? 1 : extremes ? 3 * weights : weights;
}

#endif							/* GEONN_PROTOCOL_SEARCH_H */
