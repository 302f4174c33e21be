/*
 * channel.c
 *		Sends and receives protocol.h's messages over a Unix socket, for module
 *		and engine.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "common/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int
geonn_channel_connect(const char *path, pid_t *peer)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int			descriptor;
	int			reason;

	if (strlen(path) >= sizeof(address.sun_path))
	{
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);

	descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (descriptor < 0)
		return -1;
	if (connect(descriptor, (struct sockaddr *) &address, sizeof(address)) == 0 &&
		geonn_channel_peer_is_own_user(descriptor, peer))
		return descriptor;
	reason = errno;
	close(descriptor);
	errno = reason;
	return -1;
}

bool
geonn_channel_peer_is_own_user(int socket, pid_t *peer)
{
	struct ucred credentials;
	socklen_t	length = sizeof(credentials);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
		return false;
	*peer = credentials.pid;
	if (credentials.uid == geteuid())
		return true;
	errno = EACCES;
	return false;
}

enum geonn_channel_status
geonn_channel_send(int socket, int type, void *message, int descriptor)
{
	struct geonn_header *header = message;
	struct iovec part = {.iov_base = message,.iov_len = geonn_message_size(type)};
	struct msghdr envelope = {.msg_iov = &part,.msg_iovlen = 1};
	union
	{
		struct cmsghdr alignment;
		char		space[CMSG_SPACE(sizeof(int))];
	}			control;

	header->magic = GEONN_PROTOCOL_MAGIC;
	header->version = GEONN_PROTOCOL_VERSION;
	header->type = (uint16_t) type;

	if (descriptor >= 0)
	{
		struct cmsghdr *rights;

		memset(&control, 0, sizeof(control));
		envelope.msg_control = control.space;
		envelope.msg_controllen = sizeof(control.space);
		rights = CMSG_FIRSTHDR(&envelope);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
	}

	for (;;)
	{
		if (sendmsg(socket, &envelope, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return GEONN_CHANNEL_OK;
		switch (errno)
		{
			case EINTR:
				continue;
			case EAGAIN:
				return GEONN_CHANNEL_AGAIN;
			case EPIPE:
			case ECONNRESET:
				return GEONN_CHANNEL_CLOSED;
			default:
				return GEONN_CHANNEL_FAILED;
		}
	}
}

/* End each text of a message within its field: the other side may have sent a text without a zero byte. */
static void
end_texts(union geonn_message *message)
{
#define END(text_type, text) \
	if (message->header.type == (text_type)) \
		message->text[sizeof(message->text) - 1] = '\0';
	GEONN_TEXTS(END)
#undef END
}

/* Take the first descriptor out of the control data, and close all others.  Returns -1 if none came. */
static int
take_descriptor(struct msghdr *envelope)
{
	int			taken = -1;

	for (struct cmsghdr *rights = CMSG_FIRSTHDR(envelope); rights != NULL;
		 rights = CMSG_NXTHDR(envelope, rights))
	{
		size_t		count;

		if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS)
			continue;
		count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++)
		{
			int			descriptor;

			memcpy(&descriptor, CMSG_DATA(rights) + i * sizeof(int), sizeof(int));
			if (taken < 0)
				taken = descriptor;
			else
				close(descriptor);
		}
	}
	return taken;
}

static enum geonn_channel_status
check_message(union geonn_message *message, size_t length)
{
	struct geonn_header *header = &message->header;
	size_t		expected;

	if (length < sizeof(struct geonn_header) ||
		header->magic != GEONN_PROTOCOL_MAGIC)
		return GEONN_CHANNEL_MALFORMED;
	expected = geonn_message_size(header->type);
	if (header->version != GEONN_PROTOCOL_VERSION)
	{
		/* Of another version's messages, only hello and error can be read. */
		if ((header->type == GEONN_HELLO || header->type == GEONN_ERROR) &&
			length == expected)
			end_texts(message);
		return GEONN_CHANNEL_OTHER_VERSION;
	}
	if (expected == 0 || length != expected)
		return GEONN_CHANNEL_MALFORMED;
	end_texts(message);
	return GEONN_CHANNEL_OK;
}

enum geonn_channel_status
geonn_channel_receive(int socket, union geonn_message *message, int *descriptor)
{
	struct iovec part = {.iov_base = message,.iov_len = sizeof(*message)};
	union
	{
		struct cmsghdr alignment;
		char		space[CMSG_SPACE(4 * sizeof(int))];
	}			control;
	struct msghdr envelope = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space)
	};
	ssize_t		length;
	int			taken;

	if (descriptor != NULL)
		*descriptor = -1;
	do
		length = recvmsg(socket, &envelope, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);

	if (length < 0)
	{
		if (errno == EAGAIN)
			return GEONN_CHANNEL_AGAIN;
		if (errno == ECONNRESET)
			return GEONN_CHANNEL_CLOSED;
		return GEONN_CHANNEL_FAILED;
	}

	taken = take_descriptor(&envelope);
	if (descriptor != NULL && length > 0)
		*descriptor = taken;
	else if (taken >= 0)
		close(taken);
	/* 0 bytes: the end of the connection, or an empty message */
	if (length == 0)
		return GEONN_CHANNEL_CLOSED;
	if (envelope.msg_flags & MSG_CTRUNC && taken < 0)
	{
		/* The kernel dropped the descriptor, because this process has no free descriptor left. */
		errno = EMFILE;
		return GEONN_CHANNEL_FAILED;
	}
	if (envelope.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return GEONN_CHANNEL_MALFORMED;
	return check_message(message, (size_t) length);
}

bool
geonn_channel_find_last(int socket, int type, union geonn_message *message)
{
	int			ends = 0;

	while (ends < 2)
	{
		if (geonn_channel_receive(socket, message, NULL) != GEONN_CHANNEL_OK)
			ends++;
		else if (message->header.type == type)
			return true;
	}
	return false;
}

void *
geonn_batch_map(int descriptor, size_t bytes)
{
	const int	seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct stat status;
	int			present;
	void	   *start;

	if (fstat(descriptor, &status) != 0)
		return NULL;
	present = fcntl(descriptor, F_GET_SEALS);
	if (present < 0 || (present & seals) != seals ||
		status.st_size < (off_t) bytes)
	{
		errno = EPERM;
		return NULL;
	}
	start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
				 descriptor, 0);
	return start == MAP_FAILED ? NULL : start;
}

bool
geonn_file_is_sealed(int descriptor, uint64_t *bytes)
{
	const int	seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int			present = fcntl(descriptor, F_GET_SEALS);
	struct stat status;

	if (present < 0 || (present & seals) != seals || fstat(descriptor, &status) != 0)
		return false;
	*bytes = (uint64_t) status.st_size;
	return true;
}
