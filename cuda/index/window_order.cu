/*
 * window_order.cu
 *		Chooses classes and slabs of windows for a dataset, on the host.
 */
#include "cuda/index/window_order.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern "C"
{
#include "engine/search/device.h"
#include "engine/search/index_shape.h"
}

/* the greatest number of references in the sample by which the order is chosen */
#define SAMPLE_MAX 16384

/* f S (window_order.cuh): a class should have this many slabs for each window's length that its extent holds. */
#define SLABS_OVERLAPPED (1.0 / 3.0)

/* A class has at least this part of the sample; a smaller one is joined with the next longer class. */
#define CLASS_PARTS_MIN (1.0 / 64.0)

/* A step becomes a slab of its own only if the sample has, on average, at least this many windows of each step. */
#define STEP_SAMPLES_MIN 8

/*
 * A slab has, on average, at least SLAB_REFERENCES_MIN references of one group; a slab that is a single step, at least
 * STEP_REFERENCES_MIN.
 */
#define SLAB_REFERENCES_MIN (16 * INDEX_WIDTH)
#define STEP_REFERENCES_MIN (4 * INDEX_WIDTH)

struct sample
{
	uint32_t	count;
	double		references;		/* how many references of one group each sampled reference stands
								 * for */
	double		observed;		/* the length of the observations' windows */
	uint8_t		bits[SAMPLE_MAX];	/* how many bits the length of the window has */
	int64_t		low[SAMPLE_MAX];
	int64_t		high[SAMPLE_MAX];
};

static int
compare_values(const void *left, const void *right)
{
	int64_t		a = *(const int64_t *) left;
	int64_t		b = *(const int64_t *) right;

	return (a > b) - (a < b);
}

/* Return how many different values a sorted column has. */
static uint32_t
count_different(const int64_t *sorted, uint32_t count)
{
	uint32_t	different = count > 0;

	for (uint32_t i = 1; i < count; i++)
		different += sorted[i] != sorted[i - 1];
	return different;
}

static size_t
place_of(const struct dataset *dataset, uint32_t i, uint32_t count)
{
	return (size_t) ((double) dataset->count / count * i);
}

/*
 * Take the sample of a window.
 */
static void
take_sample(const struct search *search, uint32_t window, struct sample *sample)
{
	const struct dataset *dataset = search->dataset;

	sample->count = dataset->count < SAMPLE_MAX ? (uint32_t) dataset->count : SAMPLE_MAX;
	for (uint32_t i = 0; i < sample->count; i++)
	{
		size_t		place = place_of(dataset, i, sample->count);

		sample->low[i] = dataset->low[window][place];
		sample->high[i] = dataset->high[window][place];
		sample->bits[i] = (uint8_t) window_length_bits(sample->low[i], sample->high[i]);
	}
	sample->observed = (double) window_lengths_observed(search, (int) window);
}

/* Return the length of the range of the values, after 1 % of them at either end is left out. */
static double
extent_of(const int64_t *sorted, uint32_t count)
{
	return (double) sorted[count - 1 - count / 100] - (double) sorted[count / 100];
}

/* Return how many groups the sample of a dataset has; the whole dataset may have more. */
static uint32_t
count_groups(const struct dataset *dataset, int64_t *scratch)
{
	uint32_t	count = dataset->count < SAMPLE_MAX ? (uint32_t) dataset->count : SAMPLE_MAX;

	if (dataset->group == NULL)
		return 1;
	for (uint32_t i = 0; i < count; i++)
		scratch[i] = dataset->group[place_of(dataset, i, count)];
	qsort(scratch, count, sizeof(int64_t), compare_values);
	return count_different(scratch, count);
}

/* Return how many slabs a class should get; low has the sorted lows of its windows. */
static uint32_t
count_slabs(const struct sample *sample, int class_number, const int64_t *low, uint32_t count)
{
	uint32_t	steps = count_different(low, count);
	double		references = count * sample->references;
	double		extent = extent_of(low, count);
	double		length = sample->observed + ldexp(0.75, class_number);
	double		slabs = fmin(SLABS_OVERLAPPED * extent / length, references / SLAB_REFERENCES_MIN);

	if (count >= STEP_SAMPLES_MIN * steps && references >= (double) STEP_REFERENCES_MIN * steps &&
		sample->observed * steps <= extent)
		return steps;
	return slabs < 1.0 ? 1 : slabs > WINDOW_SLABS_MAX ? WINDOW_SLABS_MAX : (uint32_t) slabs;
}

/*
 * Set where the slabs of a class begin: at each different value of the lows, if slabs are enough for that; otherwise so that
 * each slab has about the same part of the sample.  Equal values share a slab.  Returns the number of slabs.
 */
static uint32_t
begin_slabs(const int64_t *low, uint32_t count, uint32_t slabs, int64_t *begin)
{
	bool		is_steps = count_different(low, count) <= slabs;
	uint32_t	begun = 0;

	for (uint32_t i = 0; i < (is_steps ? count : slabs); i++)
	{
		int64_t		value = is_steps ? low[i] : low[(uint64_t) i * count / slabs];

		if (begun == 0 || value != begin[begun - 1])
			begin[begun++] = value;
	}
	return begun;
}

/* List the lows of the windows of a class: of those windows whose length has `shortest` to `longest` bits. */
static uint32_t
list_lows(const struct sample *sample, int shortest, int longest, int64_t *low)
{
	uint32_t	count = 0;

	for (uint32_t i = 0; i < sample->count; i++)
		if (sample->bits[i] >= shortest && sample->bits[i] <= longest)
			low[count++] = sample->low[i];
	return count;
}

/*
 * Return how many slabs a class gets that wants `slabs`, after other classes have taken `used`: at
 * least 1, and at most half of the slabs that are left when one is set aside for each class.
 */
static uint32_t
fit_slabs(uint32_t slabs, uint32_t used)
{
	uint32_t	room = used + WINDOW_CLASSES < WINDOW_SLABS_MAX ?
		(WINDOW_SLABS_MAX - WINDOW_CLASSES - used) / 2 : 0;

	if (slabs > room)
		slabs = room;
	return slabs > 0 ? slabs : 1;
}

/*
 * Give the classes their slabs, the longest first.
 */
static void
begin_classes(const struct sample *sample, int64_t *low, struct window_order *order)
{
	uint32_t	largest = 0;
	uint32_t	used = 0;

	for (int longest = WINDOW_CLASSES - 1, shortest = longest; longest >= 0; longest = shortest - 1)
	{
		uint32_t	count;
		uint32_t	slabs;

		shortest = longest;
		while (shortest > 0 && order->class_of[shortest - 1] == longest)
			shortest--;
		count = list_lows(sample, shortest, longest, low);
		order->first[longest] = used;
		order->slabs[longest] = 1;
		order->begin[used] = 0;
		if (count > 0)
		{
			qsort(low, count, sizeof(int64_t), compare_values);
			slabs = count_slabs(sample, longest, low, count);
			order->slabs[longest] = begin_slabs(low, count, fit_slabs(slabs, used),
												order->begin + used);
		}
		used += order->slabs[longest];
		if (count > largest)
		{
			largest = count;
			order->main_class = (uint32_t) longest;
		}
	}
}

void
window_order_choose(const struct search *search, struct window_order *order)
{
	const struct dataset *dataset = search->dataset;
	struct sample *sample = (struct sample *) malloc(sizeof(*sample));
	int64_t    *scratch = (int64_t *) malloc(SAMPLE_MAX * sizeof(*scratch));

	memset(order, 0, sizeof(*order));
	order->slabs[0] = 1;		/* if memory is short, the order stays one slab of one class */
	order->window = (uint32_t) window_lengths_choose(search);
	if (sample != NULL && scratch != NULL)
	{
		uint32_t	count[WINDOW_CLASSES] = {};

		take_sample(search, order->window, sample);
		sample->references = (double) dataset->count / sample->count /
			count_groups(dataset, scratch);
		for (uint32_t i = 0; i < sample->count; i++)
			count[sample->bits[i]]++;
		window_lengths_divide(count, (uint32_t) ceil(CLASS_PARTS_MIN * sample->count), 1,
							  order->class_of);
		begin_classes(sample, scratch, order);
	}
	free(sample);
	free(scratch);
}
