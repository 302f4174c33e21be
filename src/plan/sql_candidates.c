/*
 * sql_candidates.c
 *		The references that may be among a subquery's rows for an outer row, in the order of its keys.
 *
 * The subquery's own keys are evaluated, and compared as PostgreSQL's sort does.  Rows that tie in all keys come in
 * the order of their reading.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "plan/sql_candidates.h"
#include "plan/sql_join.h"

void
geonn_candidates_begin(SqlCandidates *candidates, const SqlReferences *references, PlanState *plan, List *keys,
					   TupleDesc scan)
{
	const List *private_list = ((const CustomScan *) plan->plan)->custom_private;

	candidates->references = references;
	candidates->keys = list_length(keys);
	candidates->key = palloc(candidates->keys * sizeof(ExprState *));
	candidates->order = palloc0(candidates->keys * sizeof(SortSupportData));
	for (int i = 0; i < candidates->keys; i++)
	{
		SortSupport order = &candidates->order[i];

		candidates->key[i] = ExecInitExpr(list_nth(keys, i), plan);
		order->ssup_cxt = CurrentMemoryContext;
		order->ssup_collation = list_nth_oid(list_nth(private_list, SQL_COLLATIONS), i);
		order->ssup_nulls_first = list_nth_int(list_nth(private_list, SQL_NULLS_FIRST), i) != 0;
		PrepareSortSupportFromOrderingOp(list_nth_oid(list_nth(private_list, SQL_OPERATORS), i), order);
	}
	candidates->pair = ExecInitExtraTupleSlot(plan->state, scan, &TTSOpsVirtual);
	candidates->first = scan->natts - references->columns;
	candidates->expressions = CreateExprContext(plan->state);
	candidates->expressions->ecxt_scantuple = candidates->pair;
}

void
geonn_candidates_reserve(SqlCandidates *candidates, uint64 count)
{
	candidates->candidates = MemoryContextAllocHuge(candidates->expressions->ecxt_per_tuple_memory,
													Max(count, 1) * sizeof(Candidate));
	memset(candidates->candidates, 0, count * sizeof(Candidate));
}

/*
 * Set the pair's columns of a reference.
 */
static void
show_reference(const SqlCandidates *candidates, uint64 number)
{
	const SqlReferences *references = candidates->references;
	const Reference *reference = &references->rows[number];
	TupleTableSlot *pair = candidates->pair;

	memcpy(pair->tts_values + candidates->first, reference->values, references->columns * sizeof(Datum));
	memcpy(pair->tts_isnull + candidates->first, reference->nulls, references->columns * sizeof(bool));
}

static void
evaluate_keys(SqlCandidates *candidates, uint64 count)
{
	MemoryContext memory = candidates->expressions->ecxt_per_tuple_memory;
	Datum	   *keys = MemoryContextAllocHuge(memory, count * candidates->keys * sizeof(Datum));
	bool	   *nulls = MemoryContextAllocHuge(memory, count * candidates->keys * sizeof(bool));

	for (uint64 i = 0; i < count; i++)
	{
		Candidate  *candidate = &candidates->candidates[i];

		CHECK_FOR_INTERRUPTS();
		candidate->keys = keys + i * candidates->keys;
		candidate->nulls = nulls + i * candidates->keys;
		show_reference(candidates, candidate->reference);
		for (int key = 0; key < candidates->keys; key++)
			candidate->keys[key] = ExecEvalExprSwitchContext(candidates->key[key], candidates->expressions,
															 &candidate->nulls[key]);
	}
	candidates->rechecked += count;
}

static int
compare_candidates(const void *left, const void *right, void *argument)
{
	const SqlCandidates *candidates = argument;
	const Candidate *one = left;
	const Candidate *other = right;

	for (int i = 0; i < candidates->keys; i++)
	{
		int			result = ApplySortComparator(one->keys[i], one->nulls[i], other->keys[i], other->nulls[i],
												 &candidates->order[i]);

		if (result != 0)
			return result;
	}
	return one->reference < other->reference ? -1 : one->reference > other->reference;
}

void
geonn_candidates_choose(SqlCandidates *candidates, uint64 count, bool is_ordered)
{
	if (!is_ordered && count > 1)
	{
		evaluate_keys(candidates, count);
		qsort_arg(candidates->candidates, count, sizeof(Candidate), compare_candidates, candidates);
	}
	candidates->next = Min(candidates->skipped, count);
	candidates->end = candidates->next + Min(candidates->wanted, count - candidates->next);
}

const Candidate *
geonn_candidates_next(SqlCandidates *candidates)
{
	const Candidate *candidate;

	if (candidates->next == candidates->end)
		return NULL;
	candidate = &candidates->candidates[candidates->next++];
	show_reference(candidates, candidate->reference);
	return candidate;
}
