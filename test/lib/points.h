/*
 * points.h
 *		Points for tests of the search, the same from the same seed: places as
 *		tables have them, and places that are hard for an index.
 */
#ifndef GEONN_TEST_POINTS_H
#define GEONN_TEST_POINTS_H

#include <stddef.h>
#include <stdint.h>

#include "engine_client.h"

/* columns that points_free() frees; those after the tag may be NULL */
struct points
{
	size_t		count;
	double	   *latitude;		/* [count] degrees */
	double	   *longitude;		/* [count] degrees */
	int64_t    *tag;			/* [count] different ones, in no order */
	int32_t    *group;			/* [count] */
	int64_t    *excluded_first; /* [count] of observations: the tags that they exclude */
	int64_t    *excluded_last;	/* [count] (batch_layout.h) */
	double	   *radius;			/* [count] metres */
	int64_t    *low[GEONN_WINDOWS_MAX]; /* [count] of each window */
	int64_t    *high[GEONN_WINDOWS_MAX];	/* [count] */
	uint16_t   *edges;			/* [count] of all windows */
	double	   *weight[GEONN_WEIGHTS_MAX];	/* [count] of references */
	int32_t    *party[GEONN_PARTIES_MAX];	/* [count] */
};

/* what the windows of a column are like */
enum spans
{
	SPANS_STEPS,				/* one of 20 steps each; half of them up to the next one */
	SPANS_NARROW,				/* some values long, among a million */
	SPANS_WIDE,					/* up to half of all values long */
	SPANS_MIXED,				/* of all lengths, within one another */
	SPANS_SMALL,				/* around zero: most bounds are equal to others */
	SPANS_UNBOUNDED,			/* many without a bound, or at the ends of int64 */
	SPANS_INSTANTS,				/* one value each, among a thousand */
	SPANS_KINDS
};

extern const char *const spans_names[SPANS_KINDS];

/* what a column of weights is like */
enum weights
{
	WEIGHTS_WHOLE,				/* whole numbers of both signs */
	WEIGHTS_MONEY,				/* hundredths, some of them 0 or -0, and some references without one */
	WEIGHTS_COMMON,				/* of all sizes from 1e-6 to 1e9 */
	WEIGHTS_EXTREME,			/* from 1e-300 to 1e300, of both signs, with many that cancel out */
	WEIGHTS_ZERO,
	WEIGHTS_KINDS
};

enum places
{
	PLACES_UNIFORM,				/* everywhere alike */
	PLACES_CITIES,				/* large and small clusters, dense inside */
	PLACES_ONE_CITY,			/* all in one of these */
	PLACES_CITY_AND_HERMIT,		/* all but one, which is far away */
	PLACES_COINCIDENT,			/* all at one point */
	PLACES_HEAPS,				/* at few points, many at each */
	PLACES_POLAR,				/* at and near both poles */
	PLACES_ANTIMERIDIAN,		/* at and near it, under all its names */
	PLACES_ONE_CELL,			/* within two metres */
	PLACES_ADJACENT,			/* latitudes and longitudes that are next to
								 * each other as float64 */
	PLACES_EQUATOR,				/* on it, evenly */
	PLACES_MERIDIAN,			/* on one, all around the Earth */
	PLACES_TRACK,				/* the way of something that moves and rests */
	PLACES_GRID,				/* a grid: most distances occur many times */
	PLACES_FEW_IN_CELL,			/* at nine points within centimetres */
	PLACES_KINDS
};

extern const char *const places_names[PLACES_KINDS];

/* Begin the sequence of random numbers from which all below draw. */
extern void points_seed(uint64_t seed);

/* So many points of a kind. */
extern struct points points_create(size_t count, enum places places);

/*
 * Observations for these references: at them, near them at all scales,
 * anywhere, and at their antipodes; or, if far, only there.
 */
extern struct points points_about(const struct points *references, size_t count, bool far);

/*
 * Give points a group each, one of so many: the outermost int32 and numbers between, some far more
 * frequent than others.
 */
extern void points_draw_groups(struct points *points, uint32_t kinds);

/* Likewise, party `number`.  Of points that follow each other, some hundred have the same one if areas is set. */
extern void points_draw_parties(struct points *points, int number, uint32_t kinds, bool areas);

/*
 * Let each observation exclude one of so many ranges of the references' tags, some far more often than
 * others.  The ranges together have all of int64.  Where there are several, some observations exclude none.
 */
extern void points_draw_excluded(struct points *observations, const struct points *references,
								 uint32_t ranges);

/* Let each observation exclude its own tag alone. */
extern void points_exclude_own_tags(struct points *observations);

/*
 * Give points a radius each: half of them none (infinity), the others from 0 to
 * beyond the Earth, but mostly about `typical` metres.
 */
extern void points_draw_radiuses(struct points *points, double typical);

/* Give points window `number`; values have any edges where edges differ. */
extern void points_draw_windows(struct points *points, int number, enum spans spans, bool all_edges);

/* Give points weight `number`. */
extern void points_draw_weights(struct points *points, int number, enum weights weights);

/* The same points in the order (tag, latitude, longitude). */
extern struct points points_sorted_by_tag(const struct points *points);

/* All of these points so many times over, without tags. */
extern struct points points_repeated(const struct points *points, size_t times);

extern void points_free(struct points *points);

/* as what the client sends */
static inline struct client_points
points_to_send(const struct points *points)
{
	return (struct client_points) {
		.count = points->count,
		.latitude = points->latitude,
		.longitude = points->longitude,
		.tag = points->tag,
		.group = points->group,
		.excluded_first = points->excluded_first,
		.excluded_last = points->excluded_last,
		.radius = points->radius,
		.low = {points->low[0], points->low[1], points->low[2]},
		.high = {points->high[0], points->high[1], points->high[2]},
		.edges = points->edges,
		.weight = {points->weight[0], points->weight[1], points->weight[2], points->weight[3]},
		.party = {points->party[0], points->party[1]}
	};
}

#endif							/* GEONN_TEST_POINTS_H */
