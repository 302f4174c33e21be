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

/* The hash tables in which the engine finds datasets. */
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
	uint32_t	columns;		/* which columns the dataset has: GEONN_COLUMN_... */

	/*
	 * The columns of references.  They grow while references arrive, and are immutable once the dataset is sealed.  Of
	 * references at equal distance, an answer has that one first that comes first in these columns.
	 */
	size_t		count;
	double	   *latitude;		/* [count] degrees */
	double	   *longitude;		/* [count] degrees */
	int64_t    *tag;			/* [count] */
	int32_t    *group;			/* [count], or NULL: no such column */
	double	   *radius;			/* [count] metres, may be infinite; negative or NaN: the reference is in no pair; NULL:
								 * the dataset has no such column */
	int64_t    *low[GEONN_WINDOWS_MAX]; /* [count] the lows of each window, or NULL (window.h) */
	int64_t    *high[GEONN_WINDOWS_MAX];	/* [count] the highs of each window, or NULL */
	uint16_t   *edges;			/* [count] the edges of all windows; NULL: the dataset has no windows */
	double	   *weight[GEONN_WEIGHTS_MAX];	/* [count] finite, or NAN: the reference has no weight; NULL: the dataset
											 * has no such column */
	int32_t    *party[GEONN_PARTIES_MAX];	/* [count], or NULL: no such column */
	double	   *end_latitude;	/* [count] degrees; NULL: the references are points, not arcs */
	double	   *end_longitude;	/* [count] degrees, or NULL */
	int32_t    *shape;			/* [count] the number of each arc's shape, or NULL; a shape's arcs are adjacent */
	int32_t    *polygon;		/* [count] number or -number of each arc's polygon (protocol_dataset.h), or NULL */
	int32_t    *segment;		/* [count] the number of each arc in its shape (protocol_dataset.h), or NULL */
	int32_t    *part_end;		/* [count] the number of the last arc of each arc's line or ring, or NULL */
	double	   *measure;		/* [count] the measure where each arc begins, or NAN; NULL: no such column */
	double	   *end_measure;	/* [count] the measure where each arc ends, or NAN; NULL: no such column */

	/*
	 * State of the server's thread, or, of shapes that ask, of the thread of a device that copies them; once the dataset is
	 * sealed, devices also read last_polygon.
	 */
	size_t		capacity;		/* how many rows fit into the columns */
	int32_t		last_polygon;	/* the number of the last polygon so far, or 0 */
	size_t		ring_first;		/* if the last arc belongs to a ring: index of the ring's first arc */
	size_t		part_bytes;		/* bytes that the CPU's index will take for parts of shapes, in addition to their arcs
								 * (protocol_dataset.h) */
	int			users;			/* how many sessions hold the dataset */
	bool		sealed;
	int			files[GEONN_FILE_KINDS];	/* descriptors of memory files that clients have left with the dataset; -1:
											 * none */
	uint64_t	file_bytes[GEONN_FILE_KINDS];

	/* State of datasets.c, which finds and keeps datasets. */
	bool		labelled;		/* the dataset has a label, by which later sessions can find it while it is kept */
	bool		kept;
	size_t		kept_bytes;		/* the bytes that datasets.c counts for the dataset while it is kept */
	struct geonn_label label;
	uint8_t		note[GEONN_NOTE_BYTES];
	struct dataset *next[DATASET_TABLES];	/* the next dataset in the chain, one for each hash table */
	struct dataset *newer;		/* the neighbours in the order of use, while the dataset is kept */
	struct dataset *older;

	/*
	 * how many bytes of host memory the devices' structures take, without a table of squares; and
	 * how many the table of squares takes
	 */
	atomic_uint_fast64_t built_bytes;
	atomic_uint_fast64_t squares_bytes;

	/*
	 * The structures that each device has built of the dataset, such as an index.  Only a thread of the device changes its
	 * entry, while the device's `building` is set; cuda/lane/dataset.cu says how one GPU looks at another's structures.
	 */
	void	   *built[GEONN_DEVICES_MAX];

	/*
	 * of a device that works by turns: one of its threads is building structures of the dataset;
	 * guarded by the scheduler's lock
	 */
	bool		building[GEONN_DEVICES_MAX];

	/* how many device threads have taken one of the dataset's searches and may be building structures for it */
	atomic_int	builders;

	/*
	 * how many devices still have to discard their structures of the dataset; and the next dataset
	 * in each device's list of discards (search/discards.c)
	 */
	atomic_int	discards;
	struct dataset *next_discard[GEONN_DEVICES_MAX];
};

/*
 * The number of columns that datasets may have.  Code that treats all columns alike goes through the list dataset_columns.
 */
#define DATASET_COLUMNS (5 + 2 * GEONN_WINDOWS_MAX + 1 + GEONN_WEIGHTS_MAX + GEONN_PARTIES_MAX + 8)

struct dataset_column
{
	uint32_t	present;		/* a dataset with any of the GEONN_COLUMN_... bits in `present` has the column; 0:
								 * every dataset has it */
	size_t		width;			/* how many bytes a value has */
	size_t		member;			/* offset of the column's address in struct dataset */
	size_t		batch_member;	/* offset of the column's address in struct geonn_batch_columns */
};

extern const struct dataset_column dataset_columns[DATASET_COLUMNS];

/* Return a column of a dataset, by its number in dataset_columns; NULL: the dataset does not have the column. */
extern void *dataset_column_of(const struct dataset *dataset, int number);

/* Create an empty dataset; NULL if memory is short. */
extern struct dataset *dataset_create(uint64_t id, enum geonn_metric metric,
									  uint32_t columns);

/*
 * Append the first rows of a batch; a column that the batch lacks becomes 0.  Fails, and appends nothing, if
 * coordinates are out of range or weights are infinite, if arcs break the protocol's
 * rules for shapes, if the references become too many, or if memory is short.
 */
extern bool dataset_append(struct dataset *dataset,
						   const struct geonn_batch_columns *batch,
						   uint32_t rows, struct failure *failure);

/*
 * Check, after the last reference, what dataset_append() could not check before: that the last line
 * or ring is complete, and the last ring closed.
 */
extern bool dataset_check_end(const struct dataset *dataset, struct failure *failure);

/*
 * Put the references into the order (tag, latitude, longitude), or arcs into the order of their tags;
 * equal references keep their order.  The thread pool does the work, and any thread may call this.
 * If the host is short of memory, the function fails and the dataset is as it was.  Soon after
 * *cancelled is set, the function fails and the dataset can only be freed.
 */
extern bool dataset_sort(struct dataset *dataset, const atomic_bool *cancelled,
						 struct failure *failure);

/* Return how many bytes one reference takes in the dataset's columns, its tag included. */
extern size_t dataset_row_bytes(const struct dataset *dataset);

/* Free the memory of the columns beyond the last reference. */
extern void dataset_fit(struct dataset *dataset);

/*
 * Return the bytes of host memory that a dataset takes, with the devices' structures in host
 * memory, but without a table of squares.
 */
extern size_t dataset_memory(const struct dataset *dataset);

/*
 * Count bytes of host memory that a dataset's table of squares takes, or gives back.  dataset_take_squares() returns false
 * if all tables together would take more than dataset_squares_limit.  Any thread may call these functions.
 */
extern bool dataset_take_squares(struct dataset *dataset, size_t bytes);
extern void dataset_give_squares(struct dataset *dataset, size_t bytes);

/* how many bytes all tables of squares take; and how many they may take (datasets.c sets the limit) */
extern atomic_uint_fast64_t dataset_squares_bytes;
extern atomic_uint_fast64_t dataset_squares_limit;

/* Return how many descriptors a dataset's files take. */
extern uint32_t dataset_descriptors(const struct dataset *dataset);

/* Free a dataset's references and files.  The struct stays until devices have discarded their structures. */
extern void dataset_free_references(struct dataset *dataset);

extern void dataset_free(struct dataset *dataset);

#endif							/* GEONN_DATASET_H */
