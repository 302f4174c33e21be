/*
 * column_pairs.h
 *		Names of columns in arguments.  An element may be a pair, as in by => '{countrycode=country}': the
 *		observations' name of a column, and the references'.
 */
#ifndef GEONN_COLUMN_PAIRS_H
#define GEONN_COLUMN_PAIRS_H

#include "nodes/pg_list.h"

/*
 * Return the names (char *) in an array of column names, for the argument by; and for the arguments differs, overlaps and
 * weights.  Raises an error about a NULL, a name that comes twice, a pair that is too long for the type name, more than
 * GEONN_PARTIES_MAX columns that differ, more than GEONN_WINDOWS_MAX windows, and more than GEONN_WEIGHTS_MAX weights.
 */
extern List *geonn_column_names(const char *argument, Datum array);
extern List *geonn_differs_names(Datum array);
extern List *geonn_overlaps_names(Datum array);
extern List *geonn_weights_names(Datum array);

/* Return the names (char *) that these elements give to the columns of one side. */
extern List *geonn_names_of_side(List *elements, bool is_reference);

/* Make an element of a column's two names. */
extern const char *geonn_pair_of_names(const char *observation, const char *reference);

#endif							/* GEONN_COLUMN_PAIRS_H */
