/*
 * parcel.c
 *		Rows of points on their way from one process to another.
 *
 * A parcel has valid rows whose values are all passed by value, column by column, and
 * where they came from: runs of rows whose pages follow one another.  As a message it is
 * a header and then the used part of each column.
 */
#include "postgres.h"

#include "points/parcel.h"

typedef struct ParcelHeader
{
	uint32		rows;
	uint32		runs;
} ParcelHeader;

/* the columns, those of the widest alignment first */
#define PARTS 7

/*
 * Compute the bytes that each column takes.
 */
static void
part_lengths(const Parcel *parcel, Size *lengths)
{
	Size		by = (Size) parcel->rows * parcel->by_count;

	lengths[0] = parcel->runs * sizeof(ParcelRun);
	lengths[1] = parcel->rows * sizeof(Datum);
	lengths[2] = parcel->rows * sizeof(double);
	lengths[3] = parcel->rows * sizeof(double);
	lengths[4] = by * sizeof(Datum);
	lengths[5] = parcel->rows * parcel->limits_bytes;
	lengths[6] = by * sizeof(bool);
}

/*
 * Begin with what the rows of this source have.
 */
static void
describe(Parcel *parcel, const PointSource *source)
{
	memset(parcel, 0, sizeof(*parcel));
	parcel->by_count = source->by_count;
	if (geonn_has_limits(source))
		parcel->limits_bytes = geonn_limits_bytes(source->window_count);
}

void
geonn_parcel_create(Parcel *parcel, const PointSource *source)
{
	int			by_count = source->by_count;

	describe(parcel, source);
	parcel->run = palloc(PARCEL_ROWS * sizeof(ParcelRun));
	parcel->id = palloc(PARCEL_ROWS * sizeof(Datum));
	parcel->latitude = palloc(PARCEL_ROWS * sizeof(double));
	parcel->longitude = palloc(PARCEL_ROWS * sizeof(double));
	parcel->by = palloc(PARCEL_ROWS * by_count * sizeof(Datum));
	parcel->by_is_null = palloc(PARCEL_ROWS * by_count * sizeof(bool));
	parcel->limits = palloc(PARCEL_ROWS * parcel->limits_bytes);
}

void
geonn_parcel_clear(Parcel *parcel)
{
	parcel->rows = parcel->runs = 0;
	parcel->next_row = parcel->next_run = 0;
}

/*
 * Rows of this page follow: begin a run, unless they extend the last one.
 */
static void
add_to_run(Parcel *parcel, uint64 place, uint32 rows)
{
	Assert(parcel->rows + rows <= PARCEL_ROWS);
	if (parcel->runs == 0 ||
		(place != parcel->last_place && place != parcel->last_place + 1))
		parcel->run[parcel->runs++] = (ParcelRun) {.place = place};
	parcel->run[parcel->runs - 1].rows += rows;
	parcel->last_place = place;
}

void
geonn_parcel_add_row(Parcel *parcel, uint64 place, const PointRow *row)
{
	Size		by = (Size) parcel->rows * parcel->by_count;

	add_to_run(parcel, place, 1);
	parcel->id[parcel->rows] = row->id;
	parcel->latitude[parcel->rows] = row->latitude;
	parcel->longitude[parcel->rows] = row->longitude;
	memcpy(parcel->by + by, row->by, parcel->by_count * sizeof(Datum));
	memcpy(parcel->by_is_null + by, row->by_is_null, parcel->by_count * sizeof(bool));
	if (row->limits != NULL)
		memcpy(parcel->limits + parcel->rows * parcel->limits_bytes, row->limits, parcel->limits_bytes);
	parcel->rows++;
}

void
geonn_parcel_add_block(Parcel *parcel, uint64 place, uint32 rows, const Datum *ids,
					   const double *latitudes, const double *longitudes)
{
	Assert(parcel->by_count == 0 && parcel->limits_bytes == 0);
	add_to_run(parcel, place, rows);
	memcpy(parcel->id + parcel->rows, ids, rows * sizeof(Datum));
	memcpy(parcel->latitude + parcel->rows, latitudes, rows * sizeof(double));
	memcpy(parcel->longitude + parcel->rows, longitudes, rows * sizeof(double));
	parcel->rows += rows;
}

/* ---- messages ---- */

bool
geonn_parcel_send(const Parcel *parcel, shm_mq_handle *queue)
{
	ParcelHeader header = {.rows = parcel->rows,.runs = parcel->runs};
	const void *parts[PARTS] = {parcel->run, parcel->id, parcel->latitude, parcel->longitude,
	parcel->by, parcel->limits, parcel->by_is_null};
	Size		lengths[PARTS];
	shm_mq_iovec message[1 + PARTS] = {{.data = (const char *) &header,.len = sizeof(header)}};

	part_lengths(parcel, lengths);
	for (int i = 0; i < PARTS; i++)
		message[1 + i] = (shm_mq_iovec) {.data = parts[i],.len = lengths[i]};
	return shm_mq_sendv(queue, message, 1 + PARTS, false, true) == SHM_MQ_SUCCESS;
}

void
geonn_parcel_open(Parcel *parcel, const PointSource *source, char *message, Size length)
{
	const ParcelHeader *header = (const ParcelHeader *) message;
	char	   *part = message + sizeof(ParcelHeader);
	Size		lengths[PARTS];

	describe(parcel, source);
	parcel->rows = header->rows;
	parcel->runs = header->runs;
	part_lengths(parcel, lengths);
	parcel->run = (ParcelRun *) part;
	parcel->id = (Datum *) (part += lengths[0]);
	parcel->latitude = (double *) (part += lengths[1]);
	parcel->longitude = (double *) (part += lengths[2]);
	parcel->by = (Datum *) (part += lengths[3]);
	parcel->limits = part += lengths[4];
	parcel->by_is_null = (bool *) (part += lengths[5]);
	if (part + lengths[6] != message + length)
		elog(ERROR, "a parcel of %zu bytes that says it has %u rows", length, header->rows);
}

/* ---- giving rows ---- */

bool
geonn_parcel_is_empty(const Parcel *parcel)
{
	return parcel->next_run == parcel->runs;
}

uint64
geonn_parcel_place(const Parcel *parcel)
{
	return parcel->run[parcel->next_run].place;
}

void
geonn_parcel_give_run(Parcel *parcel, PointConsumer consume, PointBlockConsumer consume_block,
					  void *state)
{
	uint32		first = parcel->next_row;
	uint32		rows = (uint32) parcel->run[parcel->next_run].rows;
	GeonnLimits limits = {0};

	parcel->next_run++;
	parcel->next_row += rows;
	if (consume_block != NULL)
	{
		consume_block(state, rows, parcel->id + first, parcel->latitude + first,
					  parcel->longitude + first);
		return;
	}
	for (uint32 i = first; i < first + rows; i++)
	{
		Size		by = (Size) i * parcel->by_count;
		PointRow	row = {
			.status = POINT_VALID,
			.id = parcel->id[i],
			.latitude = parcel->latitude[i],
			.longitude = parcel->longitude[i],
			.by = parcel->by + by,
			.by_is_null = parcel->by_is_null + by
		};

		if (parcel->limits_bytes > 0)
		{
			memcpy(&limits, parcel->limits + i * parcel->limits_bytes, parcel->limits_bytes);
			row.limits = &limits;
		}
		consume(state, &row);
	}
}
