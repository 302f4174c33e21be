/*
 * live.h
 *		Questions of a few points, answered in this process from the base of a table.
 */
#ifndef GEONN_LIVE_H
#define GEONN_LIVE_H

#include "common/protocol.h"
#include "join/reference_fate.h"
#include "live/live_table.h"
#include "points/columns.h"
#include "points/table_reader.h"

/* A few given points are answered here, if this process or the engine has a base. */
extern const ReferenceFate geonn_live_fate;

/* The engine would read all references: a base is made for a few given points, or rows, which are counted. */
extern const ReferenceFate geonn_counted_fate;

/* the references of a plain table, which this process may know */
typedef struct LiveReferences LiveReferences;

/*
 * The references of this table, which is locked, by the ids, of which a base is possible, the coordinates and the columns
 * to join by that the source reads there; they live as long as the process.  The message is of the present call.
 * NULL: pages do not show the table's changes to the active snapshot.
 */
extern LiveReferences *geonn_live_find(const PointSource *source, const PlainTable *table,
									   const struct geonn_call *message);

/*
 * Bring the references up to date with the active snapshot.  False: there is no base, or this snapshot cannot use
 * it; then the engine is to be asked.  make: a base is to be made now if there is none, since the engine would need
 * all references, too.
 */
extern bool geonn_live_look(LiveReferences *references, const PointSource *source, const PlainTable *table,
							bool make);

/*
 * Is geonn_live_look likely to find a base, or to make one if it is told to?  The engine, which has no such references
 * as a dataset, would have to read them all.
 */
extern bool geonn_live_is_likely(LiveReferences *references, const PointSource *source);

/* After a look: would all references have room, as the answer to one point, within the limits for this process? */
extern bool geonn_live_has_room_for_all(const LiveReferences *references);

/* The references as the last look saw them, and their groups; NULL: these have none. */
extern const LiveTable *geonn_live_table(const LiveReferences *references);
extern GeonnGroups *geonn_live_groups(const LiveReferences *references);

/* Note that the engine answers a call, how many milliseconds that takes, which a base would save, and of how many references. */
extern void geonn_live_note_engine(LiveReferences *references, double milliseconds, uint64 count);

/* Note the present call, which was answered here. */
extern void geonn_live_note_call(LiveReferences *references, const struct geonn_finished *work);

#endif							/* GEONN_LIVE_H */
