/*
 * dataset.h
 *		A set of references, in their order, as every device builds from it.
 */
#ifndef GEONN_DATASET_H
#define GEONN_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/batch_layout.h"
#include "engine/base/atomics.h"
#include "engine/base/failure.h"

/* looking at all bytes of a dataset that has so few is done before a thread begins */
#define DATASET_SMALL_BYTES ((size_t) 256 * 1024)

/* what datasets are found by */
enum dataset_table
{
	DATASET_BY_ID,
	DATASET_BY_SUBJECT,			/* of its label; those that are kept */
	DATASET_BY_CONTENTS,		/* those that are kept and hashed */
	DATASET_TABLES
};

struct dataset
{
	uint64_t	id;				/* never used twice by one engine */
	uint64_t	scope;			/* of the sessions that may have it recognised */
	enum geonn_metric metric;
	uint32_t	columns;		/* GEONN_COLUMN_...: which it has */

	/*
	 * Grow while references arrive, immutable once sealed.  Among references
	 * at equal distance the one that stands first here wins.
	 */
	size_t		count;
	double	   *latitude;		/* [count] degrees */
	double	   *longitude;		/* [count] degrees */
	int64_t    *tag;			/* [count] */
	int32_t    *group;			/* [count], or NULL: it has no such column */
	int32_t    *identity;		/* [count], or NULL */

	/* of the server's thread alone */
	size_t		capacity;		/* rows that the columns have room for */
	int			users;			/* sessions that hold it */
	bool		sealed;
	int			files[GEONN_FILE_KINDS];	/* of its clients; -1: there is none */
	uint64_t	file_bytes[GEONN_FILE_KINDS];

	/* of dataset_contents.c */
	bool		hashed;
	uint64_t	hash;			/* of all bytes of its columns and files */

	/* of datasets.c, to find it when it is kept */
	bool		labelled;		/* else by its contents alone */
	bool		kept;
	size_t		kept_bytes;		/* that it takes then */
	struct geonn_label label;
	uint8_t		note[GEONN_NOTE_BYTES];
	struct dataset *next[DATASET_TABLES];	/* in the chain of each hash table */
	struct dataset *newer;		/* in the order of use, while it is kept */
	struct dataset *older;

	atomic_uint_fast64_t built_bytes;	/* of host memory that devices took for it */

	/*
	 * What each device made of it.  Each is its device thread's to change; how
	 * GPUs look at each other's, cuda/lane/dataset.cu says.
	 */
	void	   *built[GEONN_DEVICES_MAX];

	/* devices that have taken a search and may be building what it needs */
	atomic_int	builders;

	/* device threads that still have to discard theirs */
	atomic_int	discards;
};

/* An empty dataset, or NULL where memory is short. */
extern struct dataset *dataset_create(uint64_t id, enum geonn_metric metric,
									  uint32_t columns);

/*
 * Append the first rows of a batch.  Fails, with nothing appended, on
 * coordinates out of range, on too many references and on lack of memory.
 */
extern bool dataset_append(struct dataset *dataset,
						   const struct geonn_batch_columns *batch,
						   uint32_t rows, struct failure *failure);

/*
 * Put the references into the order (tag, latitude, longitude); what is equal in
 * all three keeps its order.  Works on the thread pool, and any thread may call
 * it.  Fails where the host has not enough memory, with the dataset as it was, and
 * soon after *cancelled is set; all that may be done with the dataset then is to
 * free it.
 */
extern bool dataset_sort(struct dataset *dataset, const atomic_bool *cancelled,
						 struct failure *failure);

/*
 * Take the hash of a dataset that is as it will be sealed.  Works on the thread pool, a
 * small one's on the calling thread alone; any thread may call it.  False, and it has
 * none, where a file cannot be read, and soon after *cancelled is set.
 */
extern bool dataset_hash(struct dataset *dataset, const atomic_bool *cancelled);

/* The hash that it takes of bytes. */
extern uint64_t dataset_hash_bytes(const void *bytes, size_t length, uint64_t seed);

/* Are two datasets alike in all but perhaps their contents, and these in their hashes? */
extern bool dataset_is_alike(const struct dataset *dataset, const struct dataset *other);

/*
 * Are two that are alike the same, byte for byte?  As dataset_hash; false as well where
 * that cannot be told.
 */
extern bool dataset_is_same(const struct dataset *dataset, const struct dataset *other,
							const atomic_bool *cancelled);

/* Bytes of one reference, with its tag and the columns that the dataset has. */
extern size_t dataset_row_bytes(const struct dataset *dataset);

/* Bytes of its references, and of its files. */
extern size_t dataset_bytes(const struct dataset *dataset);

/* Give back the room that its columns have beyond its references. */
extern void dataset_fit(struct dataset *dataset);

/* Bytes of host memory that it takes, with what devices have built of it there. */
extern size_t dataset_memory(const struct dataset *dataset);

/* How many descriptors its files take. */
extern uint32_t dataset_descriptors(const struct dataset *dataset);

/* Free all but the dataset itself, which devices still have to let go of. */
extern void dataset_free_references(struct dataset *dataset);

extern void dataset_free(struct dataset *dataset);

#endif							/* GEONN_DATASET_H */
