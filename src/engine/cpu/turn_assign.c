/*
 * turn_assign.c
 *		A turn of a search that assigns observations to references.
 *
 * The search goes on with one answer for all observations, turn by turn (cpu/assign/assign.c).  A build begins with the answer,
 * and it stays with the slot's observations, as that of clusters does (turn_clusters.c): searches that go on with further
 * observations find it there.
 */
#include "engine/cpu/turn.h"

#include "common/assertion.h"
#include "engine/cpu/assign/assign.h"

/* Write the two pairs of the next `rows` observations. */
static void
write_pairs(struct search *search, const struct cpu_assign *assign, uint32_t rows)
{
	for (uint32_t i = 0; i < rows; i++)
	{
		double		distance;
		uint32_t	place = cpu_assign_of(assign, search->first + i, &distance);
		bool		is_assigned = place != ASSIGN_NONE;

		search->columns.tag[2 * i] = search->asking->tag[search->first + i];
		search->columns.tag[2 * i + 1] = is_assigned ? search->dataset->tag[place] : 0;
		search->columns.distance[2 * i] = search->columns.distance[2 * i + 1] = is_assigned ? distance : NAN;
	}
}

bool
cpu_turn_assign(struct search *search)
{
	uint32_t	left = search->rows - search->first;
	uint32_t	room = search->columns.room < CPU_TURN_PAIRS_MOST ? search->columns.room : CPU_TURN_PAIRS_MOST;
	uint32_t	rows = left < room / 2 ? left : room / 2;
	const struct cpu_built *own = search->shapes->built[CPU_NUMBER];

	geonn_assert(search->answered == 0 && rows > 0);
	/* as if one observation had the turn for itself */
	if (!cpu_assign_go_on(own->assign, search, cpu_turn_end(search, 1)))
		return !search->failed && !atomic_load(search->cancelled);
	write_pairs(search, own->assign, rows);
	search_account(search, rows, 2 * rows, true);
	return false;
}
