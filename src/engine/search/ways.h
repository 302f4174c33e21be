/*
 * ways.h
 *		Which way of which device answers a question: one table for the engine and for the documentation.
 *
 * A search has traits: what it asks, and what narrows its candidates down.  A way needs some of them and takes others.  A
 * search goes the first way of a device that needs none but its traits and takes all of them.  The CPU has a way for every
 * search.  A search without a way on a GPU is for the CPU, whatever the session has chosen.
 *
 * What is known only while a search runs is not in the table.  A GPU hands the rest of a search to the CPU in the cases that
 * device.h names.
 */
#ifndef GEONN_WAYS_H
#define GEONN_WAYS_H

#include <stdio.h>

#include "engine/search/device.h"

/* What a search asks: exactly one of the first four traits; none of them with TRAIT_CLUSTERS or TRAIT_ASSIGNS. */
#define TRAIT_ONE		(1u << 0)	/* the nearest alone */
#define TRAIT_SEVERAL	(1u << 1)	/* the nearest k, more than one */
#define TRAIT_ALL		(1u << 2)	/* all within a distance */
#define TRAIT_COUNTS	(1u << 3)	/* how many references are within radii, and sums of their weights */
#define TRAIT_EXTREMES	(1u << 4)	/* the least and the greatest weights, too */
#define TRAIT_TIES		(1u << 5)	/* all at the distance of the k-th */
#define TRAIT_PLACES	(1u << 6)	/* the place on each shape that is nearest */
#define TRAIT_BRUTE		(1u << 7)	/* brute force, which the session has asked for by name */
#define TRAIT_RESUMED	(1u << 8)	/* the search begins in the middle of an observation's pairs: its cutoff is present */
#define TRAIT_SPHEROID	(1u << 9)	/* a metric whose chord does not decide */

/* The columns that the search's dataset has. */
#define TRAIT_GROUPS	(1u << 10)
#define TRAIT_EXCLUDED	(1u << 11)
#define TRAIT_RADIUS	(1u << 12)
#define TRAIT_WINDOWS	(1u << 13)
#define TRAIT_WEIGHTS	(1u << 14)
#define TRAIT_PARTIES	(1u << 15)
#define TRAIT_ARCS		(1u << 16)

/* What the observations are, where they are no points of a batch. */
#define TRAIT_SHAPES	(1u << 17)
#define TRAIT_CLUSTERS	(1u << 18)	/* the references themselves, and the search asks for their clusters */
#define TRAIT_ASSIGNS	(1u << 19)	/* a dataset of their own, and the search assigns them to references */
#define TRAITS			20

enum way
{
	WAY_NONE,
	WAY_GPU_NEAREST,			/* cuda/nearest.cu */
	WAY_GPU_SHAPES_WITHIN,		/* cuda/shapes/shapes_within.cu */
	WAY_GPU_NEIGHBOURS,			/* cuda/neighbours/neighbours.cu */
	WAY_CPU_COUNTS,				/* cpu/turn_counts.c */
	WAY_CPU_CLUSTERS,			/* cpu/turn_clusters.c */
	WAY_CPU_ASSIGN,				/* cpu/turn_assign.c */
	WAY_CPU_SQUARES,			/* cpu/turn_cells.c once the table of squares is made; until then cpu/turn_pairs.c */
	WAY_CPU_PAIRS				/* cpu/turn_pairs.c */
};

/* Return the way by which this kind of device answers a search; WAY_NONE: it has none. */
extern enum way way_of(const struct search *search, enum geonn_device_kind kind);

/*
 * Return how this kind of device, which has a way for the search, answers the search by its algorithm.  The function does not
 * look for a table of squares.
 */
extern enum geonn_way way_gone(const struct search *search, enum geonn_device_kind kind);

/* Return the devices that may begin a search, out of those that its session has chosen. */
extern enum geonn_device_choice search_choice(const struct search *search, enum geonn_device_choice chosen);

/* Have the CPU go on with a search that a GPU has, for this reason. */
extern void search_leave_to_cpu(struct search *search, enum geonn_cpu_reason reason);

/* Why has the CPU answered some of a search whose session has chosen these devices?  NONE: it has not. */
extern enum geonn_cpu_reason search_cpu_reason(const struct search *search, enum geonn_device_choice chosen);

/* Write the table of questions and their ways in Markdown; doc/internals.md has a copy of it. */
extern void ways_print(FILE *file);

#endif							/* GEONN_WAYS_H */
