/*
 * host.h
 *		The cores and the memory of the host that this process may use.
 */
#ifndef GEONN_HOST_H
#define GEONN_HOST_H

#include <stdint.h>

/*
 * Return the number of cores that this process may run on, or, if that is less, the number of cores whose time its control
 * groups give it, rounded up; at least 1.  The function reads the number anew at most once in ten seconds.
 */
extern unsigned host_cores(void);

/*
 * Return how many bytes can be allocated without swapping: the smallest number that the kernel and
 * the control groups report; UINT64_MAX if none reports a number.
 */
extern uint64_t host_memory_free(void);

/*
 * Return the cores, and the free bytes of memory, that control groups allow: the group at path (as
 * in /proc/self/cgroup) and all groups above it, in the folder `root` where they are mounted.
 * UINT_MAX, and UINT64_MAX, if no group sets a limit.
 */
extern unsigned host_group_cores(const char *root, const char *path);
extern uint64_t host_group_memory_free(const char *root, const char *path);

/* Return how many bytes of this process are resident now; 0 if the kernel does not report them. */
extern uint64_t host_memory_resident(void);

#endif							/* GEONN_HOST_H */
