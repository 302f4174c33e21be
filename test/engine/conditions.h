/*
 * conditions.h
 *		Cases of windows and radiuses, for search_test.
 */
#ifndef GEONN_TEST_CONDITIONS_H
#define GEONN_TEST_CONDITIONS_H

#include "compare.h"

/* begins a case: so many references, and observations about them */
typedef struct test_case (*begin_case_function) (const char *name, enum geonn_metric metric,
												 size_t references, enum places places,
												 size_t observations, bool far);

/* Windows and radiuses, alone and with all other columns. */
extern void conditions_test(begin_case_function begin, uint64_t seed, enum geonn_metric metric);

/* So many references that windows are cut into slabs. */
extern void conditions_test_slabs(begin_case_function begin, uint64_t seed);

#endif							/* GEONN_TEST_CONDITIONS_H */
