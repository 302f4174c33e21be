/*
 * datasets.c
 *		The datasets that the engine has, and how long they stay.
 *
 * A dataset stays as long as sessions hold it: the one that sent its references,
 * and those that attached to it.  One that is kept stays longer, with all that
 * devices built of it, for the next session that asks for it by its label, or that
 * sends the same references again (dataset_contents.c).
 *
 * Kept datasets have a limit, of host memory, and the least recently used one
 * leaves when another needs its room; where sessions hold it, its memory goes
 * when the last of them ends.  Devices' memory has no limit of its own: where a
 * search finds it short, on the host or on a GPU, kept datasets that nobody holds
 * leave one by one until it has enough (session.c).
 */
#include "datasets.h"

#include <string.h>

#include "scheduler.h"

/* what the CPU's index of a reference takes (cpu_index.h); a kept dataset is
 * charged with it, though one that only GPUs search has none */
#define INDEX_BYTES 34

static struct
{
	struct dataset *first;		/* of all; the kept ones by use, the latest first */
	uint64_t	next_id;
	uint64_t	kept_limit;
	uint64_t	kept_memory;
}			state = {
	.next_id = 1
};

static void
add_first(struct dataset *dataset)
{
	dataset->next = state.first;
	state.first = dataset;
}

static void
take_out(struct dataset *dataset)
{
	struct dataset **link = &state.first;

	while (*link != dataset)
		link = &(*link)->next;
	*link = dataset->next;
}

static void
discard_if_unused(struct dataset *dataset)
{
	if (dataset->users > 0 || dataset->kept)
		return;
	take_out(dataset);
	dataset_free_references(dataset);
	scheduler_discard(dataset);
}

static void
stop_keeping(struct dataset *dataset)
{
	dataset->kept = false;
	state.kept_memory -= dataset->kept_bytes;
	discard_if_unused(dataset);
}

struct dataset *
datasets_open(enum geonn_metric metric, uint32_t columns, const struct geonn_label *label)
{
	struct dataset *dataset = dataset_create(state.next_id, metric, columns);

	if (dataset == NULL)
		return NULL;
	state.next_id++;
	dataset->users = 1;
	if (label != NULL)
	{
		dataset->labelled = true;
		dataset->label = *label;
	}
	add_first(dataset);
	return dataset;
}

struct dataset *
datasets_attach(uint64_t id)
{
	struct dataset *dataset = state.first;

	while (dataset != NULL && dataset->id != id)
		dataset = dataset->next;
	if (dataset == NULL || !dataset->sealed)
		return NULL;
	dataset->users++;
	return dataset;
}

struct dataset *
datasets_find(enum geonn_metric metric, uint32_t columns, const struct geonn_label *label)
{
	struct dataset *dataset = state.first;

	while (dataset != NULL &&
		   !(dataset->kept && dataset->labelled && dataset->metric == metric &&
			 dataset->columns == columns &&
			 memcmp(&dataset->label, label, sizeof(*label)) == 0))
		dataset = dataset->next;
	if (dataset == NULL)
		return NULL;
	take_out(dataset);
	add_first(dataset);
	dataset->users++;
	return dataset;
}

/*
 * Are they of one subject?
 */
static bool
is_same_subject(const struct dataset *dataset, const struct dataset *other)
{
	return dataset->labelled && other->labelled &&
		memcmp(dataset->label.subject, other->label.subject,
			   sizeof(dataset->label.subject)) == 0;
}

struct dataset *
datasets_find_alike(const struct dataset *dataset)
{
	struct dataset *found = state.first;

	/* two subjects do not take a dataset from each other */
	while (found != NULL &&
		   !(found != dataset && found->kept && dataset_is_alike(dataset, found) &&
			 (!dataset->labelled || !found->labelled || is_same_subject(dataset, found))))
		found = found->next;
	if (found != NULL)
		found->users++;
	return found;
}

void
datasets_release(struct dataset *dataset)
{
	dataset->users--;
	discard_if_unused(dataset);
}

/*
 * The least recently used of the kept datasets, or of those that nobody holds.
 */
static struct dataset *
least_used(bool unheld)
{
	struct dataset *found = NULL;

	for (struct dataset *dataset = state.first; dataset != NULL; dataset = dataset->next)
		if (dataset->kept && !(unheld && dataset->users > 0))
			found = dataset;
	return found;
}

static void
shrink_to(uint64_t bytes)
{
	while (state.kept_memory > bytes)
		stop_keeping(least_used(false));
}

static size_t
bytes_to_keep(const struct dataset *dataset)
{
	return dataset_bytes(dataset) + dataset->count * INDEX_BYTES + sizeof(*dataset);
}

bool
datasets_can_keep(const struct dataset *dataset)
{
	return bytes_to_keep(dataset) <= state.kept_limit;
}

/*
 * Another dataset that is kept of the same subject, or NULL.
 */
static struct dataset *
find_former(const struct dataset *dataset)
{
	struct dataset *former = state.first;

	while (former != NULL &&
		   !(former != dataset && former->kept && is_same_subject(dataset, former)))
		former = former->next;
	return former;
}

void
datasets_keep(struct dataset *dataset)
{
	struct dataset *former = find_former(dataset);

	if (former != NULL)
		stop_keeping(former);
	if (!dataset->kept)
	{
		if (!datasets_can_keep(dataset))
			return;
		dataset->kept_bytes = bytes_to_keep(dataset);
		shrink_to(state.kept_limit - dataset->kept_bytes);
		dataset->kept = true;
		state.kept_memory += dataset->kept_bytes;
	}
	take_out(dataset);
	add_first(dataset);
}

bool
datasets_make_room(void)
{
	struct dataset *dataset = least_used(true);

	if (dataset == NULL)
		return false;
	stop_keeping(dataset);
	return true;
}

void
datasets_set_kept_limit(uint64_t bytes)
{
	state.kept_limit = bytes;
	shrink_to(bytes);
}

uint32_t
datasets_count(void)
{
	uint32_t	count = 0;

	for (struct dataset *dataset = state.first; dataset != NULL; dataset = dataset->next)
		count++;
	return count;
}

uint32_t
datasets_kept(void)
{
	uint32_t	count = 0;

	for (struct dataset *dataset = state.first; dataset != NULL; dataset = dataset->next)
		count += dataset->kept;
	return count;
}

uint64_t
datasets_kept_memory(void)
{
	return state.kept_memory;
}
