/*
 * words.c
 *		Words by which arguments, options and settings choose one of several things.
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "base/words.h"
#include "common/metric.h"

/* Room for more metrics than exist; entries behind the last word are NULL. */
#define METRICS_MAX	7

const struct config_enum_entry *
geonn_metric_words(void)
{
	static struct config_enum_entry words[METRICS_MAX + 1];

	Assert(geonn_metric_name(METRICS_MAX) == NULL);
	for (int i = 0; i < METRICS_MAX && words[i].name == NULL && geonn_metric_name(i) != NULL; i++)
		words[i] = (struct config_enum_entry) {.name = geonn_metric_name(i),.val = i};
	return words;
}

bool
geonn_find_word(const struct config_enum_entry *words, const char *word, size_t length,
				bool any_case, int *value)
{
	for (; words->name != NULL; words++)
	{
		if (strlen(words->name) != length ||
			(any_case ? pg_strncasecmp(words->name, word, length) : memcmp(words->name, word, length)) != 0)
			continue;
		*value = words->val;
		return true;
	}
	return false;
}

char *
geonn_list_names(List *names, const char *quote, const char *conjunction)
{
	StringInfoData list;
	ListCell   *cell;

	initStringInfo(&list);
	foreach(cell, names)
	{
		if (list.len > 0 && (conjunction == NULL || lnext(names, cell) != NULL))
			appendStringInfoString(&list, ", ");
		else if (list.len > 0)
			appendStringInfo(&list, " %s ", conjunction);
		appendStringInfo(&list, "%s%s%s", quote, (const char *) lfirst(cell), quote);
	}
	return list.data;
}

char *
geonn_list_words(const struct config_enum_entry *words, const char *quote, const char *conjunction)
{
	List	   *names = NIL;

	for (; words->name != NULL; words++)
		names = lappend(names, unconstify(char *, words->name));
	return geonn_list_names(names, quote, conjunction);
}
