/*
 * dataset_contents.c
 *		How the engine tells that two datasets are the same.
 *
 * A session may send references without a label, or under a new one, that a
 * kept dataset has already.  Then the engine drops the new dataset, and the
 * session uses the kept one, with all that devices have built of it
 * (session_seal.c).
 *
 * Two datasets are the same if they have the same metric, the same columns
 * with the same bytes in the same order, and files with the same bytes.
 * Everything that devices build, every answer, and everything that clients
 * read in the files depends on these alone.  The engine compares bytes, not
 * values: a longitude of 0 and one of -0 make two datasets.
 *
 * First the engine computes a hash of all bytes.  The hash only selects
 * datasets to compare; then all bytes are compared.  So neither chance nor a
 * client that constructs equal hashes can make the engine take one dataset for
 * another.  The comparison can always be made: all columns stay in the host's
 * memory as long as the dataset does, whichever devices have built from it,
 * and files are sealed against changes.
 *
 * A client gets no data of another client in this way: it has sent every byte
 * of the dataset itself.  It could still learn, from the time that a search
 * takes, that another client has searched the same references before.  So the
 * engine compares only datasets of one scope, a user in a database
 * (datasets.c).
 *
 * Both steps are jobs of the thread pool, in pieces like dataset_sort.c's; for
 * a small dataset the calling thread does them alone.  Files are read, not
 * mapped, so that no file of a client can end the engine by SIGBUS.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/dataset/dataset.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/thread_pool.h"

/* bytes of one piece of the work */
#define PIECE_BYTES ((size_t) 1 << 16)

/* pieces of a job for each thread: some 10 ms */
#define PIECES_PER_THREAD 512

/* columns and files */
#define PARTS (DATASET_COLUMNS + GEONN_FILE_KINDS)

struct part
{
	const void *memory;			/* NULL: the part is a file */
	int			file;
	uint64_t	bytes;			/* 0: no such column or file */
};

struct reading
{
	struct part parts[PARTS];
	struct part others[PARTS];	/* what the parts are compared with */
	atomic_bool failed;			/* a file could not be read, or bytes differ; the work can stop */
	atomic_uint_fast64_t hash;	/* the sum of the hashes of all pieces */
};

static void
describe(const struct dataset *dataset, struct part *parts)
{
	for (int i = 0; i < DATASET_COLUMNS; i++)
	{
		parts[i] = (struct part) {.memory = dataset_column_of(dataset, i),.file = -1};
		if (parts[i].memory != NULL)
			parts[i].bytes = dataset->count * dataset_columns[i].width;
	}
	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
		parts[DATASET_COLUMNS + kind] = (struct part) {
			.file = dataset->files[kind],
			.bytes = dataset->file_bytes[kind]
		};
}

static size_t
count_pieces(const struct part *part)
{
	return (part->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
}

/*
 * Find the part that contains piece *number of all; *number becomes the
 * piece's number within that part.
 */
static int
find_part(const struct part *parts, size_t *number)
{
	int			found = 0;

	while (*number >= count_pieces(&parts[found]))
		*number -= count_pieces(&parts[found++]);
	return found;
}

/*
 * The bytes of a part from this offset on: the bytes themselves if they are in
 * memory, else a copy in the buffer.  NULL if they cannot be read.
 */
static const void *
read_bytes(const struct part *part, uint64_t offset, size_t length, void *buffer)
{
	size_t		done = 0;

	if (part->memory != NULL)
		return (const char *) part->memory + offset;
	while (done < length)
	{
		ssize_t		bytes = pread(part->file, (char *) buffer + done, length - done,
								  (off_t) (offset + done));

		if (bytes == 0 || (bytes < 0 && errno != EINTR))
			return NULL;
		if (bytes > 0)
			done += (size_t) bytes;
	}
	return buffer;
}

/*
 * Run a function on all pieces.  False if one of them failed, or if the work
 * is cancelled.
 */
static bool
run_pieces(struct reading *reading, thread_pool_piece piece, const atomic_bool *cancelled)
{
	size_t		pieces = 0;
	uint64_t	bytes = 0;

	for (int i = 0; i < PARTS; i++)
	{
		pieces += count_pieces(&reading->parts[i]);
		bytes += reading->parts[i].bytes;
	}
	atomic_init(&reading->failed, false);
	if (bytes <= DATASET_SMALL_BYTES)
	{
		for (size_t i = 0; i < pieces; i++)
			piece(reading, i);
		return !atomic_load(&reading->failed);
	}
	return thread_pool_run_turns(piece, reading, pieces,
								 PIECES_PER_THREAD * thread_pool_threads(), cancelled) &&
		!atomic_load(&reading->failed);
}

/* ---- the hash ---- */

static uint64_t
mix(uint64_t state, uint64_t word)
{
	state += word * 0xC2B2AE3D27D4EB4FULL;
	state = state << 31 | state >> 33;
	return state * 0x9E3779B185EBCA87ULL;
}

/*
 * The hash takes four words at a time, so that multiplications need not wait
 * for each other.
 */
uint64_t
dataset_hash_bytes(const void *bytes, size_t length, uint64_t seed)
{
	const char *next = bytes;
	uint64_t	state[4] = {seed, seed + 1, seed + 2, seed + 3};
	uint64_t	words[4] = {0};

	for (; length >= sizeof(words); length -= sizeof(words), next += sizeof(words))
	{
		memcpy(words, next, sizeof(words));
		for (int i = 0; i < 4; i++)
			state[i] = mix(state[i], words[i]);
	}
	memset(words, 0, sizeof(words));
	memcpy(words, next, length);
	for (int i = 0; i < 4; i++)
		seed = mix(mix(seed, words[i]), state[i]);
	return seed ^ seed >> 32;
}

/* pieces end in any order, so each has a seed of its own and their hashes are added up */
static void
hash_piece(void *context, size_t number)
{
	struct reading *reading = context;
	char		buffer[PIECE_BYTES];	/* for files */
	size_t		piece = number;
	const struct part *part = &reading->parts[find_part(reading->parts, &piece)];
	uint64_t	offset = piece * PIECE_BYTES;
	size_t		length = part->bytes - offset < PIECE_BYTES ? part->bytes - offset : PIECE_BYTES;
	const void *bytes = read_bytes(part, offset, length, buffer);

	if (bytes == NULL)
		atomic_store(&reading->failed, true);
	else
		atomic_fetch_add(&reading->hash, dataset_hash_bytes(bytes, length, number + 1));
}

bool
dataset_hash(struct dataset *dataset, const atomic_bool *cancelled)
{
	struct reading reading;

	describe(dataset, reading.parts);
	atomic_init(&reading.hash, 0);
	dataset->hashed = run_pieces(&reading, hash_piece, cancelled);
	dataset->hash = atomic_load(&reading.hash);
	return dataset->hashed;
}

/* ---- the comparison ---- */

bool
dataset_is_alike(const struct dataset *dataset, const struct dataset *other)
{
	struct part parts[PARTS];
	struct part others[PARTS];

	if (!dataset->hashed || !other->hashed || dataset->hash != other->hash ||
		dataset->count != other->count || dataset->metric != other->metric ||
		dataset->columns != other->columns)
		return false;
	describe(dataset, parts);
	describe(other, others);
	for (int i = 0; i < PARTS; i++)
		if (parts[i].bytes != others[i].bytes || (parts[i].file < 0) != (others[i].file < 0))
			return false;
	return true;
}

static void
compare_piece(void *context, size_t number)
{
	struct reading *reading = context;
	char		buffers[2][PIECE_BYTES];	/* for files */
	int			found = find_part(reading->parts, &number);
	const struct part *part = &reading->parts[found];
	uint64_t	offset = number * PIECE_BYTES;
	size_t		length = part->bytes - offset < PIECE_BYTES ? part->bytes - offset : PIECE_BYTES;
	const void *bytes;
	const void *others;

	if (atomic_load(&reading->failed))
		return;
	bytes = read_bytes(part, offset, length, buffers[0]);
	others = read_bytes(&reading->others[found], offset, length, buffers[1]);
	if (bytes == NULL || others == NULL || memcmp(bytes, others, length) != 0)
		atomic_store(&reading->failed, true);
}

bool
dataset_is_same(const struct dataset *dataset, const struct dataset *other,
				const atomic_bool *cancelled)
{
	struct reading reading;

	describe(dataset, reading.parts);
	describe(other, reading.others);
	return run_pieces(&reading, compare_piece, cancelled);
}
