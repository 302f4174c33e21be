/*
 * random.h
 *		Random numbers of tests and benchmarks: splitmix64, the same from the
 *		same seed everywhere.
 */
#ifndef GEONN_TEST_RANDOM_H
#define GEONN_TEST_RANDOM_H

#include <math.h>
#include <stdint.h>

/* where the sequence stands; set it to the seed */
static uint64_t random_state = 20240229;

static inline uint64_t
random_bits(void)
{
	uint64_t	bits = random_state += UINT64_C(0x9e3779b97f4a7c15);

	bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
	return bits ^ (bits >> 31);
}

static inline double
random_between(double low, double high)
{
	return low + (high - low) * ((double) (random_bits() >> 11) * 0x1p-53);
}

static inline int
random_below(int limit)
{
	return (int) (random_bits() % (uint64_t) limit);
}

/* magnitudes spread evenly over the decades, either sign */
static inline double
random_magnitude(double low, double high)
{
	double		magnitude = exp(random_between(log(low), log(high)));

	return random_below(2) ? magnitude : -magnitude;
}

#endif							/* GEONN_TEST_RANDOM_H */
