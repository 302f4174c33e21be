/*
 * steps.c
 *		What a hostile peer does: a script of steps.
 */
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct step) == 24, "a step has no padding");

size_t
steps_count(size_t size)
{
	return size / sizeof(struct step);
}

struct step
steps_get(const uint8_t *data, size_t number)
{
	struct step step;

	memcpy(&step, data + number * sizeof(step), sizeof(step));
	return step;
}

void
steps_write(const struct step *step, int type, const void *content,
			union geonn_message *message, size_t *length)
{
	*length = geonn_message_size(type);
	memset(message, 0, sizeof(*message));
	memcpy(message, content, *length);
	message->header = (struct geonn_header) {
		.magic = GEONN_PROTOCOL_MAGIC,
		.version = GEONN_PROTOCOL_VERSION,
		.type = (uint16_t) type
	};
	if (step->how & STEP_SPOILED)
	{
		size_t		width = (size_t) 1 << step->width % 4;
		size_t		place = step->place % (*length / width) * width;
		uint64_t	present = 0;
		uint64_t	value = 0;

		memcpy(&present, (uint8_t *) message + place, width);
		memcpy(&value, step->value, width);
		value += step->how & STEP_MORE ? present : 0;
		memcpy((uint8_t *) message + place, &value, width);
	}
	if (step->how & STEP_CUT)
		*length = 1 + step->place % sizeof(*message);
}

void
steps_broken(const char *property)
{
	fprintf(stderr, "broken: %s\n", property);
	abort();
}
