/*
 * join_prepare.c
 *		The references of a join: read and sent to the engine, or found there.
 *
 * In any case the caller's privilege to read them is checked.  Then a table's
 * state is looked up among the datasets that the engine keeps (kept_dataset.c);
 * references that are not found there are read, from large tables by parallel
 * workers (points/parallel_reader.c).
 */
#include "postgres.h"

#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"

#include "join/join_search.h"
#include "join/kept_dataset.h"
#include "points/parallel_reader.h"
#include "settings.h"
#include "value.h"

/* rows between two resets of the memory that comparing ids and keys uses */
#define ROWS_A_RESET	256

void
geonn_search_begin_row(Search *search)
{
	if (++search->rows % ROWS_A_RESET == 0)
		MemoryContextReset(search->row_context);
}

static void
consume_reference(void *state, const PointRow *row)
{
	Search	   *search = state;
	MemoryContext former;
	int32		group = 0;

	if (row->status != POINT_VALID)
		return;
	geonn_search_begin_row(search);
	former = MemoryContextSwitchTo(search->row_context);
	if (search->groups != NULL)
		group = geonn_groups_add(search->groups, row->by, row->by_is_null);
	if (group != GEONN_NO_GROUP)
		geonn_references_add(search->references, search->client, row, group);
	MemoryContextSwitchTo(former);
}

/*
 * Take in valid references that have nothing but ids and coordinates.
 */
static void
consume_references(void *state, uint32 rows, const Datum *ids, const double *latitudes,
				   const double *longitudes)
{
	Search	   *search = state;

	geonn_references_add_block(search->references, search->client, rows, ids, latitudes,
							   longitudes);
}

/*
 * What the engine is asked, as far as the join's columns decide it.
 */
void
geonn_search_set_question(Search *search)
{
	GeonnJoin  *join = search->join;
	GeonnQuestion *question = &join->question;

	/* ids that nobody asks for are not copied */
	if (!geonn_sink_needs_observation_id(&search->sink))
	{
		question->id_by_value = true;
		question->id_length = sizeof(Datum);
	}
	question->unmatched = join->keep_unmatched;
	question->columns = (join->references->by_count > 0 ? GEONN_COLUMN_GROUP : 0) |
		(join->exclude_self ? GEONN_COLUMN_IDENTITY : 0);
}

/*
 * What will be asked of the references.  An integer id costs nothing, so those always
 * have theirs: one dataset serves those who ask for ids and those who do not.
 */
static ReferenceDetail
needed_detail(const Search *search)
{
	const GeonnJoin *join = search->join;

	if (geonn_sink_needs_coordinates(&search->sink))
		return REFERENCE_COORDINATES;
	if (geonn_sink_needs_reference_id(&search->sink) || join->exclude_self ||
		geonn_integer_width(join->references->columns[COLUMN_ID].base_type) > 0)
		return REFERENCE_ID;
	return REFERENCE_DISTANCE;
}

/*
 * Know the references of the sealed dataset that the client has.
 */
void
geonn_search_attach_references(Search *search)
{
	const GeonnJoin *join = search->join;

	if (join->references->by_count > 0)
		search->groups = geonn_groups_attach(join->observations, join->references,
											 search->client);
	search->references = geonn_references_attach(join->references, needed_detail(search),
												 join->exclude_self ? join->observations : NULL,
												 search->client);
}

static void
ignore_row(void *state pg_attribute_unused(), const PointRow *row pg_attribute_unused())
{
}

/*
 * Tell what reading the references one by one would have told of rows that are no points.
 */
static void
tell_of_references(Search *search)
{
	const GeonnJoin *join = search->join;
	const uint64 *counts = search->reference_counts;

	if (join->invalid == GEONN_INVALID_IS_ERROR &&
		counts[POINT_NOT_FINITE] + counts[POINT_LATITUDE_OUT] + counts[POINT_LONGITUDE_OUT] > 0)
		geonn_read_points(join->references, join->invalid, ignore_row, NULL);	/* and raise it */
	geonn_tell_of_rows(join->references, join->invalid, counts);
}

/*
 * Read the references, from one table alone (is_plain: then a plan that the executor
 * would run in parallel is of no use) or from anything.
 */
static void
read_all(Search *search, bool is_plain)
{
	const GeonnJoin *join = search->join;
	PointReading *reading = geonn_reading_begin(join->references, join->invalid,
												is_plain ? GEONN_READ_IN_PARTS : GEONN_READ_AT_ONCE,
												consume_reference, search);
	PointBlockConsumer consume_block = NULL;

	if (search->groups == NULL && geonn_references_take_blocks(search->references))
		consume_block = consume_references;
	search->reference_workers = geonn_read_in_parallel(join->references,
													   geonn_reading_tables(reading),
													   consume_reference, consume_block, search,
													   search->reference_counts);
	if (search->reference_workers > 0)
	{
		geonn_reading_end(reading);
		tell_of_references(search);
		return;
	}
	if (consume_block != NULL)
		geonn_reading_in_blocks(reading, consume_block);
	(void) geonn_reading_next(reading, 0);
	memcpy(search->reference_counts, geonn_reading_counts(reading),
		   sizeof(search->reference_counts));
}

/*
 * Take in references that are given, all of them points.
 */
static void
consume_given(Search *search)
{
	const GivenPoints *given = search->join->given_references;

	for (uint64 i = 0; i < given->count; i++)
	{
		PointRow	row = {.status = POINT_VALID};

		CHECK_FOR_INTERRUPTS();
		given->point(given->state, i, &row);
		consume_reference(search, &row);
	}
	search->reference_counts[POINT_VALID] = given->count;
}

/*
 * Read the references into a new dataset; is_plain: from one table alone; labelled: it is
 * to be kept.
 */
static void
send_references(Search *search, bool is_plain, bool labelled)
{
	const GeonnJoin *join = search->join;

	if (join->references->by_count > 0)
		search->groups = geonn_groups_create(join->observations, join->references,
											 search->memory);
	search->references = geonn_references_create(join->references, needed_detail(search),
												 join->exclude_self ? join->observations : NULL,
												 search->memory);
	if (join->given_references != NULL)
		consume_given(search);
	else
		read_all(search, is_plain);
	if (search->groups != NULL)
		geonn_groups_seal(search->groups, search->client);
	if (labelled)
		geonn_client_keep(search->client, search->reference_counts,
						  sizeof(search->reference_counts));
	(void) geonn_references_seal(search->references, search->client, labelled);
	if (!geonn_client_is_recognised(search->client))
		geonn_reference_memory_name(search->memory, geonn_client_dataset(search->client));
}

/*
 * Count what kept references take, unless another join of this process has them.
 */
static void
count_kept(Search *search)
{
	uint64		bytes = geonn_references_file_bytes(search->references);

	if (search->groups != NULL)
		bytes += geonn_groups_file_bytes(search->groups);
	if (geonn_reference_memory_name(search->memory, geonn_client_dataset(search->client)))
		return;
	geonn_reference_memory_add(search->memory, geonn_client_references(search->client));
	geonn_reference_memory_add_bytes(search->memory, bytes, "ids and keys of groups");
}

/*
 * The client has a kept dataset.
 */
static void
use_kept_references(Search *search)
{
	search->references_kept = true;
	memcpy(search->reference_counts, geonn_client_note(search->client),
		   sizeof(search->reference_counts));
	geonn_search_attach_references(search);
	count_kept(search);
	tell_of_references(search);
}

/*
 * Check what can be checked, and have the references in the engine.  Returns whether there is
 * anything to do about the observations.
 */
static bool
read_references(Search *search)
{
	GeonnJoin  *join = search->join;
	AttrNumber *attributes;
	Oid			table;
	struct geonn_label labels[GEONN_LABELS_MAX];
	int			count = 0;
	struct geonn_call call;

	search->values = palloc0(search->sink.descriptor->natts * sizeof(Datum));
	search->nulls = palloc0(search->sink.descriptor->natts * sizeof(bool));
	if (join->given == NULL)
		geonn_check_readable(join->observations);
	table = join->given_references != NULL ? InvalidOid :
		geonn_check_table(join->references, &attributes);
	if (join->given != NULL && join->observations == NULL &&
		join->invalid == GEONN_INVALID_IS_ERROR)
		geonn_check_given(join->given);

	geonn_search_set_question(search);
	search->references_named = needed_detail(search) != REFERENCE_DISTANCE;
	if (geonn_kept_memory_limit > 0 && OidIsValid(table))
		count = geonn_label_dataset(join->references, table, attributes, &join->question,
									needed_detail(search), labels);
	call = geonn_call_message(&search->call, &join->label,
							  join->given != NULL ? join->given->count :
							  geonn_call_expected(join->observations));
	search->client = geonn_client_open(&join->question, labels, count, &call);
	search->memory = geonn_reference_memory_create(join->references->title,
												   join->question.columns);
	if (geonn_client_is_sealed(search->client))
		use_kept_references(search);
	else
		send_references(search, OidIsValid(table), count > 0);
	return geonn_client_references(search->client) > 0 ||
		join->keep_unmatched ||
		(join->invalid == GEONN_INVALID_IS_ERROR && join->given == NULL);
}

/*
 * Take the time for that.
 */
bool
geonn_search_prepare(Search *search)
{
	instr_time	spent;
	bool		go_on;

	geonn_call_begin(&search->call);
	go_on = read_references(search);
	INSTR_TIME_SET_CURRENT(spent);
	INSTR_TIME_SUBTRACT(spent, search->call.begun);
	search->preparing = INSTR_TIME_GET_MILLISEC(spent);
	return go_on;
}
