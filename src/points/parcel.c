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

static void
begin(Parcel *parcel, const PointSource *source)
{
	*parcel = (Parcel)
	{
		.width = {
			[PARCEL_ID] = sizeof(Datum),
			[PARCEL_LATITUDE] = sizeof(double),
			[PARCEL_LONGITUDE] = sizeof(double),
			[PARCEL_BY] = source->by_count * sizeof(Datum),
			[PARCEL_LIMITS] = geonn_has_limits(source) ? geonn_limits_bytes(source->window_count) : 0,
			[PARCEL_BY_IS_NULL] = source->by_count * sizeof(bool)
		}
	};
}

static inline void *
values_of(const Parcel *parcel, ParcelColumn column, uint32 row)
{
	return parcel->column[column] + row * parcel->width[column];
}

static inline void
put_values(Parcel *parcel, ParcelColumn column, uint32 rows, const void *values)
{
	if (parcel->width[column] > 0)
		memcpy(values_of(parcel, column, parcel->rows), values, rows * parcel->width[column]);
}

void
geonn_parcel_create(Parcel *parcel, const PointSource *source)
{
	begin(parcel, source);
	parcel->run = palloc(PARCEL_ROWS * sizeof(ParcelRun));
	for (int i = 0; i < PARCEL_COLUMNS; i++)
		parcel->column[i] = palloc(PARCEL_ROWS * parcel->width[i]);
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
add_to_run(Parcel *parcel, uint64 position, uint32 rows)
{
	Assert(parcel->rows + rows <= PARCEL_ROWS);
	if (parcel->runs == 0 ||
		(position != parcel->last_position && position != parcel->last_position + 1))
		parcel->run[parcel->runs++] = (ParcelRun) {.position = position};
	parcel->run[parcel->runs - 1].rows += rows;
	parcel->last_position = position;
}

void
geonn_parcel_add_row(Parcel *parcel, uint64 position, const PointRow *row)
{
	put_values(parcel, PARCEL_BY, 1, row->by);
	put_values(parcel, PARCEL_LIMITS, 1, row->limits);
	put_values(parcel, PARCEL_BY_IS_NULL, 1, row->by_is_null);
	geonn_parcel_add_block(parcel, position, 1, &row->id, &row->latitude, &row->longitude);
}

void
geonn_parcel_add_block(Parcel *parcel, uint64 position, uint32 rows, const Datum *ids,
					   const double *latitudes, const double *longitudes)
{
	add_to_run(parcel, position, rows);
	put_values(parcel, PARCEL_ID, rows, ids);
	put_values(parcel, PARCEL_LATITUDE, rows, latitudes);
	put_values(parcel, PARCEL_LONGITUDE, rows, longitudes);
	parcel->rows += rows;
}

/* ---- messages ---- */

bool
geonn_parcel_send(const Parcel *parcel, shm_mq_handle *queue)
{
	ParcelHeader header = {.rows = parcel->rows,.runs = parcel->runs};
	shm_mq_iovec message[2 + PARCEL_COLUMNS] = {
		{.data = (const char *) &header,.len = sizeof(header)},
		{.data = (const char *) parcel->run,.len = parcel->runs * sizeof(ParcelRun)}
	};

	for (int i = 0; i < PARCEL_COLUMNS; i++)
		message[2 + i] = (shm_mq_iovec) {.data = parcel->column[i],.len = parcel->rows * parcel->width[i]};
	return shm_mq_sendv(queue, message, lengthof(message), false, true) == SHM_MQ_SUCCESS;
}

void
geonn_parcel_open(Parcel *parcel, const PointSource *source, char *message, Size length)
{
	const ParcelHeader *header = (const ParcelHeader *) message;
	char	   *next = message + sizeof(ParcelHeader);

	begin(parcel, source);
	parcel->rows = header->rows;
	parcel->runs = header->runs;
	parcel->run = (ParcelRun *) next;
	next += parcel->runs * sizeof(ParcelRun);
	for (int i = 0; i < PARCEL_COLUMNS; i++)
	{
		parcel->column[i] = next;
		next += parcel->rows * parcel->width[i];
	}
	if (next != message + length)
		elog(ERROR, "a parcel of %zu bytes that says it has %u rows", length, header->rows);
}

/* ---- giving rows ---- */

bool
geonn_parcel_is_empty(const Parcel *parcel)
{
	return parcel->next_run == parcel->runs;
}

uint64
geonn_parcel_position(const Parcel *parcel)
{
	return parcel->run[parcel->next_run].position;
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
		consume_block(state, rows, values_of(parcel, PARCEL_ID, first),
					  values_of(parcel, PARCEL_LATITUDE, first),
					  values_of(parcel, PARCEL_LONGITUDE, first));
		return;
	}
	for (uint32 i = first; i < first + rows; i++)
	{
		PointRow	row = {
			.status = POINT_VALID,
			.id = *(Datum *) values_of(parcel, PARCEL_ID, i),
			.latitude = *(double *) values_of(parcel, PARCEL_LATITUDE, i),
			.longitude = *(double *) values_of(parcel, PARCEL_LONGITUDE, i),
			.by = values_of(parcel, PARCEL_BY, i),
			.by_is_null = values_of(parcel, PARCEL_BY_IS_NULL, i)
		};

		if (parcel->width[PARCEL_LIMITS] > 0)
		{
			memcpy(&limits, values_of(parcel, PARCEL_LIMITS, i), parcel->width[PARCEL_LIMITS]);
			row.limits = &limits;
		}
		consume(state, &row);
	}
}
