/*
 * mutator.c
 *		Random scripts for libFuzzer: whole steps are put in, taken out, repeated and
 *		changed.
 */
#include <string.h>

#include "../../lib/random.h"
#include "steps.h"

/* libFuzzer's: change bytes as it thinks fit; and what it calls, if linked */
extern size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
extern size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
									  unsigned int seed);
extern size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_size,
										const uint8_t *second, size_t second_size,
										uint8_t *out, size_t max_out_size, unsigned int seed);

/* numbers at which something begins or ends */
static const uint64_t edges[] = {
	0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 63, 64, 65, 127, 128, 255, 256, 257, 1023, 1024, 1025,
	4095, 4096, 65535, 65536, 1 << 20, 1 << 22, (1 << 22) + 1,
	INT32_MAX, (uint64_t) INT32_MAX + 1, UINT32_MAX, (uint64_t) UINT32_MAX + 1,
	INT64_MAX, (uint64_t) INT64_MAX + 1, UINT64_MAX,
	0x7FF0000000000000,			/* infinity */
	0xFFF0000000000000,
	0x7FF8000000000000,			/* not a number */
	0x4056800000000000,			/* 90.0 */
	0x4056800000000001,
	0x4066800000000000,			/* 180.0 */
	0xC066800000000000,
	0x4076800000000000,			/* 360.0 */
	0x8000000000000000			/* -0.0 */
};

#define EDGES ((int) (sizeof(edges) / sizeof(edges[0])))

static void
put(uint8_t *data, size_t number, const struct step *step)
{
	memcpy(data + number * sizeof(*step), step, sizeof(*step));
}

static uint64_t
random_number(void)
{
	return random_below(3) > 0 ? edges[random_below(EDGES)] : random_bits() >> random_below(64);
}

/*
 * A step of one of the conversation's actions, most often a sound one.
 */
static struct step
random_step(void)
{
	uint64_t	value = random_number();
	struct step step = {
		.action = random_below(2) ? (uint8_t) random_bits() :
		steps_conversation[random_below((int) steps_conversation_length)],
		.peer = (uint8_t) random_below(4),
		.slot = (uint8_t) random_below(5),
		.how = random_below(2) ? (uint8_t) random_bits() : 0,
		.numbers = {(uint32_t) random_number(), (uint32_t) random_number()},
		.place = (uint16_t) random_bits(),
		.width = (uint16_t) random_below(4)
	};

	memcpy(step.value, &value, sizeof(step.value));
	return step;
}

/*
 * Make a gap of so many steps, or fewer where they would be too many.  Returns how many.
 */
static size_t
make_gap(uint8_t *data, size_t *count, size_t most, size_t at, size_t length)
{
	if (length > most - *count)
		length = most - *count;
	memmove(data + (at + length) * sizeof(struct step), data + at * sizeof(struct step),
			(*count - at) * sizeof(struct step));
	*count += length;
	return length;
}

/*
 * Put in a whole conversation.
 */
static void
put_conversation(uint8_t *data, size_t *count, size_t most, size_t at)
{
	uint8_t		peer = (uint8_t) random_below(4);
	size_t		length = make_gap(data, count, most, at, steps_conversation_length);

	for (size_t i = 0; i < length; i++)
	{
		struct step step = random_step();

		step.action = steps_conversation[i];
		step.peer = peer;
		step.how = 0;
		put(data, at + i, &step);
	}
}

static void
change_step(uint8_t *data, size_t at)
{
	struct step step = steps_get(data, at);
	struct step other = random_step();

	switch (random_below(6))
	{
		case 0:
			step.action = other.action;
			break;
		case 1:
			step.numbers[random_below(2)] = other.numbers[0];
			break;
		case 2:
			step.how |= STEP_SPOILED;
			step.place = other.place;
			step.width = other.width;
			memcpy(step.value, other.value, sizeof(step.value));
			break;
		case 3:
			step.how ^= (uint8_t) (1 << random_below(8));
			break;
		case 4:
			step.peer = other.peer;
			step.slot = other.slot;
			break;
		default:
			LLVMFuzzerMutate((uint8_t *) &step, sizeof(step), sizeof(step));
			break;
	}
	put(data, at, &step);
}

static void
mutate(uint8_t *data, size_t *count, size_t most)
{
	size_t		at = (size_t) random_below((int) *count + 1);
	size_t		length;
	struct step step = random_step();
	struct step copies[8];

	if (*count == 0 || random_below(16) == 0)
	{
		put_conversation(data, count, most, at);
		return;
	}
	if (random_below(4) == 0)
	{
		if (make_gap(data, count, most, at, 1) > 0)
			put(data, at, &step);
		return;
	}
	at = (size_t) random_below((int) *count);
	length = 1 + (size_t) random_below(8);
	if (length > *count - at)
		length = *count - at;
	switch (random_below(8))
	{
		case 0:
			memmove(data + at * sizeof(step), data + (at + length) * sizeof(step),
					(*count - at - length) * sizeof(step));
			*count -= length;
			break;
		case 1:
			memcpy(copies, data + at * sizeof(step), length * sizeof(step));
			at = (size_t) random_below((int) *count + 1);
			length = make_gap(data, count, most, at, length);
			memcpy(data + at * sizeof(step), copies, length * sizeof(step));
			break;
		default:
			change_step(data, at);
			break;
	}
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t		count = steps_count(size);
	size_t		most = steps_count(max_size);

	if (most == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	random_state = seed;
	for (int i = random_below(4); i >= 0; i--)
		mutate(data, &count, most);
	return count * sizeof(struct step);
}

/*
 * The beginning of one script, and the end of another one.
 */
size_t
LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_size, const uint8_t *second,
						  size_t second_size, uint8_t *out, size_t max_out_size,
						  unsigned int seed)
{
	size_t		most = steps_count(max_out_size);
	size_t		head;
	size_t		from;
	size_t		tail;

	random_state = seed;
	head = (size_t) random_below((int) steps_count(first_size) + 1);
	from = (size_t) random_below((int) steps_count(second_size) + 1);
	tail = steps_count(second_size) - from;
	if (head > most)
		head = most;
	if (tail > most - head)
		tail = most - head;
	memcpy(out, first, head * sizeof(struct step));
	memcpy(out + head * sizeof(struct step), second + from * sizeof(struct step),
		   tail * sizeof(struct step));
	return (head + tail) * sizeof(struct step);
}
