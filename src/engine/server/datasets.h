/*
 * datasets.h
 *		Keeps the datasets of the engine: finds them, and decides how long they
 *		stay.
 *
 * Only the server's thread uses these functions.
 */
#ifndef GEONN_DATASETS_H
#define GEONN_DATASETS_H

#include "engine/dataset/dataset.h"

/*
 * Create a dataset with the message's first label, if it has any; the caller
 * holds it.  NULL if memory is short.
 */
extern struct dataset *datasets_open(const struct geonn_open *open);

/* Find the sealed dataset of this id; the caller holds it, too.  NULL: not found. */
extern struct dataset *datasets_attach(uint64_t id);

/*
 * Find the dataset that is kept under this label, or, if any version will do, under its subject; the
 * caller holds it, too.  NULL: not found.
 */
extern struct dataset *datasets_find(enum geonn_metric metric, uint32_t columns,
									 const struct geonn_label *label, bool any_version);

/* Keep a sealed dataset, which has a label, in place of the kept dataset of the same subject, if
 * limits allow it.  The message gets what has become of that. */
extern void datasets_keep(struct dataset *dataset, struct geonn_sealed *message);

/* Count a dataset's bytes anew, as devices may have built more of it. */
extern void datasets_account(struct dataset *dataset);

/* Give up the caller's hold of a dataset. */
extern void datasets_release(struct dataset *dataset);

/*
 * Free memory or descriptors, whichever the failure says is short: drop kept
 * datasets that no session holds, the least recently used first.  Drops one or,
 * if descriptors are short, as many as free the engine's reserve of them.  False
 * if nothing has become free: then the caller need not try again.
 */
extern bool datasets_make_room(const struct failure *failure);

/* Set how many descriptors the engine may have in all. */
extern void datasets_set_descriptors(uint64_t descriptors);

/*
 * Note the number of a descriptor that the engine has just opened: if few are
 * left, kept datasets are dropped.
 */
extern void datasets_note_descriptor(int descriptor);

/* Set how many bytes of host memory kept datasets may take; datasets beyond that are dropped at
 * once. */
extern void datasets_set_kept_limit(uint64_t bytes);

/* Fill in how many datasets the engine has, how many of them are kept, and the memory of those. */
extern void datasets_report(struct geonn_engine_status *status);

#endif							/* GEONN_DATASETS_H */
