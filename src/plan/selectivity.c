/*
 * selectivity.c
 *		How many references observations have near them, by samples of both tables.
 *
 * How many references lie within a distance depends on where the points of both tables are: cities are where
 * cities are.  PostgreSQL's statistics have a histogram of latitudes and one of longitudes, which do not tell that.
 * So some points of both tables are read when a join with a distance, or with columns that decide which references
 * are candidates, is planned: a few rows of some pages, spread over the table.
 *
 * Two tables are often filled in the same order, that of time or of a key for example.  Rows at the same share of
 * both would then be of the same moments and groups, and candidates would seem to be far more common than they are.
 * So chance decides which page of each of SAMPLE_PAGES parts is read, and which rows of it.  The seed is the table's
 * name, lest estimates change from one server to the next.  The process keeps its latest samples, for a minute at
 * most, and as long as the table has the same file and about as many pages.
 *
 * Each sampled reference stands for so many of the table.  So an observation that has some within the radius is
 * expected to have that many times as many.  Where it has very few, the nearest sampled candidates say how dense
 * they are around it: with the third at the distance d, a disc of radius r has about 2.5 (r / d)^2 of them.  That
 * holds as long as points are not on lines or at few places.  An observation without any candidate in the sample, as
 * with narrow windows and small groups, is taken to have the average of all, but no more than one sampled reference
 * stands for.  The share of those that is within the radius is taken from the other observations' candidates, or from
 * all references, whichever gives more.
 *
 * An observation has a shape within the radius if it lies in the shape, or in a band of that width around it.  Of a
 * sampled shape the box alone is read.  A line is taken to be as long as the box's diagonal, and an area to have the
 * size that most squares have in their boxes.  So shape and band have an area, and the shape counts as a point at
 * the centre with a radius of its own, that of a disc of this area.
 *
 * On cities, airports and uniform points this is within a factor of 10 of the truth, mostly of 3, from 300 m to 300 km.
 */
#include "postgres.h"

#include <math.h>

#include "access/relation.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "common/geodesy.h"
#include "plan/selectivity.h"
#include "points/reader.h"

/* how many pages a sample reads, and how many points it keeps, at most */
#define SAMPLE_PAGES 48
#define SAMPLE_POINTS 512

/* how many samples are kept, and for how many milliseconds */
#define SAMPLES_KEPT 8
#define SAMPLE_MILLISECONDS 60000

/* how many estimates are kept */
#define ANSWERS_KEPT 16

/*
 * How many sampled observations are compared with the references, at most.  With groups or windows all are,
 * since few may have a candidate.
 */
#define OBSERVATIONS_TAKEN 256

/* how many of the nearest sampled references are noted */
#define NEAREST 3

/* the group of a point with a NULL join column */
#define NO_GROUP 0

/* metres: an observation in an area has it within 0, but of a limit of 0 all shares are 0 */
#define LEAST_RADIUS 0.001

/* the greatest squared chord */
#define CHORD_MAX 4.0

struct PointSample
{
	MemoryContext memory;		/* has all of the sample */
	uint64		number;			/* unique among the process's samples */

	/* the sampled table, and the time */
	Oid			relation;
	Oid			file;
	BlockNumber pages;
	char	   *query;			/* the source's query, which names the columns */
	TimestampTz taken;

	int			count;
	bool		complete;		/* all points of the table are here */
	int			by_count;		/* what the source has: columns to join by, radiuses, windows */
	bool		has_radius;
	int			windows;

	/* unit vectors */
	double		x[SAMPLE_POINTS];
	double		y[SAMPLE_POINTS];
	double		z[SAMPLE_POINTS];
	uint32		groups[SAMPLE_POINTS];	/* hashes of the columns to join by */
	GeonnLimits *limits;		/* [SAMPLE_POINTS]; NULL: points have none */
	GeonnExtent *extents;		/* [SAMPLE_POINTS]; NULL: the rows are points */
};

static PointSample *kept[SAMPLES_KEPT];	/* the most recently used comes first; NULL: none */
static uint64 samples;			/* how many samples this process has taken */

/* ---- samples ---- */

/*
 * Can values of the columns to join by be hashed while planning?  Only by PostgreSQL's own functions: those
 * for arrays and rows call others.
 */
static bool
can_hash(const PointSource *source)
{
	for (int i = 0; i < source->by_count; i++)
	{
		Oid			type = source->by[i].base_type;
		TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_HASH_PROC);

		if ((entry->typtype != TYPTYPE_BASE && entry->typtype != TYPTYPE_ENUM) ||
			OidIsValid(get_element_type(type)) || !OidIsValid(entry->hash_proc) ||
			entry->hash_proc >= FirstNormalObjectId)
			return false;
	}
	return true;
}

static uint32
read_group(const PointSource *source, const Datum *values, const bool *nulls)
{
	uint32		hash = 1;

	for (int i = 0; i < source->by_count; i++)
	{
		const PointColumn *column = &source->by[i];
		TypeCacheEntry *type = lookup_type_cache(column->base_type, TYPECACHE_HASH_PROC_FINFO);

		if (nulls[column->attribute - 1])
			return NO_GROUP;
		hash = hash_combine(hash, DatumGetUInt32(FunctionCall1Coll(&type->hash_proc_finfo,
																   column->collation,
																   values[column->attribute - 1])));
	}
	return Max(hash, 1);
}

static bool
read_place(PointSample *sample, const PointSource *source, const Datum *values, const bool *nulls,
		   struct geonn_vector *place)
{
	PointRow	row;
	int32		detail;

	if (sample->extents != NULL)
	{
		int			number = source->columns[COLUMN_SHAPE].attribute - 1;
		GeonnExtent *extent = &sample->extents[sample->count];

		if (nulls[number] || !geonn_shape_extent(source->point_kind, values[number], extent))
			return false;
		*place = extent->centre;
		return true;
	}
	(void) geonn_read_coordinates(source, values, nulls, &row, &detail);
	if (row.latitude_is_null || row.longitude_is_null ||
		!geonn_coordinates_valid(row.latitude, row.longitude))
		return false;
	*place = geonn_unit_vector(row.latitude, row.longitude);
	return true;
}

static void
take_row(PointSample *sample, const PointSource *source, const Datum *values, const bool *nulls)
{
	struct geonn_vector vector;

	if (!read_place(sample, source, values, nulls, &vector))
		return;
	sample->x[sample->count] = vector.x;
	sample->y[sample->count] = vector.y;
	sample->z[sample->count] = vector.z;
	sample->groups[sample->count] = read_group(source, values, nulls);
	if (sample->limits != NULL)
		geonn_read_limits(source, values, nulls, &sample->limits[sample->count]);
	sample->count++;
}

static AttrNumber *
table_attributes(const PointSource *source)
{
	AttrNumber *attributes = palloc(source->query_columns * sizeof(AttrNumber));

	for (int i = 0; i < source->column_count; i++)
	{
		const PointColumn *column = &source->columns[i];

		if (column->name != NULL)
			attributes[column->attribute - 1] = get_attnum(source->relation, column->name);
	}
	return attributes;
}

/*
 * Divide 0 to count - 1 into equal parts, and return a random number of one part.
 */
static uint64
number_in_part(pg_prng_state *chance, int part, int parts, uint64 count)
{
	return pg_prng_uint64_range(chance, part * count / parts, (part + 1) * count / parts - 1);
}

static void
take_rows(PointSample *sample, const PointSource *source)
{
	PlainTable	plain = {.table = source->relation, .attributes = table_attributes(source)};
	PageRange	page_ranges[SAMPLE_PAGES];
	TablePages	pages = {source->relation, page_ranges, (int) Min(sample->pages, SAMPLE_PAGES)};
	pg_prng_state chance;
	TableReader *reader;
	Datum	   *values;
	bool	   *nulls;
	int			rows;

	sample->complete = sample->pages <= SAMPLE_PAGES;
	if (pages.count == 0)
		return;
	pg_prng_seed(&chance, hash_bytes((const unsigned char *) source->name, (int) strlen(source->name)));
	for (int i = 0; i < pages.count; i++)
		page_ranges[i].first = page_ranges[i].last =
			(BlockNumber) number_in_part(&chance, i, pages.count, sample->pages);
	reader = geonn_table_reader_begin(list_make1(&plain), source->query_columns, GetActiveSnapshot());
	geonn_table_reader_limit(reader, &pages);
	while ((rows = geonn_table_reader_next(reader, &values, &nulls)) > 0)
	{
		int			wanted = Min(Min(rows, SAMPLE_POINTS / pages.count), SAMPLE_POINTS - sample->count);

		if (wanted < rows)
			sample->complete = false;
		for (int i = 0; i < wanted; i++)
		{
			int			first = (int) number_in_part(&chance, i, wanted, rows) * source->query_columns;

			take_row(sample, source, values + first, nulls + first);
		}
	}
	geonn_table_reader_end(reader);
}

static PointSample *
take_sample(const PointSource *source, Relation table, BlockNumber pages)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "geonn sample",
												 ALLOCSET_DEFAULT_SIZES);
	PointSample *sample = MemoryContextAllocZero(memory, sizeof(PointSample));
	MemoryContext reading = AllocSetContextCreate(CurrentMemoryContext, "geonn sampling",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(reading);

	sample->memory = memory;
	sample->number = ++samples;
	sample->relation = source->relation;
	sample->file = table->rd_rel->relfilenode;
	sample->pages = pages;
	sample->query = MemoryContextStrdup(memory, source->query);
	sample->taken = GetCurrentTimestamp();
	sample->by_count = source->by_count;
	sample->has_radius = geonn_has_radius(source);
	sample->windows = source->window_count;
	if (geonn_has_limits(source))
		sample->limits = MemoryContextAlloc(memory, SAMPLE_POINTS * sizeof(GeonnLimits));
	if (geonn_has_shapes(source))
		sample->extents = MemoryContextAlloc(memory, SAMPLE_POINTS * sizeof(GeonnExtent));
	take_rows(sample, source);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(reading);
	MemoryContextSetParent(memory, TopMemoryContext);
	return sample;
}

/*
 * Is the sample of this source?  The query's text does not say what its columns are for: their counts do.
 */
static bool
is_of(const PointSample *sample, const PointSource *source, Relation table, BlockNumber pages)
{
	return sample->relation == source->relation && sample->file == table->rd_rel->relfilenode &&
		Max(sample->pages, pages) - Min(sample->pages, pages) <= sample->pages / 16 &&
		strcmp(sample->query, source->query) == 0 && sample->by_count == source->by_count &&
		sample->has_radius == geonn_has_radius(source) && sample->windows == source->window_count &&
		(sample->extents != NULL) == geonn_has_shapes(source) &&
		!TimestampDifferenceExceeds(sample->taken, GetCurrentTimestamp(), SAMPLE_MILLISECONDS);
}

const PointSample *
geonn_sample(const PointSource *source)
{
	Relation	table = ActiveSnapshotSet() ? try_relation_open(source->relation, AccessShareLock) : NULL;
	PointSample *sample = NULL;

	if (table == NULL)
		return NULL;
	if ((table->rd_rel->relkind == RELKIND_RELATION || table->rd_rel->relkind == RELKIND_MATVIEW) &&
		!table->rd_rel->relhassubclass && RelationIsPopulated(table) &&
		table->rd_tableam == GetHeapamTableAmRoutine() && !RELATION_IS_OTHER_TEMP(table) &&
		check_enable_rls(source->relation, InvalidOid, true) == RLS_NONE && can_hash(source))
	{
		BlockNumber pages = RelationGetNumberOfBlocks(table);

		int			place = 0;

		while (place < SAMPLES_KEPT && !(kept[place] != NULL && is_of(kept[place], source, table, pages)))
			place++;
		if (place < SAMPLES_KEPT)
			sample = kept[place];
		else
		{
			/* replace the least recently used sample: so a caller may hold two */
			sample = take_sample(source, table, pages);
			if (kept[--place] != NULL)
				MemoryContextDelete(kept[place]->memory);
		}
		memmove(&kept[1], kept, place * sizeof(kept[0]));
		kept[0] = sample;
	}
	relation_close(table, NoLock);
	return sample != NULL && sample->count > 0 ? sample : NULL;
}

/* ---- neighbours ---- */

/* the samples to compare, and how */
typedef struct SampleComparison
{
	const PointSample *observations;
	const PointSample *references;
	double		limit;			/* squared chord of the radius; infinity: any */
	double		weight;			/* how many references each sampled one represents */
	const double *shares;		/* a factor for each reference's squared chord; NULL: all are 1 */
} SampleComparison;

/* the sampled references around an observation */
typedef struct Surroundings
{
	int			near;			/* how many of all references are within the radius */
	int			within;			/* candidates among them */
	int			all;			/* the number of candidates */
	double		nearest[NEAREST];	/* squared chords of the nearest candidates, in ascending order */
} Surroundings;

/*
 * Compute the squared chords from an observation to all SAMPLE_POINTS elements, used or not: with a constant
 * count, the compiler vectorizes the loop.
 */
static void
measure(const SampleComparison *comparison, int number, double *chords)
{
	const PointSample *references = comparison->references;
	double		x = comparison->observations->x[number];
	double		y = comparison->observations->y[number];
	double		z = comparison->observations->z[number];

	for (int i = 0; i < SAMPLE_POINTS; i++)
	{
		double		dx = references->x[i] - x;
		double		dy = references->y[i] - y;
		double		dz = references->z[i] - z;

		chords[i] = dx * dx + dy * dy + dz * dz;
	}
}

/*
 * Scale a squared chord by the ratio of the common limit to the point's own, if that is less.  With radiuses
 * of different lengths, shares count, not distances.
 */
static double
share_of_radius(const PointSample *sample, int number, double limit, double chord)
{
	double		own = CHORD_MAX;

	if (sample->has_radius)
		own = Min(geonn_radius_limit(sample->limits[number].radius), CHORD_MAX);
	return own >= limit ? chord : own > 0 ? chord * (limit / own) : INFINITY;
}

/*
 * The ratio of the common limit to the square of the shape's own radius, as the essay has it.
 */
static double
share_of_shape(const GeonnExtent *extent, double limit)
{
	double		radius = sqrt(limit);
	double		of_area = 0.35 * extent->diagonal;

	return limit / (extent->is_area ? (radius + of_area) * (radius + of_area) :
					limit + 2 / M_PI * radius * extent->diagonal);
}

/*
 * May the reference be a candidate of the observation, by groups and windows?
 */
static bool
is_candidate(const SampleComparison *comparison, int observation, int reference)
{
	const PointSample *observations = comparison->observations;
	const PointSample *references = comparison->references;
	const GeonnLimits *a = observations->limits;
	const GeonnLimits *b = references->limits;
	int			windows = Min(observations->windows, references->windows);

	if (references->groups[reference] != observations->groups[observation] ||
		(b != NULL && b[reference].none))
		return false;
	for (int i = 0; i < windows; i++)
	{
		if (!geonn_windows_overlap(i, a[observation].windows[i].low, a[observation].windows[i].high,
								   a[observation].edges, b[reference].windows[i].low,
								   b[reference].windows[i].high, b[reference].edges))
			return false;
	}
	return true;
}

static void
insert(double *nearest, double chord)
{
	int			place = NEAREST - 1;

	for (; place > 0 && chord < nearest[place - 1]; place--)
		nearest[place] = nearest[place - 1];
	nearest[place] = chord;
}

/*
 * Count the sampled references around an observation.
 */
static Surroundings
look_around(const SampleComparison *comparison, int number)
{
	const PointSample *observations = comparison->observations;
	const PointSample *references = comparison->references;
	bool		have_radius = observations->has_radius || references->has_radius;
	bool		selects = references->by_count > 0 || references->limits != NULL;
	Surroundings found = {.nearest = {INFINITY, INFINITY, INFINITY}};
	double		chords[SAMPLE_POINTS];

	measure(comparison, number, chords);
	for (int i = 0; i < references->count; i++)
	{
		double		chord = chords[i];

		if (observations == references && i == number)
			continue;
		if (have_radius)
			chord = Max(share_of_radius(observations, number, comparison->limit, chord),
						share_of_radius(references, i, comparison->limit, chord));
		if (comparison->shares != NULL)
			chord *= comparison->shares[i];
		found.near += chord <= comparison->limit;
		if (isinf(chord) || (selects && !is_candidate(comparison, number, i)))
			continue;
		found.all++;
		found.within += chord <= comparison->limit;
		if (chord < found.nearest[NEAREST - 1])
			insert(found.nearest, chord);
	}
	return found;
}

static double
expect(const SampleComparison *comparison, const Surroundings *found)
{
	double		weight = comparison->weight;
	int			known = Min(found->all, NEAREST);

	if (weight <= 1 || found->within >= NEAREST || known == 0)
		return found->within * weight;
	return (known - 0.5) * Min(1, comparison->limit / found->nearest[known - 1]) * weight;
}

/*
 * Add observations, each with mean expected references, at most k.
 */
static void
add(NeighboursExpected *sum, double k, double mean, double observations)
{
	sum->each += observations * Min(k, mean);
	sum->unmatched += observations * Max(0, 1 - mean);
}

/*
 * The share of candidates that is within the radius, less its standard deviation: one of many may be there
 * by chance.
 */
static double
share_within(double within, double candidates)
{
	return candidates == 0 ? 0 : (within - sqrt(within * (1 - within / candidates))) / candidates;
}

/*
 * The numbers of observations that may have candidates: no window is NULL or empty, and no column to join by
 * is NULL.
 */
static List *
find_able(const PointSample *observations)
{
	List	   *able = NIL;

	for (int i = 0; i < observations->count; i++)
	{
		if (observations->groups[i] != NO_GROUP &&
			(observations->limits == NULL || !observations->limits[i].none))
			able = lappend_int(able, i);
	}

	/* if no sampled observation can have candidates, others of the table may */
	return able == NIL && !observations->complete ? list_make1_int(0) : able;
}

static NeighboursExpected
compare_samples(const PointSample *observations, const PointSample *references,
				const NeighboursAsked *asked)
{
	bool		have_radius = observations->has_radius || references->has_radius;
	double		sampled = references->count - (observations == references ? 1 : 0);
	SampleComparison comparison = {
		.observations = observations,
		.references = references,
		.limit = Min(geonn_radius_limit(references->extents != NULL ? Max(asked->radius, LEAST_RADIUS) : asked->radius),
					 have_radius ? CHORD_MAX : INFINITY),
		.weight = references->complete ? 1 : Max(1, asked->references / Max(1, sampled))
	};
	double		shares[SAMPLE_POINTS];
	double		others = asked->itself ? asked->k - 1 : asked->k;
	List	   *able = find_able(observations);
	bool		selects = references->by_count > 0 || references->windows > 0;
	int			step = selects ? 1 : list_length(able) / (OBSERVATIONS_TAKEN + 1) + 1;
	double		without = 0;
	double		near = 0;
	double		candidates = 0;
	double		within = 0;
	double		taken = 0;
	double		scale;
	NeighboursExpected sum = {0, 0};

	if (references->extents != NULL && !isinf(comparison.limit))
	{
		for (int i = 0; i < references->count; i++)
			shares[i] = share_of_shape(&references->extents[i], comparison.limit);
		comparison.shares = shares;
	}
	for (int i = 0; i < list_length(able); i += step)
	{
		Surroundings found = look_around(&comparison, list_nth_int(able, i));

		taken++;
		near += found.near;
		candidates += found.all;
		within += found.within;
		if (found.all == 0 && comparison.weight > 1)
			without++;
		else
			add(&sum, others, expect(&comparison, &found), 1);
	}
	add(&sum, others, Min(1, Max(candidates, 0.5) / Max(1, taken)) * comparison.weight *
		Max(share_within(within, candidates), near / Max(1, taken * sampled)), without);
	scale = list_length(able) / (Max(1, taken) * observations->count);
	if (asked->itself)
		return (NeighboursExpected) {1 + sum.each * scale, 0};
	return (NeighboursExpected) {
		sum.each * scale, sum.unmatched * scale + 1 - (double) list_length(able) / observations->count
	};
}

/*
 * The latest estimates are kept, with their arguments, since statements are planned again and again.
 */
NeighboursExpected
geonn_expect_neighbours(const PointSample *observations, const PointSample *references,
						const NeighboursAsked *asked)
{
	static struct
	{
		uint64		observations;	/* numbers of samples; 0: none */
		uint64		references;
		NeighboursAsked asked;
		NeighboursExpected expected;
	}			answers[ANSWERS_KEPT];
	static int	next = 0;

	for (int i = 0; i < ANSWERS_KEPT; i++)
	{
		const NeighboursAsked *other = &answers[i].asked;

		if (answers[i].observations == observations->number && answers[i].references == references->number &&
			other->radius == asked->radius && other->k == asked->k &&
			other->references == asked->references && other->itself == asked->itself)
			return answers[i].expected;
	}
	next = (next + 1) % ANSWERS_KEPT;
	answers[next].observations = observations->number;
	answers[next].references = references->number;
	answers[next].asked = *asked;
	answers[next].expected = compare_samples(observations, references, asked);
	return answers[next].expected;
}
