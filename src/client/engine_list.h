/*
 * engine_list.h
 *		Lists that the engine gives: of calls under way, of statistics.
 */
#ifndef GEONN_ENGINE_LIST_H
#define GEONN_ENGINE_LIST_H

#include "common/protocol.h"

/*
 * The list's entries, of so many bytes each, in the current memory context; NULL where
 * no engine runs: none is started.
 */
extern void *geonn_engine_list(enum geonn_listing listing, Size entry_bytes,
							   struct geonn_listed *listed);

#endif							/* GEONN_ENGINE_LIST_H */
