/*
 * discards.c
 *		Datasets whose structures a device is to discard.
 *
 * A dataset is on the lists of all usable devices at once, and counts in
 * dataset->discards how many of them have not done their part yet.
 */
#include "engine/search/discards.h"

#include "common/assertion.h"

void
discards_open(struct discards *discards, struct device *device)
{
	discards->device = device;
	pthread_cond_init(&discards->ended, NULL);
}

void
discards_add(struct discards *discards, struct dataset *dataset)
{
	geonn_assert(dataset->users == 0 && !dataset->kept);
	atomic_fetch_add(&dataset->discards, 1);
	dataset->next_discard[discards->device->number] = discards->first;
	discards->first = dataset;
}

bool
discards_are_left(const struct discards *discards)
{
	return discards->first != NULL || discards->under_way > 0;
}

struct dataset *
discards_take(struct discards *discards, bool all, pthread_mutex_t *lock)
{
	struct dataset *taken;
	struct dataset **rest;

	while (all && discards->under_way > 0)
		pthread_cond_wait(&discards->ended, lock);
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

void
discards_fulfil(struct discards *discards, struct dataset *taken, struct operation *operation,
				pthread_mutex_t *lock)
{
	struct device *device = discards->device;

	if (taken == NULL)
		return;
	while (taken != NULL)
	{
		struct dataset *next = taken->next_discard[device->number];

		geonn_assert(atomic_load(&taken->discards) > 0);
		operation_begin(operation, OPERATION_PATIENCE_MS);
		if (taken->built[device->number] != NULL)
			device->operations->discard(device, taken->built[device->number]);
		taken->built[device->number] = NULL;
		if (atomic_fetch_sub(&taken->discards, 1) == 1)
			dataset_free(taken);
		operation_end(operation);
		taken = next;
	}
	pthread_mutex_lock(lock);
	geonn_assert(discards->under_way > 0);
	if (--discards->under_way == 0)
		pthread_cond_broadcast(&discards->ended);
	pthread_mutex_unlock(lock);
}
