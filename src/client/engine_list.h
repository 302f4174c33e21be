/*
 * engine_list.h
 *		Fetch a list from the engine: the calls under way, or the statistics.
 */
#ifndef GEONN_ENGINE_LIST_H
#define GEONN_ENGINE_LIST_H

#include "common/protocol.h"

/*
 * Return the list's entries, each of entry_bytes, in the current memory context.  Returns NULL if
 * no engine runs; starts none.
 */
extern void *geonn_engine_list(enum geonn_listing listing, Size entry_bytes,
							   struct geonn_listed *listed);

#endif							/* GEONN_ENGINE_LIST_H */
