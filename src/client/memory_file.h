/*
 * memory_file.h
 *		Bytes outside of this process's own memory: appended first, then read.
 */
#ifndef GEONN_MEMORY_FILE_H
#define GEONN_MEMORY_FILE_H

typedef struct MemoryFile MemoryFile;

/*
 * Create an empty file, which is closed with the current memory context;
 * purpose is for messages, as in: ids of references.
 */
extern MemoryFile *geonn_memory_file_create(const char *purpose);

/*
 * Append bytes.  Returns the place at which they begin, a multiple of 8 bytes.  Raises an
 * error where the system has no memory left.
 */
extern uint64 geonn_memory_file_append(MemoryFile *file, const void *bytes, Size length);

/* End appending; from now on the file can be read. */
extern void geonn_memory_file_seal(MemoryFile *file);

/*
 * Attach to a file that another process has sealed, by its descriptor, which
 * this closes in any case.  The file is closed with the current memory
 * context.  NULL where it is not sealed.
 */
extern MemoryFile *geonn_memory_file_attach(const char *purpose, int descriptor);

/* The descriptor of a file that was created here, for other processes to attach to it. */
extern int	geonn_memory_file_descriptor(const MemoryFile *file);

/*
 * The bytes of a sealed file from this place on, not to be changed.  NULL
 * if append returned no such place, or the file ends before the last of them.
 */
extern const void *geonn_memory_file_bytes(const MemoryFile *file, uint64 place, uint64 length);

/* The value of a varlena type at this place, likewise. */
extern const struct varlena *geonn_memory_file_varlena(const MemoryFile *file, uint64 place);

/* The length of a sealed file in bytes. */
extern uint64 geonn_memory_file_length(const MemoryFile *file);

#endif							/* GEONN_MEMORY_FILE_H */
