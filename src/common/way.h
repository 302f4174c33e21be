/*
 * way.h
 *		How devices answer questions, and why the CPU does: numbers that the engine sends, and their words.
 */
#ifndef GEONN_WAY_H
#define GEONN_WAY_H

/* each with its words; src/engine/search/ways.c says which device goes which way for a question */
#define GEONN_WAYS(WAY) \
	WAY(INDEX, "by index") \
	WAY(SQUARES, "by a table of squares") \
	WAY(BRUTE, "by brute force") \
	WAY(ARCS, "by index of arcs")

#define GEONN_WAY_NUMBER(NAME, words) GEONN_WAY_##NAME,
enum geonn_way
{
	GEONN_WAYS(GEONN_WAY_NUMBER)
	GEONN_WAY_COUNT
};

/* why the CPU, and not a GPU, has answered a search, or the rest of it */
#define GEONN_CPU_REASONS(REASON) \
	REASON(NONE, "") \
	REASON(CHOSEN, "the CPU was asked for") \
	REASON(NO_GPU, "no GPU can be used") \
	REASON(NO_WAY, "a GPU has no way for this question") \
	REASON(MEMORY, "a GPU has no memory for the index of arcs") \
	REASON(WEIGHTS, "a GPU can't add up weights of such different sizes") \
	REASON(HARD, "observations would take a GPU too long, or have too many pairs for it")

#define GEONN_CPU_REASON_NUMBER(NAME, words) GEONN_CPU_##NAME,
enum geonn_cpu_reason
{
	GEONN_CPU_REASONS(GEONN_CPU_REASON_NUMBER)
	GEONN_CPU_REASON_COUNT
};

/* The words of an enum geonn_way, and of an enum geonn_cpu_reason. */
static inline const char *
geonn_way_words(int way)
{
#define GEONN_WORDS(NAME, words) words,
	static const char *const words_of[] = {GEONN_WAYS(GEONN_WORDS)};

	return words_of[way];
}

static inline const char *
geonn_cpu_reason_words(int reason)
{
	static const char *const words_of[] = {GEONN_CPU_REASONS(GEONN_WORDS)};
#undef GEONN_WORDS

	return words_of[reason];
}

#endif							/* GEONN_WAY_H */
