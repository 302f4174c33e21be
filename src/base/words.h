/*
 * words.h
 *		Words by which arguments, options and settings choose one of several things.
 */
#ifndef GEONN_WORDS_H
#define GEONN_WORDS_H

#include "nodes/pg_list.h"
#include "utils/guc.h"

/* The names of the metrics (enum geonn_metric). */
extern const struct config_enum_entry *geonn_metric_words(void);

/*
 * Find a word of so many bytes; any_case: in upper or lower case.  False: it is none of these
 * words.
 */
extern bool geonn_find_word(const struct config_enum_entry *words, const char *word, size_t length,
							bool any_case, int *value);

/*
 * Names (char *) for a message, each between quotes, the last two with a word between them
 * unless it is NULL: 'sphere' or 'spheroid'.  And all of these words likewise.  palloc()ed.
 */
extern char *geonn_list_names(List *names, const char *quote, const char *conjunction);
extern char *geonn_list_words(const struct config_enum_entry *words, const char *quote,
							  const char *conjunction);

#endif							/* GEONN_WORDS_H */
