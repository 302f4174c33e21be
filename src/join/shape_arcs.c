/*
 * shape_arcs.c
 *		Shapes on their way to the engine, as arcs: into a dataset, or into batches of observations.
 *
 * protocol_dataset.h says what arcs the engine takes.  A line of n vertices has n - 1 of them; a
 * point, and a ring of one vertex, has one of no length.  They have the vertices' degrees as the shape has
 * them, so that the engine makes the vectors that shape.c makes.
 *
 * The sign of a polygon's number says whether an odd number of its rings hold the north pole, which is known
 * once all have been read.  So a polygon's rings wait, as vertices in the shape's value, until the last one
 * has been read; no copy of them is made.
 *
 * The engine numbers the shapes of observations, and their polygons, anew in each batch.  A shape is in one batch.
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
	GeonnClient *client;
	ReferenceMemory *memory;	/* NULL: the shapes are observations */
	int64		sent;			/* arcs of references */
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

/* What the arcs of one shape have in common. */
typedef struct Common
{
	int64		tag;
	GeonnPointColumns columns;	/* what each arc has of its own is not set */
} Common;

GeonnArcs *
geonn_arcs_create(const char *title, GeonnClient *client, ReferenceMemory *memory)
{
	GeonnArcs  *arcs = palloc0(sizeof(GeonnArcs));

	arcs->title = title;
	arcs->client = client;
	arcs->memory = memory;
	arcs->capacity = 16;
	arcs->rings = palloc(arcs->capacity * sizeof(GeonnVertices));
	return arcs;
}

static void
send(GeonnArcs *arcs)
{
	if (arcs->memory == NULL)
	{
		geonn_client_add_arcs(arcs->client, arcs->arcs, arcs->latitudes, arcs->longitudes, arcs->columns);
		arcs->arcs = 0;
		return;
	}
	if (arcs->sent + arcs->arcs > GEONN_REFERENCES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the shapes of %s have more than %d arcs", arcs->title, GEONN_REFERENCES_MAX),
				 errdetail("A line has an arc between each two of its vertices."),
				 errhint("Join against fewer shapes at a time, and keep the nearest of all answers; or use ST_Simplify.")));
	geonn_reference_memory_add(arcs->memory, arcs->arcs);
	geonn_client_add_references(arcs->client, arcs->arcs, arcs->tags, arcs->latitudes, arcs->longitudes,
								arcs->columns);
	arcs->sent += arcs->arcs;
	arcs->arcs = 0;
}

/* Return the bytes that an index takes for a part, beside its arcs. */
static uint64
index_bytes(GeonnPartKind kind)
{
	return kind == GEONN_PART_RING ? GEONN_RING_INDEX_BYTES : GEONN_LINE_INDEX_BYTES;
}

/* Count the bytes that the index takes for a part of a reference, or for the pieces of an arc. */
static void
count_bytes(const GeonnArcs *arcs, uint64 bytes)
{
	if (bytes > 0)
		geonn_reference_memory_add_parts(arcs->memory, bytes);
}

/*
 * Add the arcs of a part.
 */
static void
add_part(GeonnArcs *arcs, const Common *common, const GeonnVertices *vertices, GeonnPartKind kind)
{
	int32		last = kind == GEONN_PART_POINT ? 0 : arcs->segment + (int32) Max(vertices->count, 2) - 1;
	double		latitude;
	double		longitude;
	double		measure = kind == GEONN_PART_LINE ? geonn_vertex_measure(vertices, 0) : NAN;

	if (arcs->memory != NULL)
		count_bytes(arcs, index_bytes(kind));
	geonn_vertex(vertices, 0, &latitude, &longitude);
	for (uint32 i = 1; i < Max(vertices->count, 2); i++)
	{
		uint32		arc = arcs->arcs;

		arcs->tags[arc] = common->tag;
		arcs->latitudes[arc] = latitude;
		arcs->longitudes[arc] = longitude;
		geonn_vertex(vertices, Min(i, vertices->count - 1), &latitude, &longitude);
		arcs->columns[arc] = common->columns;
		arcs->columns[arc].end_latitude = latitude;
		arcs->columns[arc].end_longitude = longitude;
		arcs->columns[arc].segment = kind == GEONN_PART_POINT ? 0 : ++arcs->segment;
		arcs->columns[arc].part_end = last;
		arcs->columns[arc].measure = measure;
		if (kind == GEONN_PART_LINE)
			measure = geonn_vertex_measure(vertices, Min(i, vertices->count - 1));
		arcs->columns[arc].end_measure = measure;
		if (arcs->memory != NULL)
			count_bytes(arcs, geonn_arc_pieces_bytes(geonn_arc_pieces(arcs->latitudes[arc], arcs->longitudes[arc],
																	  latitude, longitude)));
		if (++arcs->arcs < ARCS_AT_ONCE)
			continue;
		CHECK_FOR_INTERRUPTS();
		send(arcs);
	}
}

/* Take a ring.  After the polygon's last ring, add the arcs of all its rings. */
static void
add_ring(GeonnArcs *arcs, Common *common, const GeonnPart *part)
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
	common->columns.polygon = arcs->pole_is_inside ? -arcs->polygon : arcs->polygon;
	for (int i = 0; i < arcs->count; i++)
		add_part(arcs, common, &arcs->rings[i], GEONN_PART_RING);
	common->columns.polygon = 0;
	arcs->count = 0;
	arcs->pole_is_inside = false;
}

/* Add the arcs of a shape. */
static void
add_shape(GeonnArcs *arcs, Common *common, GeonnShapeReader *shape)
{
	GeonnPart	part;

	while (geonn_shape_next_checked(shape, &part))
	{
		if (part.kind == GEONN_PART_RING)
			add_ring(arcs, common, &part);
		else
			add_part(arcs, common, &part.vertices, part.kind);
	}
}

/* Send the arcs of a row, with these columns. */
static void
send_row(GeonnArcs *arcs, const PointRow *row, Common *common)
{
	const double place[] = {row->longitude, row->latitude};
	const GeonnVertices point = {.bytes = (const uint8 *) place, .stride = sizeof(place), .count = 1};

	arcs->segment = 0;
	common->columns.polygon = 0;
	if (row->shape != NULL)
		add_shape(arcs, common, row->shape);
	else
		add_part(arcs, common, &point, GEONN_PART_POINT);
	send(arcs);
}

void
geonn_arcs_send(GeonnArcs *arcs, const PointRow *row, int64 tag, const GeonnPointColumns *columns)
{
	Common		common = {.tag = tag, .columns = *columns};
	uint64		bytes = row->shape == NULL ? 0 : geonn_shape_memory(row->shape);

	common.columns.shape = arcs->shape++;
	geonn_reference_memory_add_bytes(arcs->memory, bytes, "shapes");
	send_row(arcs, row, &common);
	geonn_reference_memory_return_bytes(arcs->memory, bytes);
}

/* Return the bytes that the engine takes for a part of an observation, beside the batch. */
static uint64
observed_part_bytes(const GeonnPart *part)
{
	const GeonnVertices *vertices = &part->vertices;
	uint64		bytes = (Max(vertices->count, 2) - 1) * (uint64) GEONN_OBSERVED_ARC_BYTES + index_bytes(part->kind);
	double		latitude;
	double		longitude;

	geonn_vertex(vertices, 0, &latitude, &longitude);
	for (uint32 i = 1; i < vertices->count; i++)
	{
		double		former_latitude = latitude;
		double		former_longitude = longitude;

		if (i % 65536 == 0)
			CHECK_FOR_INTERRUPTS();
		geonn_vertex(vertices, i, &latitude, &longitude);
		bytes += (geonn_arc_pieces(former_latitude, former_longitude, latitude, longitude) - 1) *
			(uint64) GEONN_OBSERVED_PIECE_BYTES;
	}
	return bytes;
}

uint64
geonn_arcs_observed_bytes(const PointRow *row)
{
	GeonnPart	part;
	uint64		bytes = 0;

	if (row->shape == NULL)
		return GEONN_OBSERVED_ARC_BYTES + GEONN_LINE_INDEX_BYTES;
	while (geonn_shape_next_vertices(row->shape, &part))
		bytes += observed_part_bytes(&part);
	geonn_shape_rewind(row->shape);
	return bytes;
}

void
geonn_arcs_observe(GeonnArcs *arcs, const PointRow *row, Datum id, const GeonnPointColumns *columns, uint64 bytes)
{
	Common		common = {.columns = *columns};

	common.columns.shape = (int32) geonn_client_filled(arcs->client);
	if (common.columns.shape == 0)
		arcs->polygon = 0;
	send_row(arcs, row, &common);
	geonn_client_end_shape(arcs->client, id, bytes);
}
