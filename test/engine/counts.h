/*
 * counts.h
 *		Cases of counts within radii, for search_test.
 */
#ifndef GEONN_TEST_COUNTS_H
#define GEONN_TEST_COUNTS_H

#include "conditions.h"

/* Groups, excluded tags, weights and coincident references, in indexes of all heights. */
extern void counts_test(begin_case_function begin);

#endif							/* GEONN_TEST_COUNTS_H */
