/*
 * turn_tasks.c
 *		Makes tasks of observations with windows, and answers of tasks.
 */
#include "engine/cpu/turn_tasks.h"

#include "engine/cpu/walk/nearest.h"

/* List the parts that an observation's windows reach.  Returns how many tasks the observation becomes. */
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
			tasks->best[(size_t) task * tasks->search->question.k].distance = CPU_TURN_UNANSWERED;
		}
	}
}

bool
cpu_turn_end_tasks(const struct cpu_turn_tasks *tasks, uint32_t row, struct candidate *best, uint32_t *count)
{
	uint32_t	k = tasks->search->question.k;
	uint32_t	made = tasks->made[row];
	const struct candidate *next[CPU_TASKS_MAX];

	for (uint32_t i = 0; i < made; i++)
	{
		next[i] = tasks->best + (size_t) (tasks->first_task[row] + i) * k;
		if (next[i]->distance < 0.0)
			return false;
	}
	/* a task's answers end with an infinite distance, unless they are k */
	for (*count = 0; *count < k && made > 0; ++*count)
	{
		uint32_t	nearest = 0;

		for (uint32_t i = 1; i < made; i++)
			if (candidate_before(*next[i], *next[nearest]))
				nearest = i;
		if (next[nearest]->distance == INFINITY)
			break;
		best[*count] = *next[nearest]++;
	}
	return true;
}
