/*
 * sql_borders.c
 *		Whether a point is at a vertex of a polygon among the references, or on a side along its meridian.
 *
 * A point with another longitude than all vertices is on no such border.  After as many comparisons as all references have
 * arcs, a bitmap of the longitudes of all vertices is made: a hash of the longitude tells its bit, among 16 to 32 bits an arc.
 * From then on a point whose bit is not set needs no comparison.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "port/pg_bitutils.h"

#include "join/reference_memory.h"
#include "sql/sql_borders.h"

#define BITS_AN_ARC 16
#define BITS_A_WORD 64

/* a pole has any longitude: points there ask for this one */
#define POLE_LONGITUDE 0

/* Return the number of a longitude's bit. */
static uint64
bit_of(const Borders *borders, double longitude)
{
	uint64		bits;

	longitude = geonn_border_longitude(longitude);
	memcpy(&bits, &longitude, sizeof(bits));
	return (bits * UINT64CONST(0x9e3779b97f4a7c15)) >> borders->shift;
}

static void
note_longitude(Borders *borders, double longitude)
{
	uint64		bit = bit_of(borders, longitude);

	borders->longitudes[bit / BITS_A_WORD] |= UINT64CONST(1) << bit % BITS_A_WORD;
}

void
geonn_borders_begin(Borders *borders, const SqlReferences *references)
{
	*borders = (Borders) {.references = references,.context = CurrentMemoryContext};
	for (uint64 i = 0; i < references->valid.count; i++)
		borders->arcs += references->rows[references->valid.numbers[i]]->shape.arcs;
}

static void
note_shape(Borders *borders, Datum value)
{
	GeonnShapeReader *reader = geonn_shape_open(GEONN_POINT_GEOGRAPHY, value, NULL, NULL);
	GeonnPart	part;

	while (geonn_shape_next_vertices(reader, &part))
	{
		for (uint32 i = 0; i < part.vertices.count; i++)
		{
			double		latitude;
			double		longitude;

			if (i % 65536 == 0)
				CHECK_FOR_INTERRUPTS();
			geonn_vertex(&part.vertices, i, &latitude, &longitude);
			note_longitude(borders, longitude);
			if (fabs(latitude) == 90)
				note_longitude(borders, POLE_LONGITUDE);
		}
	}
	geonn_shape_close(reader);
}

/* Note the longitudes of all vertices, if there is room for them. */
static void
note_longitudes(Borders *borders)
{
	const SqlReferences *references = borders->references;
	int			power = Max(pg_leftmost_one_pos64(borders->arcs * BITS_AN_ARC) + 1, 6);
	Size		bytes = (UINT64CONST(1) << power) / BITS_PER_BYTE;
	MemoryContext former;

	borders->has_tried = true;
	if (!geonn_reference_memory_has_room(bytes))
		return;
	former = MemoryContextSwitchTo(borders->context);
	geonn_reference_memory_add_bytes(geonn_reference_memory_create("the subquery", 0, false), bytes, "borders");
	borders->shift = 64 - power;
	borders->longitudes = palloc_extended(bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	MemoryContextSwitchTo(former);
	for (uint64 i = 0; i < references->valid.count; i++)
	{
		const Reference *reference = references->rows[references->valid.numbers[i]];

		if (reference->shape.arcs > 0)
			note_shape(borders, reference->values[references->point[0]]);
	}
}

bool
geonn_borders_have(Borders *borders, const Reference *reference, double latitude, double longitude)
{
	Assert(reference->shape.arcs > 0);
	if (!borders->has_tried && borders->compared >= borders->arcs)
		note_longitudes(borders);
	if (borders->longitudes != NULL)
	{
		uint64		bit = bit_of(borders, fabs(latitude) == 90 ? POLE_LONGITUDE : longitude);

		if ((borders->longitudes[bit / BITS_A_WORD] & UINT64CONST(1) << bit % BITS_A_WORD) == 0)
			return false;
	}
	borders->compared += reference->shape.arcs;
	return geonn_is_on_border(reference->values[borders->references->point[0]], latitude, longitude);
}
