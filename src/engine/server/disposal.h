/*
 * disposal.h
 *		Frees the memory and files of datasets that have left, on a thread of
 *		its own.
 *
 * Only the server's thread uses these functions.
 */
#ifndef GEONN_DISPOSAL_H
#define GEONN_DISPOSAL_H

#include "engine/dataset/dataset.h"

/* Start the thread.  If that fails, the server's thread frees datasets itself. */
extern void disposal_open(void);

/* Hand over a dataset that no session holds and no hash table contains any more. */
extern void disposal_add(struct dataset *dataset);

/* Wait until the host memory and the files of all added datasets are free.  Returns false if they were free already. */
extern bool disposal_finish(void);

/* End the thread, after it has freed all datasets that were added. */
extern void disposal_close(void);

#endif							/* GEONN_DISPOSAL_H */
