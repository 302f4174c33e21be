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

/* the hash tables by which datasets are found */
enum dataset_table
{
	DATASET_BY_ID,
	DATASET_BY_SUBJECT,			/* kept datasets, by the label's subject */
	DATASET_TABLES
};

struct dataset
{
	uint64_t	id;				/* a number that the engine never uses twice */
	enum geonn_metric metric;
	uint32_t	columns;		/* GEONN_COLUMN_...: the columns that it has */

	/*
	 * These columns grow while references arrive, and are immutable once the
	 * dataset is sealed.  Among references at equal distance, the one that
	 * comes first here comes first in an answer.
	 */
	size_t		count;
	double	   *latitude;		/* [count] degrees */
	double	   *longitude;		/* [count] degrees */
	int64_t    *tag;			/* [count] */
	int32_t    *group;			/* [count], or NULL: no such column */
	double	   *radius;			/* [count] metres, may be infinite, or NULL: no such column;
								 * negative or NaN: no pair has the reference */
	int64_t    *low[GEONN_WINDOWS_MAX]; /* [count] the lows of each window, or NULL (window.h) */
	int64_t    *high[GEONN_WINDOWS_MAX];	/* [count] the highs of each window, or NULL */
	uint16_t   *edges;			/* [count] the edges of all windows, or NULL: it has no windows */
	double	   *weight[GEONN_WEIGHTS_MAX];	/* [count] finite, or NAN: the reference has none; NULL: the
											 * dataset has no such column */
	int32_t    *party[GEONN_PARTIES_MAX];	/* [count], or NULL: it has no such column */
	double	   *end_latitude;	/* [count] degrees; NULL: the references are points, not arcs */
	double	   *end_longitude;	/* [count] degrees, or NULL */
	int32_t    *shape;			/* [count] the number of each arc's shape, or NULL; a shape's arcs are adjacent */
	int32_t    *polygon;		/* [count] number or -number of each arc's polygon (protocol_dataset.h), or NULL */

	/* used by the server's thread alone; once the dataset is sealed, devices read last_polygon */
	size_t		capacity;		/* how many rows fit into the columns */
	int32_t		last_polygon;	/* the number of the last polygon so far, or 0 */
	size_t		ring_first;		/* where the last arc is of a ring: the ring's first arc */
	size_t		part_bytes;		/* what the parts take in the CPU's index, beside their arcs (protocol_dataset.h) */
	int			users;			/* how many sessions hold it */
	bool		sealed;
	int			files[GEONN_FILE_KINDS];	/* descriptors of its clients' memory files; -1: none */
	uint64_t	file_bytes[GEONN_FILE_KINDS];

	/* used by datasets.c to find it when it is kept */
	bool		labelled;		/* it has a label: later sessions can find it while it is kept */
	bool		kept;
	size_t		kept_bytes;		/* the bytes that it counts as while it is kept */
	struct geonn_label label;
	uint8_t		note[GEONN_NOTE_BYTES];
	struct dataset *next[DATASET_TABLES];	/* the next in the chain, of each hash table */
	struct dataset *newer;		/* the next ones in the order of use, while it is kept */
	struct dataset *older;

	/* how many bytes of host memory the devices' structures take, without a table of squares; and
	 * how many that table takes */
	atomic_uint_fast64_t built_bytes;
	atomic_uint_fast64_t squares_bytes;

	/*
	 * The structures that each device has built of the dataset, such as an index.
	 * Only a thread of the device changes its entry, while its `building` is set;
	 * cuda/lane/dataset.cu says how GPUs look at each other's.
	 */
	void	   *built[GEONN_DEVICES_MAX];

	/* of a device that works by turns: whether one of its threads is building
	 * structures of the dataset; guarded by the scheduler's lock */
	bool		building[GEONN_DEVICES_MAX];

	/* how many threads of devices have taken one of the dataset's searches and may be building
	 * structures for it */
	atomic_int	builders;

	/* how many devices still have to discard their structures; and the next dataset in each
	 * device's list of discards (search/discards.c) */
	atomic_int	discards;
	struct dataset *next_discard[GEONN_DEVICES_MAX];
};

/*
 * The number of columns that datasets may have.  dataset_columns lists them,
 * for code that does the same with each.
 */
#define DATASET_COLUMNS (5 + 2 * GEONN_WINDOWS_MAX + 1 + GEONN_WEIGHTS_MAX + GEONN_PARTIES_MAX + 4)

struct dataset_column
{
	uint32_t	present;		/* a dataset with any of these GEONN_COLUMN_... has the column; 0:
								 * every dataset has it */
	size_t		width;			/* how many bytes a value has */
	size_t		member;			/* offset of the column's address in struct dataset */
	size_t		batch_member;	/* offset of its address in struct geonn_batch_columns */
};

extern const struct dataset_column dataset_columns[DATASET_COLUMNS];

/* A column of a dataset, by its number in dataset_columns; NULL: the dataset lacks it. */
extern void *dataset_column_of(const struct dataset *dataset, int number);

/* Create an empty dataset; NULL if memory is short. */
extern struct dataset *dataset_create(uint64_t id, enum geonn_metric metric,
									  uint32_t columns);

/*
 * Append the first rows of a batch.  Fails, and appends nothing, if
 * coordinates are out of range or weights are infinite, if arcs break the protocol's
 * rules for shapes, if the references become too many, or if memory is short.
 */
extern bool dataset_append(struct dataset *dataset,
						   const struct geonn_batch_columns *batch,
						   uint32_t rows, struct failure *failure);

/*
 * Check what dataset_append() cannot know before the last reference: that the last ring is closed.
 */
extern bool dataset_check_end(const struct dataset *dataset, struct failure *failure);

/*
 * Put the references into the order (tag, latitude, longitude), or arcs into the order of their tags;
 * references that are equal in these keep their order.  The work runs on the thread
 * pool, and any thread may call this.  Fails if the host is short of memory:
 * then the dataset is as it was.  Fails also soon after *cancelled is set:
 * then the dataset can only be freed.
 */
extern bool dataset_sort(struct dataset *dataset, const atomic_bool *cancelled,
						 struct failure *failure);

/* Bytes of one reference in the dataset's columns, its tag included. */
extern size_t dataset_row_bytes(const struct dataset *dataset);

/* Free the memory of the columns behind the last reference. */
extern void dataset_fit(struct dataset *dataset);

/*
 * The bytes of host memory that a dataset takes, with the devices' structures there, but without
 * a table of squares.
 */
extern size_t dataset_memory(const struct dataset *dataset);

/*
 * Count bytes of host memory that a dataset's table of squares takes, or gives back.
 * dataset_take_squares() is false if all tables together would take more than
 * dataset_squares_limit.  Any thread.
 */
extern bool dataset_take_squares(struct dataset *dataset, size_t bytes);
extern void dataset_give_squares(struct dataset *dataset, size_t bytes);

/* how many bytes all tables of squares take; and how many they may take, which datasets.c sets */
extern atomic_uint_fast64_t dataset_squares_bytes;
extern atomic_uint_fast64_t dataset_squares_limit;

/* How many descriptors a dataset's files take. */
extern uint32_t dataset_descriptors(const struct dataset *dataset);

/*
 * Free a dataset's references and files.  The struct itself stays, since
 * devices still have to discard their structures.
 */
extern void dataset_free_references(struct dataset *dataset);

extern void dataset_free(struct dataset *dataset);

#endif							/* GEONN_DATASET_H */
