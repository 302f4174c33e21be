/*
 * join_prepare.c
 *		The references of a join: read and sent to the engine, found there, or known to this process.
 *
 * First the caller's privilege to read the references is checked.  Then fates of the references are tried in the order in
 * which src/module.c registers them, until one prepares the join:
 *
 *	 live: a few given points are answered in this process, if it knows the references (live_fate.c);
 *	 kept: the engine keeps a dataset of the table in its present state (kept_fate.c);
 *	 counted: few rows of a relation or a query, or given points where the engine can keep no dataset, are answered like live
 *	 ones;
 *	 kept meanwhile: the engine is asked again, if rows were counted;
 *	 read: the references are read.  Then the engine is asked to keep them under a label of the table's state, which is looked
 *	 at after that.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "common/protocol.h"
#include "join/reference_fate.h"
#include "base/settings.h"
#include "base/value.h"
#include "points/column_hints.h"

/* what of a shape comes with the nearest of its places */
#define NEEDS_PLACES (GEONN_NEEDS_REFERENCE_COORDINATES | GEONN_NEEDS_SEGMENT | GEONN_NEEDS_MEASURE)

/* what shapes do not have as observations */
#define NEEDS_COORDINATES (GEONN_NEEDS_OBSERVATION_LATITUDE | GEONN_NEEDS_OBSERVATION_LONGITUDE)

static const ReferenceFate *fates[GEONN_FATES_MAX];
static int	fate_count;

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

/* Add valid references; they have no groups and no limits. */
static void
consume_references(void *state, uint32 rows, const Datum *ids, const double *latitudes,
				   const double *longitudes)
{
	const PreparedJoin *prepared = state;

	geonn_references_add_block(prepared->references, prepared->client, rows, ids, latitudes,
							   longitudes, NULL);
}

/* Return which columns arcs of shapes have, where rows need this. */
static uint32
columns_of_arcs(int needs)
{
	return GEONN_COLUMN_ARC | (needs & GEONN_NEEDS_SEGMENT ? GEONN_COLUMN_SEGMENT : 0) |
		(needs & GEONN_NEEDS_MEASURE ? GEONN_COLUMN_MEASURE : 0);
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
	question.shapes = join->given_shapes || (observations != NULL && geonn_has_shapes(observations));
	question.places = geonn_join_has_shapes(join) && (row->needs & NEEDS_PLACES) != 0;
	if (question.min_points > 0)
		question.k = 1;
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
		(geonn_join_has_shapes(join) ? columns_of_arcs(row->needs) : 0);
	/* If only one side has a radius, the points of the other side get an infinite radius. */
	if (geonn_has_radius(references) || join->given_radius ||
		(observations != NULL && geonn_has_radius(observations)))
		question.columns |= GEONN_COLUMN_RADIUS;
	return question;
}

/*
 * Return the data that references need.  Integer ids cost nothing, so references always have them: one
 * dataset then serves calls with and without ids.
 */
static ReferenceDetail
needed_detail(const GeonnJoin *join, const GeonnResultRow *row)
{
	/*
	 * The engine finds the places of shapes.  Ids are needed as well: of several shapes at one distance,
	 * the first id decides.
	 */
	if ((row->needs & NEEDS_PLACES) != 0 && geonn_join_has_shapes(join))
		return REFERENCE_ID;
	if ((row->needs & GEONN_NEEDS_REFERENCE_COORDINATES) != 0)
		return REFERENCE_COORDINATES;
	/* clusters are numbered in the order of ids, and equal distances are assigned in it */
	if ((row->needs & GEONN_NEEDS_REFERENCE_ID) != 0 || join->exclude_self || join->question.min_points > 0 ||
		join->question.assigns ||
		geonn_integer_width(join->references->columns[COLUMN_ID].base_type) > 0)
		return REFERENCE_ID;
	return REFERENCE_DISTANCE;
}

void
geonn_begin_references(const GeonnJoin *join, ReferenceDetail detail, PreparedJoin *prepared, ReferenceMemory *memory)
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

void
geonn_tell_of_references(const GeonnJoin *join, const uint64 *counts)
{
	if (join->invalid == GEONN_INVALID_IS_ERROR && geonn_count_invalid(counts) > 0)
		(void) geonn_read_points(join->references, join->invalid, ignore_row, NULL);	/* and raise it */
	geonn_tell_of_rows(join->references, join->invalid, counts);
}

/*
 * Begin to read the references.  is_plain: all come from one table, so a parallel plan of the executor's would be of
 * no use.
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
 * Read all references.  Returns false if one is a shape after all.
 */
static bool
read_all(PreparedJoin *prepared, PointReading *reading)
{
	if ((prepared->question.columns & ~GEONN_COLUMN_EXCLUDED) == 0 &&
		geonn_references_take_blocks(prepared->references))
		geonn_reading_in_blocks(reading, consume_references);
	(void) geonn_reading_next(reading, 0);
	memcpy(prepared->counts, geonn_reading_counts(reading), sizeof(prepared->counts));
	return !geonn_reading_met_shape(reading);
}

/*
 * Have the engine keep the new dataset, if a fate can recognise the table's present state when a later call sees it.
 * Returns whether the engine was asked to.
 */
static bool
keep_references(const JoinPreparation *preparation, ReferenceMemory *memory)
{
	bool		asked = false;

	for (int i = 0; i < fate_count && !asked; i++)
		asked = fates[i]->keep != NULL && fates[i]->keep(preparation, memory);
	return asked;
}

/*
 * Note the engine's answer to the request to keep the references.  If memory was short for that, write a line to the log,
 * once.
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

/* Return whether references have capacities of their own: these are checked when they are read, so each call reads them. */
static bool
has_capacities(const GeonnJoin *join)
{
	return join->question.assigns && join->question.weights > 0;
}

/*
 * Read the references into a new dataset.  Returns false, with a dataset that is of no use, if one is a shape after all.
 */
static bool
send_references(const JoinPreparation *preparation)
{
	const GeonnJoin *join = preparation->join;
	PreparedJoin *prepared = preparation->prepared;
	ReferenceMemory *memory = geonn_reference_memory_create(join->references->title, prepared->question.columns,
															prepared->question.places);
	bool		asked;

	geonn_begin_references(join, preparation->detail, prepared, memory);
	if (!read_all(prepared, begin_reading(join, prepared, preparation->table != NULL)))
		return false;
	if (prepared->groups != NULL)
		geonn_groups_seal(prepared->groups, prepared->client);
	for (int i = 0; i < GEONN_PARTIES_MAX && prepared->parties[i] != NULL; i++)
		geonn_groups_seal(prepared->parties[i], prepared->client);
	prepared->read_reason = geonn_kept_memory_limit == 0 ? GEONN_READ_NO_KEEPING :
		has_capacities(join) ? GEONN_READ_CAPACITIES : preparation->table == NULL ? GEONN_READ_NO_TABLE : GEONN_READ_NO_LABEL;
	asked = keep_references(preparation, memory);
	geonn_references_seal(prepared->references, prepared->client);
	if (asked)
		take_sealing(join, prepared);
	geonn_reference_memory_name(memory, geonn_client_dataset(prepared->client));
	return true;
}

/* Implements ReferenceFate.prepare.  The client of an earlier fate may have begun a new dataset. */
static const char *
read_references(JoinPreparation *preparation)
{
	const GeonnJoin *join = preparation->join;
	PreparedJoin *prepared = preparation->prepared;

	if (prepared->client == NULL)
		prepared->client = geonn_client_open(&prepared->question, NULL, 0, &preparation->message);
	if ((join->read_given == NULL || join->read_given(join->given_references->state)) && !send_references(preparation))
		return "one of them is no point";
	return NULL;
}

const ReferenceFate geonn_read_fate = {
	.name = "read",
	.prepare = read_references
};

/* ---- fates ---- */

void
geonn_register_reference_fate(const ReferenceFate *fate)
{
	Assert(fate_count < GEONN_FATES_MAX);
	fates[fate_count++] = fate;
}

void
geonn_count_own_calls(void)
{
	for (int i = 0; i < fate_count; i++)
		if (fates[i]->count_calls != NULL)
			fates[i]->count_calls();
}

/*
 * Try the fates in turn, until one prepares the join.  DEBUG1 says which one, and why the earlier ones did not.  Returns
 * false if none does, because a reference is a shape.
 */
static bool
try_fates(JoinPreparation *preparation)
{
	const char *title = preparation->join->references->title;

	for (int i = 0; i < fate_count; i++)
	{
		GeonnFate  *tried = &preparation->prepared->fates[i];

		tried->name = fates[i]->name;
		tried->refused = fates[i]->prepare(preparation);
		tried->taken = tried->refused == NULL;
		if (tried->taken)
		{
			ereport(DEBUG1, (errmsg_internal("the references of %s are %s", title, tried->name)));
			return true;
		}
		ereport(DEBUG1, (errmsg_internal("the references of %s are not %s: %s", title, tried->name, tried->refused)));
	}
	return false;
}

/* Raise an error if rows have what is not known of observations that are shapes. */
static void
check_needs_of_shapes(const PointSource *observations, int needs)
{
	if (observations == NULL || !geonn_has_shapes(observations) || (needs & NEEDS_COORDINATES) == 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("obs_lat and obs_lon are not available where observations are lines or polygons"),
			 errdetail("Column \"%s\" of %s is read as shapes.", observations->columns[COLUMN_SHAPE].name,
					   observations->title),
			 errhint("For the nearest place of each use obs_near_lat and obs_near_lon.")));
}

/* Begin to prepare the join.  Given points must be valid if the join has GEONN_INVALID_IS_ERROR. */
static PreparedJoin
begin_preparing(const GeonnJoin *join, const GeonnResultRow *row)
{
	check_needs_of_shapes(join->observations, row->needs);
	if (join->given != NULL && join->invalid == GEONN_INVALID_IS_ERROR)
		geonn_check_given(join->given);
	return (PreparedJoin)
	{
		.question = make_question(join, row),
		.row_context = AllocSetContextCreate(CurrentMemoryContext, "geonn row", ALLOCSET_DEFAULT_SIZES)
	};
}

/* ---- columns whose type leaves open what they have ---- */

/* columns of points in which this process has found shapes; and the place of the next one */
static struct
{
	Oid			relation;
	NameData	column;
}			known_shapes[16];
static int	next_known;

/*
 * Have a column be read as shapes at once if an earlier call has found some in it.  The answer is the same for points, too,
 * but the metric of shapes is that of the sphere, and they have no clusters and no assignments.
 */
static void
read_as_before(PointSource *source)
{
	if (!source->may_have_shapes || !OidIsValid(source->relation))
		return;
	for (int i = 0; i < (int) lengthof(known_shapes); i++)
	{
		if (known_shapes[i].relation == source->relation &&
			strcmp(NameStr(known_shapes[i].column), source->columns[COLUMN_POINT].name) == 0)
		{
			geonn_read_as_shapes(source);
			return;
		}
	}
}

/* Have both sides' columns be read as before.  Observations go on as points if rows have what shapes do not. */
static void
read_sides_as_before(const GeonnJoin *join, const GeonnResultRow *row)
{
	if (join->question.metric != GEONN_METRIC_SPHERE || join->question.min_points > 0 || join->question.assigns)
		return;
	read_as_before(join->references);
	if (join->observations != NULL && (row->needs & NEEDS_COORDINATES) == 0)
		read_as_before(join->observations);
}

/* Remember that the source's column, which is read as shapes now, has some. */
static void
note_shapes(const PointSource *source)
{
	if (!OidIsValid(source->relation))
		return;
	known_shapes[next_known].relation = source->relation;
	namestrcpy(&known_shapes[next_known].column, source->columns[COLUMN_SHAPE].name);
	next_known = (next_known + 1) % (int) lengthof(known_shapes);
}

void
geonn_note_shapes_of_observations(const GeonnJoin *join)
{
	geonn_check_question_of_shapes(join);
	note_shapes(join->observations);
}

/*
 * The reading of the references has met a shape.  Let go of what it has sent, and begin anew, with shapes.  The session
 * stays for the next client, and its part of the call counts for nothing.
 */
static void
begin_with_shapes(JoinPreparation *preparation, const GeonnResultRow *row)
{
	static const struct geonn_finished nothing = {.alone = 1};
	const GeonnJoin *join = preparation->join;
	PreparedJoin *prepared = preparation->prepared;

	geonn_references_abandon(prepared->references);
	if (!geonn_client_is_sealed(prepared->client))
		geonn_client_seal(prepared->client, true);
	geonn_client_end(prepared->client, &nothing);
	geonn_read_as_shapes(join->references);
	geonn_check_question_of_shapes(join);
	note_shapes(join->references);
	MemoryContextDelete(prepared->row_context);
	*prepared = begin_preparing(join, row);
	preparation->detail = needed_detail(join, row);
	preparation->known = NULL;
	preparation->label_count = 0;
}

void
geonn_check_question_of_shapes(const GeonnJoin *join)
{
	const PointSource *source = join->references;

	if (join->observations != NULL && geonn_has_shapes(join->observations))
		source = join->observations;
	if (!geonn_has_shapes(source))
		return;
	if (join->question.min_points > 0 || join->question.assigns)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 join->question.assigns ? errmsg("points are assigned to points, not lines and polygons") :
				 errmsg("%s are of points, not of lines and polygons", join->question.thins ? "thinnings" : "clusters"),
				 errdetail("Column \"%s\" of %s is read as shapes.", source->columns[COLUMN_SHAPE].name, source->title),
				 errhint(GEONN_POINTS_OF_SHAPES_HINT)));
	if (join->question.metric == GEONN_METRIC_SPHERE)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("lines and polygons have no metric \"spheroid\""),
			 errdetail("Column \"%s\" of %s is read as shapes.", source->columns[COLUMN_SHAPE].name, source->title),
			 errhint("Use the metric 'sphere'.")));
}

/*
 * Try the fates; where a reference is a shape after all, once more.  What the first attempt has allocated goes
 * before the second.
 */
static void
prepare_references(JoinPreparation *preparation, const GeonnResultRow *row)
{
	MemoryContext former = CurrentMemoryContext;
	MemoryContext attempt = AllocSetContextCreate(former, "geonn points", ALLOCSET_SMALL_SIZES);
	bool		is_prepared;

	MemoryContextSwitchTo(attempt);
	is_prepared = try_fates(preparation);
	MemoryContextSwitchTo(former);
	if (is_prepared)
		return;
	begin_with_shapes(preparation, row);
	MemoryContextDelete(attempt);
	if (!try_fates(preparation))
		elog(ERROR, "no way to get the references of %s", preparation->join->references->title);
}

PreparedJoin
geonn_join_prepare(const GeonnJoin *join, const GeonnResultRow *row, const GeonnCall *call,
				   bool (*are_few) (void *state), void *state)
{
	List	   *tables = join->given_references != NULL ? NIL : geonn_check_tables(join->references);
	PreparedJoin prepared;
	JoinPreparation preparation;

	read_sides_as_before(join, row);
	prepared = begin_preparing(join, row);
	preparation = (JoinPreparation) {
		.join = join,
		.table = join->given_references != NULL ? join->given_table :
			list_length(tables) == 1 && !has_capacities(join) ? linitial(tables) : NULL,
		.detail = needed_detail(join, row),
		.message = geonn_call_message(call, &join->label,
									  join->given == NULL ? geonn_call_expected(join->observations) :
									  join->given->each_alone ? 0 : join->given->count),
		.are_few = are_few,
		.state = state,
		.prepared = &prepared
	};

	prepare_references(&preparation, row);
	prepared.named = preparation.detail != REFERENCE_DISTANCE;
	for (int i = 0; i < fate_count && prepared.own == NULL; i++)
		if (fates[i]->note_engine != NULL)
			fates[i]->note_engine(&preparation, geonn_milliseconds_since(call->begun));
	return prepared;
}

PreparedJoin
geonn_join_attach(const GeonnJoin *join, const GeonnResultRow *row, const GeonnCall *call,
				  const SharedReferences *references)
{
	struct geonn_call message = geonn_call_message(call, &join->label, 0);
	PreparedJoin prepared;

	if (references->has_shapes)
		geonn_read_as_shapes(join->references);
	if (references->shapes_ask && !join->given_shapes)
		geonn_read_as_shapes(join->observations);
	prepared = begin_preparing(join, row);
	prepared.question.shared = true;
	prepared.client = geonn_client_attach(&prepared.question, references->dataset, &message);
	geonn_begin_references(join, needed_detail(join, row), &prepared, NULL);
	return prepared;
}
