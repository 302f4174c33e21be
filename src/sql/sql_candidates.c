/*
 * sql_candidates.c
 *		The references that may be among a subquery's rows for an outer row, in the order of its keys.
 *
 * The subquery's own keys are evaluated, and compared as PostgreSQL's sort does.  Rows that tie in all keys come in
 * the order of their reading.  Where the references are not kept in memory, PostgreSQL's sort has them, within work_mem
 * or on disk.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "plan/lateral.h"
#include "sql/sql_candidates.h"

/* room for those of an outer row at first */
#define FEW_CANDIDATES 64

/*
 * Describe rows of the keys and the references' columns.
 */
static TupleDesc
describe_sorted(const SqlReferences *references, const List *keys)
{
	TupleDesc	columns = ExecGetResultType(references->plan);
	TupleDesc	result = CreateTemplateTupleDesc(list_length(keys) + columns->natts);
	AttrNumber	number = 0;
	ListCell   *cell;

	foreach(cell, keys)
		TupleDescInitEntry(result, ++number, "key", exprType(lfirst(cell)), exprTypmod(lfirst(cell)), 0);
	for (AttrNumber i = 1; i <= columns->natts; i++)
		TupleDescCopyEntry(result, ++number, columns, i);
	TupleDescFinalize(result);
	return result;
}

/*
 * Describe rows like the scan's, with the distance after them.
 */
static TupleDesc
describe_pair(TupleDesc scan)
{
	TupleDesc	result = CreateTemplateTupleDesc(scan->natts + 1);

	for (AttrNumber i = 1; i <= scan->natts; i++)
		TupleDescCopyEntry(result, i, scan, i);
	TupleDescInitEntry(result, (AttrNumber) (scan->natts + 1), "distance", FLOAT8OID, -1, 0);
	TupleDescFinalize(result);
	return result;
}

void
geonn_candidates_begin(SqlCandidates *candidates, const SqlReferences *references, PlanState *plan,
					   const SqlExpressions *expressions, const SqlPrivate *planned, TupleDesc scan, int outer_columns)
{
	const List *keys = expressions->keys;
	ListCell   *cell;
	TupleDesc	sorted = describe_sorted(references, keys);

	candidates->references = references;
	candidates->keys = list_length(keys);
	Assert(candidates->keys > 0);
	candidates->key = palloc(candidates->keys * sizeof(ExprState *));
	candidates->operators = palloc(candidates->keys * sizeof(Oid));
	candidates->order = palloc0(candidates->keys * sizeof(SortSupportData));
	for (int i = 0; i < candidates->keys; i++)
	{
		SortSupport order = &candidates->order[i];

		candidates->key[i] = ExecInitExpr(list_nth(keys, i), plan);
		candidates->operators[i] = list_nth_oid(planned->operators, i);
		order->ssup_cxt = CurrentMemoryContext;
		order->ssup_collation = list_nth_oid(planned->collations, i);
		order->ssup_nulls_first = list_nth_int(planned->nulls_first, i) != 0;
		PrepareSortSupportFromOrderingOp(candidates->operators[i], order);
	}
	candidates->later_are_of_references = true;
	foreach(cell, list_copy_tail(keys, 1))
		candidates->later_are_of_references &= IsA(lfirst(cell), Var) && ((Var *) lfirst(cell))->varattno > outer_columns;
	candidates->conditions = ExecInitQual(expressions->conditions, plan);
	candidates->pair = ExecInitExtraTupleSlot(plan->state, describe_pair(scan), &TTSOpsVirtual);
	memset(candidates->pair->tts_isnull, true, (scan->natts + 1) * sizeof(bool));
	candidates->first = scan->natts - references->columns;
	candidates->distance = scan->natts;
	candidates->expressions = CreateExprContext(plan->state);
	candidates->expressions->ecxt_scantuple = candidates->pair;
	candidates->unsorted_slot = ExecInitExtraTupleSlot(plan->state, sorted, &TTSOpsVirtual);
	candidates->sorted_slot = ExecInitExtraTupleSlot(plan->state, sorted, &TTSOpsMinimalTuple);
	candidates->room = FEW_CANDIDATES;
	candidates->candidates = palloc(candidates->room * sizeof(Candidate));
}

/*
 * Set the pair's columns of a reference, by their values.
 */
static void
show_columns(const SqlCandidates *candidates, const Datum *values, const bool *nulls)
{
	TupleTableSlot *pair = candidates->pair;

	geonn_copy_columns(pair->tts_values + candidates->first, pair->tts_isnull + candidates->first, values, nulls,
					   candidates->references->columns);
}

static void
show_reference(const SqlCandidates *candidates, uint64 number)
{
	const Reference *reference = candidates->references->rows[number];

	show_columns(candidates, reference->values, reference->nulls);
}

bool
geonn_candidates_add(SqlCandidates *candidates, uint64 reference, double distance)
{
	Assert(reference < candidates->references->count && candidates->sorted == NULL);
	if (candidates->conditions != NULL)
	{
		show_reference(candidates, reference);
		if (!ExecQual(candidates->conditions, candidates->expressions))
			return false;
	}
	if (candidates->count == candidates->room)
	{
		candidates->room *= 2;
		candidates->candidates = repalloc_huge(candidates->candidates, candidates->room * sizeof(Candidate));
	}
	candidates->candidates[candidates->count++] = (Candidate) {
		.reference = reference,
		.distance = distance,
		.group = candidates->group
	};
	return true;
}

/*
 * Evaluate the keys from `first` on of the reference that the pair shows.  No function may change an array or record in
 * place: the key can be an output, too.
 */
static void
evaluate_pair(const SqlCandidates *candidates, int first, Datum *keys, bool *nulls)
{
	TupleDesc	rows = candidates->unsorted_slot->tts_tupleDescriptor;

	for (int i = first; i < candidates->keys; i++)
	{
		Datum		key = ExecEvalExprSwitchContext(candidates->key[i], candidates->expressions, &nulls[i]);

		keys[i] = MakeExpandedObjectReadOnly(key, nulls[i], TupleDescAttr(rows, i)->attlen);
	}
}

static void
evaluate_keys(SqlCandidates *candidates, int first)
{
	uint64		count = candidates->count;
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
		evaluate_pair(candidates, first, candidate->keys, candidate->nulls);
	}
}

/*
 * Compare by the keys from `first` on.
 */
static int
compare_keys(const SqlCandidates *candidates, int first, const Candidate *one, const Candidate *other)
{
	CHECK_FOR_INTERRUPTS();
	for (int i = first; i < candidates->keys; i++)
	{
		int			result = ApplySortComparator(one->keys[i], one->nulls[i], other->keys[i], other->nulls[i],
												 &candidates->order[i]);

		if (result != 0)
			return result;
	}
	return one->reference < other->reference ? -1 : one->reference > other->reference;
}

static int
compare_candidates(const void *left, const void *right, void *candidates)
{
	const Candidate *one = left;
	const Candidate *other = right;

	if (one->group != other->group)
		return one->group < other->group ? -1 : 1;
	return compare_keys(candidates, 0, one, other);
}

static int
compare_later_keys(const void *left, const void *right, void *candidates)
{
	return compare_keys(candidates, 1, left, right);
}

void
geonn_candidates_choose(SqlCandidates *candidates)
{
	candidates->next = Min(candidates->skipped, candidates->count);
	candidates->end = candidates->next + Min(candidates->wanted, candidates->count - candidates->next);
	Assert(candidates->next <= candidates->end && candidates->end <= candidates->count);
}

void
geonn_candidates_sort(SqlCandidates *candidates)
{
	if (candidates->count > 1)
	{
		evaluate_keys(candidates, 0);
		candidates->rechecked += candidates->count;
		qsort_arg(candidates->candidates, candidates->count, sizeof(Candidate), compare_candidates, candidates);
	}
	geonn_candidates_choose(candidates);
}

void
geonn_candidates_order_references(SqlCandidates *candidates, SqlReferences *references)
{
	Reference **rows = palloc_extended(Max(references->count, 1) * sizeof(Reference *), MCXT_ALLOC_HUGE);
	MemoryContext context = GetMemoryChunkContext(candidates->candidates);

	Assert(candidates->conditions == NULL && candidates->later_are_of_references);
	geonn_candidates_reset(candidates);
	ExecStoreVirtualTuple(ExecClearTuple(candidates->pair));
	for (uint64 i = 0; i < references->count; i++)
		(void) geonn_candidates_add(candidates, i, NAN);
	evaluate_keys(candidates, 1);
	qsort_arg(candidates->candidates, candidates->count, sizeof(Candidate), compare_later_keys, candidates);
	for (uint64 i = 0; i < references->count; i++)
		rows[i] = references->rows[candidates->candidates[i].reference];
	memcpy(references->rows, rows, references->count * sizeof(Reference *));
	geonn_sql_references_number(references);

	/* geonn.session_memory_limit has counted this memory as that which the engine will take for the references */
	geonn_candidates_reset(candidates);
	pfree(rows);
	pfree(candidates->candidates);
	candidates->room = FEW_CANDIDATES;
	candidates->candidates = MemoryContextAlloc(context, candidates->room * sizeof(Candidate));
}

void
geonn_candidates_reset(SqlCandidates *candidates)
{
	if (candidates->sorted != NULL)
	{
		ExecClearTuple(candidates->sorted_slot);
		tuplesort_end(candidates->sorted);
	}
	candidates->sorted = NULL;
	candidates->count = candidates->group = candidates->next = candidates->end = 0;
	ResetExprContext(candidates->expressions);
}

/*
 * Begin to sort; only the first rows are needed where LIMIT says so.
 */
static Tuplesortstate *
begin_sort(const SqlCandidates *candidates)
{
	bool		is_bounded = candidates->wanted < PG_INT32_MAX && candidates->skipped < PG_INT32_MAX;
	AttrNumber *numbers = palloc(candidates->keys * sizeof(AttrNumber));
	Oid		   *collations = palloc(candidates->keys * sizeof(Oid));
	bool	   *nulls_first = palloc(candidates->keys * sizeof(bool));
	Tuplesortstate *sort;

	for (int i = 0; i < candidates->keys; i++)
	{
		numbers[i] = (AttrNumber) (i + 1);
		collations[i] = candidates->order[i].ssup_collation;
		nulls_first[i] = candidates->order[i].ssup_nulls_first;
	}
	sort = tuplesort_begin_heap(candidates->sorted_slot->tts_tupleDescriptor, candidates->keys, numbers,
								candidates->operators, collations, nulls_first, work_mem, NULL,
								is_bounded ? TUPLESORT_ALLOWBOUNDED : TUPLESORT_NONE);
	if (is_bounded)
		tuplesort_set_bound(sort, (int64) (candidates->wanted + candidates->skipped));
	pfree(numbers);
	pfree(collations);
	pfree(nulls_first);
	return sort;
}

uint64
geonn_candidates_reread(SqlCandidates *candidates, SqlReferences *references)
{
	TupleTableSlot *slot = candidates->unsorted_slot;
	uint64		read = 0;

	candidates->sorted = begin_sort(candidates);
	geonn_sql_references_reread(references);
	for (;;)
	{
		TupleTableSlot *row = geonn_sql_references_next(references);

		if (TupIsNull(row))
			break;
		CHECK_FOR_INTERRUPTS();
		read++;
		ResetExprContext(candidates->expressions);
		slot_getallattrs(row);
		show_columns(candidates, row->tts_values, row->tts_isnull);
		if (!ExecQual(candidates->conditions, candidates->expressions))
			continue;
		ExecClearTuple(slot);
		evaluate_pair(candidates, 0, slot->tts_values, slot->tts_isnull);
		memcpy(slot->tts_values + candidates->keys, row->tts_values, references->columns * sizeof(Datum));
		memcpy(slot->tts_isnull + candidates->keys, row->tts_isnull, references->columns * sizeof(bool));
		tuplesort_puttupleslot(candidates->sorted, ExecStoreVirtualTuple(slot));
		candidates->rechecked++;
	}
	ExecClearTuple(slot);
	tuplesort_performsort(candidates->sorted);
	candidates->next = 0;
	candidates->end = candidates->wanted;
	for (uint64 i = 0; i < candidates->skipped && candidates->end > 0; i++)
	{
		if (!tuplesort_gettupleslot(candidates->sorted, true, false, candidates->sorted_slot, NULL))
			candidates->end = 0;
	}
	return read;
}

static const Candidate *
next_sorted(SqlCandidates *candidates)
{
	TupleTableSlot *slot = candidates->sorted_slot;

	if (!tuplesort_gettupleslot(candidates->sorted, true, false, slot, NULL))
	{
		candidates->next = candidates->end;
		return NULL;
	}
	candidates->next++;
	slot_getallattrs(slot);
	show_columns(candidates, slot->tts_values + candidates->keys, slot->tts_isnull + candidates->keys);
	candidates->present.keys = slot->tts_values;
	candidates->present.nulls = slot->tts_isnull;
	return &candidates->present;
}

const Candidate *
geonn_candidates_next(SqlCandidates *candidates)
{
	const Candidate *candidate;

	if (candidates->next == candidates->end)
		return NULL;
	if (candidates->sorted != NULL)
		return next_sorted(candidates);
	candidate = &candidates->candidates[candidates->next++];
	show_reference(candidates, candidate->reference);
	return candidate;
}
