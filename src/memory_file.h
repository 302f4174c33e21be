/*
 * memory_file.h
 *		Bytes outside this process's own memory: appended, then read.
 */
#ifndef GEONN_MEMORY_FILE_H
#define GEONN_MEMORY_FILE_H

typedef struct MemoryFile MemoryFile;

/*
 * An empty one, which goes with the current memory context; purpose is for
 * messages, as in: ids of references.
 */
extern MemoryFile *geonn_memory_file_create(const char *purpose);

/*
 * Append so many bytes.  Returns where they are, a multiple of 8 bytes.  Raises an error where
 * the system has no memory left.
 */
extern uint64 geonn_memory_file_append(MemoryFile *file, const void *bytes, Size length);

/* No more will be appended; now it can be read. */
extern void geonn_memory_file_seal(MemoryFile *file);

/* What was appended, from the first byte on; not to be changed. */
extern const void *geonn_memory_file_bytes(const MemoryFile *file);

#endif							/* GEONN_MEMORY_FILE_H */
