/*
 * clusters.h
 *		Clusters of the references of a dataset on the CPU: DBSCAN with one answer; and thinning (protocol_search.h).
 */
#ifndef GEONN_CPU_CLUSTERS_H
#define GEONN_CPU_CLUSTERS_H

#include "engine/cpu/index/index.h"
#include "engine/search/device.h"

/* the work on the clusters, or on the thinning, for which one search asks, and their answer */
struct cpu_clusters;

/*
 * Begin with the clusters or the thinning that a search asks for, by an index of its dataset, which must stay until the end.
 * They take at most GEONN_CLUSTER_BYTES or GEONN_THIN_BYTES a reference, and 512 more.  A thinning first sorts the references by
 * their weights, on all threads that are free.  Returns NULL with the failure if memory is short.
 */
extern struct cpu_clusters *cpu_clusters_create(const struct search *search, const struct cpu_index *index,
												struct failure *failure);

/* Return how many bytes of memory they take. */
extern size_t cpu_clusters_bytes(const struct cpu_clusters *clusters);

/*
 * Work on the clusters, on all threads that are free, until a time on the clock of now_ms(), or until the search is
 * cancelled, but do some work in any case.  Returns whether they are complete.
 */
extern bool cpu_clusters_go_on(struct cpu_clusters *clusters, const atomic_bool *cancelled, int64_t end_ms);

/*
 * Return the number of the cluster of the reference at a place of the dataset, once the clusters are complete: from 1 on,
 * negative for a border point; 0: noise.
 */
extern int64_t cpu_clusters_of(const struct cpu_clusters *clusters, uint32_t place);

/*
 * Return the place of the reference that keeps the one at a place of the dataset, once a thinning is complete: its own place if
 * it is kept.
 */
extern uint32_t cpu_clusters_keeper(const struct cpu_clusters *clusters, uint32_t place);

/* Free the clusters; NULL is allowed. */
extern void cpu_clusters_free(struct cpu_clusters *clusters);

/* Do the present phase's work on one item (clusters_walk.c). */
extern void CPU_PATH_NAME(cpu_clusters_work) (struct cpu_clusters *clusters, uint32_t item);

#endif							/* GEONN_CPU_CLUSTERS_H */
