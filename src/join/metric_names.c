/*
 * metric_names.c
 *		Metrics by their names in SQL.
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "join/metric_names.h"

bool
geonn_find_metric(const char *name, size_t length, enum geonn_metric *metric)
{
	const char *its_name;

	for (int i = 0; (its_name = geonn_metric_name(i)) != NULL; i++)
		if (strlen(its_name) == length && memcmp(its_name, name, length) == 0)
		{
			*metric = i;
			return true;
		}
	return false;
}

char *
geonn_list_metrics(const char *quote, const char *word)
{
	StringInfoData list;
	const char *name;

	initStringInfo(&list);
	for (int i = 0; (name = geonn_metric_name(i)) != NULL; i++)
	{
		if (i > 0 && geonn_metric_name(i + 1) != NULL)
			appendStringInfoString(&list, ", ");
		else if (i > 0)
			appendStringInfo(&list, " %s ", word);
		appendStringInfo(&list, "%s%s%s", quote, name, quote);
	}
	return list.data;
}
