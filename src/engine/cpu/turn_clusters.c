/*
 * turn_clusters.c
 *		A turn of a search for clusters, or for a thinning.
 *
 * The observations are the references, so the search goes on with one answer to all of them, turn by turn
 * (cpu/clusters/clusters.c).  A build begins with the answer, since the order of a thinning is sorted then.  The answer
 * stays with the slot's observations, where probes of shapes stay, too.  A batch has room for some of the references; the
 * searches for the next ones find the answer there.
 */
#include "engine/cpu/turn.h"

#include <string.h>

#include "common/assertion.h"
#include "engine/cpu/clusters/clusters.h"

/* Write the answer of the reference at a place.  Returns false with the failure if it has its keeper's tag. */
static bool
write_answer(struct search *search, const struct cpu_clusters *clusters, uint32_t place, uint32_t row)
{
	const int64_t *tag = search->dataset->tag;
	uint32_t	keeper;

	search->columns.tag[row] = tag[place];
	if (!search->question.thins)
	{
		search->columns.distance[row] = (double) cpu_clusters_of(clusters, place);
		return true;
	}
	keeper = cpu_clusters_keeper(clusters, place);
	memcpy(&search->columns.distance[row], &tag[keeper], sizeof(*tag));
	if (keeper == place || tag[keeper] != tag[place])
		return true;
	fail(&search->failure, GEONN_ERROR_SAME_TAG, "points that are to be thinned out have the id %lld twice",
		 (long long) tag[place]);
	fail_detail(&search->failure, "Both are within the spacing, and kept_by cannot tell which one is kept.");
	fail_hint(&search->failure, "Give a query with an id of its own for each point, as geonn_thin_sql('SELECT row_number() OVER () AS id, lat, lon FROM stop', 100).");
	return false;
}

bool
cpu_turn_clusters(struct search *search)
{
	uint32_t	left = search->rows - search->first;
	uint32_t	room = search->columns.room < CPU_TURN_PAIRS_MOST ? search->columns.room : CPU_TURN_PAIRS_MOST;
	uint32_t	rows = left < room ? left : room;
	const struct cpu_built *own = search->shapes->built[CPU_NUMBER];

	geonn_assert(search->answered == 0 && rows > 0);
	/* as if one observation had the turn for itself */
	if (!cpu_clusters_go_on(own->clusters, search->cancelled, cpu_turn_end(search, 1)))
		return !atomic_load(search->cancelled);
	for (uint32_t i = 0; i < rows && !search->failed; i++)
		search->failed = !write_answer(search, own->clusters, search->first + i, i);
	if (!search->failed)
		search_account(search, rows, rows, true);
	return false;
}
