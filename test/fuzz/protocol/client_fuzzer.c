/*
 * client_fuzzer.c
 *		A hostile engine of the module, under libFuzzer.
 *
 * What the module has to talk to the engine (connection.c, client.c, client_slots.c,
 * admission.c, and of what it reads in a kept dataset's files references.c, groups.c and
 * memory_file.c) runs outside of PostgreSQL, on backend_shim.c.  The first step
 * of a script says what the client wants; the others are hostile_engine.c's, which acts
 * while the client waits: takes in what the client has sent, and does a step of the script,
 * or several.  When the script is over it answers truly, until no request is left.
 *
 * The client goes through a join as join.c does.  It has to come to its end or to
 * an error, to give no pair of another observation than those that were added, and none
 * out of rank, and to leave no descriptor and no mapping behind.
 *
 * rooms: client join
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"

#include "backend_shim.h"
#include "client/client.h"
#include "base/compat.h"
#include "join/groups.h"
#include "hostile_engine.h"
#include "join/references.h"
#include "base/settings.h"

extern int	LLVMFuzzerInitialize(int *argument_count, char ***words);
extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX		96
#define DESCRIPTORS		256

/* turns after which the engine has had enough */
#define TURNS_MAX		500

const uint8_t steps_conversation[] = {
	LIE_ANSWER, LIE_QUEUED, LIE_SILENT, LIE_ANSWER, LIE_ANSWER, LIE_ANSWER, LIE_ANSWER, LIE_ANSWER,
	LIE_ANSWER, LIE_MEMORY, LIE_ANSWER, LIE_SCRIBBLE, LIE_ANSWER, LIE_ANSWER_LAST
};
const size_t steps_conversation_length = sizeof(steps_conversation);

/* how the client reads what an engine said, so that no compiler leaves that out */
static volatile uint64 sum;

/* what the client asks for */
typedef struct Wish
{
	GeonnQuestion question;
	int			labels;
	bool		attaches;
	bool		keeps;
	bool		takes_blocks;	/* by geonn_block_next as far as a block has pairs */
	uint64		references;
	uint64		observations;
	Oid			type;			/* of ids */
} Wish;

static const uint32 many[] = {0, 1, 3, 10, 300, 5000};

static Wish
read_wish(const struct step *step)
{
	static const uint32 k[] = {1, 0, 2, 7, 100};
	static const uint32 batch_rows[] = {0, 0, 1, 5, 300};
	Wish		wish = {
		.question = {
			.columns = step->numbers[0] % GEONN_COLUMN_WINDOW |
				((GEONN_COLUMN_WINDOW << step->numbers[0] / GEONN_COLUMN_WINDOW % (GEONN_WINDOWS_MAX + 1)) - GEONN_COLUMN_WINDOW),
			.k = k[step->numbers[0] / 4 % lengthof(k)],
			.ties = step->numbers[0] / 32 % 4 == 3,
			.metric = (int) (step->numbers[0] / 128 % 2),
			.unmatched = step->numbers[0] / 256 % 2,
			.batch_rows = batch_rows[step->numbers[0] / 512 % lengthof(batch_rows)],
			.shared = step->numbers[0] / 4096 % 2,
			.max_distance = HUGE_VAL
		},
		.labels = step->peer % (GEONN_LABELS_MAX + 1),
		.attaches = step->slot % 4 == 3,
		.keeps = step->slot / 4 % 2,
		.takes_blocks = step->slot / 8 % 2,
		.references = many[step->numbers[1] % lengthof(many)],
		.observations = many[step->numbers[1] / 8 % lengthof(many)],
		.type = step->slot / 16 % 2 ? TEXTOID : INT4OID
	};

	if (step->slot / 32 % 4 == 3)
	{
		wish.question.ties = wish.question.unmatched = false;
		wish.question.radii = 1 + step->numbers[1] / 64 % GEONN_RADII_MAX;
		wish.question.weights = step->numbers[1] / 1024 % (GEONN_WEIGHTS_MAX + 1);
		wish.question.extremes = step->numbers[1] / 8192 % 2;
		wish.question.k = wish.question.radii * geonn_question_pairs_of_radius(&wish.question);
		wish.question.columns |= ((1u << wish.question.weights) - 1) * GEONN_COLUMN_WEIGHT;
	}
	wish.question.id_by_value = wish.type != TEXTOID;
	wish.question.id_length = wish.type == TEXTOID ? -1 : 4;
	return wish;
}

/* ---- the engine ---- */

static struct
{
	const uint8_t *data;
	size_t		count;			/* steps */
	size_t		next;
	int			turns;
}			script;

int
engine_connect(void)
{
	int			pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
		abort();
	hostile_engine_accept(pair[0], 0);
	return pair[1];
}

void
engine_turn(void)
{
	static const struct step sound;
	struct step step = sound;

	if (!hostile_engine_listen())
		return;
	if (++script.turns > TURNS_MAX)
	{
		hostile_engine_leave();
		return;
	}
	do
	{
		bool		over = script.next >= script.count;

		step = over ? sound : steps_get(script.data, script.next++);
		if (over && hostile_engine_request() == 0)
		{
			hostile_engine_leave();	/* the client waits for what does not come */
			return;
		}
		if (step.action % LIES == LIE_CANCEL)
			backend_cancel();
		else
			hostile_engine_do(&step);
	} while (step.how & HOW_GOES_ON && hostile_engine_listen());
}

/* ---- the client ---- */

typedef struct HostileJoin
{
	Wish		wish;
	GeonnClient *client;
	GeonnReferences *references;
	GeonnGroups *groups;
	uint64		added;			/* observations */
	uint64		rank;			/* of the last pair */
	uint64		last;			/* its observation */
} HostileJoin;

static Datum
make_id(Oid type, uint64 number)
{
	struct varlena *text;

	if (type != TEXTOID)
		return UInt32GetDatum((uint32) number);
	text = palloc(VARHDRSZ + sizeof(number));
	SET_VARSIZE(text, VARHDRSZ + sizeof(number));
	memcpy(VARDATA(text), &number, sizeof(number));
	return PointerGetDatum(text);
}

static uint64
read_id(Oid type, Datum id)
{
	uint64		number;

	if (type != TEXTOID)
		return DatumGetUInt32(id);
	memcpy(&number, VARDATA_ANY(DatumGetPointer(id)), sizeof(number));
	return number;
}

/*
 * All bytes of the reference that a pair names, where it can be asked for.
 */
static void
look_at_reference(const HostileJoin *join, int64 tag)
{
	double		latitude;
	double		longitude;
	const struct varlena *id;

	sum += (uint64) tag;
	if (join->references == NULL)
		return;
	id = (const struct varlena *) DatumGetPointer(geonn_reference_id(join->references, tag));
	for (Size i = 0; i < VARSIZE(id); i++)
		sum += ((const unsigned char *) id)[i];
	geonn_reference_coordinates(join->references, tag, &latitude, &longitude);
	sum += latitude > longitude;
}

/*
 * Check the block's present pair against the question and the pair before it, and read all of it.
 */
static void
look_at_pair(HostileJoin *join, const GeonnBlock *block)
{
	const GeonnQuestion *question = &join->wish.question;
	uint64		observation = read_id(join->wish.type, block->observation_id[block->observation]);

	if (observation >= join->added)
		steps_broken("pairs are of observations that were added");
	sum += block->observation_latitude[block->observation] > block->observation_longitude[block->observation];
	if (block->matched)
	{
		if (block->rank != (observation == join->last ? join->rank : 0) + 1)
			steps_broken("the pairs of an observation come one after the other, by rank");
		if (question->radii > 0 ? block->rank > question->radii :
			block->rank > geonn_client_references(join->client) ||
			(question->k > 0 && !question->ties && block->rank > question->k))
			steps_broken("no more pairs come than were asked for");
		if (block->pair >= block->pairs)
			steps_broken("a block has the pairs that it says");
		if (question->radii == 0)
			look_at_reference(join, block->tag[block->pair]);
		for (uint32 i = 0; i < geonn_question_pairs_of_radius(question); i++)
			sum += block->distance[block->pair + i] > 0;
	}
	else if (!question->unmatched)
		steps_broken("an observation without a pair comes where it was asked for");
	join->rank = block->matched ? block->rank : 0;
	join->last = observation;
}

static bool
take_pair(HostileJoin *join, bool wait)
{
	GeonnBlock *block;

	CHECK_FOR_INTERRUPTS();
	block = geonn_client_next_pair(join->client, wait);
	if (block == NULL)
		return false;
	do
		look_at_pair(join, block);
	while (join->wish.takes_blocks && geonn_block_next(block));
	return true;
}

static void
drain(HostileJoin *join, bool wait)
{
	while (take_pair(join, wait))
		wait = false;
}

/* what sources say of their columns, as far as the client asks */
static PointSource *
make_source(Oid type)
{
	PointSource *source = palloc0(sizeof(PointSource));

	source->title = "relation \"hostile\"";
	source->column_count = COLUMN_ROLES + 1;
	source->columns = palloc0(source->column_count * sizeof(PointColumn));
	source->columns[COLUMN_ID] = (PointColumn) {
		.name = "id",
		.type = type,
		.base_type = type
	};
	source->by_count = 1;
	source->by = &source->columns[COLUMN_ROLES];
	source->by[0] = (PointColumn) {
		.name = "class",
		.type = INT4OID,
		.base_type = INT4OID
	};
	return source;
}

/* of each point, where the question has windows or radiuses */
static const GeonnLimits limits = {.radius = 1};

/* the latitude and longitude of each point */
static const double degree = 1;

/*
 * Send references, or take those of a kept dataset.
 */
static void
have_references(HostileJoin *join)
{
	const Wish *wish = &join->wish;
	PointSource *source = make_source(TEXTOID);
	char		note[GEONN_NOTE_BYTES] = "note";
	GeonnPointColumns columns = {.limits = &limits};

	if (geonn_client_is_sealed(join->client))
	{
		join->references = geonn_references_begin(source, REFERENCE_COORDINATES, source,
												  wish->question.columns, NULL, join->client);
		if (wish->question.columns & GEONN_COLUMN_GROUP)
			join->groups = geonn_groups_begin(source, source, GROUP_KEY_BY, NULL, join->client);
		sum += *(const unsigned char *) geonn_client_note(join->client);
		return;
	}
	if (wish->labels > 0 && wish->keeps)
		geonn_client_keep(join->client, note, note, sizeof(note));
	for (int64 i = 0; i < (int64) wish->references; i++)
		geonn_client_add_references(join->client, 1, &i, &degree, &degree, &columns);
	geonn_client_seal(join->client, true);
}

static void
join_all(void *argument)
{
	HostileJoin	   *join = argument;
	const Wish *wish = &join->wish;
	struct geonn_label labels[GEONN_LABELS_MAX] = {0};
	struct geonn_call call = {.pid = 1};
	struct geonn_finished finished = {0};

	join->client = wish->attaches ? geonn_client_attach(&wish->question, 7, &call) :
		geonn_client_open(&wish->question, labels, wish->labels, &call);
	have_references(join);
	for (uint64 i = 0; i < wish->observations; i++)
	{
		bool		is_null = false;
		Datum		id = make_id(wish->type, i);
		Datum		key = Int32GetDatum((int32) i);
		GeonnPointColumns columns = {
			.group = join->groups != NULL ? geonn_groups_find(join->groups, &key, &is_null) : 0,
			.limits = &limits
		};

		if (join->references != NULL)
			geonn_references_excluded(join->references, make_id(TEXTOID, i), &columns.excluded_first,
									  &columns.excluded_last);
		while (geonn_client_places(join->client) == 0)
			drain(join, true);
		join->added++;
		geonn_client_add_observations(join->client, 1, &id, &degree, &degree, &columns);
		drain(join, false);
	}
	geonn_client_finish(join->client);
	while (take_pair(join, true))
		;
	sum += geonn_client_work(join->client).pairs;
	geonn_client_end(join->client, &finished);
}

/* ---- what has to hold ---- */

static int
open_descriptors(void)
{
	int			count = 0;

	for (int i = 0; i < DESCRIPTORS; i++)
		count += fcntl(i, F_GETFD) >= 0;
	return count;
}

/*
 * Mappings of files that peers make.
 */
static int
shared_mappings(void)
{
	FILE	   *maps = fopen("/proc/self/maps", "r");
	char		line[512];
	int			count = 0;

	while (fgets(line, sizeof(line), maps) != NULL)
		count += strstr(line, "/memfd:") != NULL;
	fclose(maps);
	return count;
}

int
LLVMFuzzerInitialize(int *argument_count, char ***words)
{
	(void) argument_count;
	(void) words;
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int	descriptors;
	struct step first;
	HostileJoin		join = {.last = PG_UINT64_MAX};

	if (steps_count(size) < 1 || steps_count(size) > STEPS_MAX)
		return -1;
	if (descriptors == 0)
		descriptors = open_descriptors();
	first = steps_get(data, 0);
	join.wish = read_wish(&first);
	geonn_admission_timeout = first.how % 2 ? 2000 : 0;
	script.data = data;
	script.count = steps_count(size);
	script.next = 1;
	script.turns = 0;
	if (!backend_run(join_all, &join) && backend_error()[0] == '\0')
		steps_broken("an error says what it is");
	hostile_engine_leave();
	if (open_descriptors() != descriptors)
		steps_broken("a statement leaves no descriptor behind");
	if (shared_mappings() != 0)
		steps_broken("a statement leaves no mapping behind");
	return 0;
}
