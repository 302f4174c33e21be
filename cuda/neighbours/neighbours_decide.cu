/*
 * neighbours_decide.cu
 *		Decides on the host which candidates are the pairs, where the chord
 *		does not decide.
 *
 * The pairs are ordered by geonn_metric_distance(), which only the host can
 * call.  The GPU delivers the candidates by observation.  The thread pool's
 * threads measure them, in pieces of PIECE_CANDIDATES candidates; then they put
 * the candidates of each observation in order, in pieces of observations.  A
 * turn of this work ends after some 30 ms, so that the lanes get their turns,
 * too.
 *
 * The degrees also come from the GPU, not from the batch, which its client can
 * change at any time.
 */
#include <stdlib.h>

#include "common/metric.h"
#include "cuda/base/columns.cuh"
#include "cuda/base/try.cuh"
#include "cuda/lane/lane.cuh"
#include "cuda/neighbours/neighbours.cuh"

extern "C"
{
#include "engine/base/thread_pool.h"
#include "engine/search/candidates.h"
}

/* how many candidates each thread measures, or puts in order, in a turn */
#define TURN_CANDIDATES ((uint32_t) 1 << 15)

/* how many candidates one piece of a turn has */
#define PIECE_CANDIDATES ((uint32_t) 1 << 11)

/* Lay out a decision's columns in a block of the host's memory. */
static size_t
place_decision(void *memory, struct neighbours_decision *decision, bool has_radius)
{
	uint32_t	rows = decision->rows;
	uint32_t	count = decision->count;
	size_t		bytes = 0;

	place_columns(memory, &bytes, rows, &decision->latitude, &decision->longitude);
	if (has_radius)
		place_columns(memory, &bytes, rows, &decision->radius);
	place_columns(memory, &bytes, rows + (size_t) 1, &decision->offset);
	place_columns(memory, &bytes, count, &decision->place);
	place_columns(memory, &bytes, count, &decision->candidate);
	place_columns(memory, &bytes, rows, &decision->chosen);
	return bytes;
}

bool
neighbours_decision_begin(struct neighbours_decision *decision, const struct neighbours *search,
						  uint32_t rows, uint32_t count)
{
	bool		has_radius = search->conditions.radius != NULL;

	decision->rows = rows;
	decision->count = count;
	decision->memory = malloc(place_decision(NULL, decision, has_radius));
	if (decision->memory == NULL)
		return false;
	place_decision(decision->memory, decision, has_radius);
	return true;
}

cudaError_t
neighbours_decision_copy(const struct neighbours_decision *decision,
						 const struct neighbours *search)
{
	size_t		bytes = decision->rows * sizeof(double);

	CUDA_TRY(cudaMemcpyAsync(decision->latitude, search->latitude, bytes,
							 cudaMemcpyDeviceToHost, search->stream));
	CUDA_TRY(cudaMemcpyAsync(decision->longitude, search->longitude, bytes,
							 cudaMemcpyDeviceToHost, search->stream));
	if (decision->radius != NULL)
		CUDA_TRY(cudaMemcpyAsync(decision->radius, search->conditions.radius, bytes,
								 cudaMemcpyDeviceToHost, search->stream));
	CUDA_TRY(cudaMemcpyAsync(decision->offset, search->results.offset,
							 (decision->rows + (size_t) 1) * sizeof(uint64_t),
							 cudaMemcpyDeviceToHost, search->stream));
	return cudaMemcpyAsync(decision->place, search->entries.reference,
						   decision->count * sizeof(uint32_t), cudaMemcpyDeviceToHost,
						   search->stream);
}

struct turn
{
	struct neighbours_decision *decision;
	const struct search *search;
	uint32_t	first;			/* the first candidate, or observation, of the turn */
	uint32_t	end;
	uint32_t	piece;			/* how many candidates, or observations, a piece has */
};

/* the last observation whose candidates begin at or before this one */
static uint32_t
observation_of(const struct neighbours_decision *decision, uint32_t candidate)
{
	uint32_t	first = 0;
	uint32_t	end = decision->rows;

	while (end - first > 1)
	{
		uint32_t	middle = first + (end - first) / 2;

		if (decision->offset[middle] <= candidate)
			first = middle;
		else
			end = middle;
	}
	return first;
}

static void
measure_piece(void *context, size_t number)
{
	struct turn *turn = (struct turn *) context;
	struct neighbours_decision *decision = turn->decision;
	uint32_t	first = turn->first + (uint32_t) number * turn->piece;
	uint32_t	end = turn->end - first < turn->piece ? turn->end : first + turn->piece;
	uint32_t	row = observation_of(decision, first);

	while (first < end)
	{
		uint32_t	row_end = end;

		while (decision->offset[row + 1] <= first)
			row++;
		if (decision->offset[row + 1] < end)
			row_end = (uint32_t) decision->offset[row + 1];
		for (uint32_t i = first; i < row_end; i++)
			decision->candidate[i].place = decision->place[i];
		candidates_measure(turn->search->dataset, decision->latitude[row],
						   decision->longitude[row], decision->candidate + first,
						   row_end - first, turn->search->cancelled);
		first = row_end;
	}
}

static void
choose_piece(void *context, size_t number)
{
	struct turn *turn = (struct turn *) context;
	struct neighbours_decision *decision = turn->decision;
	uint32_t	first = turn->first + (uint32_t) number * turn->piece;
	uint32_t	end = turn->end - first < turn->piece ? turn->end : first + turn->piece;
	struct question question = turn->search->question;
	struct cutoff none = {};

	for (uint32_t row = first; row < end; row++)
	{
		uint64_t	offset = decision->offset[row];

		if (decision->radius != NULL)
			question.max_distance = geonn_metric_reach(turn->search->question.max_distance,
													 decision->radius[row]);
		decision->chosen[row] = (uint32_t)
			candidates_choose(decision->candidate + offset,
							  (size_t) (decision->offset[row + 1] - offset),
							  &question, &none);
	}
}

static void
run_turn(thread_pool_piece piece, struct turn *turn)
{
	thread_pool_run(piece, turn, (turn->end - turn->first + turn->piece - 1) / turn->piece);
}

/*
 * Write the pairs to the batch, for the first observations that fit.
 */
static void
write_pairs(const struct neighbours_decision *decision, const struct search *search,
			uint32_t *answered, uint32_t *pairs)
{
	const struct geonn_batch_columns *columns = &search->columns;
	uint32_t	room = room_left(search);
	uint32_t	row = 0;
	uint32_t	written = 0;

	for (; row < decision->rows && decision->chosen[row] <= room - written; row++)
	{
		const struct candidate *chosen = decision->candidate + decision->offset[row];

		for (uint32_t i = 0; i < decision->chosen[row]; i++)
		{
			columns->tag[search->pairs + written] = search->dataset->tag[chosen[i].place];
			columns->distance[search->pairs + written] = chosen[i].distance;
			written++;
		}
		columns->count[search->first + search->answered + row] = decision->chosen[row];
	}
	*answered = row;
	*pairs = written;
}

bool
neighbours_decide(struct neighbours_decision *decision, const struct search *search,
				  uint32_t *answered, uint32_t *pairs)
{
	uint32_t	turn_candidates = TURN_CANDIDATES * thread_pool_threads();
	struct turn turn = {};

	turn.decision = decision;
	turn.search = search;
	if (decision->measured < decision->count)
	{
		turn.first = decision->measured;
		turn.end = decision->count - turn.first < turn_candidates ? decision->count :
			turn.first + turn_candidates;
		turn.piece = PIECE_CANDIDATES;
		run_turn(measure_piece, &turn);
		decision->measured = turn.end;
		return false;
	}
	if (decision->decided < decision->rows)
	{
		uint64_t	rows = (uint64_t) decision->rows * turn_candidates / (decision->count + 1) + 1;

		turn.first = decision->decided;
		turn.end = decision->rows - turn.first < rows ? decision->rows :
			turn.first + (uint32_t) rows;
		turn.piece = (turn.end - turn.first) / (8 * thread_pool_threads()) + 1;
		run_turn(choose_piece, &turn);
		decision->decided = turn.end;
		return false;
	}
	write_pairs(decision, search, answered, pairs);
	return true;
}

void
neighbours_decision_end(struct neighbours_decision *decision)
{
	free(decision->memory);
	*decision = {};
}
