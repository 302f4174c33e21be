/*
 * reference_memory.c
 *		The memory that this process's joins take for references and for shapes that ask, and its limit.
 *
 * References stay in memory as long as a join needs them: in the engine with their
 * index, and what is asked of them later, as ids and keys of groups, in memory files
 * (client/memory_file.c).  Neither work_mem nor temp_file_limit limits that memory, and
 * if the engine takes all that the host has, the kernel ends the engine first.  So
 * geonn.session_memory_limit is for all joins of a process together: its cursors, nested
 * calls, and parallel workers, which use the references of their leader.
 *
 * Each reference is counted when it is taken in, before memory is taken for it, whichever
 * way it came.  References that the engine has kept are counted when they are found: the
 * engine cannot let go of them while a join has them.  Several joins of one process that
 * have the same dataset count it once.  A shape's value and vectors (points/shape.c) are counted too, until its
 * arcs have been sent.
 *
 * Of shapes that ask, the engine has a copy until they are answered: it is counted when the shape is written into a batch, and
 * no longer once all pairs of the batch have been taken.  Where the limit leaves no room, a search waits for its own batches.
 */
#include "postgres.h"

#include "lib/ilist.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "common/protocol.h"
#include "common/weight_span.h"
#include "join/reference_memory.h"
#include "base/point_limits.h"
#include "base/settings.h"

/*
 * What a session is told if there is no room.  The message has a title, the kilobytes needed and the limit; the detail what is
 * read, and the kilobytes of this join and of others.
 */
struct MemoryTexts
{
	const char *message;
	const char *detail;
	const char *hint;
};

static const struct MemoryTexts reference_texts = {
	"not enough memory for the references of %s: %llu kB needed so far, and geonn.session_memory_limit is %d kB",
	"Reading their %s, this join has %llu kB; other joins and cursors of this session have %llu kB.",
	"Join against fewer references at a time, use shorter ids and keys, close cursors that are not read, or have a superuser raise geonn.session_memory_limit."
};

static const struct MemoryTexts observed_texts = {
	GEONN_SHAPES_NEED_MEMORY,
	"Searching for %s, this join has %llu kB; its references, other joins and cursors of this session have %llu kB.",
	"Divide large shapes, as ST_Subdivide does, and keep the nearest of all answers, close cursors that are not read, or have a superuser raise geonn.session_memory_limit."
};

static const struct MemoryTexts cluster_texts = {
	"not enough memory for the clusters of %s: %llu kB needed, and geonn.session_memory_limit is %d kB",
	"Finding clusters of its %s takes %llu kB; they, other joins and cursors of this session have %llu kB.",
	"Find the clusters of fewer points at a time, as of one key of by, close cursors that are not read, or have a superuser raise geonn.session_memory_limit."
};

static const struct MemoryTexts name_texts = {
	"not enough memory for the ids of the clusters of %s: %llu kB needed so far, and geonn.session_memory_limit is %d kB",
	"For their %s, the cache has %llu kB; other joins and cursors of this session have %llu kB.",
	"Make the cache of a view with fewer points, use shorter ids, close cursors that are not read, or have a superuser raise geonn.session_memory_limit."
};

static const struct MemoryTexts thinning_texts = {
	"not enough memory to thin out %s: %llu kB needed, and geonn.session_memory_limit is %d kB",
	"Thinning out its %s takes %llu kB; they, other joins and cursors of this session have %llu kB.",
	"Thin out fewer points at a time, as of one key of by, close cursors that are not read, or have a superuser raise geonn.session_memory_limit."
};

static const struct MemoryTexts assigned_texts = {
	"not enough memory for the observations of %s: %llu kB needed so far, and geonn.session_memory_limit is %d kB",
	"For their %s, this join has %llu kB; its references, other joins and cursors of this session have %llu kB.",
	"Assign fewer observations at a time, as of one key of by, close cursors that are not read, or have a superuser raise geonn.session_memory_limit."
};

struct ReferenceMemory
{
	dlist_node	node;			/* the link in this process's list */
	const char *title;			/* what the memory is for, in messages */
	const struct MemoryTexts *texts;
	uint32		row_bytes;		/* how many bytes a reference takes in the engine */
	uint64		bytes;			/* how many bytes the join takes; 0 if another join counts the dataset */
	uint64		dataset;		/* 0: not known */
	uint64		part_bytes;		/* how many of the bytes the parts of shapes take */
	int			weights;		/* how many weights a reference has */
	uint64		references;		/* how many references the join has */
	struct geonn_weight_span span[GEONN_WEIGHTS_MAX];	/* of each weight */
	uint8		words[GEONN_WEIGHTS_MAX];	/* how many words the sums of each weight take */
	MemoryContextCallback release;
};

static dlist_head memories = DLIST_STATIC_INIT(memories);
static uint64 all_bytes;		/* the sum over the list */

static ReferenceMemory *
find_same(const ReferenceMemory *memory)
{
	dlist_iter	iterator;

	dlist_foreach(iterator, &memories)
	{
		ReferenceMemory *other = dlist_container(ReferenceMemory, node, iterator.cur);

		if (other != memory && other->dataset != 0 && other->dataset == memory->dataset)
			return other;
	}
	return NULL;
}

static void
release_memory(void *argument)
{
	ReferenceMemory *memory = argument;
	ReferenceMemory *same = find_same(memory);

	dlist_delete(&memory->node);
	if (same != NULL)
		same->bytes += memory->bytes;
	else
		all_bytes -= memory->bytes;
}

static uint32
row_bytes(uint32 columns, bool places)
{
	uint32		bytes = 2 * sizeof(double) + sizeof(int64);

	if (columns & GEONN_COLUMN_ARC)
		bytes += 2 * sizeof(double) + 2 * sizeof(int32) + GEONN_ARC_INDEX_BYTES +
			(places ? GEONN_FRACTION_BYTES : 0);
	else
		bytes += GEONN_INDEX_BYTES;
	if (columns & GEONN_COLUMN_SEGMENT)
		bytes += 2 * sizeof(int32);
	if (columns & GEONN_COLUMN_MEASURE)
		bytes += 2 * sizeof(double);
	if (columns & GEONN_COLUMN_GROUP)
		bytes += sizeof(int32);
	bytes += pg_popcount32(columns & GEONN_COLUMNS_PARTIES) * sizeof(int32);
	if (columns & GEONN_COLUMN_RADIUS)
		bytes += sizeof(double);
	if (columns & GEONN_COLUMNS_WINDOWS)
		bytes += pg_popcount32(columns & GEONN_COLUMNS_WINDOWS) * sizeof(GeonnWindow) + sizeof(uint16);
	/*
	 * Add each reference's share of the extremes, which the index has once a question asks for them: 16
	 * bytes a node of some 31 references.
	 */
	return bytes + pg_popcount32(columns & GEONN_COLUMNS_WEIGHTS) * (sizeof(double) + 1);
}

static ReferenceMemory *
create_memory(const char *title, const struct MemoryTexts *texts)
{
	ReferenceMemory *memory = palloc0(sizeof(ReferenceMemory));

	memory->title = title;
	memory->texts = texts;
	dlist_push_tail(&memories, &memory->node);
	memory->release.func = release_memory;
	memory->release.arg = memory;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &memory->release);
	return memory;
}

ReferenceMemory *
geonn_observed_memory_create(const char *title)
{
	return create_memory(title, &observed_texts);
}

ReferenceMemory *
geonn_cluster_memory_create(const char *title, uint64 references, bool thins)
{
	ReferenceMemory *memory = create_memory(title, thins ? &thinning_texts : &cluster_texts);

	geonn_reference_memory_add_bytes(memory, references * (thins ? GEONN_THIN_BYTES : GEONN_CLUSTER_BYTES), "points");
	return memory;
}

ReferenceMemory *
geonn_name_memory_create(const char *title)
{
	return create_memory(title, &name_texts);
}

static ReferenceMemory *
create_dataset_memory(const char *title, const struct MemoryTexts *texts, uint32 columns, bool places)
{
	ReferenceMemory *memory = create_memory(pstrdup(title), texts);

	memory->row_bytes = row_bytes(columns, places);
	/* arcs have no sums of weights */
	memory->weights = columns & GEONN_COLUMN_ARC ? 0 : pg_popcount32(columns & GEONN_COLUMNS_WEIGHTS);
	return memory;
}

ReferenceMemory *
geonn_reference_memory_create(const char *title, uint32 columns, bool places)
{
	return create_dataset_memory(title, &reference_texts, columns, places);
}

ReferenceMemory *
geonn_assigned_memory_create(const char *title, uint32 columns)
{
	return create_dataset_memory(title, &assigned_texts, columns, false);
}

void
geonn_reference_memory_add_assignment(ReferenceMemory *memory, uint64 points)
{
	geonn_reference_memory_add_bytes(memory, points * GEONN_ASSIGN_BYTES, "assignment");
}

/* bytes in kB, rounded up */
static unsigned long long
kilobytes(uint64 bytes)
{
	return (unsigned long long) (bytes / 1024 + (bytes % 1024 != 0));
}

bool
geonn_reference_memory_has_room(uint64 bytes)
{
	return geonn_session_memory_limit < 0 || all_bytes + bytes <= (uint64) geonn_session_memory_limit * 1024;
}

void
geonn_reference_memory_add_bytes(ReferenceMemory *memory, uint64 bytes, const char *what)
{
	if (!geonn_reference_memory_has_room(bytes))
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg(memory->texts->message, memory->title, kilobytes(all_bytes + bytes), geonn_session_memory_limit),
				 errdetail(memory->texts->detail, what, kilobytes(memory->bytes + bytes), kilobytes(all_bytes - memory->bytes)),
				 errhint("%s", memory->texts->hint)));
	memory->bytes += bytes;
	all_bytes += bytes;
}

void
geonn_reference_memory_return_bytes(ReferenceMemory *memory, uint64 bytes)
{
	memory->bytes -= bytes;
	all_bytes -= bytes;
}

void
geonn_reference_memory_keep_bytes(ReferenceMemory *memory, uint64 bytes)
{
	Assert(bytes <= memory->bytes);
	geonn_reference_memory_return_bytes(memory, memory->bytes - bytes);
}

void
geonn_reference_memory_add(ReferenceMemory *memory, uint64 references)
{
	uint32		words = 0;

	for (int i = 0; i < memory->weights; i++)
		words += memory->words[i];
	geonn_reference_memory_add_bytes(memory, references * (memory->row_bytes + words * sizeof(uint64)), "coordinates");
	memory->references += references;
}

void
geonn_reference_memory_add_parts(ReferenceMemory *memory, uint64 bytes)
{
	geonn_reference_memory_add_bytes(memory, bytes, "shapes");
	memory->part_bytes += bytes;
}

uint64
geonn_reference_memory_part_bytes(const ReferenceMemory *memory)
{
	return memory->part_bytes;
}

/* Let the sums of a weight take so many words; each reference has one sum. */
static void
set_words(ReferenceMemory *memory, int weight, uint32 words)
{
	if (words <= memory->words[weight])
		return;
	geonn_reference_memory_add_bytes(memory, (words - memory->words[weight]) * sizeof(uint64) * memory->references,
									 "weights");
	memory->words[weight] = (uint8) words;
}

void
geonn_reference_memory_add_weights(ReferenceMemory *memory, const double *weights)
{
	for (int i = 0; i < memory->weights; i++)
	{
		geonn_weight_span_add(&memory->span[i], weights[i]);
		set_words(memory, i, geonn_sum_words(memory->span[i], memory->references));
	}
}

const uint8 *
geonn_reference_memory_words(const ReferenceMemory *memory)
{
	return memory->words;
}

void
geonn_reference_memory_add_words(ReferenceMemory *memory, const uint8 *words)
{
	for (int i = 0; i < memory->weights; i++)
		set_words(memory, i, words[i]);
}

bool
geonn_reference_memory_name(ReferenceMemory *memory, uint64 dataset)
{
	memory->dataset = dataset;
	if (find_same(memory) == NULL)
		return false;
	all_bytes -= memory->bytes;
	memory->bytes = 0;
	return true;
}
