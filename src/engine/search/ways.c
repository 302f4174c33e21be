/*
 * ways.c
 *		Which way of which device answers a question.
 */
#include "engine/search/ways.h"

#include "common/assertion.h"
#include "common/metric.h"
#include "engine/search/backends.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A GPU's index has up to 2^31 arcs, and may need two for one long arc of the dataset (cuda/arcs/arcs.cuh). */
#define GPU_ARCS_MAX ((size_t) 1 << 30)

#define TRAITS_ALL ((1u << TRAITS) - 1)

/* the conditions that the arguments by, exclude_self, overlaps and radius set */
#define CONDITIONS (TRAIT_GROUPS | TRAIT_EXCLUDED | TRAIT_WINDOWS | TRAIT_RADIUS)

/* The ways, in the order in which a search tries them.  The CPU has a way for each search. */
static const struct
{
	enum geonn_device_kind kind;
	enum way	way;
	enum geonn_way first;		/* how it answers */
	enum geonn_way last;		/* and later */
	uint32_t	needs;			/* traits that a search must have */
	uint32_t	takes;			/* traits that a search may have besides */
	size_t		references;		/* the most references that the way takes; 0: any number */
}			ways[] = {
	{GEONN_KIND_CUDA, WAY_GPU_NEAREST, GEONN_WAY_BRUTE, GEONN_WAY_BRUTE,
		TRAIT_ONE | TRAIT_BRUTE, 0, 0},
	{GEONN_KIND_CUDA, WAY_GPU_NEAREST, GEONN_WAY_INDEX, GEONN_WAY_INDEX,
		TRAIT_ONE, 0, 0},
	{GEONN_KIND_CUDA, WAY_GPU_NEAREST, GEONN_WAY_ARCS, GEONN_WAY_ARCS,
		TRAIT_ONE | TRAIT_ARCS, 0, GPU_ARCS_MAX},
	{GEONN_KIND_CUDA, WAY_GPU_SHAPES_WITHIN, GEONN_WAY_ARCS, GEONN_WAY_ARCS,
		TRAIT_ALL | TRAIT_ARCS, 0, GPU_ARCS_MAX},
	{GEONN_KIND_CUDA, WAY_GPU_NEIGHBOURS, GEONN_WAY_INDEX, GEONN_WAY_INDEX,
		TRAIT_COUNTS, TRAIT_GROUPS | TRAIT_EXCLUDED | TRAIT_WEIGHTS, 0},
	{GEONN_KIND_CUDA, WAY_GPU_NEIGHBOURS, GEONN_WAY_INDEX, GEONN_WAY_INDEX,
		0, TRAIT_ONE | TRAIT_SEVERAL | TRAIT_ALL | TRAIT_TIES | CONDITIONS | TRAIT_WEIGHTS, 0},
	{GEONN_KIND_CPU, WAY_CPU_CLUSTERS, GEONN_WAY_INDEX, GEONN_WAY_INDEX,
		TRAIT_CLUSTERS, TRAITS_ALL, 0},
	{GEONN_KIND_CPU, WAY_CPU_ASSIGN, GEONN_WAY_INDEX, GEONN_WAY_INDEX,
		TRAIT_ASSIGNS, TRAITS_ALL, 0},
	{GEONN_KIND_CPU, WAY_CPU_COUNTS, GEONN_WAY_ARCS, GEONN_WAY_ARCS,
		TRAIT_COUNTS | TRAIT_ARCS, TRAITS_ALL, 0},
	{GEONN_KIND_CPU, WAY_CPU_COUNTS, GEONN_WAY_INDEX, GEONN_WAY_INDEX,
		TRAIT_COUNTS, TRAITS_ALL, 0},
	{GEONN_KIND_CPU, WAY_CPU_PAIRS, GEONN_WAY_ARCS, GEONN_WAY_ARCS,
		TRAIT_ARCS, TRAITS_ALL, 0},
	{GEONN_KIND_CPU, WAY_CPU_SQUARES, GEONN_WAY_INDEX, GEONN_WAY_SQUARES,
		TRAIT_ONE, 0, 0},
	{GEONN_KIND_CPU, WAY_CPU_PAIRS, GEONN_WAY_BRUTE, GEONN_WAY_BRUTE,
		TRAIT_BRUTE, TRAITS_ALL, 0},
	{GEONN_KIND_CPU, WAY_CPU_PAIRS, GEONN_WAY_INDEX, GEONN_WAY_INDEX,
		0, TRAITS_ALL, 0}
};

/* The questions in the table that --ways prints for readers. */
static const struct
{
	const char *words;
	uint32_t	traits;
}			questions[] = {
	{"the nearest reference", TRAIT_ONE},
	{"the nearest with `algorithm => 'brute'`", TRAIT_ONE | TRAIT_BRUTE},
	{"the nearest with `by`, `exclude_self`, `overlaps` or radiuses", TRAIT_ONE | CONDITIONS},
	{"k neighbours, ties, with these conditions or without", TRAIT_SEVERAL | TRAIT_TIES | CONDITIONS},
	{"all within a distance, with these conditions or without", TRAIT_ALL | CONDITIONS},
	{"k neighbours and all within a distance with `algorithm => 'brute'`", TRAIT_SEVERAL | TRAIT_BRUTE},
	{"pairs with `differs`", TRAIT_ONE | TRAIT_PARTIES},
	{"counts and sums within radii, with `by` and `exclude_self` or without", TRAIT_COUNTS | TRAIT_WEIGHTS | TRAIT_GROUPS | TRAIT_EXCLUDED},
	{"counts and sums with `overlaps`, radiuses or `differs`", TRAIT_COUNTS | TRAIT_WEIGHTS | TRAIT_WINDOWS},
	{"the least and the greatest weight within radii", TRAIT_COUNTS | TRAIT_WEIGHTS | TRAIT_EXTREMES},
	{"clusters, thinning", TRAIT_CLUSTERS | TRAIT_GROUPS | TRAIT_WINDOWS | TRAIT_WEIGHTS},
	{"assignments, with conditions or without", TRAIT_ASSIGNS | CONDITIONS},
	{"the nearest line or polygon", TRAIT_ONE | TRAIT_ARCS},
	{"all lines or polygons within a distance", TRAIT_ALL | TRAIT_ARCS},
	{"several lines or polygons, with conditions, their nearest places, counts of them", TRAIT_SEVERAL | TRAIT_ARCS},
	{"any question that lines or polygons ask", TRAIT_ONE | TRAIT_ARCS | TRAIT_SHAPES},
	{"any question about points with `metric => 'spheroid'`", TRAIT_ONE | TRAIT_SPHEROID}
};

static const struct
{
	uint32_t	columns;
	uint32_t	trait;
}			column_traits[] = {
	{GEONN_COLUMN_GROUP, TRAIT_GROUPS},
	{GEONN_COLUMN_EXCLUDED, TRAIT_EXCLUDED},
	{GEONN_COLUMN_RADIUS, TRAIT_RADIUS},
	{GEONN_COLUMNS_WINDOWS, TRAIT_WINDOWS},
	{GEONN_COLUMNS_WEIGHTS, TRAIT_WEIGHTS},
	{GEONN_COLUMNS_PARTIES, TRAIT_PARTIES},
	{GEONN_COLUMN_ARC, TRAIT_ARCS}
};

static uint32_t
traits_of(const struct search *search)
{
	const struct question *question = &search->question;
	uint32_t	traits = question->assigns ? TRAIT_ASSIGNS : question->min_points > 0 ? TRAIT_CLUSTERS :
		question->radii > 0 ? TRAIT_COUNTS :
		question->k == 0 ? TRAIT_ALL : question->k == 1 ? TRAIT_ONE : TRAIT_SEVERAL;

	geonn_assert(question->radii == 0 || question->k == 0);
	geonn_assert(question->min_points == 0 || (question->radii == 0 && question->k == 0));
	geonn_assert(!question->assigns || (question->radii == 0 && question->k == 0 && question->min_points == 0));
	geonn_assert(!question->extremes || question->radii > 0);
	geonn_assert(!question->places || (search->dataset->columns & GEONN_COLUMN_ARC) != 0);
	if (question->extremes)
		traits |= TRAIT_EXTREMES;
	if (question->ties && question->k > 0)
		traits |= TRAIT_TIES;
	if (question->places)
		traits |= TRAIT_PLACES;
	if (question->algorithm == GEONN_ALGORITHM_BRUTE)
		traits |= TRAIT_BRUTE;
	if (search->cutoff.present)
		traits |= TRAIT_RESUMED;
	if (!geonn_metric_chord_decides(search->dataset->metric))
		traits |= TRAIT_SPHEROID;
	if (search->arcs > 0)
		traits |= TRAIT_SHAPES;
	for (size_t i = 0; i < COUNT(column_traits); i++)
		if (search->dataset->columns & column_traits[i].columns)
			traits |= column_traits[i].trait;
	return traits;
}

/* Return the number of the first way for these traits; COUNT(ways): none. */
static size_t
find(uint32_t traits, size_t references, enum geonn_device_kind kind)
{
	size_t		i = 0;

	while (i < COUNT(ways) &&
		   (ways[i].kind != kind || (ways[i].needs & ~traits) != 0 || (traits & ~(ways[i].needs | ways[i].takes)) != 0 ||
			(ways[i].references > 0 && references > ways[i].references)))
		i++;
	return i;
}

enum way
way_of(const struct search *search, enum geonn_device_kind kind)
{
	size_t		number = find(traits_of(search), search->dataset->count, kind);

	return number < COUNT(ways) ? ways[number].way : WAY_NONE;
}

enum geonn_way
way_gone(const struct search *search, enum geonn_device_kind kind)
{
	size_t		number = find(traits_of(search), search->dataset->count, kind);

	geonn_assert(number < COUNT(ways));
	/* the CPU may have chosen brute force, which no trait names, for a few observations of points */
	return ways[number].first == GEONN_WAY_INDEX && search->algorithm == GEONN_ALGORITHM_BRUTE ? GEONN_WAY_BRUTE :
		ways[number].first;
}

enum geonn_device_choice
search_choice(const struct search *search, enum geonn_device_choice chosen)
{
	return way_of(search, GEONN_KIND_CUDA) == WAY_NONE ? GEONN_DEVICE_CPU : chosen;
}

void
search_leave_to_cpu(struct search *search, enum geonn_cpu_reason reason)
{
	search->choice = GEONN_DEVICE_CPU;
	search->left = reason;
}

enum geonn_cpu_reason
search_cpu_reason(const struct search *search, enum geonn_device_choice chosen)
{
	if (search->ways[GEONN_KIND_CPU] == 0)
		return GEONN_CPU_NONE;
	if (search->left != GEONN_CPU_NONE)
		return search->left;
	if (chosen == GEONN_DEVICE_CPU)
		return GEONN_CPU_CHOSEN;
	/* a GPU may have become usable since the CPU began a search that it may go on with */
	return search->choice == GEONN_DEVICE_CPU && !backends_auto_uses(&engine_devices[search->device]) ? GEONN_CPU_NO_WAY :
		GEONN_CPU_NO_GPU;
}

/* Write how the way with this number answers; COUNT(ways): the CPU does. */
static void
print_way(FILE *file, size_t number)
{
	if (number == COUNT(ways))
		fputs("on the CPU", file);
	else if (ways[number].first == ways[number].last)
		fputs(geonn_way_words(ways[number].first), file);
	else
		fprintf(file, "%s, then %s", geonn_way_words(ways[number].first), geonn_way_words(ways[number].last));
}

void
ways_print(FILE *file)
{
	fputs("| question | on a GPU | on the CPU |\n|---|---|---|\n", file);
	for (size_t i = 0; i < COUNT(questions); i++)
	{
		fprintf(file, "| %s | ", questions[i].words);
		print_way(file, find(questions[i].traits, 1, GEONN_KIND_CUDA));
		fputs(" | ", file);
		print_way(file, find(questions[i].traits, 1, GEONN_KIND_CPU));
		fputs(" |\n", file);
	}
}
