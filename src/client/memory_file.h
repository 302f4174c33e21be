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

/*
 * One that somebody else has sealed, by its descriptor, which is closed in any
 * case.  It goes with the current memory context.  NULL where it is not sealed.
 */
extern MemoryFile *geonn_memory_file_attach(const char *purpose, int descriptor);

/* Its descriptor, for others to attach to it; only of one that was created here. */
extern int	geonn_memory_file_descriptor(const MemoryFile *file);

/*
 * So many bytes from this place on, of a sealed file; not to be changed.  NULL
 * where the place is none of append's, or the file ends before.
 */
extern const void *geonn_memory_file_bytes(const MemoryFile *file, uint64 place, uint64 length);

/* A value of varlena type at this place, likewise. */
extern const struct varlena *geonn_memory_file_varlena(const MemoryFile *file, uint64 place);

/* How many bytes there are, of a sealed file. */
extern uint64 geonn_memory_file_length(const MemoryFile *file);

#endif							/* GEONN_MEMORY_FILE_H */
