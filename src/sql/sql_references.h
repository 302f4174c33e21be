/*
 * sql_references.h
 *		The references of a nearest-neighbour subquery: the rows of their plan, and which of them the engine gets.
 */
#ifndef GEONN_SQL_REFERENCES_H
#define GEONN_SQL_REFERENCES_H

#include "nodes/execnodes.h"

#include "base/point_limits.h"
#include "join/join.h"
#include "points/geometry.h"
#include "sql/sql_shapes.h"
#include "sql/sql_zones.h"

/* a reference that is kept, in one piece of memory with its values: a search's answers lie anywhere in memory */
typedef struct Reference
{
	double		latitude;
	double		longitude;
	PointStatus status;
	ShapeTraits shape;
	double		sine;			/* of the latitude, where sql_outputs.c has needed them; the cosine is 0 before */
	double		cosine;
	bool	   *nulls;			/* [SqlReferences.columns] */
	Datum		values[FLEXIBLE_ARRAY_MEMBER];	/* [SqlReferences.columns]; points of PostGIS have four bytes of length */
} Reference;

/*
 * Metres: above the difference of two distances, each of which PostGIS computes otherwise than geonn, by up to 9.4
 * nm on the sphere and 15 nm on the spheroid; and above the distance of points that PostGIS takes for one.
 */
#define MARGIN 1e-7
#define SAME_PLACE 1e-5

/* indexes of references, or numbers of a round's outer rows */
typedef struct Numbers
{
	uint64		count;
	uint64		room;
	uint64	   *numbers;
} Numbers;

typedef struct SqlReferences
{
	PlanState  *plan;			/* returns the references' columns */
	int			columns;
	int			points;			/* 1, or 2 for latitude and longitude */
	int			point[2];		/* the columns of the reference's point, from 0 on */
	GeonnPointKind kind;		/* of the points of both sides */
	bool		has_shapes;		/* `point` may be lines or polygons (sql_shapes.c) */
	bool		takes_empty_members;	/* and collections, or with empty members */
	Zones	   *zones;			/* has the references, which are polygons of a plane, in column `point`; NULL: they are not */
	bool		has_own;		/* PostgreSQL's own plan answers where the rows do not fit (sql_own_plan.c) */
	TupleTableSlot *slot;		/* for a row that is read */

	/* one execution */
	bool		rereads;		/* the rows do not fit: none is kept, and without has_own each outer row has them read again */
	Reference **rows;			/* [count] */
	uint64		count;
	Numbers		valid;			/* the references that the engine gets */
	Numbers		invalid;		/* those whose coordinates are out of range, or that are no points, or shapes that the engine
								 * does not get */
	uint64		foreign;		/* how many have another SRID than WGS84's, or than the first polygon's */
	uint64		shapes;			/* how many of the valid ones are shapes, have polygons, and are not measured */
	uint64		areas;
	uint64		unmeasured;
	GeonnShapeReader *shape;	/* the last shape that the engine got; NULL: it was a point */
	MemoryContext reading;		/* for what reading a shape takes */
} SqlReferences;

/* Begin, with a plan that has begun; point and has_shapes are as in SqlPrivate (sql_plan.h). */
extern void geonn_sql_references_begin(SqlReferences *references, PlanState *plan, bool has_own, const List *point,
									   GeonnPointKind kind, bool has_shapes);

/*
 * Read all rows into the current memory context.  Beyond geonn.session_memory_limit, keep none, set rereads, and warn.
 */
extern void geonn_sql_references_read(SqlReferences *references);

/* For ereport: the DETAIL and HINT of references that need more memory than geonn.session_memory_limit leaves. */
extern int	geonn_sql_tell_memory(void);

/*
 * Is PostgreSQL's own plan to answer each outer row, since the engine does not take many of the references, or since PostGIS's
 * function may refuse one that an index need not look at?
 */
extern bool geonn_sql_references_suit_own(const SqlReferences *references);

/* Set what is counted of them; called again where the order of the rows has changed. */
extern void geonn_sql_references_number(SqlReferences *references);

/* Read all rows again: begin, and get the next one, or an empty slot. */
extern void geonn_sql_references_reread(SqlReferences *references);
extern TupleTableSlot *geonn_sql_references_next(SqlReferences *references);

/* Implements GivenPoints.point: one of the valid references; its id is its index among all. */
extern void geonn_sql_reference_point(void *references, uint64 number, PointRow *row);

/* the columns of a search's rows */
enum
{
	SEARCH_REFERENCE,			/* the reference's index among those that are kept */
	SEARCH_DISTANCE,
	SEARCH_NUMBER,				/* the number of the point, from 1 on */
	SEARCH_COLUMNS
};

/* The type of these rows. */
extern TupleDesc geonn_sql_references_row_type(void);

/* a pair that a search has found */
typedef struct Answer
{
	uint64		number;			/* the point's, from 0 on */
	uint64		reference;		/* its index among those that are kept */
	double		distance;
} Answer;

/* the answers of a search that has begun, one after the other */
typedef struct Answers
{
	GeonnSearch *search;
	GeonnBlock *block;			/* whose present pair is the last answer; NULL: no answer was taken, or it was a row */
} Answers;

/* so many answers' rows are fetched together */
#define ANSWERS_TOGETHER 64

/* For geonn_next_answer: take an answer that is stored as a row; false: none is left. */
extern bool geonn_take_answer_row(GeonnSearch *search, Answer *answer);

/* For geonn_next_answer: have the processor fetch the rows of the present pair and of some after it. */
extern void geonn_fetch_answer_rows(const SqlReferences *references, const GeonnBlock *block);

/*
 * Get the next answer; false: the search has no more.  Where the references' rows are needed, those of several answers
 * are fetched into the processor's cache together: they lie anywhere in memory.
 */
static inline bool
geonn_next_answer(Answers *answers, const SqlReferences *references, bool needs_rows, Answer *answer)
{
	const GeonnBlock *block;

	if (answers->block == NULL || !geonn_block_next(answers->block))
		answers->block = geonn_search_next_pair(answers->search);
	block = answers->block;
	if (block == NULL)
		return geonn_take_answer_row(answers->search, answer);

	/* the engine may write the tag while it is checked: read it once */
	*answer = (Answer) {
		.number = DatumGetUInt64(block->observation_id[block->observation]) - 1,
		.reference = (uint64) ((const volatile int64 *) block->tag)[block->pair],
		.distance = block->distance[block->pair]
	};
	if (needs_rows && block->pair % ANSWERS_TOGETHER == 0)
		geonn_fetch_answer_rows(references, block);
	return true;
}

/* The references for the engine: a source of points or shapes whose ids are their indexes among all. */
extern PointSource *geonn_sql_references_describe(const SqlReferences *references);

/*
 * The status of an outer row's value of PostGIS's beside these references.  That of an empty one is POINT_NOT_FINITE where a
 * reference may have another SRID: PostGIS's functions raise an error for the two.
 */
extern PointStatus geonn_sql_status_beside(const SqlReferences *references, PointStatus status, bool is_null);

/*
 * Read the point of an outer row from its values, of which the references say the kind.  Returns the status.  An empty point is
 * POINT_NULL, unless a reference may have another SRID: PostGIS's functions raise an error for the two.  A value that geonn
 * cannot read, and such an empty one, count as out of range.
 */
extern PointStatus geonn_sql_read_outer_point(const SqlReferences *references, const NullableDatum *values,
											  double *latitude, double *longitude);

/*
 * The value of a point, such that PostGIS's functions use it as it is: they copy a value whose length takes one byte
 * each time they are called.  A new value is in the current memory context.
 */
extern Datum geonn_sql_plain_point(const SqlReferences *references, Datum value);

/* Add a number; the array grows in this memory context. */
extern void geonn_numbers_add(Numbers *numbers, uint64 number, MemoryContext context);

#endif							/* GEONN_SQL_REFERENCES_H */
