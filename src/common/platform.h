/*
 * platform.h
 *		geonn runs on Linux, on little-endian processors of 64 bits.
 *
 * The Makefile compiles this header alone before all else and shows its
 * errors, so that the check holds for a cross compiler, too.  On other
 * platforms two things have not been tested: that distances have the same
 * bits, and that the numbers in values, files and shared memory mean the same
 * to all their readers.  An untested build must not answer.
 */
#ifndef GEONN_PLATFORM_H
#define GEONN_PLATFORM_H

#ifndef __linux__
#error "geonn runs on Linux only: it needs memfd, epoll and sockets that carry credentials"
#elif __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "geonn needs a little-endian processor: it runs on x86-64 and arm64"
#elif __SIZEOF_POINTER__ != 8
#error "geonn needs addresses of 64 bits: it runs on x86-64 and arm64"
#elif !defined(__x86_64__) && !defined(__aarch64__)
#error "geonn runs on x86-64 and arm64 only"
#endif

#endif							/* GEONN_PLATFORM_H */
