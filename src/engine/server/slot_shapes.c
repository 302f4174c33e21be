/*
 * slot_shapes.c
 *		The shapes that are a slot's observations.
 *
 * The device that takes a search copies their arcs (cpu/arcs/arcs_probe.c).  The slot keeps them for the searches that go on
 * from there: until all are answered, the slot's next search begins, or the slot loses its batch.
 */
#include "engine/server/session.h"

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
slot_begin_shapes(struct slot *slot, uint32_t columns, struct failure *failure)
{
	slot->shapes = dataset_create(NO_ID, GEONN_METRIC_SPHERE, columns);
	return slot->shapes != NULL || fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a search");
}
