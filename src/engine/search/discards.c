/*
 * discards.c
 *		Requests to a device to discard what it has built of datasets.
 *
 * A dataset that no session holds any more is freed by the thread that
 * fulfils the last of its requests.
 */
#include "engine/search/discards.h"

#include <stdlib.h>

struct discard
{
	struct dataset *dataset;
	struct discard *next;
};

void
discards_begin(struct discards *discards)
{
	discards->first = NULL;
	discards->under_way = 0;
	pthread_cond_init(&discards->done, NULL);
}

void
discards_add(struct discards *discards, struct dataset *dataset)
{
	struct discard *discard = malloc(sizeof(*discard));

	if (discard == NULL)
		return;
	atomic_fetch_add(&dataset->discards, 1);
	discard->dataset = dataset;
	discard->next = discards->first;
	discards->first = discard;
}

bool
discards_left(const struct discards *discards)
{
	return discards->first != NULL || discards->under_way > 0;
}

struct discard *
discards_take(struct discards *discards, bool all, pthread_mutex_t *lock)
{
	struct discard *taken;

	while (all && discards->under_way > 0)
		pthread_cond_wait(&discards->done, lock);
	taken = discards->first;
	if (taken == NULL)
		return NULL;
	discards->first = all ? NULL : taken->next;
	if (!all)
		taken->next = NULL;
	discards->under_way++;
	return taken;
}

struct discard *
discards_fulfil(struct discard *discard, struct device *device)
{
	struct discard *next = discard->next;
	struct dataset *dataset = discard->dataset;

	if (dataset->built[device->number] != NULL)
		device->operations->discard(device, dataset->built[device->number]);
	dataset->built[device->number] = NULL;
	if (atomic_fetch_sub(&dataset->discards, 1) == 1)
		dataset_free(dataset);
	free(discard);
	return next;
}

void
discards_end(struct discards *discards)
{
	if (--discards->under_way == 0)
		pthread_cond_broadcast(&discards->done);
}
