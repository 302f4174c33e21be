/*
 * discards.c
 *		Requests to a device to discard what it has built of datasets.
 *
 * A dataset that no session holds any more is freed by the thread that
 * fulfils the last of its requests.
 */
#include "engine/search/discards.h"

void
discards_begin(struct discards *discards, struct device *device)
{
	discards->device = device;
	pthread_cond_init(&discards->done, NULL);
}

void
discards_add(struct discards *discards, struct dataset *dataset)
{
	atomic_fetch_add(&dataset->discards, 1);
	dataset->next_discard[discards->device->number] = discards->first;
	discards->first = dataset;
}

bool
discards_left(const struct discards *discards)
{
	return discards->first != NULL || discards->under_way > 0;
}

struct dataset *
discards_take(struct discards *discards, bool all, pthread_mutex_t *lock)
{
	struct dataset *taken;
	struct dataset **rest;

	while (all && discards->under_way > 0)
		pthread_cond_wait(&discards->done, lock);
	taken = discards->first;
	if (taken == NULL)
		return NULL;
	rest = &taken->next_discard[discards->device->number];
	discards->first = all ? NULL : *rest;
	if (!all)
		*rest = NULL;
	discards->under_way++;
	return taken;
}

struct dataset *
discards_fulfil(struct discards *discards, struct dataset *taken)
{
	struct device *device = discards->device;
	struct dataset *next = taken->next_discard[device->number];

	if (taken->built[device->number] != NULL)
		device->operations->discard(device, taken->built[device->number]);
	taken->built[device->number] = NULL;
	if (atomic_fetch_sub(&taken->discards, 1) == 1)
		dataset_free(taken);
	return next;
}

void
discards_end(struct discards *discards)
{
	if (--discards->under_way == 0)
		pthread_cond_broadcast(&discards->done);
}
