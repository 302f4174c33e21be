/*
 * datasets.h
 *		The datasets that the engine has, and how long they stay.
 *
 * All of this is the server thread's alone.
 */
#ifndef GEONN_DATASETS_H
#define GEONN_DATASETS_H

#include "dataset.h"

/*
 * A new dataset, held by its caller, with this label if not NULL.  NULL where memory
 * is short.
 */
extern struct dataset *datasets_open(enum geonn_metric metric, uint32_t columns,
									 const struct geonn_label *label);

/* The sealed dataset of this id, held by its caller, too.  NULL: there is none. */
extern struct dataset *datasets_attach(uint64_t id);

/* The same of the dataset that is kept under this label. */
extern struct dataset *datasets_find(enum geonn_metric metric, uint32_t columns,
									 const struct geonn_label *label);

/*
 * A kept dataset, held by the caller, that seems to be the same as this one, whose label, if
 * any, it can have.  NULL: there is none.
 */
extern struct dataset *datasets_find_alike(const struct dataset *dataset);

/* Is there memory enough for keeping it, once it is sealed? */
extern bool datasets_can_keep(const struct dataset *dataset);

/* Keep a sealed dataset, if it can be, instead of others of its label's subject. */
extern void datasets_keep(struct dataset *dataset);

/* The caller holds it no more. */
extern void datasets_release(struct dataset *dataset);

/*
 * Memory is short: let go of a dataset that is kept and that nobody holds.  False where
 * there is none.
 */
extern bool datasets_make_room(void);

/* Bytes of host memory for kept datasets; those that are too many leave at once. */
extern void datasets_set_kept_limit(uint64_t bytes);

/* How many there are, how many of them are kept, and the memory of these. */
extern uint32_t datasets_count(void);
extern uint32_t datasets_kept(void);
extern uint64_t datasets_kept_memory(void);

#endif							/* GEONN_DATASETS_H */
