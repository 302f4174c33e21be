/*
 * join_prepare.c
 *		The references of a join: read and sent to the engine, or found there.
 *
 * First the caller's privilege to read the references is checked.  A few given points are
 * then answered in this process, if it can know the references (live.c).  Otherwise
 * a table's state is looked up among the datasets that the engine keeps (kept_dataset.c);
 * where none fits, a few rows of a relation or a query are answered like given points, or the
 * references are read, from large tables by parallel workers (points/parallel_reader.c), or by the caller,
 * and labelled by the table's state after that.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "common/protocol.h"
#include "join/join_prepare.h"
#include "join/kept_dataset.h"
#include "join/live_calls.h"
#include "points/parallel_reader.h"
#include "base/settings.h"
#include "base/value.h"

/* the note that stays with kept references */
typedef struct KeptNote
{
	uint64		counts[POINT_STATUSES]; /* as in PreparedJoin */
	uint64		part_bytes;		/* geonn_reference_memory_part_bytes */
	uint8		words[GEONN_WEIGHTS_MAX];	/* geonn_reference_memory_words */
} KeptNote;

StaticAssertDecl(sizeof(KeptNote) <= GEONN_NOTE_BYTES, "a note has no room");

const PointColumn *
geonn_observation_id(const GeonnJoin *join)
{
	static const PointColumn number = {
		.name = "ord",
		.type = INT8OID,
		.typmod = -1,
		.base_type = INT8OID
	};

	return join->given != NULL ? &number : &join->observations->columns[COLUMN_ID];
}

static void
consume_reference(void *state, const PointRow *row)
{
	const PreparedJoin *prepared = state;
	MemoryContext former;
	GeonnPointColumns columns = {.limits = row->limits};
	bool		may_be_candidate = true;

	if (row->status != POINT_VALID || geonn_row_is_limited_to_none(row))
		return;
	MemoryContextReset(prepared->row_context);
	former = MemoryContextSwitchTo(prepared->row_context);
	if (prepared->groups != NULL)
	{
		columns.group = geonn_groups_add(prepared->groups, row->by, row->by_is_null);
		may_be_candidate = columns.group != GEONN_NO_GROUP;
	}
	for (int i = 0; i < GEONN_PARTIES_MAX && prepared->parties[i] != NULL && may_be_candidate; i++)
	{
		columns.party[i] = geonn_groups_add(prepared->parties[i], row->by, row->by_is_null);
		may_be_candidate = columns.party[i] != GEONN_NO_GROUP;
	}
	if (may_be_candidate)
		geonn_references_add(prepared->references, prepared->client, row, &columns);
	MemoryContextSwitchTo(former);
}

/*
 * Add valid references without groups and limits.
 */
static void
consume_references(void *state, uint32 rows, const Datum *ids, const double *latitudes,
				   const double *longitudes)
{
	const PreparedJoin *prepared = state;

	geonn_references_add_block(prepared->references, prepared->client, rows, ids, latitudes,
							   longitudes, NULL);
}

static GeonnQuestion
make_question(const GeonnJoin *join, const GeonnResultRow *row)
{
	GeonnQuestion question = join->question;
	const PointSource *observations = join->observations;
	const PointSource *references = join->references;

	Assert(observations == NULL || observations->window_count == references->window_count);
	get_typlenbyval(geonn_observation_id(join)->base_type, &question.id_length,
					&question.id_by_value);
	/* ids that no row shows are not copied */
	if ((row->needs & GEONN_NEEDS_OBSERVATION_ID) == 0)
	{
		question.id_by_value = true;
		question.id_length = sizeof(Datum);
	}
	question.unmatched = join->keep_unmatched;
	question.places = geonn_has_shapes(references) && (row->needs & GEONN_NEEDS_REFERENCE_COORDINATES) != 0;
	if (question.radii > 0)
	{
		question.extremes = (row->needs & GEONN_NEEDS_EXTREMES) != 0;
		question.k = question.radii * geonn_question_pairs_of_radius(&question);
	}
	question.columns = (geonn_group_columns(references) > 0 ? GEONN_COLUMN_GROUP : 0) |
		((1u << references->differs_count) - 1) * GEONN_COLUMN_PARTY |
		(join->exclude_self ? GEONN_COLUMN_EXCLUDED : 0) |
		((1u << references->window_count) - 1) * GEONN_COLUMN_WINDOW |
		((1u << question.weights) - 1) * GEONN_COLUMN_WEIGHT |
		(geonn_has_shapes(references) ? GEONN_COLUMN_ARC : 0);
	/* where one side alone has a radius, the points of the other have an infinite one */
	if (geonn_has_radius(references) || join->given_radius ||
		(observations != NULL && geonn_has_radius(observations)))
		question.columns |= GEONN_COLUMN_RADIUS;
	return question;
}

/*
 * The data that references need.  Integer ids cost nothing, so references always have them: one dataset
 * serves calls with and without ids.
 */
static ReferenceDetail
needed_detail(const GeonnJoin *join, const GeonnResultRow *row)
{
	/* the engine finds the places of shapes; they show which of those at one distance is the first by its id */
	if ((row->needs & GEONN_NEEDS_REFERENCE_COORDINATES) != 0)
		return geonn_has_shapes(join->references) ? REFERENCE_ID : REFERENCE_COORDINATES;
	if ((row->needs & GEONN_NEEDS_REFERENCE_ID) != 0 || join->exclude_self ||
		geonn_integer_width(join->references->columns[COLUMN_ID].base_type) > 0)
		return REFERENCE_ID;
	return REFERENCE_DISTANCE;
}

/*
 * Create empty references and groups; memory is NULL: attach to those of the client's sealed dataset.
 */
static void
begin_references(const GeonnJoin *join, ReferenceDetail detail, PreparedJoin *prepared,
				 ReferenceMemory *memory)
{
	if (geonn_group_columns(join->references) > 0)
		prepared->groups = geonn_groups_begin(join->observations, join->references, GROUP_KEY_BY, memory,
											  prepared->client);
	for (int i = 0; i < join->references->differs_count; i++)
		prepared->parties[i] = geonn_groups_begin(join->observations, join->references,
												  (GroupKey) (GROUP_KEY_DIFFERS + i), memory, prepared->client);
	prepared->references = geonn_references_begin(join->references, detail,
												  join->exclude_self ? join->observations : NULL,
												  prepared->question.columns, memory,
												  prepared->client);
}

static void
ignore_row(void *state pg_attribute_unused(), const PointRow *row pg_attribute_unused())
{
}

/*
 * Report invalid references, as reading them one by one would have done.
 */
static void
tell_of_references(const GeonnJoin *join, const uint64 *counts)
{
	if (join->invalid == GEONN_INVALID_IS_ERROR && geonn_count_invalid(counts) > 0)
		geonn_read_points(join->references, join->invalid, ignore_row, NULL);	/* and raise it */
	geonn_tell_of_rows(join->references, join->invalid, counts);
}

/*
 * Begin to read the references.  is_plain: from one table, for which the executor's own parallel plan is of no use.
 */
static PointReading *
begin_reading(const GeonnJoin *join, PreparedJoin *prepared, bool is_plain)
{
	if (join->given_references != NULL)
		return geonn_reading_given(join->given_references, false, join->invalid, consume_reference, prepared);
	return geonn_reading_begin(join->references, join->invalid, is_plain ? GEONN_READ_IN_PARTS : GEONN_READ_AT_ONCE,
							   consume_reference, prepared);
}

/*
 * Read all references.  Returns the parallel workers that have read them, for end_readers; NULL: this process has.
 */
static ParallelContext *
read_all(const GeonnJoin *join, PreparedJoin *prepared, PointReading *reading)
{
	ParallelContext *readers = NULL;
	PointBlockConsumer consume_block = NULL;

	if ((prepared->question.columns & ~GEONN_COLUMN_EXCLUDED) == 0 &&
		geonn_references_take_blocks(prepared->references))
		consume_block = consume_references;
	prepared->workers = geonn_read_in_parallel(join->references, geonn_reading_tables(reading),
											   consume_reference, consume_block, prepared,
											   prepared->counts, &readers);
	if (prepared->workers > 0)
		return readers;
	if (consume_block != NULL)
		geonn_reading_in_blocks(reading, consume_block);
	(void) geonn_reading_next(reading, 0);
	memcpy(prepared->counts, geonn_reading_counts(reading), sizeof(prepared->counts));
	return NULL;
}

/*
 * Wait for workers that have read all to exit, and report what they have found.
 */
static void
end_readers(const GeonnJoin *join, const PreparedJoin *prepared, PointReading *reading, ParallelContext *readers)
{
	geonn_end_readers(readers);
	geonn_reading_end(reading);
	tell_of_references(join, prepared->counts);
}

/*
 * Is a dataset to be kept of a table with settled pages?  For given points a base will do.
 */
static bool
takes_settled(const GeonnJoin *join, const PreparedJoin *prepared)
{
	return join->given == NULL || prepared->live == NULL;
}

/*
 * Have the engine keep the new dataset, which has all references of this table, if its present state can be told
 * when it is seen again.  It is looked at now, since to read pages prunes them.  Returns whether it can be told.
 */
static bool
keep_references(const GeonnJoin *join, ReferenceDetail detail, PreparedJoin *prepared, ReferenceMemory *memory,
				const PlainTable *table)
{
	struct geonn_label labels[GEONN_LABELS_MAX];
	KeptNote	note;

	if (geonn_label_dataset(join->references, table, &prepared->question, detail, takes_settled(join, prepared), labels) == 0)
		return false;
	memcpy(note.counts, prepared->counts, sizeof(note.counts));
	memcpy(note.words, geonn_reference_memory_words(memory), sizeof(note.words));
	note.part_bytes = geonn_reference_memory_part_bytes(memory);
	geonn_client_keep(prepared->client, labels[0].version, &note, sizeof(note));
	return true;
}

/*
 * Take what the engine has said of the request to keep the references.  Where they are not kept for want of memory, the log has a
 * line of it, once.
 */
static void
take_sealing(const GeonnJoin *join, PreparedJoin *prepared)
{
	const struct geonn_sealed *sealing = geonn_client_sealing(prepared->client);

	prepared->kept_bytes = sealing->bytes;
	prepared->read_reason = sealing->keeping == GEONN_KEEPING_TOO_LARGE ? GEONN_READ_TOO_LARGE :
		sealing->keeping == GEONN_KEEPING_NO_ROOM ? GEONN_READ_NO_ROOM : GEONN_READ_FIRST;
	if (sealing->is_news)
		ereport(LOG_SERVER_ONLY,
				(errmsg("each call reads the references of %s anew: %s", join->references->title,
						geonn_read_reason_text(prepared->read_reason, prepared->kept_bytes)),
				 errhint("Raise geonn.kept_memory_limit, if the host has that memory, and reload the configuration.")));
}

/*
 * Read the references into a new dataset.  table: they are all of this table's, or NULL; labelled: it may be kept.
 */
static void
send_references(const GeonnJoin *join, ReferenceDetail detail, PreparedJoin *prepared,
				ReferenceMemory *memory, const PlainTable *table, bool labelled)
{
	PointReading *reading;
	ParallelContext *readers;

	begin_references(join, detail, prepared, memory);
	reading = begin_reading(join, prepared, table != NULL);
	readers = read_all(join, prepared, reading);

	/* an error follows: seal nothing; else workers exit while this process seals */
	if (readers != NULL && join->invalid == GEONN_INVALID_IS_ERROR && geonn_count_invalid(prepared->counts) > 0)
	{
		end_readers(join, prepared, reading, readers);
		readers = NULL;
	}
	if (prepared->groups != NULL)
		geonn_groups_seal(prepared->groups, prepared->client);
	for (int i = 0; i < GEONN_PARTIES_MAX && prepared->parties[i] != NULL; i++)
		geonn_groups_seal(prepared->parties[i], prepared->client);
	prepared->read_reason = geonn_kept_memory_limit == 0 ? GEONN_READ_NO_KEEPING :
		table == NULL ? GEONN_READ_NO_TABLE : GEONN_READ_NO_LABEL;
	labelled = labelled && keep_references(join, detail, prepared, memory, table);
	geonn_references_seal(prepared->references, prepared->client);
	if (labelled)
		take_sealing(join, prepared);
	geonn_reference_memory_name(memory, geonn_client_dataset(prepared->client));
	if (readers != NULL)
		end_readers(join, prepared, reading, readers);
}

static void
use_kept_references(const GeonnJoin *join, ReferenceDetail detail, PreparedJoin *prepared,
					ReferenceMemory *memory)
{
	KeptNote	note;

	prepared->kept = true;
	memcpy(&note, geonn_client_note(prepared->client), sizeof(note));
	memcpy(prepared->counts, note.counts, sizeof(note.counts));
	begin_references(join, detail, prepared, NULL);

	/* count their bytes, unless another join of this process does */
	if (!geonn_reference_memory_name(memory, geonn_client_dataset(prepared->client)))
	{
		uint64		bytes = geonn_references_file_bytes(prepared->references);

		if (prepared->groups != NULL)
			bytes += geonn_groups_file_bytes(prepared->groups);
		for (int i = 0; i < GEONN_PARTIES_MAX && prepared->parties[i] != NULL; i++)
			bytes += geonn_groups_file_bytes(prepared->parties[i]);
		geonn_reference_memory_add(memory, geonn_client_references(prepared->client));
		geonn_reference_memory_add_words(memory, note.words);
		geonn_reference_memory_add_parts(memory, note.part_bytes);
		geonn_reference_memory_add_bytes(memory, bytes, "ids and keys of groups");
	}
	tell_of_references(join, prepared->counts);
}

/*
 * May the question be one that this process answers alone, if it knows the references, and the observations are few?
 */
static bool
may_be_alone(const GeonnJoin *join, const GeonnQuestion *question)
{
	LiveIdType	type;

	return (join->given == NULL || (!join->given->more_follow && join->given->count <= POINTS_ALONE)) &&
		join->given_references == NULL &&
		(question->columns & ~(GEONN_COLUMN_GROUP | GEONN_COLUMN_EXCLUDED)) == 0 &&
		question->metric == GEONN_METRIC_SPHERE &&
		question->radii == 0 && question->device != GEONN_DEVICE_CUDA &&
		question->algorithm != GEONN_ALGORITHM_BRUTE &&
		!IsolationIsSerializable() && !IsInParallelMode() && geonn_live_id_type(join->references, &type);
}

/*
 * Have the observations answered by what this process knows of the references.
 */
static void
use_live_references(const GeonnJoin *join, PreparedJoin *prepared)
{
	prepared->alone = true;
	prepared->kept = true;
	memcpy(prepared->counts, geonn_live_table_counts(geonn_live_table(prepared->live)),
		   sizeof(prepared->counts));
	prepared->references = geonn_references_lend(join->references, geonn_live_table_ids(geonn_live_table(prepared->live)),
												 join->exclude_self ? join->observations : NULL);
	prepared->groups = geonn_live_groups(prepared->live);
	if (prepared->groups != NULL)
		geonn_groups_check(join->observations, join->references);
	tell_of_references(join, prepared->counts);
}

/*
 * Does this process know the references?  make: as geonn_live_look.
 */
static bool
knows_references(const GeonnJoin *join, const PreparedJoin *prepared, const PlainTable *table, bool make)
{
	return geonn_live_look(prepared->live, join->references, table, make) &&
		(prepared->question.k > 0 || geonn_live_has_room_for_all(prepared->live));
}

/*
 * Are the observations few, and does this process know the references for them?
 */
static bool
knows_for_few_rows(const GeonnJoin *join, PreparedJoin *prepared, const PlainTable *table,
				   const struct geonn_call *message, bool (*are_few) (void *state), void *state)
{
	bool		few;

	if (!geonn_live_is_likely(prepared->live, join->references))
		return false;
	few = are_few(state);

	/* functions that read the rows may have had this process forget the table, or note another call of it */
	prepared->live = geonn_live_find(join->references, table, message);
	return few && prepared->live != NULL && knows_references(join, prepared, table, true);
}

/*
 * Begin to prepare the join.  Under GEONN_INVALID_IS_ERROR, given points must be valid.
 */
static PreparedJoin
begin_preparing(const GeonnJoin *join, const GeonnResultRow *row)
{
	if (join->given != NULL && join->invalid == GEONN_INVALID_IS_ERROR)
		geonn_check_given(join->given);
	return (PreparedJoin)
	{
		.question = make_question(join, row),
		.row_context = AllocSetContextCreate(CurrentMemoryContext, "geonn row", ALLOCSET_DEFAULT_SIZES)
	};
}

PreparedJoin
geonn_join_prepare(const GeonnJoin *join, const GeonnResultRow *row, const GeonnCall *call,
				   bool (*are_few) (void *state), void *state)
{
	List	   *tables = join->given_references != NULL ? NIL : geonn_check_tables(join->references);
	const PlainTable *table = join->given_references != NULL ? join->given_table :
		list_length(tables) == 1 ? linitial(tables) : NULL;
	ReferenceDetail detail = needed_detail(join, row);
	PreparedJoin prepared = begin_preparing(join, row);
	bool		may_know = false;
	bool		counts_rows;
	bool		is_known;
	ReferenceMemory *memory;
	struct geonn_label labels[GEONN_LABELS_MAX];
	int			count = 0;
	struct geonn_call message;

	prepared.named = detail != REFERENCE_DISTANCE;
	message = geonn_call_message(call, &join->label,
								 join->given == NULL ? geonn_call_expected(join->observations) :
								 join->given->each_alone ? 0 : join->given->count);
	if (geonn_kept_memory_limit > 0 && table != NULL && (join->given != NULL || are_few != NULL))
		may_know = may_be_alone(join, &prepared.question);
	if (may_know)
		prepared.live = geonn_live_find(join->references, table, &message);
	counts_rows = prepared.live != NULL && join->given == NULL;
	is_known = prepared.live != NULL && !counts_rows &&
		knows_references(join, &prepared, table, false);
	if (!is_known && geonn_kept_memory_limit > 0 && table != NULL)
		count = geonn_label_dataset(join->references, table, &prepared.question, detail,
									takes_settled(join, &prepared), labels);
	if (!is_known && prepared.live != NULL && !counts_rows && count == 0)
		is_known = knows_references(join, &prepared, table, true);
	if (is_known)
	{
		use_live_references(join, &prepared);
		return prepared;
	}
	if (!counts_rows || count > 0)
		prepared.client = geonn_client_open(&prepared.question, labels, count, &message);
	if (counts_rows && (prepared.client == NULL || !geonn_client_is_sealed(prepared.client)))
	{
		/* no session waits for a dataset while rows are counted */
		if (prepared.client != NULL)
			geonn_live_end_client(prepared.client, &message);
		prepared.client = NULL;
		if (knows_for_few_rows(join, &prepared, table, &message, are_few, state))
		{
			use_live_references(join, &prepared);
			return prepared;
		}
		prepared.client = geonn_client_open(&prepared.question, labels, count, &message);
	}
	memory = geonn_reference_memory_create(join->references->title, prepared.question.columns, prepared.question.places);
	if (geonn_client_is_sealed(prepared.client))
		use_kept_references(join, detail, &prepared, memory);
	else if (join->read_given == NULL || join->read_given(join->given_references->state))
		send_references(join, detail, &prepared, memory, table, count > 0);
	return prepared;
}

PreparedJoin
geonn_join_attach(const GeonnJoin *join, const GeonnResultRow *row, const GeonnCall *call,
				  uint64 dataset)
{
	struct geonn_call message = geonn_call_message(call, &join->label, 0);
	PreparedJoin prepared = begin_preparing(join, row);

	prepared.question.shared = true;
	prepared.client = geonn_client_attach(&prepared.question, dataset, &message);
	begin_references(join, needed_detail(join, row), &prepared, NULL);
	return prepared;
}
