/*
 * reference_memory.h
 *		The memory that this process's joins take for references and for shapes that ask, and its limit.
 */
#ifndef GEONN_REFERENCE_MEMORY_H
#define GEONN_REFERENCE_MEMORY_H

/* the message of the error when shapes that ask do not fit in geonn.session_memory_limit */
#define GEONN_SHAPES_NEED_MEMORY "not enough memory for %s: %llu kB needed so far, and geonn.session_memory_limit is %d kB"

typedef struct ReferenceMemory ReferenceMemory;

/*
 * Create the entry of one join's references, with no bytes yet.  The entry lives as long as the current
 * memory context.  title is for messages, for example: relation "station".  columns are the question's
 * (GEONN_COLUMN_...).  places: the question asks for the places of shapes.
 */
extern ReferenceMemory *geonn_reference_memory_create(const char *title, uint32 columns, bool places);

/*
 * Create the entry of one search's observations that are shapes, whose bytes are counted by geonn_reference_memory_add_bytes().
 * title is for messages, for example: the shapes of relation "road".
 */
extern ReferenceMemory *geonn_observed_memory_create(const char *title);

/*
 * Create the entry of the clusters of so many references, or of their thinning, with its bytes.  title is for messages, for
 * example: relation "stop".
 */
extern ReferenceMemory *geonn_cluster_memory_create(const char *title, uint64 references, bool thins);

/*
 * Create the entry of the names of clusters, which geonn_reference_memory_add_bytes() counts; title is as for clusters.
 */
extern ReferenceMemory *geonn_name_memory_create(const char *title);

/*
 * Create the entry of observations that become a dataset to be assigned, with no bytes yet; title and columns are as those of
 * references.  Once all were counted, as references are, count the bytes of the assignment: of so many observations and
 * references together.
 */
extern ReferenceMemory *geonn_assigned_memory_create(const char *title, uint32 columns);
extern void geonn_reference_memory_add_assignment(ReferenceMemory *memory, uint64 points);

/*
 * Count this many references, or bytes of references, before they are taken in.  Raises an error if the sum would exceed
 * geonn.session_memory_limit; `what` names the contents of the bytes in the error, for example: ids.
 */
extern void geonn_reference_memory_add(ReferenceMemory *memory, uint64 references);
extern void geonn_reference_memory_add_bytes(ReferenceMemory *memory, uint64 bytes,
											 const char *what);

/*
 * Count the bytes of parts of shapes, beside those of their arcs: GEONN_LINE_INDEX_BYTES or GEONN_RING_INDEX_BYTES for each
 * part, and geonn_arc_pieces_bytes() for each arc; and return the bytes of all parts counted so far.
 */
extern void geonn_reference_memory_add_parts(ReferenceMemory *memory, uint64 bytes);
extern uint64 geonn_reference_memory_part_bytes(const ReferenceMemory *memory);

/* Let go of bytes that were counted: of so many, or of all but so many. */
extern void geonn_reference_memory_return_bytes(ReferenceMemory *memory, uint64 bytes);
extern void geonn_reference_memory_keep_bytes(ReferenceMemory *memory, uint64 bytes);

/* Return whether this process's joins may take this many bytes more. */
extern bool geonn_reference_memory_has_room(uint64 bytes);

/*
 * Count the bytes of the sums of weights, of all references counted so far.  weights are those of the reference counted
 * last.
 */
extern void geonn_reference_memory_add_weights(ReferenceMemory *memory, const double *weights);

/*
 * Return how many words the sums of each weight take, [GEONN_WEIGHTS_MAX]; and count this many words, for references
 * that the engine keeps.
 */
extern const uint8 *geonn_reference_memory_words(const ReferenceMemory *memory);
extern void geonn_reference_memory_add_words(ReferenceMemory *memory, const uint8 *words);

/*
 * Set the dataset of the references.  Returns true if another join of this process has the same
 * dataset: that join goes on counting the dataset, and this one stops.
 */
extern bool geonn_reference_memory_name(ReferenceMemory *memory, uint64 dataset);

#endif							/* GEONN_REFERENCE_MEMORY_H */
