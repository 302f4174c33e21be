/*
 * datasets.c
 *		Keeps the datasets of the engine: finds them, and decides how long they
 *		stay.
 *
 * A dataset stays as long as sessions hold it: the session that sent its
 * references, and the sessions that attached to it.  A dataset with a label is
 * kept: it stays longer, with all that devices have built of it, for the next
 * session that asks for it by its label.  That client need not read the table:
 * a search then takes 0.6 ms, in place of 1 ms for 1,000 references and 13 ms
 * for 100,000.  A label is looked up for all users, since a client that states
 * one has the right to read the table.
 *
 * Kept datasets have three limits: host memory, their number, and the
 * descriptors of their files.  The first is for all tables of squares, too,
 * which devices make of kept datasets and others as long as the limit has room
 * for them (dataset_take_squares): so kept datasets and tables together take no
 * more.  A table goes when its dataset does.  When another dataset needs a
 * place, the least recently used one leaves: first the datasets that no session
 * holds, then the others, whose memory becomes free when the last of their
 * sessions ends.
 * Devices' memory has no limit of its own: if a search finds memory short, on
 * the host or on a GPU, or if the kernel refuses a descriptor, kept datasets
 * that no session holds leave until the request succeeds (datasets_make_room).
 *
 * Every step on the server's thread takes the same short time, however many
 * datasets the engine has: two hash tables find datasets, two lists keep
 * them in the order of use, and another thread frees the datasets that leave
 * (disposal.c).
 */
#include "engine/server/datasets.h"

#include <errno.h>
#include <string.h>

#include "common/assertion.h"
#include "engine/base/clock.h"
#include "engine/server/disposal.h"

/*
 * The CPU's index takes this many bytes beside those that protocol_dataset.h has for each reference and part, because
 * it is rounded up to whole pages.
 */
#define INDEX_LEAST_BYTES 8192

/* the greatest number of kept datasets */
#define KEPT_MOST		4096

/*
 * Kept datasets may have 1 / KEPT_SHARE of all descriptors.  They are dropped while less than 1 /
 * RESERVE_SHARE of all descriptors is free.
 */
#define KEPT_SHARE		4
#define RESERVE_SHARE	16

/* Each hash table has this many chains, a power of 2.  The table of ids has all datasets, kept or not. */
#define CHAINS			8192

/* The engine remembers about this many subjects of which it has told a client that they are not kept. */
#define SUBJECTS_TOLD	1024

struct order
{
	struct dataset *newest;
	struct dataset *oldest;
};

static struct
{
	struct dataset *tables[DATASET_TABLES][CHAINS];
	struct order held;			/* kept datasets that sessions hold, in the order of use */
	struct order unheld;		/* kept datasets that no session holds, in the order of use */
	uint32_t	count;
	uint32_t	kept;
	uint64_t	next_id;		/* 0: none has been opened */
	uint64_t	kept_limit;
	uint64_t	kept_memory;
	uint64_t	descriptors;	/* how many descriptors the engine may have; 0: not known */
	uint64_t	kept_descriptors;
	uint64_t	told[SUBJECTS_TOLD];	/* hashes of subjects; 0: none */
}			state;

/* ---- tables ---- */

static uint64_t
hash_subject(const struct geonn_label *label)
{
	uint64_t	hash = 0;
	uint64_t	word;

	for (size_t i = 0; i < sizeof(label->subject); i += sizeof(word))
	{
		memcpy(&word, label->subject + i, sizeof(word));
		hash = (hash ^ word) * 0x9E3779B185EBCA87ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

static struct dataset **
chain_of(enum dataset_table table, uint64_t key)
{
	return &state.tables[table][key & (CHAINS - 1)];
}

static uint64_t
key_of(const struct dataset *dataset, enum dataset_table table)
{
	return table == DATASET_BY_ID ? dataset->id : hash_subject(&dataset->label);
}

static void
table_add(enum dataset_table table, struct dataset *dataset)
{
	struct dataset **chain = chain_of(table, key_of(dataset, table));

	dataset->next[table] = *chain;
	*chain = dataset;
}

static void
table_remove(enum dataset_table table, struct dataset *dataset)
{
	struct dataset **link = chain_of(table, key_of(dataset, table));

	while (*link != dataset)
		link = &(*link)->next[table];
	*link = dataset->next[table];
}

/* ---- the order of use ---- */

static struct order *
order_of(const struct dataset *dataset)
{
	return dataset->users > 0 ? &state.held : &state.unheld;
}

static void
order_remove(struct dataset *dataset)
{
	struct order *order = order_of(dataset);

	*(dataset->newer != NULL ? &dataset->newer->older : &order->newest) = dataset->older;
	*(dataset->older != NULL ? &dataset->older->newer : &order->oldest) = dataset->newer;
}

static void
order_add(struct dataset *dataset)
{
	struct order *order = order_of(dataset);

	dataset->newer = NULL;
	dataset->older = order->newest;
	*(order->newest != NULL ? &order->newest->newer : &order->oldest) = dataset;
	order->newest = dataset;
}

/* Change how many sessions hold a dataset.  A kept dataset becomes the most recently used one. */
static void
change_users(struct dataset *dataset, int more)
{
	if (dataset->kept)
		order_remove(dataset);
	dataset->users += more;
	geonn_assert(dataset->users >= 0);
	if (dataset->kept)
		order_add(dataset);
}

/* ---- coming and going ---- */

static void
discard_if_unused(struct dataset *dataset)
{
	if (dataset->users > 0 || dataset->kept)
		return;
	dataset_give_squares(dataset, atomic_load(&dataset->squares_bytes));
	table_remove(DATASET_BY_ID, dataset);
	geonn_assert(state.kept < state.count);
	state.count--;
	disposal_add(dataset);
}

/* Set how many bytes kept datasets count as, without their tables of squares; the tables may take the rest of the limit. */
static void
set_kept_memory(uint64_t bytes)
{
	geonn_assert(state.kept > 0 || bytes == 0);
	state.kept_memory = bytes;
	atomic_store(&dataset_squares_limit, bytes < state.kept_limit ? state.kept_limit - bytes : 0);
}

static void
stop_keeping(struct dataset *dataset)
{
	geonn_assert(dataset->kept && dataset->sealed && state.kept > 0);
	geonn_assert(dataset->kept_bytes <= state.kept_memory);
	geonn_assert(dataset_descriptors(dataset) <= state.kept_descriptors);
	order_remove(dataset);
	table_remove(DATASET_BY_SUBJECT, dataset);
	dataset->kept = false;
	state.kept--;
	set_kept_memory(state.kept_memory - dataset->kept_bytes);
	state.kept_descriptors -= dataset_descriptors(dataset);
	discard_if_unused(dataset);
}

struct dataset *
datasets_open(const struct geonn_open *open)
{
	struct dataset *dataset;

	/*
	 * Clients attach by number, and may have a number from an engine that has ended.  So numbers begin with the nanoseconds
	 * since 1970: no engine before can have come so far.
	 */
	if (state.next_id == 0)
		state.next_id = (uint64_t) unix_us() * 1000;
	dataset = dataset_create(state.next_id, (enum geonn_metric) open->metric, open->columns);
	if (dataset == NULL)
		return NULL;
	state.next_id++;
	state.count++;
	dataset->users = 1;
	if (open->labels > 0)
	{
		dataset->labelled = true;
		dataset->label = open->label[0];
	}
	table_add(DATASET_BY_ID, dataset);
	return dataset;
}

struct dataset *
datasets_attach(uint64_t id)
{
	struct dataset *dataset = *chain_of(DATASET_BY_ID, id);

	while (dataset != NULL && dataset->id != id)
		dataset = dataset->next[DATASET_BY_ID];
	if (dataset == NULL || !dataset->sealed)
		return NULL;
	change_users(dataset, 1);
	return dataset;
}

/* Return the kept dataset of this subject, or NULL. */
static struct dataset *
find_subject(const struct geonn_label *label)
{
	struct dataset *dataset = *chain_of(DATASET_BY_SUBJECT, hash_subject(label));

	while (dataset != NULL &&
		   memcmp(dataset->label.subject, label->subject, sizeof(label->subject)) != 0)
		dataset = dataset->next[DATASET_BY_SUBJECT];
	return dataset;
}

/* Return whether a dataset of the label's subject has all that a session with this label asks for. */
static bool
has_all_of(const struct dataset *dataset, enum geonn_metric metric, uint32_t columns,
		   const struct geonn_label *label, bool any_version)
{
	return dataset->metric == metric && dataset->columns == columns &&
		(any_version || memcmp(dataset->label.version, label->version, sizeof(label->version)) == 0);
}

struct dataset *
datasets_find(enum geonn_metric metric, uint32_t columns, const struct geonn_label *label,
			  bool any_version)
{
	struct dataset *dataset = find_subject(label);

	if (dataset == NULL || !has_all_of(dataset, metric, columns, label, any_version))
		return NULL;
	geonn_assert(dataset->sealed && dataset->kept && dataset->labelled);
	change_users(dataset, 1);
	return dataset;
}

void
datasets_release(struct dataset *dataset)
{
	change_users(dataset, -1);
	discard_if_unused(dataset);
}

/* ---- keeping ---- */

static uint64_t
descriptors_to_keep(void)
{
	return state.descriptors > 0 ? state.descriptors / KEPT_SHARE : UINT64_MAX;
}

/*
 * Drop kept datasets until `datasets` more, with these bytes and descriptors, fit within the limits.  Returns whether they
 * fit; they may not, because datasets that sessions hold keep their tables of squares.
 */
static bool
make_place(uint32_t datasets, uint64_t bytes, uint32_t descriptors)
{
	for (;;)
	{
		uint64_t	squares = atomic_load(&dataset_squares_bytes);

		if (state.kept_memory + squares + bytes <= state.kept_limit &&
			state.kept + datasets <= KEPT_MOST &&
			state.kept_descriptors + descriptors <= descriptors_to_keep())
			return true;
		if (state.unheld.oldest != NULL)
			stop_keeping(state.unheld.oldest);
		else if (state.held.oldest != NULL && squares + bytes <= state.kept_limit)
			stop_keeping(state.held.oldest);
		else
			return false;
	}
}

/*
 * Return the bytes that a dataset counts as while it is kept: without a table of squares, but with an index, even if
 * devices still have to build it.  The CPU's index counts for every dataset, even if only GPUs search it.
 */
static size_t
bytes_to_keep(const struct dataset *dataset)
{
	size_t		each = dataset->columns & GEONN_COLUMN_ARC ? GEONN_ARC_INDEX_BYTES : GEONN_INDEX_BYTES;
	size_t		index = dataset->count * each + dataset->part_bytes + INDEX_LEAST_BYTES;
	size_t		built = atomic_load(&dataset->built_bytes);

	return dataset_memory(dataset) + (built < index ? index - built : 0);
}

/*
 * Note that the engine tells a client that it does not keep datasets of this subject.  Returns
 * whether this is the first time.
 */
static bool
note_told(const struct geonn_label *label)
{
	uint64_t	hash = hash_subject(label) | 1;
	uint64_t   *told = &state.told[hash / 2 % SUBJECTS_TOLD];
	bool		is_news = *told != hash;

	*told = hash;
	return is_news;
}

static enum geonn_keeping
keep(struct dataset *dataset, size_t bytes)
{
	uint32_t	descriptors = dataset_descriptors(dataset);
	struct dataset *former = find_subject(&dataset->label);

	geonn_assert(dataset->sealed && dataset->labelled && !dataset->kept && dataset->users > 0);
	/*
	 * Several sessions sent the same references at a time: keep the first one's dataset, which may have an index already.
	 */
	if (former != NULL && has_all_of(former, dataset->metric, dataset->columns, &dataset->label, false))
		return GEONN_KEEPING_DONE;
	if (former != NULL)
		stop_keeping(former);
	if (bytes > state.kept_limit)
		return GEONN_KEEPING_TOO_LARGE;
	if (descriptors > descriptors_to_keep() || !make_place(1, bytes, descriptors))
		return GEONN_KEEPING_NO_ROOM;
	dataset->kept = true;
	dataset->kept_bytes = bytes;
	state.kept++;
	set_kept_memory(state.kept_memory + bytes);
	state.kept_descriptors += descriptors;
	geonn_assert(state.kept <= KEPT_MOST);
	order_add(dataset);
	table_add(DATASET_BY_SUBJECT, dataset);
	return GEONN_KEEPING_DONE;
}

void
datasets_keep(struct dataset *dataset, struct geonn_sealed *message)
{
	message->bytes = bytes_to_keep(dataset);
	message->keeping = keep(dataset, message->bytes);
	message->is_news = message->keeping != GEONN_KEEPING_DONE && note_told(&dataset->label);
}

void
datasets_account(struct dataset *dataset)
{
	size_t		bytes;

	if (!dataset->kept)
		return;
	bytes = bytes_to_keep(dataset);
	geonn_assert(dataset->kept_bytes <= state.kept_memory);
	set_kept_memory(state.kept_memory - dataset->kept_bytes + bytes);
	dataset->kept_bytes = bytes;
	(void) make_place(0, 0, 0);
}

void
datasets_set_kept_limit(uint64_t bytes)
{
	if (bytes != state.kept_limit)
		memset(state.told, 0, sizeof(state.told));
	state.kept_limit = bytes;
	set_kept_memory(state.kept_memory);
	(void) make_place(0, 0, 0);
}

/* ---- making room ---- */

/* Return how many descriptors kept datasets must leave free, for the next few sessions. */
static uint64_t
reserve(void)
{
	return state.descriptors / RESERVE_SHARE + 1;
}

/*
 * Drop kept datasets that no session holds until they have given back reserve() descriptors.
 * Returns whether any was given back.
 */
static bool
give_descriptors(void)
{
	uint64_t	before = state.kept_descriptors;
	uint64_t	enough = before > reserve() ? before - reserve() : 0;

	while (state.kept_descriptors > enough && state.unheld.oldest != NULL)
		stop_keeping(state.unheld.oldest);
	return state.kept_descriptors < before;
}

bool
datasets_make_room(const struct failure *failure)
{
	bool		gave = false;

	if (failure->reason == EMFILE || failure->reason == ENFILE)
		gave = give_descriptors();
	else if (state.unheld.oldest != NULL)
	{
		stop_keeping(state.unheld.oldest);
		gave = true;
	}
	return disposal_finish() || gave;
}

void
datasets_set_descriptors(uint64_t descriptors)
{
	state.descriptors = descriptors;
}

void
datasets_note_descriptor(int descriptor)
{
	geonn_assert(descriptor >= 0);
	/* The kernel gives out the lowest free number, so all lower numbers are in use. */
	if (state.descriptors > 0 &&
		(uint64_t) descriptor + reserve() > state.descriptors)
	{
		(void) give_descriptors();
		(void) disposal_finish();
	}
}

void
datasets_report(struct geonn_engine_status *status)
{
	status->datasets = state.count;
	status->kept = state.kept;
	status->kept_memory = state.kept_memory + atomic_load(&dataset_squares_bytes);
}
