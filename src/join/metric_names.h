/*
 * metric_names.h
 *		Metrics by their names in SQL.
 */
#ifndef GEONN_METRIC_NAMES_H
#define GEONN_METRIC_NAMES_H

#include "common/metric.h"

/* Find the metric with this name, of so many bytes.  False: none has it. */
extern bool geonn_find_metric(const char *name, size_t length, enum geonn_metric *metric);

/*
 * All names for a hint, each between quotes, the last two with a word between
 * them: 'sphere' or 'spheroid'.  palloc()ed.
 */
extern char *geonn_list_metrics(const char *quote, const char *word);

#endif							/* GEONN_METRIC_NAMES_H */
