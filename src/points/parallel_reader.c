/*
 * parallel_reader.c
 *		Tables that parallel workers read for one process.
 *
 * One process sends the references, and with a large table it spends most of that time in
 * reading.  So workers divide the pages of the tables between them, as in a parallel scan,
 * find the points in them, and send these in parcels, each through a queue of its own.
 * A parcel has valid rows whose values are all passed by value, column by column, and
 * where they came from: runs of rows whose pages follow one another.  Taking the parcels
 * in is little work for this process; between them it reads pages, too.
 *
 * This process passes the rows on in the order of their pages, as if it had read all of
 * them itself: references that come in the order of ids need not be sorted.  For that it always
 * takes the run with the first page of all that the processes have found.  So it needs a
 * run from each process, unless one has ended, or has not begun: a process that begins
 * later finds pages that are read after all that the others have.  The waits are short, since
 * all processes go through the tables together, a small number of pages
 * at a time.  They make no circle: a worker whose queue is full waits for this process,
 * and this process waits only for workers with an empty queue, which are reading.
 *
 * With synchronize_seqscans a reading of a large table may begin in the middle, where another one is, and goes on with the
 * first page after the last, be it by one process or by several.  Then rows come in another order, and references are
 * sorted.  Only time depends on the order: each page is read once.
 *
 * When geonn_read_in_parallel returns, the workers have done their work, and their processes
 * exit.  Each takes some milliseconds to unmap shared memory, while the caller does other work.
 * Then geonn_end_readers waits for them, so that the statement can launch other workers.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "tcop/tcopprot.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"
#include "utils/wait_event.h"

#include "points/parallel_reader.h"

/* bytes of a worker's queue: room for a few parcels */
#define QUEUE_BYTES ((Size) 1024 * 1024)

/*
 * The planner's settings are for a scan by the executor, which takes longer for a page:
 * so this many pages read here count as one of those.
 */
#define PAGES_PER_PAGE	4

/* keys of the table of contents */
enum
{
	KEY_READING,
	KEY_COLUMNS,
	KEY_TITLE,
	KEY_QUERY,
	KEY_TABLES,
	KEY_QUEUES,					/* [workers] */
	KEY_USAGE,					/* [workers] */
	KEYS
};

/* what the processes share beside the tables and queues */
typedef struct SharedReading
{
	PointSource source;			/* its pointers are the leader's: columns, title and query have keys of their
								 * own, and a worker looks up the types of windows */
	pg_atomic_uint64 begun;		/* a bit for each worker that has begun */
	pg_atomic_uint32 ended;		/* workers that have read all their pages */
	pg_atomic_uint64 counts[POINT_STATUSES];	/* how many of their rows have each status */
} SharedReading;

/* what a worker's reading has cost */
typedef struct Usage
{
	BufferUsage buffers;
	WalUsage	wal;
} Usage;

/* how many rows a parcel has room for: 200 kB of ids and coordinates */
#define PARCEL_ROWS 8192

/* rows of consecutive pages */
typedef struct ParcelRun
{
	uint64		position;		/* the position of the first page (geonn_reading_position) */
	uint64		rows;
} ParcelRun;

/* the columns, those of the widest alignment first */
typedef enum ParcelColumn
{
	PARCEL_ID,					/* a Datum */
	PARCEL_LATITUDE,			/* a double */
	PARCEL_LONGITUDE,
	PARCEL_BY,					/* by_count Datums */
	PARCEL_LIMITS,				/* the first bytes of GeonnLimits */
	PARCEL_BY_IS_NULL			/* by_count bools */
} ParcelColumn;

#define PARCEL_COLUMNS (PARCEL_BY_IS_NULL + 1)

typedef struct Parcel
{
	uint32		rows;
	uint32		runs;
	ParcelRun  *run;			/* [runs] */
	char	   *column[PARCEL_COLUMNS];	/* the values of all rows */
	Size		width[PARCEL_COLUMNS];	/* bytes of a row; 0: rows have no such values */

	uint64		last_position;	/* the page of the row that was added last */
	uint32		next_run;		/* the first run still to be given to the consumer */
	uint32		next_row;		/* the first row of that run */
} Parcel;

/* header of a parcel's message; its runs follow, then the used part of each column */
typedef struct ParcelHeader
{
	uint32		rows;
	uint32		runs;
} ParcelHeader;

/* a process that reads, as the leader sees it; a worker has one for itself */
typedef struct Member
{
	shm_mq_handle *queue;		/* a worker's queue; NULL: this process */
	PointReading *reading;		/* reads this process's share of the pages; NULL: a worker */
	Parcel		parcel;			/* rows that it has read, or sent */
	bool		ended;			/* no more rows will come */
} Member;

/* the greatest number of workers: begun has a bit for each */
#define MOST_WORKERS 64

extern PGDLLEXPORT void geonn_read_points_worker(dsm_segment *segment, shm_toc *contents);

/* ---- parcels ---- */

static void
begin_parcel(Parcel *parcel, const PointSource *source)
{
	*parcel = (Parcel)
	{
		.width = {
			[PARCEL_ID] = sizeof(Datum),
			[PARCEL_LATITUDE] = sizeof(double),
			[PARCEL_LONGITUDE] = sizeof(double),
			[PARCEL_BY] = source->by_count * sizeof(Datum),
			[PARCEL_LIMITS] = geonn_limits_bytes_of(source),
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

/*
 * Send the parcel; waits while the queue is full.  False: the receiver has detached.
 */
static bool
send_parcel(const Parcel *parcel, shm_mq_handle *queue)
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

/*
 * Open a received parcel with rows of this source; it lives as long as the message.
 */
static void
open_parcel(Parcel *parcel, const PointSource *source, char *message, Size length)
{
	const ParcelHeader *header = (const ParcelHeader *) message;
	char	   *next = message + sizeof(ParcelHeader);

	begin_parcel(parcel, source);
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

/*
 * Have all rows been given to the consumer?
 */
static bool
is_empty(const Parcel *parcel)
{
	return parcel->next_run == parcel->runs;
}

/*
 * The position of the next run to give.
 */
static uint64
position_of(const Parcel *parcel)
{
	return parcel->run[parcel->next_run].position;
}

/*
 * Give the next run to consume_block, or, if that is NULL, row by row to consume.
 */
static void
give_run(Parcel *parcel, PointConsumer consume, PointBlockConsumer consume_block, void *state)
{
	uint32		first = parcel->next_row;
	uint32		rows = (uint32) parcel->run[parcel->next_run].rows;
	GeonnLimits limits = {0};

	Assert(parcel->next_run < parcel->runs && first + rows <= parcel->rows);
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

/* ---- reading a share ---- */

static void
add_block(void *state, uint32 rows, const Datum *ids, const double *latitudes,
		  const double *longitudes)
{
	Member	   *self = state;
	Parcel	   *parcel = &self->parcel;

	add_to_run(parcel, geonn_reading_position(self->reading), rows);
	put_values(parcel, PARCEL_ID, rows, ids);
	put_values(parcel, PARCEL_LATITUDE, rows, latitudes);
	put_values(parcel, PARCEL_LONGITUDE, rows, longitudes);
	parcel->rows += rows;
}

static void
add_row(void *state, const PointRow *row)
{
	Parcel	   *parcel = &((Member *) state)->parcel;

	if (row->status != POINT_VALID)
		return;
	put_values(parcel, PARCEL_BY, 1, row->by);
	put_values(parcel, PARCEL_LIMITS, 1, row->limits);
	put_values(parcel, PARCEL_BY_IS_NULL, 1, row->by_is_null);
	add_block(state, 1, &row->id, &row->latitude, &row->longitude);
}

static void
begin_share(Member *self, const PointSource *source, SharedTables *tables)
{
	begin_parcel(&self->parcel, source);
	self->parcel.run = palloc(PARCEL_ROWS * sizeof(ParcelRun));
	for (int i = 0; i < PARCEL_COLUMNS; i++)
		self->parcel.column[i] = palloc(PARCEL_ROWS * self->parcel.width[i]);
	self->reading = geonn_reading_attach(source, GEONN_INVALID_COUNTED, tables, add_row, self);
	geonn_reading_in_blocks(self->reading, add_block);
}

static void
read_share(Member *self)
{
	self->parcel.rows = self->parcel.runs = 0;
	self->parcel.next_row = self->parcel.next_run = 0;
	self->ended = !geonn_reading_next(self->reading, PARCEL_ROWS);
}

/* ---- a worker ---- */

void
geonn_read_points_worker(dsm_segment *segment, shm_toc *contents)
{
	SharedReading *shared = shm_toc_lookup(contents, KEY_READING, false);
	PointSource *source = palloc(sizeof(PointSource));
	char	   *queues = shm_toc_lookup(contents, KEY_QUEUES, false);
	Usage	   *usage = (Usage *) shm_toc_lookup(contents, KEY_USAGE, false) + ParallelWorkerNumber;
	shm_mq	   *queue = (shm_mq *) (queues + ParallelWorkerNumber * QUEUE_BYTES);
	Member		self = {0};

	Assert(ParallelWorkerNumber < MOST_WORKERS);
	*source = shared->source;
	source->columns = shm_toc_lookup(contents, KEY_COLUMNS, false);
	source->by = source->columns + COLUMN_ROLES;
	source->windows = source->by + source->by_count;
	source->weights = source->windows + source->window_count;
	source->title = shm_toc_lookup(contents, KEY_TITLE, false);
	source->query = shm_toc_lookup(contents, KEY_QUERY, false);
	for (int i = 0; i < source->window_count; i++)
		(void) geonn_window_find_type(source->windows[i].type, &source->window_types[i]);
	debug_query_string = source->query;
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	shm_mq_set_sender(queue, MyProc);
	self.queue = shm_mq_attach(queue, segment, NULL);
	InstrStartParallelQuery();

	begin_share(&self, source, shm_toc_lookup(contents, KEY_TABLES, false));
	pg_atomic_fetch_or_u64(&shared->begun, UINT64CONST(1) << ParallelWorkerNumber);
	while (!self.ended)
	{
		read_share(&self);

		/* if the leader no longer receives, the statement has failed, and this worker ends */
		if (self.parcel.rows > 0 && !send_parcel(&self.parcel, self.queue))
			break;
	}
	geonn_reading_end(self.reading);

	for (int i = 0; i < POINT_STATUSES; i++)
		pg_atomic_fetch_add_u64(&shared->counts[i],
								(int64) geonn_reading_counts(self.reading)[i]);
	pg_atomic_fetch_add_u32(&shared->ended, 1);
	InstrEndParallelQuery(&usage->buffers, &usage->wal);
	shm_mq_detach(self.queue);
}

/* ---- whether workers are worth it ---- */

/*
 * Can values of this type be in parcels, and this process compare and hash them in parallel mode?
 */
static bool
may_be_in_parcels(Oid type)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_EQ_OPR | TYPECACHE_CMP_PROC | TYPECACHE_HASH_PROC);
	Oid			functions[] = {get_opcode(entry->eq_opr), entry->cmp_proc, entry->hash_proc};

	for (int i = 0; i < (int) lengthof(functions); i++)
	{
		if (OidIsValid(functions[i]) && func_parallel(functions[i]) == PROPARALLEL_UNSAFE)
			return false;
	}
	return get_typbyval(type);
}

static bool
has_parcels(const PointSource *source)
{
	if (geonn_has_shapes(source))
		return false;
	for (int i = 0; i < source->by_count; i++)
	{
		if (!may_be_in_parcels(source->by[i].base_type))
			return false;
	}
	return may_be_in_parcels(source->columns[COLUMN_ID].base_type);
}

int
geonn_count_readers(List *tables, int pages_as_one)
{
	RelOptInfo *all = makeNode(RelOptInfo);
	double		pages = 0;
	ListCell   *cell;

	if (tables == NIL || max_parallel_workers_per_gather == 0)
		return 0;
	all->reloptkind = RELOPT_BASEREL;
	all->rel_parallel_workers = -1;
	foreach(cell, tables)
	{
		Oid			oid = ((PlainTable *) lfirst(cell))->table;
		Relation	table;

		/* temporary tables are in this process's memory */
		if (get_rel_persistence(oid) == RELPERSISTENCE_TEMP)
			return 0;
		table = table_open(oid, NoLock);
		pages += RelationGetNumberOfBlocks(table);
		if (list_length(tables) == 1)
			all->rel_parallel_workers = RelationGetParallelWorkers(table, -1);
		table_close(table, NoLock);
	}
	return compute_parallel_worker(all, pages / pages_as_one, -1,
								   Min(max_parallel_workers_per_gather, MOST_WORKERS));
}

/* ---- sharing ---- */

static void
chunk_sizes(const PointSource *source, List *tables, int workers, Size *sizes)
{
	sizes[KEY_READING] = sizeof(SharedReading);
	sizes[KEY_COLUMNS] = mul_size(source->column_count, sizeof(PointColumn));
	sizes[KEY_TITLE] = strlen(source->title) + 1;
	sizes[KEY_QUERY] = strlen(source->query) + 1;
	sizes[KEY_TABLES] = geonn_share_tables(NULL, tables, source->query_columns, GetActiveSnapshot());
	sizes[KEY_QUEUES] = mul_size(workers, QUEUE_BYTES);
	sizes[KEY_USAGE] = mul_size(workers, sizeof(Usage));
}

static shm_mq *
queue_of(ParallelContext *context, int worker)
{
	char	   *queues = shm_toc_lookup(context->toc, KEY_QUEUES, false);

	return (shm_mq *) (queues + worker * QUEUE_BYTES);
}

static SharedReading *
share_all(ParallelContext *context, const PointSource *source, List *tables, const Size *sizes)
{
	void	   *chunks[KEYS];
	SharedReading *shared;

	for (int key = 0; key < KEYS; key++)
	{
		chunks[key] = shm_toc_allocate(context->toc, sizes[key]);
		shm_toc_insert(context->toc, key, chunks[key]);
	}
	shared = chunks[KEY_READING];
	shared->source = *source;
	memcpy(chunks[KEY_COLUMNS], source->columns, sizes[KEY_COLUMNS]);
	memcpy(chunks[KEY_TITLE], source->title, sizes[KEY_TITLE]);
	memcpy(chunks[KEY_QUERY], source->query, sizes[KEY_QUERY]);
	pg_atomic_init_u64(&shared->begun, 0);
	pg_atomic_init_u32(&shared->ended, 0);
	for (int i = 0; i < POINT_STATUSES; i++)
		pg_atomic_init_u64(&shared->counts[i], 0);
	(void) geonn_share_tables(chunks[KEY_TABLES], tables, source->query_columns, GetActiveSnapshot());
	for (int i = 0; i < context->nworkers; i++)
		shm_mq_set_receiver(shm_mq_create(queue_of(context, i), QUEUE_BYTES), MyProc);
	return shared;
}

/* ---- giving rows ---- */

/*
 * Receive what a worker has sent.  Returns false if nothing has come yet.
 */
static bool
receive(Member *worker, const PointSource *source)
{
	void	   *message;
	Size		length;

	switch (shm_mq_receive(worker->queue, &length, &message, true))
	{
		case SHM_MQ_WOULD_BLOCK:
			return false;
		case SHM_MQ_DETACHED:
			worker->ended = true;
			return true;
		default:
			open_parcel(&worker->parcel, source, message, length);
			return true;
	}
}

/*
 * Have every process offer rows.  Returns false if a worker may have found rows
 * that it has not sent yet, and that come before all that is offered.
 */
static bool
all_offer(Member *members, int count, const PointSource *source, SharedReading *shared)
{
	Member	   *self = &members[count - 1];
	uint64		begun;
	bool		complete = true;

	while (!self->ended && is_empty(&self->parcel))
		read_share(self);

	/* a barrier: a worker that has not begun gets pages after this process's */
	begun = self->ended ? PG_UINT64_MAX : pg_atomic_fetch_or_u64(&shared->begun, 0);
	for (int i = 0; i < count - 1; i++)
	{
		Member	   *worker = &members[i];

		if (!worker->ended && is_empty(&worker->parcel) &&
			!receive(worker, source) && (begun & (UINT64CONST(1) << i)) != 0)
			complete = false;
	}
	return complete;
}

/*
 * The process that offers the first run in the order of pages; NULL if all have
 * ended.
 */
static Member *
first_of(Member *members, int count)
{
	Member	   *first = NULL;

	for (int i = 0; i < count; i++)
	{
		Member	   *member = &members[i];

		if (!is_empty(&member->parcel) &&
			(first == NULL ||
			 position_of(&member->parcel) < position_of(&first->parcel)))
			first = member;
	}
	return first;
}

static void
give_all(ParallelContext *context, const PointSource *source, SharedReading *shared,
		 Member *members, PointConsumer consume, PointBlockConsumer consume_block, void *state)
{
	int			count = context->nworkers_launched + 1;
	Member	   *first;

	for (int i = 0; i < context->nworkers_launched; i++)
		members[i].queue = shm_mq_attach(queue_of(context, i), context->seg,
										 context->worker[i].bgwhandle);
	begin_share(&members[count - 1], source, shm_toc_lookup(context->toc, KEY_TABLES, false));
	members[count - 1].ended = !parallel_leader_participation;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (!all_offer(members, count, source, shared))
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1,
							 WAIT_EVENT_EXECUTE_GATHER);
			ResetLatch(MyLatch);
			continue;
		}
		first = first_of(members, count);
		if (first == NULL)
			break;
		give_run(&first->parcel, consume, consume_block, state);
	}
	for (int i = 0; i < context->nworkers_launched; i++)
		shm_mq_detach(members[i].queue);
}

/*
 * No worker has anything left to do: check that all have read their share, and
 * add their counts.
 */
static void
finish(ParallelContext *context, SharedReading *shared, const Member *self, uint64 *counts)
{
	Usage	   *usage = shm_toc_lookup(context->toc, KEY_USAGE, false);

	WaitForParallelWorkersToFinish(context);
	if (pg_atomic_read_u32(&shared->ended) != (uint32) context->nworkers_launched)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a parallel worker ended before it had read its part of the references"),
				 errhint("Run the statement again; the server log says why the worker ended.")));
	for (int i = 0; i < context->nworkers_launched; i++)
		InstrAccumParallelQuery(&usage[i].buffers, &usage[i].wal);
	for (int i = 0; i < POINT_STATUSES; i++)
		counts[i] = pg_atomic_read_u64(&shared->counts[i]) + geonn_reading_counts(self->reading)[i];
}

int
geonn_read_in_parallel(const PointSource *source, List *tables, PointConsumer consume,
					   PointBlockConsumer consume_block, void *state, uint64 *counts, ParallelContext **readers)
{
	int			workers = IsParallelWorker() || max_parallel_workers == 0 || !has_parcels(source) ? 0 :
		geonn_count_readers(tables, PAGES_PER_PAGE);
	Size		sizes[KEYS];
	ParallelContext *context;

	if (workers == 0)
		return 0;
	Assert(workers <= MOST_WORKERS);
	EnterParallelMode();
	context = CreateParallelContext("geonn", "geonn_read_points_worker", workers);
	chunk_sizes(source, tables, workers, sizes);
	for (int key = 0; key < KEYS; key++)
		shm_toc_estimate_chunk(&context->estimator, sizes[key]);
	shm_toc_estimate_keys(&context->estimator, KEYS);
	InitializeParallelDSM(context);
	workers = 0;

	/* without shared memory PostgreSQL launches no workers */
	if (context->nworkers > 0)
	{
		SharedReading *shared = share_all(context, source, tables, sizes);

		LaunchParallelWorkers(context);
		workers = context->nworkers_launched;
		if (workers > 0)
		{
			Member	   *members = palloc0((workers + 1) * sizeof(Member));

			give_all(context, source, shared, members, consume, consume_block, state);
			finish(context, shared, &members[workers], counts);
			geonn_reading_end(members[workers].reading);
		}
	}
	*readers = context;
	if (workers == 0)
		geonn_end_readers(context);
	return workers;
}

void
geonn_end_readers(ParallelContext *readers)
{
	Assert(IsInParallelMode());
	DestroyParallelContext(readers);
	ExitParallelMode();
}
