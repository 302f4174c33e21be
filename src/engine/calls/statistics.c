/*
 * statistics.c
 *		Statistics of the calls that have ended, by their labels.
 *
 * The statistics are a list of labels, the label of the last call first.
 * Labels come from users' statements, so the list has a limit: when it is
 * full, the label that was called least recently leaves it.  If memory is
 * short for a new label, its call is not counted.
 */
#include "engine/calls/statistics.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"

/* the greatest number of labels, of about 700 bytes each */
#define LABELS_MAX 1000

struct entry
{
	struct geonn_statistics sum;
	struct entry *next;
};

static struct
{
	struct entry *first;
	uint32_t	count;
	int64_t		since;			/* microseconds since 1970 */
}			state;

void
statistics_reset(void)
{
	while (state.first != NULL)
	{
		struct entry *entry = state.first;

		state.first = entry->next;
		free(entry);
	}
	state.count = 0;
	state.since = unix_us();
}

int64_t
statistics_since(void)
{
	return state.since;
}

/*
 * Take the entry of this label out of the list; if the label has none, make a
 * new entry, from the last one if the list is full.  NULL if memory is short.
 */
static struct entry *
take_entry(const struct geonn_call_label *label)
{
	struct entry **link = &state.first;
	struct entry *entry;

	while (*link != NULL && memcmp(&(*link)->sum.label, label, sizeof(*label)) != 0 &&
		   !((*link)->next == NULL && state.count == LABELS_MAX))
		link = &(*link)->next;
	entry = *link;
	if (entry == NULL)
	{
		entry = calloc(1, sizeof(*entry));
		state.count += entry != NULL;
	}
	else
	{
		*link = entry->next;
		if (memcmp(&entry->sum.label, label, sizeof(*label)) != 0)
			memset(entry, 0, sizeof(*entry));
	}
	return entry;
}

void
statistics_add(const struct geonn_statistics *sum)
{
	struct entry *entry = take_entry(&sum->label);
	struct geonn_statistics *total;

	if (entry == NULL)
		return;
	entry->next = state.first;
	state.first = entry;
	total = &entry->sum;
	total->label = sum->label;
	total->calls += sum->calls;
	total->failed += sum->failed;
	total->rows += sum->rows;
	total->observations += sum->observations;
	total->observations_skipped += sum->observations_skipped;
	total->unmatched += sum->unmatched;
	total->references += sum->references;
	total->references_skipped += sum->references_skipped;
	total->kept += sum->kept;
	total->batches += sum->batches;
	total->bytes += sum->bytes;
	total->fallbacks += sum->fallbacks;
	for (int phase = 0; phase < GEONN_PHASES; phase++)
		total->microseconds[phase] += sum->microseconds[phase];
	if (sum->last_error_at != 0)
	{
		total->last_error_at = sum->last_error_at;
		memcpy(total->last_error, sum->last_error, sizeof(total->last_error));
	}
}

bool
statistics_write(int file, uint64_t *entries)
{
	for (struct entry *entry = state.first; entry != NULL; entry = entry->next)
	{
		if (write(file, &entry->sum, sizeof(entry->sum)) != sizeof(entry->sum))
			return false;
		(*entries)++;
	}
	return true;
}
