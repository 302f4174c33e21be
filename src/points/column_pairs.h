/*
 * column_pairs.h
 *		Columns that the two sides of a join call by different names: a pair, as in
 *		by => '{countrycode=country}', is the observations' name and the references'.
 */
#ifndef GEONN_COLUMN_PAIRS_H
#define GEONN_COLUMN_PAIRS_H

#include "nodes/pg_list.h"

/* Raise an error for an element of this argument that may be a pair that the type name has truncated. */
extern void geonn_check_pair(const char *argument, const char *element);

/* One side's names (char *) of the columns in these elements. */
extern List *geonn_names_of_side(List *elements, bool is_reference);

/* Make an element of these two names. */
extern const char *geonn_pair_of_names(const char *observation, const char *reference);

#endif							/* GEONN_COLUMN_PAIRS_H */
