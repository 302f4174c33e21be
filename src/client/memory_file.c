/*
 * memory_file.c
 *		Bytes outside of this process's own memory: appended first, then read.
 *
 * A memfd is filled by write(), which fails where the system has no memory left
 * (a write to a mapping would end in a signal), and mapped once it is sealed
 * against changes and shrinking.  The mapping is private, since kernels before
 * 6.7 allow no other of such a file; it shares the file's pages all the same.
 *
 * Another process may attach to a sealed file.  It can trust only the seals, so
 * offsets are checked when they are read.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "utils/memutils.h"

#include "client/memory_file.h"
#include "common/channel.h"
#include "base/compat.h"

/* bytes are collected up to this number for one write() */
#define BUFFER_BYTES	(64 * 1024)

/* the alignment of palloc's memory, which suits values of any type */
#define ALIGNMENT		8

struct MemoryFile
{
	const char *purpose;
	int			descriptor;		/* -1: closed, because this process no longer needs it */
	uint64		written;
	char	   *buffer;			/* [BUFFER_BYTES] bytes that are not written yet; geonn_memory_file_seal frees the buffer */
	Size		buffered;
	char	   *bytes;			/* the mapped file, once it is sealed; NULL: the file is empty */
	MemoryContextCallback release;
};

static void
release_file(void *argument)
{
	MemoryFile *file = argument;

	if (file->bytes != NULL)
		munmap(file->bytes, file->written);
	if (file->descriptor >= 0)
		close(file->descriptor);
}

__attribute__((noreturn))
static void
raise_failure(const MemoryFile *file, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("could not %s memory for %s: %m", what, file->purpose),
			 errdetail("The memory file has %llu bytes so far.",
					   (unsigned long long) (file->written + file->buffered)),
			 errhint("Free memory of the server, or join against fewer references at a time.")));
}

static MemoryFile *
make_file(const char *purpose)
{
	MemoryFile *file = palloc0(sizeof(MemoryFile));

	file->purpose = purpose;
	file->descriptor = -1;
	file->release.func = release_file;
	file->release.arg = file;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &file->release);
	return file;
}

MemoryFile *
geonn_memory_file_create(const char *purpose)
{
	MemoryFile *file = make_file(purpose);

	file->buffer = palloc(BUFFER_BYTES);
	file->descriptor = memfd_create("geonn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (file->descriptor < 0)
		raise_failure(file, "create");
	return file;
}

static void
write_out(MemoryFile *file, const char *bytes, Size length)
{
	while (length > 0)
	{
		ssize_t		done = write(file->descriptor, bytes, length);

		if (done < 0 && errno != EINTR)
			raise_failure(file, "allocate");
		if (done < 0)
			continue;
		file->written += done;
		bytes += done;
		length -= done;
	}
}

static void
flush_buffer(MemoryFile *file)
{
	Size		length = file->buffered;

	file->buffered = 0;
	write_out(file, file->buffer, length);
}

uint64
geonn_memory_file_append(MemoryFile *file, const void *bytes, Size length)
{
	static const char padding[ALIGNMENT] = {0};
	Size		padded = TYPEALIGN(ALIGNMENT, length);
	uint64		offset;

	Assert(file->bytes == NULL && file->descriptor >= 0);
	if (padded > BUFFER_BYTES - file->buffered)
		flush_buffer(file);
	offset = file->written + file->buffered;
	Assert(offset % ALIGNMENT == 0);
	if (padded > BUFFER_BYTES)
	{
		write_out(file, bytes, length);
		write_out(file, padding, padded - length);
		return offset;
	}
	memcpy(file->buffer + file->buffered, bytes, length);
	memset(file->buffer + file->buffered + length, 0, padded - length);
	file->buffered += padded;
	return offset;
}

static void
map_file(MemoryFile *file)
{
	void	   *bytes;

	if (file->written == 0)
		return;
	bytes = mmap(NULL, file->written, PROT_READ, MAP_PRIVATE, file->descriptor, 0);
	if (bytes == MAP_FAILED)
		raise_failure(file, "map");
	file->bytes = bytes;
}

void
geonn_memory_file_seal(MemoryFile *file)
{
	Assert(file->bytes == NULL && file->descriptor >= 0);
	flush_buffer(file);
	pfree(file->buffer);
	if (fcntl(file->descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		raise_failure(file, "seal");
	map_file(file);
}

MemoryFile *
geonn_memory_file_attach(const char *purpose, int descriptor)
{
	MemoryFile *file = make_file(purpose);

	file->descriptor = descriptor;
	if (!geonn_file_is_sealed(descriptor, &file->written))
		return NULL;
	map_file(file);
	geonn_memory_file_close_descriptor(file);
	return file;
}

void
geonn_memory_file_close_descriptor(MemoryFile *file)
{
	close(file->descriptor);
	file->descriptor = -1;
}

int
geonn_memory_file_descriptor(const MemoryFile *file)
{
	return file->descriptor;
}

const void *
geonn_memory_file_bytes(const MemoryFile *file, uint64 offset, uint64 length)
{
	if (offset % ALIGNMENT != 0 || offset > file->written || length > file->written - offset)
		return NULL;
	return file->bytes + offset;
}

const struct varlena *
geonn_memory_file_varlena(const MemoryFile *file, uint64 offset)
{
	const struct varlena *value = geonn_memory_file_bytes(file, offset, VARHDRSZ);

	/* Appended values are neither compressed nor out of line: reject others. */
	if (value == NULL || !VARATT_IS_4B_U(value) || VARSIZE(value) < VARHDRSZ)
		return NULL;
	return geonn_memory_file_bytes(file, offset, VARSIZE(value));
}

uint64
geonn_memory_file_length(const MemoryFile *file)
{
	return file->written;
}
