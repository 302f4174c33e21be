/*
 * atomics.h
 *		C's atomic types under C's names, for C and for the CUDA device's C++.
 *
 * C++ has <stdatomic.h> only since C++23; the declarations below are those of
 * its <stdatomic.h>.  The compilers that build the engine represent C's and
 * C++'s atomic types in the same way.
 */
#ifndef GEONN_ATOMICS_H
#define GEONN_ATOMICS_H

#ifdef __cplusplus
extern "C++"
{
#include <atomic>
}
using std::atomic_bool;
using std::atomic_int;
using std::atomic_llong;
using std::atomic_uint_fast64_t;
using std::atomic_fetch_add;
using std::atomic_fetch_sub;
using std::atomic_load;
using std::atomic_store;
#else
#include <stdatomic.h>
#endif

#endif							/* GEONN_ATOMICS_H */
