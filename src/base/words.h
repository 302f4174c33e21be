/*
 * words.h
 *		Words by which arguments, options and settings choose one of several things.
 */
#ifndef GEONN_WORDS_H
#define GEONN_WORDS_H

#include "nodes/pg_list.h"
#include "utils/guc.h"

/* Return the names of the metrics (enum geonn_metric). */
extern const struct config_enum_entry *geonn_metric_words(void);

/*
 * Find a word, of `length` bytes, among these words, and write its value.  any_case: upper and lower case
 * are the same.  Returns false if the word is none of them.
 */
extern bool geonn_find_word(const struct config_enum_entry *words, const char *word, size_t length,
							bool any_case, int *value);

/*
 * List names (char *), or all of these words, for a message, palloc()ed: each in quotes, with the conjunction
 * (NULL: a comma) between the last two, for example: 'sphere' or 'spheroid'.
 */
extern char *geonn_list_names(List *names, const char *quote, const char *conjunction);
extern char *geonn_list_words(const struct config_enum_entry *words, const char *quote,
							  const char *conjunction);

#endif							/* GEONN_WORDS_H */
