/*
 * live.c
 *		Questions of a few points, answered in this process from the base of a table.
 *
 * To ask the engine takes a round trip, and where a table has changed all of its references must be read and sent
 * first.  So for a few points and a plain table, this process keeps what it needs to answer alone, for each list of
 * columns to join by: a base, and what the table differs from it by (live_table.c).  The base is a file that stays with a
 * dataset of the engine, which has no references itself; so the engine keeps it among all that
 * geonn.kept_memory_limit allows, gives it to every process that asks, and lets go of it as of any other.
 *
 * Each process decides by what it has paid.  As long as it has no base, its questions go to the engine, and the time
 * until the references were there is noted.  Once that is as much as making a base takes, this process makes one.
 * So it pays at most twice what it would pay if it knew the future.  Where the table has changed, so that the engine
 * can keep no dataset of it, each question would have to read all references.  There the first call leaves a mark, which
 * is a dataset under the base's label that has no file, and goes to the engine; the second one, of whichever process,
 * makes a base at once.  Rows of a relation or a query as points go to the engine where it keeps the references; where it
 * would read all of them, for the second time in this process or if a base is there, these rows are counted, and few are
 * answered here.  (The base that another process leaves at the same moment may be replaced by such a mark.  Then
 * it is made once more.)
 *
 * Rows that were added since are read by each process, and compared one by one with each point; by what that has
 * taken, a new base is made in the same way as one for an unchanged table. An advisory lock leaves the making to
 * one of them; the others go on with what they have. Where most rows of a large base are not in the table any more,
 * as after an UPDATE of all rows, a look ends there: to read all others, and compare each with each point, takes
 * longer than a base does. Then a base is made at once, and all that need it wait for the process that makes it,
 * for a limited time. They poll the lock, so that nothing waits for them in a circle. A process that has waited in
 * vain makes none at once, and waits for none, for a minute. One whose snapshot differs from those of others for
 * longer than a statement takes, by its own changes or its isolation level, never does: their bases would replace
 * each other. If the making ends with an error other than that of a cancelled statement, the former base answers,
 * or the engine without one, and the log says why, once for each table and process. A statement that a timeout
 * of its own or of its transaction would end makes no base unless it has several times as long as that takes.
 *
 * Once a second at most, a process that has calls asks the engine again.  It learns of a newer base, or that the base
 * was let go of, and then does the same; a process without calls holds the memory longer.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "base/attempt.h"
#include "base/compat.h"
#include "base/settings.h"
#include "base/value.h"
#include "base/wait_event.h"
#include "client/client.h"
#include "client/connection.h"
#include "join/call.h"
#include "live/live.h"
#include "live/live_calls.h"
#include "pages/kept_dataset.h"

/* A process knows at most this many tables; a further one replaces the table that was used longest ago. */
#define TABLES_MOST	16

/* A process asks the engine for a base of a table again after this many milliseconds, or when it is to make one itself. */
#define ASKED_EVERY	1000

/*
 * Milliseconds that making a base takes for each reference, or each page, until the time has been measured; and that
 * adding a row takes, and comparing it with a point.
 */
#define MAKING		0.0002
#define MAKING_A_PAGE	0.03
#define ADDING		0.0002
#define COMPARING	0.000001

/* A statement makes a base only if it may take this many times as long. */
#define TIMES_MAKING	4

/* A base with this many rows is useless once most of them are no longer in the table. */
#define LARGE_BASE	50000

/* A session that waits for a base tries to get the lock each time after WAIT_POLL milliseconds, for at least WAIT_LEAST. */
#define WAIT_POLL	1
#define WAIT_LEAST	3000

/* A process that has waited in vain makes no base at once for this many milliseconds. */
#define GAVE_UP_FOR	60000

/* A process makes a base under an advisory lock of this class; locks that SQL takes have the classes 1 and 2. */
#define LOCK_CLASS	0x676E

#define FILE_PURPOSE	"a base of references"

struct LiveReferences
{
	uint8		subject[GEONN_SUBJECT_BYTES];
	Oid			relation;
	PageIdType	id_type;
	uint64		used;			/* when the references were last used: a number that rises with each use */

	MemoryContext context;		/* memory for the base, and for the table's differences from it; NULL: there is no base */
	LiveBase   *base;
	LiveTable  *table;
	GeonnGroups *groups;		/* the groups of the base, and of added rows; NULL: there are none */
	uint64		dataset;		/* the number of the dataset to which the base belongs */
	int32		srid;			/* as LiveBaseHead.srid, for the base and added rows */

	TimestampTz asked;			/* when this process last asked the engine; 0: never */
	double		paid;			/* milliseconds that a base, or a newer one, would have saved so far */
	double		making;			/* milliseconds that making a base takes; 0: not known */
	bool		again;			/* the engine has answered a call before: one of this process, or one of a process that
								 * has left a mark */
	bool		failed;			/* the last making came to nothing */
	bool		too_new;		/* the engine has another base, for which the present snapshot is too old */
	TimestampTz gave_up;		/* when this process waited in vain for another process to make a base; 0: never */
	bool		told;			/* the log already says why points are left to the engine */

	struct geonn_call message;	/* of the present call */
};

static LiveReferences *tables;	/* [TABLES_MOST], or NULL: none yet */
static int	table_count;

static MemoryContext
create_context(void)
{
	return AllocSetContextCreate(CurrentMemoryContext, "geonn live references", ALLOCSET_DEFAULT_SIZES);
}

/* ---- bases ---- */

static void
drop_base(LiveReferences *references)
{
	if (references->context != NULL)
		MemoryContextDelete(references->context);
	references->context = NULL;
	references->base = NULL;
	references->table = NULL;
	references->groups = NULL;
	references->dataset = 0;
	references->paid = 0;
}

/* Let go of a base that is useless, and do not take it again. */
static void
reject_base(LiveReferences *references)
{
	uint64		dataset = references->dataset;

	drop_base(references);
	references->dataset = dataset;
}

/*
 * Use this base and its groups, which are in the memory context, from now on.
 */
static void
use_base(LiveReferences *references, LiveBase *base, GeonnGroups *groups, MemoryContext context, uint64 dataset)
{
	MemoryContext former = MemoryContextSwitchTo(context);
	LiveTable  *table = geonn_live_table_begin(base, &references->id_type, groups);

	MemoryContextSwitchTo(former);
	drop_base(references);
	MemoryContextSetParent(context, TopMemoryContext);
	references->context = context;
	references->base = base;
	references->table = table;
	references->groups = groups;
	references->dataset = dataset;
	references->srid = base->head->srid;
	references->failed = false;
	references->gave_up = 0;
}

static struct geonn_label
make_label(const LiveReferences *references, TimestampTz version)
{
	struct geonn_label label = {0};

	memcpy(label.subject, references->subject, sizeof(label.subject));
	memcpy(label.version, &version, sizeof(version));
	return label;
}

/* Leave a mark with the engine: a call has had the engine read the references. */
static void
leave_mark(LiveReferences *references)
{
	static const uint8 is_mark = true;
	MemoryContext former = CurrentMemoryContext;
	MemoryContext context = create_context();
	struct geonn_label label = make_label(references, GetCurrentTimestamp());
	GeonnClient *client;

	MemoryContextSwitchTo(context);
	client = geonn_client_open(&geonn_live_no_question, &label, 1, &references->message);
	geonn_client_keep(client, label.version, &is_mark, sizeof(is_mark));
	geonn_live_end_client(client, &references->message);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	references->again = true;
}

/*
 * Take the base that the engine has, unless this process has it already.  If the engine has none, let go of
 * this process's base.
 */
static void
take_base(LiveReferences *references, const PointSource *source, GeonnClient *client, MemoryContext context)
{
	MemoryFile *file;
	MemoryFile *values = NULL;
	GeonnGroups *groups = NULL;
	LiveBase   *base;
	bool		was_kept = geonn_client_is_sealed(client);
	uint8		is_mark = false;

	references->too_new = false;
	if (was_kept)
		memcpy(&is_mark, geonn_client_note(client), sizeof(is_mark));
	references->again |= is_mark != 0;
	if (is_mark || !was_kept)
	{
		/* Without a base, what calls have paid so far still counts: a base would have saved it. */
		if (references->table != NULL)
			drop_base(references);
		return;
	}
	if (geonn_client_dataset(client) == references->dataset)
		return;
	MemoryContextSwitchTo(context);
	file = geonn_client_take_file(client, GEONN_FILE_BASE, FILE_PURPOSE);
	if (!references->id_type.by_value)
		values = geonn_client_take_file(client, GEONN_FILE_VALUES, FILE_PURPOSE);
	if (geonn_group_columns(source) > 0)
		groups = geonn_groups_of_base(source, geonn_client_take_file(client, GEONN_FILE_GROUPS, FILE_PURPOSE));
	base = geonn_live_base_open(file, values);
	if (base == NULL || (base->head->starts > 0) != (groups != NULL))
		geonn_connection_violation("a base of another form");
	/* An older snapshot may still need the older base. */
	references->too_new = TransactionIdPrecedes(GetActiveSnapshot()->xmin, (TransactionId) base->head->horizon);
	if (!geonn_live_base_is_old(base) && (references->table == NULL || !references->too_new))
		use_base(references, base, groups, context, geonn_client_dataset(client));
}

/*
 * Ask the engine for the table's base.
 */
static void
ask(LiveReferences *references, const PointSource *source)
{
	MemoryContext former = CurrentMemoryContext;
	MemoryContext call = create_context();
	MemoryContext context = create_context();
	struct geonn_label label = make_label(references, 0);
	GeonnClient *client;

	MemoryContextSwitchTo(call);
	client = geonn_client_find(&geonn_live_no_question, &label, &references->message);
	take_base(references, source, client, context);
	MemoryContextSwitchTo(call);
	geonn_live_end_client(client, &references->message);
	MemoryContextSwitchTo(former);
	if (references->context != context)
		MemoryContextDelete(context);
	MemoryContextDelete(call);
	references->asked = GetCurrentTimestamp();
}

/* Log, once for each table and process, that the engine answers single points, and why. */
static void
tell_left_to_engine(LiveReferences *references, const PointSource *source, int sqlstate, const char *detail,
					const char *hint)
{
	if (references->told)
		return;
	references->told = true;
	ereport(LOG,
			(errcode(sqlstate),
			 errmsg("this session leaves single points to be searched in %s to the geonn engine", source->title),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint),
			 errhidestmt(true)));
}

/* Log that something (`what`) takes more bytes than it may. */
static void
tell_too_large(LiveReferences *references, const PointSource *source, const char *what, uint64 bytes, uint64 most)
{
	tell_left_to_engine(references, source, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
						psprintf("%s takes at least %llu kB, more than %llu kB, the lower one of geonn.kept_memory_limit and geonn.session_memory_limit.",
								 what, (unsigned long long) bytes / 1024, (unsigned long long) most / 1024),
						"Where the table changes, each call reads it whole: raise these settings.");
}

/* Return how many bytes a base may have, and a table's differences from it. */
static uint64
most_bytes(void)
{
	return Min((uint64) geonn_kept_memory_limit * 1024 * 1024,
			   geonn_session_memory_limit < 0 ? PG_UINT64_MAX : (uint64) geonn_session_memory_limit * 1024);
}

/* Note that making a base has come to nothing, so that the next one is made later. */
static void
make_later(LiveReferences *references)
{
	references->making *= 2;
	references->failed = true;
}

/*
 * Make a base of the table, leave it with the engine, and use it.
 */
static void
make_base(LiveReferences *references, PageReader *reader)
{
	MemoryContext former = CurrentMemoryContext;
	MemoryContext context = create_context();
	uint64		most = most_bytes();
	struct geonn_label label = make_label(references, GetCurrentTimestamp());
	uint64		bytes;
	LiveBase   *base;
	GeonnClient *client;
	instr_time	begun;

	INSTR_TIME_SET_CURRENT(begun);
	MemoryContextSwitchTo(context);
	if (geonn_group_columns(reader->source) > 0)
		reader->groups = geonn_groups_of_base(reader->source, NULL);
	base = geonn_live_base_make(reader, most, &bytes);
	MemoryContextSwitchTo(former);
	if (base == NULL)
	{
		make_later(references);
		if (!reader->met_shape)
			tell_too_large(references, reader->source, "A base of the references", bytes, most);
		return;
	}
	references->making = geonn_milliseconds_since(begun);
	client = geonn_client_open(&geonn_live_no_question, &label, 1, &references->message);
	geonn_client_leave_file(client, GEONN_FILE_BASE, base->file);
	if (base->values != NULL)
		geonn_client_leave_file(client, GEONN_FILE_VALUES, base->values);
	if (reader->groups != NULL)
		geonn_groups_seal(reader->groups, client);
	geonn_client_keep(client, label.version, "", 0);
	geonn_client_seal(client, true);
	use_base(references, base, reader->groups, context, geonn_client_dataset(client));
	geonn_live_end_client(client, &references->message);
	geonn_memory_file_close_descriptor(base->file);
	if (base->values != NULL)
		geonn_memory_file_close_descriptor(base->values);
	if (reader->groups != NULL)
		geonn_groups_close_descriptor(reader->groups);
}

/* Return how many milliseconds making a base of this table may take. */
static double
time_to_make(const LiveReferences *references, Relation relation)
{
	return TIMES_MAKING * Max(references->making, RelationGetNumberOfBlocks(relation) * MAKING_A_PAGE);
}

/* Return whether the statement and its transaction have enough time left to make a base of this table. */
static bool
has_time(const LiveReferences *references, Relation relation)
{
	static const TimeoutId timeouts[] = {STATEMENT_TIMEOUT, TRANSACTION_TIMEOUT};

	for (size_t i = 0; i < lengthof(timeouts); i++)
		if (get_timeout_active(timeouts[i]) &&
			TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
											get_timeout_finish_time(timeouts[i])) <= time_to_make(references, relation))
			return false;
	return true;
}

typedef struct Making
{
	LiveReferences *references;
	PageReader *reader;
	bool		waits;			/* this process may wait for another one that makes a base */
	bool		begun;			/* this process makes a base */
} Making;

/*
 * Get the lock under which a base is made.  Returns false if another process has the lock, and this process does not
 * wait, or has waited long enough, or its statement has no time left to make a base.
 */
static bool
lock_making(const Making *making)
{
	LiveReferences *references = making->references;
	Relation	relation = making->reader->relation;
	double		most = Max(time_to_make(references, relation), WAIT_LEAST);
	instr_time	begun;
	LOCKTAG		tag;

	INSTR_TIME_SET_CURRENT(begun);
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, references->relation, 0, LOCK_CLASS);
	while (LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
	{
		if (!making->waits)
			return false;
		if (geonn_milliseconds_since(begun) > most || !has_time(references, relation))
		{
			references->gave_up = GetCurrentTimestamp();
			return false;
		}
		geonn_pause(GEONN_WAIT_BASE, WAIT_POLL);
	}
	return true;
}

/* Make a base, under the lock, unless another process has made one meanwhile. */
static void
make_base_alone(void *state)
{
	Making	   *making = state;
	LiveReferences *references = making->references;
	uint64		dataset = references->dataset;
	LOCKTAG		tag;

	if (!lock_making(making))
		return;
	ask(references, making->reader->source);
	if (!references->too_new && (references->table == NULL || references->dataset == dataset) &&
		has_time(references, making->reader->relation))
	{
		making->begun = true;
		make_base(references, making->reader);
	}
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, references->relation, 0, LOCK_CLASS);
	LockRelease(&tag, ExclusiveLock, false);
}

/*
 * Make a base, unless another process is making one.  If that fails, for lack of memory for example, the former
 * base answers, or the engine if there is none.
 */
static void
try_to_make_base(LiveReferences *references, PageReader *reader, bool waits)
{
	MemoryContext former = CurrentMemoryContext;
	MemoryContext context = create_context();
	Making		making = {.references = references,.reader = reader,.waits = waits};
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	error = geonn_attempt(make_base_alone, &making);
	MemoryContextSwitchTo(former);
	if (error != NULL)
	{
		if (making.begun)
			make_later(references);
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
			ReThrowError(error);
		tell_left_to_engine(references, reader->source, error->sqlerrcode,
							psprintf("A base of the references could not be made: %s", error->message),
							error->hint != NULL ? error->hint : "A later call tries again.");
	}
	MemoryContextDelete(context);
}

/* ---- tables ---- */

static LiveReferences *
find_table(const uint8 *subject)
{
	for (int i = 0; i < table_count; i++)
	{
		if (memcmp(tables[i].subject, subject, GEONN_SUBJECT_BYTES) == 0)
			return &tables[i];
	}
	return NULL;
}

static LiveReferences *
add_table(const uint8 *subject, Oid relation, const PointSource *source)
{
	LiveReferences *references;

	if (tables == NULL)
		tables = MemoryContextAllocZero(TopMemoryContext, TABLES_MOST * sizeof(LiveReferences));
	references = &tables[0];
	if (table_count < TABLES_MOST)
		references = &tables[table_count++];
	for (int i = 0; i < table_count && references->used != 0; i++)
	{
		if (tables[i].used < references->used)
			references = &tables[i];
	}
	drop_base(references);

	/*
	 * The subject has changed, mostly because the relation has another file now, or other columns: its
	 * former bases are useless.
	 */
	for (int i = 0; i < table_count; i++)
	{
		if (tables[i].relation == relation)
			drop_base(&tables[i]);
	}
	memset(references, 0, sizeof(*references));
	memcpy(references->subject, subject, GEONN_SUBJECT_BYTES);
	references->relation = relation;
	(void) geonn_page_id_type(source, &references->id_type);
	return references;
}

LiveReferences *
geonn_live_find(const PointSource *source, const PlainTable *table, const struct geonn_call *message)
{
	static uint64 uses = 0;
	/* No dataset of references has the columns PG_UINT32_MAX, so a subject with them belongs to a base. */
	GeonnQuestion question = {.columns = PG_UINT32_MAX};
	uint8		subject[GEONN_SUBJECT_BYTES];
	Relation	relation = table_open(table->table, NoLock);
	bool		shows_changes = geonn_describe_pages(source, relation, table->attributes, &question, subject);
	LiveReferences *references;

	table_close(relation, NoLock);
	if (!shows_changes)
		return NULL;
	references = find_table(subject);
	if (references == NULL)
		references = add_table(subject, table->table, source);
	references->used = ++uses;
	references->message = *message;
	return references;
}

/* ---- calls ---- */

static bool
is_to_be_asked(const LiveReferences *references)
{
	return references->asked == 0 ||
		TimestampDifferenceExceeds(references->asked, GetCurrentTimestamp(), ASKED_EVERY);
}

static bool
wants_base(const LiveReferences *references)
{
	return references->making > 0 && references->paid >= references->making;
}

static void
ask_now_and_then(LiveReferences *references, const PointSource *source)
{
	if (!is_to_be_asked(references))
		return;
	ask(references, source);
	geonn_live_count_calls();
}

bool
geonn_live_is_likely(LiveReferences *references, const PointSource *source)
{
	ask_now_and_then(references, source);
	return references->table != NULL || (references->again && !references->failed);
}

/* Return how many rows of the base may be missing in the table before another base is made at once. */
static uint64
most_masked(const LiveReferences *references, Relation relation)
{
	uint32		rows = references->base->head->rows;

	if (rows < LARGE_BASE || references->failed || IsolationUsesXactSnapshot() ||
		TransactionIdIsValid(GetTopTransactionIdIfAny()) || !has_time(references, relation) ||
		(references->gave_up != 0 &&
		 !TimestampDifferenceExceeds(references->gave_up, GetCurrentTimestamp(), GAVE_UP_FOR)))
		return PG_UINT64_MAX;
	return rows / 2;
}

/*
 * After a look, note the SRID of the values that it found.  Returns false, and lets go of the base, if that is not the one
 * of the base: the engine reads whether all values have the new one, or which row is wrong.
 */
static bool
settle_srid(LiveReferences *references, GeonnTransform *transform)
{
	bool		is_mixed = geonn_transform_is_mixed(transform);

	if (is_mixed)
		reject_base(references);
	else if (transform != NULL)
		references->srid = geonn_transform_srid(transform);
	geonn_transform_restart(transform, 0, false);
	return !is_mixed;
}

/* Look at the table with the active snapshot.  Returns false if the base does not tell which rows the snapshot sees. */
static bool
look(LiveReferences *references, const PointSource *source, const PlainTable *table, Relation relation)
{
	uint64		most = most_masked(references, relation);

	for (;;)
	{
		PageReader *reader = geonn_page_reader(source, table->attributes, relation, GetActiveSnapshot());
		LiveLook	ended;

		reader->groups = references->groups;
		geonn_transform_restart(source->transform, references->srid, true);
		ended = geonn_live_table_look(references->table, reader, most_bytes(), most);
		if (!settle_srid(references, source->transform))
			return false;
		if (ended != LIVE_LOOK_LACKS_MOST)
			return ended == LIVE_LOOK_COMPLETE;
		try_to_make_base(references, geonn_page_reader(source, table->attributes, relation, GetActiveSnapshot()), true);
		if (references->table == NULL)
			return false;
		most = PG_UINT64_MAX;
	}
}

bool
geonn_live_look(LiveReferences *references, const PointSource *source, const PlainTable *table, bool make)
{
	Snapshot	snapshot = GetActiveSnapshot();
	uint64		most = most_bytes();
	Relation	relation;
	bool		found;

	ask_now_and_then(references, source);
	if (references->table != NULL && geonn_live_base_is_old(references->base))
		reject_base(references);
	if (references->table != NULL && geonn_live_table_is_current(references->table, snapshot) &&
		!wants_base(references))
		return true;
	relation = table_open(table->table, NoLock);
	make = make && !references->failed && references->table == NULL;
	if (make && !references->again)
	{
		leave_mark(references);
		make = false;
	}
	if ((make || wants_base(references)) && has_time(references, relation))
		try_to_make_base(references, geonn_page_reader(source, table->attributes, relation, snapshot), false);
	found = references->table != NULL && look(references, source, table, relation);
	table_close(relation, NoLock);
	if (references->table != NULL && geonn_live_table_bytes(references->table) > most)
	{
		/* The engine answers until it has another base; making one is useless if it would soon be too large again. */
		references->failed = geonn_live_table_difference(references->table).added == 0;
		tell_too_large(references, source, "What the table differs by from a base of the references",
					   geonn_live_table_bytes(references->table), most);
		reject_base(references);
		return false;
	}
	return found;
}

bool
geonn_live_has_room_for_all(const LiveReferences *references)
{
	return geonn_live_table_all_bytes(references->table) <= most_bytes();
}

const LiveTable *
geonn_live_table(const LiveReferences *references)
{
	return references->table;
}

GeonnGroups *
geonn_live_groups(const LiveReferences *references)
{
	return references->groups;
}

void
geonn_live_note_engine(LiveReferences *references, double milliseconds, uint64 count)
{
	if (references->making == 0)
		references->making = MAKING * count;
	references->paid += milliseconds;
	references->again = true;
}

void
geonn_live_note_call(LiveReferences *references, const struct geonn_finished *work)
{
	TableDifference difference = geonn_live_table_difference(references->table);

	references->paid += difference.added_now * ADDING + difference.compared * work->observations * COMPARING;
	if (references->making == 0)
		references->making = MAKING * geonn_live_table_counts(references->table)[POINT_VALID];
	geonn_live_add_call(&references->message, work);
}
