/*
 * hostile_engine.h
 *		An engine that answers a client, and lies where a step has it lie.
 *
 * The fuzzer of the client has it follow libFuzzer's scripts (client_fuzzer.c), and the
 * program lying_engine.c its own.
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
	LIE_CANCEL,					/* the fuzzer's: the client's statement is cancelled */
	LIE_CLOSE,
	LIE_QUEUED,					/* a session has to wait */
	LIES
};

/* bits of a step's how */
#define HOW_GOES_ON		4u		/* the next step follows without a turn of the client's */
#define HOW_DESCRIPTOR	8u		/* another descriptor than there should be, or none */
#define HOW_ODD			16u		/* what a file or a list of counts says is spoiled */
#define HOW_KEPT		32u		/* a dataset with a label, or an odd one, has been kept;
								 * of the messages that say so the step's slot chooses
								 * the one that it spoils: a file's, or opened */

/* references of a dataset that it says to have kept: their ids are the texts "id 0" ... */
#define KEPT_REFERENCES 4

/*
 * Talk at this socket, which does not block, with a client that is new.  Kept groups have
 * this hash, and the key 0.
 */
extern void hostile_engine_accept(int socket, uint32_t hash);

/* Take in what the client has sent.  Returns whether the two still talk. */
extern bool hostile_engine_listen(void);

/* The type of the request that has waited longest for its answer, or 0. */
extern int	hostile_engine_request(void);

/* Do a step; a step of zeros answers that request truly. */
extern void hostile_engine_do(const struct step *step);

/* Let go of the client and all that it had. */
extern void hostile_engine_leave(void);

#endif							/* GEONN_HOSTILE_ENGINE_H */
