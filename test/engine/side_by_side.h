/*
 * side_by_side.h
 *		Cases of several sessions with one dataset at a time, for search_test.
 */
#ifndef GEONN_TEST_SIDE_BY_SIDE_H
#define GEONN_TEST_SIDE_BY_SIDE_H

#include "conditions.h"

/* Sessions whose batches have from 1 to 2^20 rows, with so many copies of each observation. */
extern void side_by_side_test(begin_case_function begin, uint64_t seed, size_t repeated);

/* Sessions that ask random questions. */
extern void side_by_side_test_clients(begin_case_function begin, uint64_t seed);

#endif							/* GEONN_TEST_SIDE_BY_SIDE_H */
