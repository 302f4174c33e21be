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
 * A new dataset, held by its caller.  NULL where memory is short.
 */
extern struct dataset *datasets_open(enum geonn_metric metric, uint32_t columns);

/*
 * The sealed dataset of this id, held by its caller, too.  NULL: there is none.
 */
extern struct dataset *datasets_attach(uint64_t id);

/* The caller holds it no more. */
extern void datasets_release(struct dataset *dataset);

/* How many there are. */
extern uint32_t datasets_count(void);

#endif							/* GEONN_DATASETS_H */
