/*
 * host.h
 *		What of the host this process may use.
 */
#ifndef GEONN_HOST_H
#define GEONN_HOST_H

#include <stdint.h>

/*
 * Cores: those that it may run on, or as many as its control groups give it the
 * time of, rounded up, where these are fewer.  At least 1.  Read anew at most once
 * in ten seconds.
 */
extern unsigned host_cores(void);

/*
 * Bytes that can be had without swapping, by the kernel and by all control groups;
 * UINT64_MAX where neither says.
 */
extern uint64_t host_memory_free(void);

/*
 * The same of the control groups alone, the one at path (of the file
 * /proc/self/cgroup) and all above it, below the folder root where they are
 * mounted: UINT_MAX and UINT64_MAX where they set no limit.
 */
extern unsigned host_group_cores(const char *root, const char *path);
extern uint64_t host_group_memory_free(const char *root, const char *path);

/* Bytes that this process takes at the moment; 0 where the kernel does not say. */
extern uint64_t host_memory_resident(void);

#endif							/* GEONN_HOST_H */
