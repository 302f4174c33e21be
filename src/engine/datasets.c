/*
 * datasets.c
 *		The datasets that the engine has, and how long they stay.
 *
 * A dataset stays as long as sessions hold it: the one that sent its references,
 * and those that attached to it.
 */
#include "datasets.h"

#include "scheduler.h"

static struct dataset *datasets;
static uint64_t next_id = 1;

struct dataset *
datasets_open(enum geonn_metric metric, uint32_t columns)
{
	struct dataset *dataset = dataset_create(next_id, metric, columns);

	if (dataset == NULL)
		return NULL;
	next_id++;
	dataset->users = 1;
	dataset->next = datasets;
	datasets = dataset;
	return dataset;
}

struct dataset *
datasets_attach(uint64_t id)
{
	struct dataset *dataset = datasets;

	while (dataset != NULL && dataset->id != id)
		dataset = dataset->next;
	if (dataset == NULL || !dataset->sealed)
		return NULL;
	dataset->users++;
	return dataset;
}

void
datasets_release(struct dataset *dataset)
{
	struct dataset **link = &datasets;

	if (--dataset->users > 0)
		return;
	while (*link != dataset)
		link = &(*link)->next;
	*link = dataset->next;
	scheduler_discard(dataset);
}

uint32_t
datasets_count(void)
{
	uint32_t	count = 0;

	for (struct dataset *dataset = datasets; dataset != NULL; dataset = dataset->next)
		count++;
	return count;
}
