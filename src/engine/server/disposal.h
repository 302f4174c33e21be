/*
 * disposal.h
 *		The memory and files of datasets that have left, freed on a thread of its own.
 *
 * All of this is the server thread's alone.
 */
#ifndef GEONN_DISPOSAL_H
#define GEONN_DISPOSAL_H

#include "engine/dataset/dataset.h"

/* Start the thread; without one, datasets are freed by the server's own. */
extern void disposal_open(void);

/* Free a dataset that no session holds and no table has any more. */
extern void disposal_add(struct dataset *dataset);

/*
 * Wait until the host's memory and the files of all that were added are free.  False where
 * they were already.
 */
extern bool disposal_finish(void);

/* End the thread, with all that was added. */
extern void disposal_close(void);

#endif							/* GEONN_DISPOSAL_H */
