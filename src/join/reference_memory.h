/*
 * reference_memory.h
 *		The memory that this process's joins take for references, and its limit.
 */
#ifndef GEONN_REFERENCE_MEMORY_H
#define GEONN_REFERENCE_MEMORY_H

typedef struct ReferenceMemory ReferenceMemory;

/*
 * The references of one join, which take nothing yet.  It lives as long as the current
 * memory context.  title is for messages, as in: relation "station"; columns are
 * those of the question (GEONN_COLUMN_...).
 */
extern ReferenceMemory *geonn_reference_memory_create(const char *title, uint32 columns);

/*
 * So many references more are about to be taken in; and so many bytes of them, which what
 * names, as in: ids.  Raises an error where that is more than geonn.session_memory_limit allows.
 */
extern void geonn_reference_memory_add(ReferenceMemory *memory, uint64 references);
extern void geonn_reference_memory_add_bytes(ReferenceMemory *memory, uint64 bytes,
											 const char *what);

/*
 * They are in this dataset.  Returns whether another join of this process has it: then it is
 * counted there, and here no more.
 */
extern bool geonn_reference_memory_name(ReferenceMemory *memory, uint64 dataset);

#endif							/* GEONN_REFERENCE_MEMORY_H */
