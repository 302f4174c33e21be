/*
 * memory_file.h
 *		Bytes outside of this process's own memory: appended first, then read.
 */
#ifndef GEONN_MEMORY_FILE_H
#define GEONN_MEMORY_FILE_H

typedef struct MemoryFile MemoryFile;

/*
 * Create an empty file, which is closed with the current memory context.  purpose is for error
 * messages, for example: ids of references.
 */
extern MemoryFile *geonn_memory_file_create(const char *purpose);

/*
 * Append bytes.  Returns the offset at which they begin, a multiple of 8.  Raises an error if the
 * system has no memory left.
 */
extern uint64 geonn_memory_file_append(MemoryFile *file, const void *bytes, Size length);

/* End appending; from now on the file can be read. */
extern void geonn_memory_file_seal(MemoryFile *file);

/*
 * Attach to a file that another process has sealed, and close its descriptor.  The file is closed with the current memory
 * context.  If the file is not sealed, returns NULL; the context then closes the descriptor.
 */
extern MemoryFile *geonn_memory_file_attach(const char *purpose, int descriptor);

/* Return the descriptor of a file that this process created, for other processes to attach to the file. */
extern int	geonn_memory_file_descriptor(const MemoryFile *file);

/* Close the descriptor of a file that this process created and sealed; the bytes stay. */
extern void geonn_memory_file_close_descriptor(MemoryFile *file);

/*
 * Return the bytes of a sealed file from this offset on; the caller must not change them.  Returns
 * NULL if the offset is no multiple of 8, or if the file ends before the last byte.
 */
extern const void *geonn_memory_file_bytes(const MemoryFile *file, uint64 offset, uint64 length);

/*
 * Return the varlena value at this offset of a sealed file; the caller must not change it.  Returns NULL if the offset is
 * no multiple of 8, if the file ends before the value does, or if the value is compressed or out of line.
 */
extern const struct varlena *geonn_memory_file_varlena(const MemoryFile *file, uint64 offset);

/* Return the length of a sealed file in bytes; of a file that is not sealed, how many bytes are written out. */
extern uint64 geonn_memory_file_length(const MemoryFile *file);

#endif							/* GEONN_MEMORY_FILE_H */
