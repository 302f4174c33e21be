/*
 * hostile_engine.h
 *		An engine that answers a client as a script has it lie.
 */
#ifndef GEONN_HOSTILE_ENGINE_H
#define GEONN_HOSTILE_ENGINE_H

#include "steps.h"

/* what a step can have it do */
enum lie
{
	LIE_ANSWER,					/* answer a message that waits for that */
	LIE_ANSWER_LAST,			/* the last one that came */
	LIE_UNASKED,				/* a message of any type */
	LIE_ERROR,					/* an error, with texts that do not end */
	LIE_MEMORY,					/* change numbers of a batch */
	LIE_SCRIBBLE,				/* from now on a batch changes all the time */
	LIE_NOISE,					/* bytes that are no message, or none at all */
	LIE_SILENT,					/* say nothing this time */
	LIE_CANCEL,					/* the client's statement is cancelled */
	LIE_CLOSE,
	LIE_QUEUED,					/* a session has to wait */
	LIES
};

/* bits of a step's how */
#define HOW_GOES_ON		4u		/* the next step follows without a turn of the client's */
#define HOW_DESCRIPTOR	8u		/* another descriptor than there should be, or none */
#define HOW_ODD			16u		/* what a file or a list of counts says is spoiled */
#define HOW_KEPT		32u		/* a dataset with a label has been kept */

/* Begin to follow a script of so many bytes, whose first step is the client's own. */
extern void hostile_engine_begin(const uint8_t *data, size_t size);

/* Let go of all. */
extern void hostile_engine_end(void);

#endif							/* GEONN_HOSTILE_ENGINE_H */
