/*
 * steps.h
 *		What a hostile peer does: a script of steps.
 *
 * An input of libFuzzer's is a script: steps of a fixed size, which any bytes are.
 * lying_engine.c has scripts of its own.  A step is an action of a fuzzer's own, its
 * numbers, and whether the message that it sends is spoiled.  Unspoiled, a message is as
 * the state of the conversation wants it; so random scripts get past the first answer,
 * and lie in the midst of what is true.
 */
#ifndef GEONN_FUZZ_STEPS_H
#define GEONN_FUZZ_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/protocol.h"

/* bits of step.how; the others are the fuzzer's */
#define STEP_SPOILED	1u		/* bytes of the message are others */
#define STEP_CUT		2u		/* the message has another length */
#define STEP_MORE		64u		/* what is spoiled is larger by the value */

struct step
{
	uint8_t		action;
	uint8_t		peer;			/* which client acts, in engine_fuzzer.c */
	uint8_t		slot;
	uint8_t		how;
	uint32_t	numbers[2];
	uint16_t	place;			/* of what is spoiled in the message, or its length */
	uint16_t	width;			/* of that, a power of two */
	uint8_t		value[8];		/* that stands there then */
};

/* the fuzzer's, for mutator.c: the actions of a sound conversation, in their order */
extern const uint8_t steps_conversation[];
extern const size_t steps_conversation_length;

/* How many steps so many bytes hold. */
extern size_t steps_count(size_t size);

/* The step of this number. */
extern struct step steps_get(const uint8_t *data, size_t number);

/*
 * Write a message of this type, of which content has all but the header, spoilt as the step
 * says; *length is its bytes.
 */
extern void steps_write(const struct step *step, int type, const void *content,
						union geonn_message *message, size_t *length);

/* End the program with a message that says which property of the other side is broken. */
extern void steps_broken(const char *property) __attribute__((noreturn));

#endif							/* GEONN_FUZZ_STEPS_H */
