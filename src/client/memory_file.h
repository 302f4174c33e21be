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
 * Append bytes.  Returns the offset at which they begin, a multiple of 8.  Raises an error where the
 * system has no memory left.
 */
extern uint64 geonn_memory_file_append(MemoryFile *file, const void *bytes, Size length);

/* End appending; from now on the file can be read. */
extern void geonn_memory_file_seal(MemoryFile *file);

/*
 * Attach to a file that another process has sealed, and close its descriptor.  The file is closed with
 * the current memory context.  NULL if it is not sealed: then the context closes the descriptor, too.
 */
extern MemoryFile *geonn_memory_file_attach(const char *purpose, int descriptor);

/* The descriptor of a file that was created here, for other processes to attach to it. */
extern int	geonn_memory_file_descriptor(const MemoryFile *file);

/* Close the descriptor of a file that was created here and sealed; its bytes stay. */
extern void geonn_memory_file_close_descriptor(MemoryFile *file);

/*
 * The bytes of a sealed file from this offset on, not to be changed.  NULL
 * if the offset is no multiple of 8, or if the file ends before the last of them.
 */
extern const void *geonn_memory_file_bytes(const MemoryFile *file, uint64 offset, uint64 length);

/* The varlena value at this offset, likewise; NULL also if it is compressed or out of line. */
extern const struct varlena *geonn_memory_file_varlena(const MemoryFile *file, uint64 offset);

/* The length of a sealed file in bytes, or how many of another one's are written out. */
extern uint64 geonn_memory_file_length(const MemoryFile *file);

#endif							/* GEONN_MEMORY_FILE_H */
