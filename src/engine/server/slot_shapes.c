/*
 * slot_shapes.c
 *		The shapes that are a slot's observations.
 *
 * The device that takes a search copies their arcs (cpu/arcs/arcs_probe.c).  The slot keeps them for the searches that go on
 * from there: until all are answered, the slot's next search begins, or the slot loses its batch.
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
slot_begin_shapes(struct slot *slot, uint32_t rows, struct failure *failure)
{
	uint64_t	bytes = (uint64_t) rows * GEONN_OBSERVED_ARC_BYTES;
	uint64_t	available = host_memory_free();

	if (bytes > available)
		return fail(failure, GEONN_ERROR_MEMORY,
					"not enough memory on the host for %u arcs of observations: %llu bytes needed, %llu bytes free", rows,
					(unsigned long long) bytes, (unsigned long long) available);
	slot->shapes = dataset_create(NO_ID, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC);
	return slot->shapes != NULL || fail(failure, GEONN_ERROR_MEMORY, "not enough memory for lines and polygons");
}
