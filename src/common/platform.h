/*
 * platform.h
 *		Where geonn runs: on Linux, on little-endian processors of 64 bits.
 *
 * The Makefile compiles this header alone before all else and shows what it says,
 * so that a compiler for another processor than the host's is asked, too.  Nothing
 * here has been tested elsewhere: that distances are the same bits, that numbers
 * in values, files and shared memory mean the same to all who read them.  And what
 * has not been tested must not answer.
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
