/*
 * turn_clusters.c
 *		A turn of a search for clusters.
 *
 * The observations are the references, so the search goes on with one answer to all of them, turn by turn
 * (cpu/clusters/clusters.c).  The answer stays with the slot's observations, where probes of shapes stay, too.  A batch has room
 * for some of the references; the searches for the next ones find the answer there.
 */
#include "engine/cpu/turn.h"

#include <stdlib.h>

#include "common/assertion.h"
#include "engine/cpu/clusters/clusters.h"

/* writing so many answers takes some milliseconds */
#define ANSWERS_MOST 131072

/* Begin with the answer, unless an earlier turn has. */
static bool
begin(struct search *search, const struct cpu_built *built)
{
	struct cpu_built *own = search->shapes->built[CPU_NUMBER];

	if (own != NULL)
		return true;
	own = calloc(1, sizeof(*own));
	if (own == NULL)
		return fail(&search->failure, GEONN_ERROR_MEMORY, "not enough memory for a search");
	own->clusters = cpu_clusters_create(search, built->index, &search->failure);
	if (own->clusters == NULL)
	{
		free(own);
		return false;
	}
	search->shapes->built[CPU_NUMBER] = own;
	atomic_store(&search->shapes->built_bytes, cpu_clusters_bytes(own->clusters));
	return true;
}

bool
cpu_turn_clusters(struct search *search, const struct cpu_built *built)
{
	uint32_t	left = search->rows - search->first;
	uint32_t	room = search->columns.room < ANSWERS_MOST ? search->columns.room : ANSWERS_MOST;
	uint32_t	rows = left < room ? left : room;
	const struct cpu_built *own;

	geonn_assert(search->answered == 0 && rows > 0);
	search->failed = !begin(search, built);
	if (search->failed)
		return false;
	own = search->shapes->built[CPU_NUMBER];
	/* as if one observation had the turn for itself */
	if (!cpu_clusters_go_on(own->clusters, search->cancelled, cpu_turn_end(search, 1)))
		return !atomic_load(search->cancelled);
	for (uint32_t i = 0; i < rows; i++)
	{
		search->columns.tag[i] = search->dataset->tag[search->first + i];
		search->columns.distance[i] = (double) cpu_clusters_of(own->clusters, search->first + i);
	}
	search_account(search, rows, rows, true);
	return false;
}
