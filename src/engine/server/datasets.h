/*
 * datasets.h
 *		The datasets that the engine has, and how long they stay.
 *
 * All of this is the server thread's alone.
 */
#ifndef GEONN_DATASETS_H
#define GEONN_DATASETS_H

#include "engine/dataset/dataset.h"

/*
 * A new dataset, held by its caller, with the first label if there is one.  NULL where memory
 * is short.
 */
extern struct dataset *datasets_open(const struct geonn_open *open);

/* The sealed dataset of this id, held by its caller, too.  NULL: there is none. */
extern struct dataset *datasets_attach(uint64_t id);

/* The same of the dataset that is kept under this label. */
extern struct dataset *datasets_find(enum geonn_metric metric, uint32_t columns,
									 const struct geonn_label *label);

/*
 * A kept dataset of the same scope, held by the caller, that seems to be the same as this
 * one, whose label, if any, it can have.  NULL: there is none.
 */
extern struct dataset *datasets_find_alike(const struct dataset *dataset);

/* A dataset has the label and the note of another one from now on, if that has a label. */
extern void datasets_take_label(struct dataset *dataset, const struct dataset *other);

/* Will it be kept, once it is sealed? */
extern bool datasets_can_keep(const struct dataset *dataset);

/* Has it references enough to be worth finding by its contents? */
extern bool datasets_can_recognise(const struct dataset *dataset);

/* Keep a sealed dataset, if it can be, instead of others of its label's subject. */
extern void datasets_keep(struct dataset *dataset);

/* Devices may have built more of it. */
extern void datasets_account(struct dataset *dataset);

/* The caller holds it no more. */
extern void datasets_release(struct dataset *dataset);

/*
 * Memory is short, or descriptors are: let go of a kept dataset that no session holds, or of
 * as many as give a descriptor.  False where nothing has become free, so that it is of no use
 * to try again.
 */
extern bool datasets_make_room(const struct failure *failure);

/* The descriptors that the engine may have in all. */
extern void datasets_set_descriptors(uint64_t descriptors);

/* The engine has got this one: where few are left, kept datasets make room. */
extern void datasets_note_descriptor(int descriptor);

/* Bytes of host memory for kept datasets; those that are too many leave at once. */
extern void datasets_set_kept_limit(uint64_t bytes);

/* How many there are, how many of them are kept, and the memory of these. */
extern uint32_t datasets_count(void);
extern uint32_t datasets_kept(void);
extern uint64_t datasets_kept_memory(void);

#endif							/* GEONN_DATASETS_H */
