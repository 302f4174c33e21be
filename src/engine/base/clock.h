/*
 * clock.h
 *		A clock that only goes forward, and the time of day.
 */
#ifndef GEONN_CLOCK_H
#define GEONN_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline int64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* microseconds since 1970 */
static inline int64_t
unix_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif							/* GEONN_CLOCK_H */
