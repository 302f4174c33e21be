/*
 * quadmath.h
 *		Stands in for gcc's header of this name where gcc has none: on arm64,
 *		whose long double is the 128-bit float that x86-64 calls __float128.
 */
#ifndef GEONN_TEST_QUADMATH_H
#define GEONN_TEST_QUADMATH_H

#ifndef _GNU_SOURCE
#error "compile with -D_GNU_SOURCE, for sincosl"
#endif

#include <math.h>

#define __float128 long double
#define M_PIq M_PIl
#define asinq asinl
#define atan2q atan2l
#define copysignq copysignl
#define fabsq fabsl
#define fminq fminl
#define hypotq hypotl
#define remainderq remainderl
#define sincosq sincosl
#define sinq sinl
#define sqrtq sqrtl

#endif							/* GEONN_TEST_QUADMATH_H */
