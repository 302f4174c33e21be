/*
 * reference_fate.h
 *		What can become of a call's references: fates, which geonn_join_prepare tries in the order of a table.
 *
 * Each row of the table is a function, which prepares the join, or says why it cannot.  src/module.c registers them in
 * their order; so the core names none of the rooms that have them.
 */
#ifndef GEONN_REFERENCE_FATE_H
#define GEONN_REFERENCE_FATE_H

#include "join/join_prepare.h"

/* A join under preparation, and what each fate leaves for the next ones. */
typedef struct JoinPreparation
{
	const GeonnJoin *join;
	const PlainTable *table;	/* the references are all rows of this table; NULL: they come from elsewhere */
	ReferenceDetail detail;		/* the data that the references need */
	struct geonn_call message;	/* tells the engine of the call */
	bool		(*are_few) (void *state);	/* as for geonn_join_prepare */
	void	   *state;
	PreparedJoin *prepared;		/* the prepared join; its client is NULL until a fate asks the engine */
	void	   *known;			/* what this process knows of the table already; NULL: nothing */
	struct geonn_label labels[GEONN_LABELS_MAX];
	int			label_count;	/* 0: the engine can keep no dataset of the table's present state */
} JoinPreparation;

typedef struct ReferenceFate
{
	const char *name;

	/* Prepare the join, and return NULL; or return the reason why the next fate has to do it. */
	const char *(*prepare) (JoinPreparation *preparation);

	/*
	 * Have the engine keep references that were read and are not sealed yet.  Returns false if the engine cannot.  NULL:
	 * the fate keeps none.
	 */
	bool		(*keep) (const JoinPreparation *preparation, ReferenceMemory *memory);

	/*
	 * Note that the engine answers the call, and how many milliseconds passed until the engine had the references.  NULL:
	 * the fate has nothing to note.
	 */
	void		(*note_engine) (const JoinPreparation *preparation, double milliseconds);

	/* Have the engine count the calls that this process has answered without the engine.  NULL: the fate answers none. */
	void		(*count_calls) (void);
} ReferenceFate;

/* Add a fate behind those registered before; to be called when the module is loaded. */
extern void geonn_register_reference_fate(const ReferenceFate *fate);

/* The last fate, which always works: this process reads the references, and sends them to the engine. */
extern const ReferenceFate geonn_read_fate;

/*
 * Create empty references and groups.  With NULL as memory, attach to the references and groups of the
 * client's sealed dataset.
 */
extern void geonn_begin_references(const GeonnJoin *join, ReferenceDetail detail, PreparedJoin *prepared,
								   ReferenceMemory *memory);

/* Report invalid references just as a reading one by one would; counts is by PointStatus. */
extern void geonn_tell_of_references(const GeonnJoin *join, const uint64 *counts);

#endif							/* GEONN_REFERENCE_FATE_H */
