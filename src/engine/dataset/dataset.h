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

/* the hash tables that find datasets */
enum dataset_table
{
	DATASET_BY_ID,
	DATASET_BY_SUBJECT,			/* kept datasets, by the label's subject */
	DATASET_TABLES
};

struct dataset
{
	uint64_t	id;				/* never used twice by one engine */
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
	int32_t    *identity;		/* [count], or NULL */
	double	   *radius;			/* [count] metres, or NULL; may be infinite; any other value
								 * below 0, or NaN: no pair has the reference */
	int64_t    *low[GEONN_WINDOWS_MAX]; /* [count] of each window, or NULL (window.h) */
	int64_t    *high[GEONN_WINDOWS_MAX];	/* [count] */
	uint16_t   *edges;			/* [count] of all windows, or NULL: it has none */

	/* of the server's thread alone */
	size_t		capacity;		/* rows that the columns have room for */
	int			users;			/* sessions that hold it */
	bool		sealed;
	int			files[GEONN_FILE_KINDS];	/* of its clients; -1: none */
	uint64_t	file_bytes[GEONN_FILE_KINDS];

	/* of datasets.c, to find it when it is kept */
	bool		labelled;		/* it has a label: later sessions can find it while it is kept */
	bool		kept;
	size_t		kept_bytes;		/* what it counts as while kept */
	struct geonn_label label;
	uint8_t		note[GEONN_NOTE_BYTES];
	struct dataset *next[DATASET_TABLES];	/* next in the chain of each hash table */
	struct dataset *newer;		/* in the order of use, while it is kept */
	struct dataset *older;

	/* bytes of host memory that devices took for it; and beside these, for a table of squares */
	atomic_uint_fast64_t built_bytes;
	atomic_uint_fast64_t squares_bytes;

	/*
	 * What each device has built of the dataset.  Only a thread of the device
	 * changes its entry, while its `building` is set; cuda/lane/dataset.cu
	 * says how GPUs look at each other's.
	 */
	void	   *built[GEONN_DEVICES_MAX];

	/* whether one of the threads of a device that works by turns is building;
	 * guarded by the scheduler's lock */
	bool		building[GEONN_DEVICES_MAX];

	/* threads of devices that have taken a search and may be building what it needs */
	atomic_int	builders;

	/* devices that still have to discard theirs, and the next dataset whose part each device
	 * discards (search/discards.c) */
	atomic_int	discards;
	struct dataset *next_discard[GEONN_DEVICES_MAX];
};

/*
 * The columns that datasets may have.  Code that does the same with each
 * column goes through this list.
 */
#define DATASET_COLUMNS (6 + 2 * GEONN_WINDOWS_MAX + 1)

struct dataset_column
{
	uint32_t	present;		/* a dataset with any of these GEONN_COLUMN_... has the column; 0:
								 * every dataset has it */
	size_t		width;			/* bytes of a value */
	size_t		member;			/* offset of the column's address in struct dataset */
	size_t		batch_member;	/* and in struct geonn_batch_columns */
};

extern const struct dataset_column dataset_columns[DATASET_COLUMNS];

/* A column of a dataset, by its number in that list; NULL: the dataset lacks it. */
extern void *dataset_column_of(const struct dataset *dataset, int number);

/* The same column of a batch. */
extern void *dataset_column_of_batch(const struct geonn_batch_columns *batch, int number);

/* Create an empty dataset; NULL if memory is short. */
extern struct dataset *dataset_create(uint64_t id, enum geonn_metric metric,
									  uint32_t columns);

/*
 * Append the first rows of a batch.  Fails, and appends nothing, if
 * coordinates are out of range, if the references become too many, or if
 * memory is short.
 */
extern bool dataset_append(struct dataset *dataset,
						   const struct geonn_batch_columns *batch,
						   uint32_t rows, struct failure *failure);

/*
 * Put the references into the order (tag, latitude, longitude); references
 * that are equal in all three keep their order.  The work runs on the thread
 * pool, and any thread may call this.  Fails if the host is short of memory:
 * then the dataset is as it was.  Fails also soon after *cancelled is set:
 * then the dataset can only be freed.
 */
extern bool dataset_sort(struct dataset *dataset, const atomic_bool *cancelled,
						 struct failure *failure);

/* Bytes of one reference in the dataset's columns, its tag included. */
extern size_t dataset_row_bytes(const struct dataset *dataset);

/* Bytes of a dataset's references and files. */
extern size_t dataset_bytes(const struct dataset *dataset);

/* Give back the room that the columns have beyond the references. */
extern void dataset_fit(struct dataset *dataset);

/*
 * Bytes of host memory that a dataset takes, with all that devices have built of it there but a
 * table of squares.
 */
extern size_t dataset_memory(const struct dataset *dataset);

/*
 * Take so many bytes of host memory for a dataset's table of squares, or give them back.  False if
 * all tables together would take more than dataset_squares_limit.  Any thread.
 */
extern bool dataset_take_squares(struct dataset *dataset, size_t bytes);
extern void dataset_give_squares(struct dataset *dataset, size_t bytes);

/* bytes of all tables of squares; and how many they may be, which datasets.c sets */
extern atomic_uint_fast64_t dataset_squares_bytes;
extern atomic_uint_fast64_t dataset_squares_limit;

/* How many descriptors a dataset's files take. */
extern uint32_t dataset_descriptors(const struct dataset *dataset);

/*
 * Free a dataset's references and files.  The struct itself stays, since
 * devices still have to discard what they built.
 */
extern void dataset_free_references(struct dataset *dataset);

extern void dataset_free(struct dataset *dataset);

#endif							/* GEONN_DATASET_H */
