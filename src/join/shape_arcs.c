/*
 * shape_arcs.c
 *		Shapes on their way into a dataset, as arcs.
 *
 * protocol_dataset.h says what arcs the engine takes.  A line of n vertices has n - 1 of them; a
 * point, and a ring of one vertex, has one of no length.  They have the vertices' degrees as the shape has
 * them, so that the engine makes the vectors that shape.c makes.
 *
 * The sign of a polygon's number says whether an odd number of its rings hold the north pole, which is known
 * once all have been read.  So a polygon's rings wait, as vertices in the shape's value, until the last one
 * has been read; no copy of them is made.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "common/arc.h"
#include "join/shape_arcs.h"

/* how many arcs are sent at a time */
#define ARCS_AT_ONCE	512

struct GeonnArcs
{
	const char *title;
	int64		sent;			/* arcs */
	int32		shape;			/* the number of the next shape */
	int32		polygon;		/* the number of the last polygon */
	int32		segment;		/* the number of the shape's last arc so far; points do not count */

	/* The present polygon: the rings read so far. */
	GeonnVertices *rings;		/* [capacity] */
	int			count;
	int			capacity;
	bool		pole_is_inside; /* whether an odd number of the rings have the pole inside */

	/* arcs to be sent */
	uint32		arcs;
	int64		tags[ARCS_AT_ONCE];
	double		latitudes[ARCS_AT_ONCE];
	double		longitudes[ARCS_AT_ONCE];
	GeonnPointColumns columns[ARCS_AT_ONCE];
};

/* What the arcs of one shape have in common, and where they go. */
typedef struct Destination
{
	GeonnClient *client;
	ReferenceMemory *memory;
	int64		tag;
	GeonnPointColumns columns;	/* what each arc has of its own is not set */
} Destination;

GeonnArcs *
geonn_arcs_create(const char *title)
{
	GeonnArcs  *arcs = palloc0(sizeof(GeonnArcs));

	arcs->title = title;
	arcs->capacity = 16;
	arcs->rings = palloc(arcs->capacity * sizeof(GeonnVertices));
	return arcs;
}

static void
send(GeonnArcs *arcs, const Destination *destination)
{
	if (arcs->sent + arcs->arcs > GEONN_REFERENCES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the shapes of %s have more than %d arcs", arcs->title, GEONN_REFERENCES_MAX),
				 errdetail("A line has an arc between each two of its vertices."),
				 errhint("Join against fewer shapes at a time, and keep the nearest of all answers; or use ST_Simplify.")));
	geonn_reference_memory_add(destination->memory, arcs->arcs);
	geonn_client_add_references(destination->client, arcs->arcs, arcs->tags, arcs->latitudes, arcs->longitudes,
								arcs->columns);
	arcs->sent += arcs->arcs;
	arcs->arcs = 0;
}

/*
 * Add the arcs of a part.
 */
static void
add_part(GeonnArcs *arcs, const Destination *destination, const GeonnVertices *vertices, GeonnPartKind kind)
{
	int32		last = kind == GEONN_PART_POINT ? 0 : arcs->segment + (int32) Max(vertices->count, 2) - 1;
	double		latitude;
	double		longitude;
	double		measure = kind == GEONN_PART_LINE ? geonn_vertex_measure(vertices, 0) : NAN;

	geonn_reference_memory_add_parts(destination->memory, kind == GEONN_PART_RING ? GEONN_RING_INDEX_BYTES :
									 GEONN_LINE_INDEX_BYTES);
	geonn_vertex(vertices, 0, &latitude, &longitude);
	for (uint32 i = 1; i < Max(vertices->count, 2); i++)
	{
		uint32		arc = arcs->arcs;
		uint32		pieces;

		arcs->tags[arc] = destination->tag;
		arcs->latitudes[arc] = latitude;
		arcs->longitudes[arc] = longitude;
		geonn_vertex(vertices, Min(i, vertices->count - 1), &latitude, &longitude);
		arcs->columns[arc] = destination->columns;
		arcs->columns[arc].end_latitude = latitude;
		arcs->columns[arc].end_longitude = longitude;
		arcs->columns[arc].segment = kind == GEONN_PART_POINT ? 0 : ++arcs->segment;
		arcs->columns[arc].part_end = last;
		arcs->columns[arc].measure = measure;
		if (kind == GEONN_PART_LINE)
			measure = geonn_vertex_measure(vertices, Min(i, vertices->count - 1));
		arcs->columns[arc].end_measure = measure;
		pieces = geonn_arc_pieces(arcs->latitudes[arc], arcs->longitudes[arc], latitude, longitude);
		if (pieces > 1)
			geonn_reference_memory_add_parts(destination->memory, geonn_arc_pieces_bytes(pieces));
		if (++arcs->arcs < ARCS_AT_ONCE)
			continue;
		CHECK_FOR_INTERRUPTS();
		send(arcs, destination);
	}
}

/* Take a ring.  After the polygon's last ring, add the arcs of all its rings. */
static void
add_ring(GeonnArcs *arcs, Destination *destination, const GeonnPart *part)
{
	if (arcs->count == arcs->capacity)
	{
		arcs->capacity *= 2;
		arcs->rings = repalloc_huge(arcs->rings, arcs->capacity * sizeof(GeonnVertices));
	}
	arcs->rings[arcs->count++] = part->vertices;
	arcs->pole_is_inside ^= part->pole_is_inside;
	if (!part->is_last_ring)
		return;
	arcs->polygon++;
	destination->columns.polygon = arcs->pole_is_inside ? -arcs->polygon : arcs->polygon;
	for (int i = 0; i < arcs->count; i++)
		add_part(arcs, destination, &arcs->rings[i], GEONN_PART_RING);
	destination->columns.polygon = 0;
	arcs->count = 0;
	arcs->pole_is_inside = false;
}

void
geonn_arcs_send(GeonnArcs *arcs, GeonnClient *client, ReferenceMemory *memory, GeonnShapeReader *shape, int64 tag,
				const GeonnPointColumns *columns)
{
	Destination destination = {
		.client = client,
		.memory = memory,
		.tag = tag,
		.columns = *columns
	};
	uint64		bytes = geonn_shape_memory(shape);
	GeonnPart	part;

	destination.columns.shape = arcs->shape++;
	arcs->segment = 0;
	destination.columns.polygon = 0;
	geonn_reference_memory_add_bytes(memory, bytes, "shapes");
	while (geonn_shape_next_checked(shape, &part))
	{
		if (part.kind == GEONN_PART_RING)
			add_ring(arcs, &destination, &part);
		else
			add_part(arcs, &destination, &part.vertices, part.kind);
	}
	send(arcs, &destination);
	geonn_reference_memory_return_bytes(memory, bytes);
}
