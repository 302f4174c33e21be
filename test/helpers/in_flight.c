/*
 * in_flight.c
 *		Keeps descriptors on their way between processes of a user, who may have
 *		only so many.
 *
 * Usage: in_flight COUNT
 *
 * Sends that many to itself, prints "ready", and takes them back at the end of its
 * standard input.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define AT_A_TIME 200

/* send so many copies of standard input */
static int
send_copies(int socket, int count)
{
	char		byte = 0;
	struct iovec part = {.iov_base = &byte,.iov_len = 1};
	union
	{
		struct cmsghdr alignment;
		char		space[CMSG_SPACE(AT_A_TIME * sizeof(int))];
	}			control = {0};
	struct msghdr envelope = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = CMSG_SPACE((size_t) count * sizeof(int))
	};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&envelope);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN((size_t) count * sizeof(int));

	/* descriptor 0 is what the zeroed data says */
	return sendmsg(socket, &envelope, 0) == 1 ? 0 : -1;
}

int
main(int argument_count, char **words)
{
	int			left = argument_count > 1 ? atoi(words[1]) : 0;
	struct rlimit limit;
	int			sockets[2];
	char		byte;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return EXIT_FAILURE;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
		return EXIT_FAILURE;
	for (; left > 0; left -= AT_A_TIME)
		if (send_copies(sockets[0], left < AT_A_TIME ? left : AT_A_TIME) != 0)
		{
			perror("sendmsg");
			return EXIT_FAILURE;
		}
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	return EXIT_SUCCESS;
}
