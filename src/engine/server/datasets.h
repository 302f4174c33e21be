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
 * Create a dataset with the message's first label, if it has any.  The caller holds the dataset.
 * Returns NULL if memory is short.
 */
extern struct dataset *datasets_open(const struct geonn_open *open);

/* Find the sealed dataset with this id.  The caller then holds it beside others.  Returns NULL if the engine has none. */
extern struct dataset *datasets_attach(uint64_t id);

/*
 * Find the dataset that is kept under this label, or, with any_version, under the label's subject.
 * The caller then holds it beside others.  Returns NULL if the engine keeps none.
 */
extern struct dataset *datasets_find(enum geonn_metric metric, uint32_t columns,
									 const struct geonn_label *label, bool any_version);

/*
 * Keep a sealed dataset, which has a label, in place of the kept dataset of the same subject, if
 * the limits allow it.  The message gets the outcome.
 */
extern void datasets_keep(struct dataset *dataset, struct geonn_sealed *message);

/* Count a dataset's bytes anew, as devices may have built more of it. */
extern void datasets_account(struct dataset *dataset);

/* Give up the caller's hold of a dataset. */
extern void datasets_release(struct dataset *dataset);

/*
 * Free memory or descriptors, whichever the failure says is short: drop kept datasets that no session holds, the least
 * recently used first.  Drop one, or, if descriptors are short, as many as free the engine's reserve of descriptors.
 * Returns false if nothing has become free; then the caller need not try again.
 */
extern bool datasets_make_room(const struct failure *failure);

/* Set how many descriptors the engine may have in all. */
extern void datasets_set_descriptors(uint64_t descriptors);

/* Note the number of a descriptor that the engine has just opened; if few are left, drop kept datasets. */
extern void datasets_note_descriptor(int descriptor);

/* Set how many bytes of host memory kept datasets may take; drop datasets beyond the limit at once. */
extern void datasets_set_kept_limit(uint64_t bytes);

/* Fill in how many datasets the engine has, how many of them it keeps, and the memory of the kept ones. */
extern void datasets_report(struct geonn_engine_status *status);

#endif							/* GEONN_DATASETS_H */
