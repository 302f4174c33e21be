/*
 * slot_shapes.c
 *		The shapes that are a slot's observations, or the clusters or the assignment that its search is for.
 *
 * The device that takes a search copies the arcs of shapes (cpu/arcs/arcs_probe.c), or attaches clusters or an assignment to an
 * empty dataset (cpu/turn_clusters.c, cpu/turn_assign.c).  The slot keeps them for the searches that go on from there: until all
 * observations are answered, the slot's next search begins, or the slot loses its batch.
 */
#include "engine/server/session.h"

#include "engine/search/backends.h"
#include "engine/server/disposal.h"

/* shapes of observations have no number among datasets */
#define NO_ID 0

void
slot_forget_shapes(struct slot *slot)
{
	struct dataset *shapes = slot->shapes;

	slot->shapes = NULL;
	if (shapes == NULL)
		return;
	if (shapes->columns == 0)
	{
		/* clusters and assignments have bytes for each reference, and the server's thread does not wait until these are free */
		disposal_add(shapes);
		return;
	}
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
