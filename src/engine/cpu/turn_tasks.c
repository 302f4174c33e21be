/*
 * turn_tasks.c
 *		Makes tasks of observations with windows, and answers of tasks.
 */
#include "engine/cpu/turn_tasks.h"

#include "engine/cpu/walk/nearest.h"

/*
 * List the parts that an observation's windows reach.  Returns how many tasks that makes.
 */
static uint32_t
list_parts(const struct cpu_turn_tasks *tasks, uint32_t row, uint32_t *part)
{
	const struct geonn_batch_columns *columns = &tasks->search->columns;
	const struct cpu_index *index = tasks->index;
	const volatile int32_t *group_of = columns->group;
	struct point_windows windows = point_windows_read(columns, tasks->first + row);
	uint32_t	group = cpu_slabs_group(index->slabs, group_of != NULL ? group_of[tasks->first + row] : 0);
	uint32_t	count;

	if (group >= index->slabs->groups)
		return 0;
	count = cpu_slabs_reached(index->slabs, group, &windows, part, CPU_TASKS_MAX);
	if (count <= CPU_TASKS_MAX)
		return count;
	part[0] = index->parts;
	return 1;
}

void
cpu_turn_make_tasks(struct cpu_turn_tasks *tasks, const uint32_t *row, const uint64_t *code, uint32_t count)
{
	uint32_t	part[CPU_VECTORS_BLOCK * CPU_TASKS_MAX];
	uint32_t	made = 0;
	uint32_t	task;

	for (uint32_t i = 0; i < count; i++)
	{
		tasks->made[row[i]] = list_parts(tasks, row[i], part + made);
		made += tasks->made[row[i]];
	}
	task = atomic_fetch_add(&tasks->claimed, made);
	for (uint32_t i = 0, at = 0; i < count; i++)
	{
		tasks->first_task[row[i]] = task;
		for (uint32_t left = tasks->made[row[i]]; left > 0; left--, task++)
		{
			tasks->key[task] = cpu_nearest_key(part[at++], code[i]);
			tasks->number[task] = task;
			tasks->row[task] = row[i];
			tasks->best[task].distance = CPU_TURN_UNANSWERED;
		}
	}
}

bool
cpu_turn_end_tasks(const struct cpu_turn_tasks *tasks, uint32_t row, struct candidate *best)
{
	uint32_t	first = tasks->first_task[row];

	*best = (struct candidate) {INFINITY, UINT32_MAX};
	for (uint32_t task = first; task < first + tasks->made[row]; task++)
	{
		struct candidate found = tasks->best[task];

		if (found.distance < 0.0)
			return false;
		if (found.distance < INFINITY && candidate_before(found, *best))
			*best = found;
	}
	return true;
}
