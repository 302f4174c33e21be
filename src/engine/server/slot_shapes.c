/*
 * slot_shapes.c
 *		The shapes that are a slot's observations.
 *
 * The engine copies their arcs when a search begins, so that its client can change nothing any more, and keeps them for
 * the searches that go on from there: until all are answered, the slot's next search begins, or the slot loses its batch.
 */
#include "engine/server/session.h"

#include "engine/base/host.h"
#include "engine/search/backends.h"

/* shapes of observations have no number among datasets */
#define NO_ID 0

void
slot_forget_shapes(struct slot *slot)
{
	struct dataset *shapes = slot->shapes;

	slot->shapes = NULL;
	if (shapes == NULL)
		return;
	for (int i = 0; i < engine_device_count; i++)
		if (shapes->built[i] != NULL)
			engine_devices[i].operations->discard(&engine_devices[i], shapes->built[i]);
	dataset_free(shapes);
}

bool
slot_begin_clusters(struct slot *slot, struct failure *failure)
{
	slot->shapes = dataset_create(NO_ID, GEONN_METRIC_SPHERE, 0);
	return slot->shapes != NULL || fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a search");
}

bool
slot_copy_shapes(struct slot *slot, uint32_t rows, struct failure *failure)
{
	struct geonn_batch_columns columns = slot->columns;
	uint64_t	bytes = (uint64_t) rows * GEONN_OBSERVED_ARC_BYTES;
	uint64_t	available = host_memory_free();

	columns.tag = NULL;			/* answers are there */
	if (bytes > available)
		return fail(failure, GEONN_ERROR_MEMORY,
					"not enough memory on the host for %u arcs of observations: %llu bytes needed, %llu bytes free", rows,
					(unsigned long long) bytes, (unsigned long long) available);
	slot->shapes = dataset_create(NO_ID, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC);
	if (slot->shapes == NULL)
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory for lines and polygons");
	if (dataset_append(slot->shapes, &columns, rows, failure) && dataset_check_end(slot->shapes, failure))
	{
		dataset_fit(slot->shapes);
		slot->shapes->sealed = true;
		return true;
	}
	slot_forget_shapes(slot);
	return false;
}
