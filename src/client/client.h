/*
 * client.h
 *		A session with the engine: references in, observations in, pairs out.
 *
 * First every reference is added and the dataset sealed, then observations
 * are added while pairs are taken:
 *
 *	client = geonn_client_open(question, label, call);
 *	geonn_client_add_references(client, 1, ...) for each;
 *	geonn_client_seal(client);
 *	for each observation:
 *		while (geonn_client_places(client) == 0)
 *			take pairs, and wait for them
 *		geonn_client_add_observations(client, 1, ...)
 *	geonn_client_finish(client);
 *	take pairs, waiting for them, until none is left
 *
 * Once the dataset is sealed, other processes may attach to it and add
 * observations of their own.  What they need of the references besides the tags
 * is in files, which must be left with the dataset before it is sealed.  A
 * dataset lives as long as any process has a client of it, and longer if the
 * engine keeps it.
 *
 * The client lives as long as the memory context that was current when it was
 * opened.  When that context is deleted, by an error too, the engine frees the
 * session.
 */
#ifndef GEONN_CLIENT_H
#define GEONN_CLIENT_H

#include "client/block.h"
#include "client/memory_file.h"
#include "client/question.h"
#include "common/protocol.h"
#include "base/point_limits.h"

/*
 * Open a client of a new dataset; if the engine keeps a dataset under one of these labels, attach to that
 * dataset instead.  `count` is at most GEONN_LABELS_MAX; a new dataset gets the first label's subject.  The
 * engine counts the client's work for `call`.
 */
extern GeonnClient *geonn_client_open(const GeonnQuestion *question,
									  const struct geonn_label *labels, int count,
									  const struct geonn_call *call);

/*
 * Open a client of the kept dataset with this label's subject, whatever its version.  If the engine keeps none, the
 * dataset is new, and not sealed.
 */
extern GeonnClient *geonn_client_find(const GeonnQuestion *question, const struct geonn_label *label,
									  const struct geonn_call *call);

/* Return whether the dataset is sealed.  A sealed dataset takes no more references. */
extern bool geonn_client_is_sealed(const GeonnClient *client);

/*
 * Have the engine keep the dataset once it is sealed, under the subject with which it was opened and this version
 * [GEONN_VERSION_BYTES], with a note of at most GEONN_NOTE_BYTES.
 */
extern void geonn_client_keep(GeonnClient *client, const void *version, const void *note, Size bytes);

/* Return the engine's answer when this client sealed the dataset: it says whether the engine keeps the dataset. */
extern const struct geonn_sealed *geonn_client_sealing(const GeonnClient *client);

/* Return the note of the kept dataset, [GEONN_NOTE_BYTES]. */
extern const void *geonn_client_note(const GeonnClient *client);

/*
 * Attach to a dataset that another client has sealed.  The question must have the metric and the
 * columns with which the dataset was opened.
 */
extern GeonnClient *geonn_client_attach(const GeonnQuestion *question, uint64 dataset,
										const struct geonn_call *call);

/* Return the sealed dataset's number, for geonn_client_attach; the engine never uses a number twice. */
extern uint64 geonn_client_dataset(const GeonnClient *client);

/* Return the number of references of a sealed dataset. */
extern uint64 geonn_client_references(const GeonnClient *client);

/* Leave a sealed memory file with the dataset, at most one of each kind (enum geonn_file_kind). */
extern void geonn_client_leave_file(GeonnClient *client, int kind, const MemoryFile *file);

/*
 * Take the file of this kind that another client left with the dataset.  The file is closed with
 * the current memory context; `purpose` is as in geonn_memory_file_create.
 */
extern MemoryFile *geonn_client_take_file(GeonnClient *client, int kind, const char *purpose);

/* A point's values in the columns of the question.  If the question lacks a column, its field is not read. */
typedef struct GeonnPointColumns
{
	int32		group;
	int32		party[GEONN_PARTIES_MAX];
	int64		excluded_first; /* the first tag that an observation excludes */
	int64		excluded_last;	/* the last tag that an observation excludes; less than the first: it excludes none */
	const GeonnLimits *limits;	/* NULL: nothing limits the point */

	/* fields of a reference that is an arc of a shape (protocol_dataset.h) */
	double		end_latitude;
	double		end_longitude;
	int32		shape;
	int32		polygon;
	int32		segment;
	int32		part_end;
	double		measure;
	double		end_measure;
} GeonnPointColumns;

/*
 * Add references; the caller has checked that their coordinates are valid.  Waits while the ring is full.  `columns` has
 * an element for each reference, or is NULL if the question has no columns of references.
 */
extern void geonn_client_add_references(GeonnClient *client, uint32 rows, const int64 *tags,
										const double *latitudes, const double *longitudes,
										const GeonnPointColumns *columns);

/*
 * Seal the dataset.  in_order: the references keep the order in which they were added; otherwise the
 * engine sorts them by (tag, latitude, longitude).
 */
extern void geonn_client_seal(GeonnClient *client, bool in_order);

/* Return how many observations, or arcs of shapes, can be added before the caller must take pairs. */
extern uint32 geonn_client_places(GeonnClient *client);

/*
 * Add observations, at most geonn_client_places().  The client copies the ids.  `columns` has an
 * element for each observation, or is NULL if the question has no columns.
 */
extern void geonn_client_add_observations(GeonnClient *client, uint32 rows, const Datum *ids,
										  const double *latitudes, const double *longitudes,
										  const GeonnPointColumns *columns);

/*
 * For observations that are shapes: find room in one batch for this many arcs, 1 ... GEONN_BATCH_ROWS_MAX.  Returns false if
 * the caller must take pairs first.  Raises an error if the engine has no memory for so large a batch.
 */
extern bool geonn_client_find_room(GeonnClient *client, uint32 arcs);

/* Return how many observations the batch has that is being filled. */
extern uint32 geonn_client_filled(const GeonnClient *client);

/*
 * Add arcs of the next observation, after geonn_client_find_room(); then end the observation, for which the engine takes so many
 * bytes beside the batch.  The client copies the id.
 */
extern void geonn_client_add_arcs(GeonnClient *client, uint32 rows, const double *latitudes, const double *longitudes,
								  const GeonnPointColumns *columns);
extern void geonn_client_end_shape(GeonnClient *client, Datum id, uint64 bytes);

/* Return the sum of these bytes over the batches whose pairs the caller has not all taken, the one being filled included. */
extern uint64 geonn_client_shape_bytes(const GeonnClient *client);

/*
 * For a question about clusters: ask about the references themselves, of which the sealed dataset must have some, in place of
 * adding observations.  Their pairs come in the order of the references; a pair's distance is the number of its cluster
 * (protocol_search.h).
 */
extern void geonn_client_ask_for_clusters(GeonnClient *client);

/*
 * For a question that assigns: ask for the observations of this sealed dataset, of which some must be there, as must references.
 * Blocks have observations in their order, at each second index: their tags are their ids.
 */
extern void geonn_client_ask_to_assign(GeonnClient *client, const GeonnClient *observations);

/* Tell the client that no more observations come; the client sends the last batch. */
extern void geonn_client_finish(GeonnClient *client);

/* Send the observations added so far, because the next ones will come only later. */
extern void geonn_client_flush(GeonnClient *client);

/*
 * Expect this many observations: from now on batches have enough rows that the ring takes all observations at once, unless
 * each may have many pairs.
 */
extern void geonn_client_expect(GeonnClient *client, uint64 rows);

/*
 * Go on to the next pair, and return the block whose present pair it is.  With wait, returns NULL once the caller has taken
 * all pairs of the observations that were sent; without wait, also as long as no answer has come.  The block's arrays, and
 * what ids point to, are valid until a later call goes on to the next block.
 */
extern GeonnBlock *geonn_client_next_pair(GeonnClient *client, bool wait);

/* Return the figures of the engine's work for this client so far. */
extern GeonnWork geonn_client_work(const GeonnClient *client);

/*
 * Send the engine the figures of this client's part of the call.  If no search is under way, keep the
 * session for this process's next call.  Raises no error; the client cannot be used afterwards.
 */
extern void geonn_client_end(GeonnClient *client, const struct geonn_finished *finished);

#endif							/* GEONN_CLIENT_H */
