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

/* A fate: this process answers a few given points, if it or the engine has a base. */
extern const ReferenceFate geonn_live_fate;

/*
 * A fate, tried if the engine would have to read all references: this process makes a base, for a few given
 * points, or for rows after counting them.
 */
extern const ReferenceFate geonn_counted_fate;

/* The references of a plain table, which this process may know. */
typedef struct LiveReferences LiveReferences;

/*
 * Find the references of this table, which is locked: their ids, of which a base must be possible, their coordinates, and
 * the columns to join by that the source reads.  They live as long as the process.  The message is that of the present
 * call.  Returns NULL if pages do not show the table's changes to the active snapshot.
 */
extern LiveReferences *geonn_live_find(const PointSource *source, const PlainTable *table,
									   const struct geonn_call *message);

/*
 * Bring the references up to date with the active snapshot.  Returns false if there is no base, or if this snapshot
 * cannot use it: then the engine has to be asked.  make: make a base now if there is none, because the engine would
 * need all references anyway.
 */
extern bool geonn_live_look(LiveReferences *references, const PointSource *source, const PlainTable *table,
							bool make);

/*
 * Return whether geonn_live_look() is likely to find a base, or to make one if it is told to.  The engine has no
 * dataset of such references, and would have to read them all.
 */
extern bool geonn_live_is_likely(LiveReferences *references, const PointSource *source);

/*
 * Return whether all references, as the answer to one point, would fit within the limits for this process.  To be
 * called after a look.
 */
extern bool geonn_live_has_room_for_all(const LiveReferences *references);

/* Return the references as the last look saw them; and their groups, NULL if they have none. */
extern const LiveTable *geonn_live_table(const LiveReferences *references);
extern GeonnGroups *geonn_live_groups(const LiveReferences *references);

/*
 * Note that the engine answers a call, how many milliseconds that takes, which a base would save, and how many references
 * it has.
 */
extern void geonn_live_note_engine(LiveReferences *references, double milliseconds, uint64 count);

/* Note the present call, which this process has answered. */
extern void geonn_live_note_call(LiveReferences *references, const struct geonn_finished *work);

#endif							/* GEONN_LIVE_H */
