/*
 * neighbours_merge.cu
 *		Merges any number of candidates of one observation, where the chord
 *		does not decide.
 *
 * The candidates come in chunks.  From each chunk, the host measures the
 * candidates that may be pairs, puts them in order, and merges them into the
 * first candidates so far, as many as can be used.  So neither memory nor a
 * turn's duration depends on the number of candidates.
 *
 * With ties, the distance of the k-th candidate must be known before the
 * candidates that tie with it: then the chunks come twice, the first time for
 * that bound.
 */
#include <stdlib.h>

#include "common/metric.h"
#include "cuda/lane/lane.cuh"
#include "cuda/neighbours/neighbours.cuh"

extern "C"
{
#include "engine/base/thread_pool.h"
#include "engine/search/candidates.h"
}

/* candidates that a thread measures at a time */
#define PIECE_CANDIDATES ((uint32_t) 1 << 10)

/*
 * Begin with the first chunk of this pass.
 */
static void
begin_pass(struct neighbours_part *part, bool for_bound)
{
	struct neighbours_part_chunks *chunks = &part->chunks;
	uint32_t	references = part->work.index.references;

	chunks->for_bound = for_bound;
	chunks->first = 0;
	chunks->end = references < NEIGHBOURS_CHUNK ? references : NEIGHBOURS_CHUNK;
	chunks->kept = 0;
}

bool
neighbours_merge_begin(struct neighbours_part *part, const struct search *search)
{
	struct neighbours_part_chunks *chunks = &part->chunks;
	uint32_t	k = search->question.k;

	/* one more than fits tells that more exist */
	chunks->keep = room_left(search) + 1;
	if (chunks->keep < k)
		chunks->keep = k;
	chunks->bound = geonn_metric_reach(search->question.max_distance, part->radius);
	chunks->place = (uint32_t *) malloc(NEIGHBOURS_CHUNK * sizeof(uint32_t));
	chunks->chunk = (struct candidate *) malloc(NEIGHBOURS_CHUNK * sizeof(struct candidate));
	chunks->best = (struct candidate *) malloc(chunks->keep * sizeof(struct candidate));
	chunks->merged = (struct candidate *) malloc(chunks->keep * sizeof(struct candidate));
	begin_pass(part, k > 0);
	return chunks->place != NULL && chunks->chunk != NULL && chunks->best != NULL &&
		chunks->merged != NULL;
}

void
neighbours_merge_end(struct neighbours_part *part)
{
	free(part->chunks.place);
	free(part->chunks.chunk);
	free(part->chunks.best);
	free(part->chunks.merged);
	part->chunks = {};
}

struct measuring
{
	const struct neighbours_part *part;
	const struct search *search;
	uint32_t	candidates;
};

static void
measure_piece(void *context, size_t number)
{
	const struct measuring *measuring = (const struct measuring *) context;
	const struct neighbours_part *part = measuring->part;
	uint32_t	first = (uint32_t) number * PIECE_CANDIDATES;
	uint32_t	count = measuring->candidates - first;

	if (count > PIECE_CANDIDATES)
		count = PIECE_CANDIDATES;
	for (uint32_t i = first; i < first + count; i++)
		part->chunks.chunk[i].place = part->chunks.place[i];
	candidates_measure(measuring->search->dataset, part->degrees[0], part->degrees[1],
					   part->chunks.chunk + first, count, measuring->search->cancelled);
}

void
neighbours_merge(struct neighbours_part *part, const struct search *search, uint32_t candidates)
{
	struct neighbours_part_chunks *chunks = &part->chunks;
	struct measuring measuring = {part, search, candidates};
	struct question question = search->question;
	struct cutoff cutoff = {};
	struct candidate *merged = chunks->merged;
	uint32_t	keep = chunks->keep;
	uint32_t	count = 0;
	uint32_t	from_best = 0;
	uint32_t	from_chunk = 0;

	thread_pool_run(measure_piece, &measuring,
					(candidates + PIECE_CANDIDATES - 1) / PIECE_CANDIDATES);
	question.ties = false;
	question.max_distance = chunks->bound;
	if (chunks->for_bound)
		keep = question.k;
	else
	{
		question.k = 0;
		cutoff = search->cutoff;
	}
	candidates = (uint32_t) candidates_choose(chunks->chunk, candidates, &question, &cutoff);

	while (count < keep && (from_best < chunks->kept || from_chunk < candidates))
	{
		bool		chunk_first = from_best == chunks->kept ||
			(from_chunk < candidates &&
			 candidate_before(chunks->chunk[from_chunk], chunks->best[from_best]));

		merged[count++] = chunk_first ? chunks->chunk[from_chunk++] : chunks->best[from_best++];
	}
	chunks->merged = chunks->best;
	chunks->best = merged;
	chunks->kept = count;
	chunks->first = chunks->end;
}

bool
neighbours_merge_done(struct neighbours_part *part, const struct search *search)
{
	struct neighbours_part_chunks *chunks = &part->chunks;
	const struct question *question = &search->question;
	uint32_t	left = part->work.index.references - chunks->first;
	uint32_t	skipped = 0;

	if (left > 0)
	{
		chunks->end = chunks->first + (left < NEIGHBOURS_CHUNK ? left : NEIGHBOURS_CHUNK);
		return false;
	}
	if (!chunks->for_bound)
		return true;
	if (question->ties)
	{
		if (chunks->kept == question->k)
			chunks->bound = chunks->best[chunks->kept - 1].distance;
		begin_pass(part, false);
		return false;
	}

	/* without ties these are the pairs, except those that an earlier part had */
	if (search->cutoff.present)
	{
		struct candidate given = {search->cutoff.distance, search->cutoff.place};

		while (skipped < chunks->kept && !candidate_before(given, chunks->best[skipped]))
			skipped++;
	}
	for (uint32_t i = skipped; i < chunks->kept; i++)
		chunks->best[i - skipped] = chunks->best[i];
	chunks->kept -= skipped;
	return true;
}

void
neighbours_merge_write(struct neighbours_part *part, const struct search *search)
{
	const struct neighbours_part_chunks *chunks = &part->chunks;
	const struct geonn_batch_columns *columns = &search->columns;
	uint32_t	room = room_left(search);
	uint32_t	pairs = chunks->kept < room ? chunks->kept : room;

	part->more = chunks->kept > room;
	part->written.pairs = pairs;
	for (uint32_t i = 0; i < pairs; i++)
	{
		columns->tag[search->pairs + i] = search->dataset->tag[chunks->best[i].place];
		columns->distance[search->pairs + i] = chunks->best[i].distance;
	}
	columns->count[search->first + search->answered] = pairs;
	if (pairs > 0)
	{
		part->last.value = chunks->best[pairs - 1].distance;
		part->last.place = chunks->best[pairs - 1].place;
	}
}
