/*
 * siphash.h
 *		SipHash-2-4 with 128 bits: a keyed hash of bytes.
 *
 * J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF" (2012), with the
 * output of 128 bits that their reference implementation has.  Without the key, two inputs
 * with the same hash cannot be found any faster than by chance.
 */
#ifndef GEONN_SIPHASH_H
#define GEONN_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/platform.h"

static inline uint64_t
geonn_siphash_rotate(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static inline void
geonn_siphash_rounds(uint64_t v[4], int rounds)
{
	for (int i = 0; i < rounds; i++)
	{
		v[0] += v[1];
		v[2] += v[3];
		v[1] = geonn_siphash_rotate(v[1], 13) ^ v[0];
		v[3] = geonn_siphash_rotate(v[3], 16) ^ v[2];
		v[0] = geonn_siphash_rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = geonn_siphash_rotate(v[1], 17) ^ v[2];
		v[3] = geonn_siphash_rotate(v[3], 21) ^ v[0];
		v[2] = geonn_siphash_rotate(v[2], 32);
	}
}

/* Write the hash of `length` bytes, with this key. */
static inline void
geonn_siphash(const uint64_t key[2], const void *bytes, size_t length, uint64_t hash[2])
{
	const char *next = bytes;
	uint64_t	last = (uint64_t) length << 56;
	uint64_t	v[4] = {
		key[0] ^ 0x736f6d6570736575,
		key[1] ^ 0x646f72616e646f6d ^ 0xee,
		key[0] ^ 0x6c7967656e657261,
		key[1] ^ 0x7465646279746573
	};

	for (; length >= 8; length -= 8, next += 8)
	{
		uint64_t	word;

		memcpy(&word, next, sizeof(word));
		v[3] ^= word;
		geonn_siphash_rounds(v, 2);
		v[0] ^= word;
	}
	for (size_t i = 0; i < length; i++)
		last |= (uint64_t) (unsigned char) next[i] << 8 * i;
	v[3] ^= last;
	geonn_siphash_rounds(v, 2);
	v[0] ^= last;
	v[2] ^= 0xee;
	geonn_siphash_rounds(v, 4);
	hash[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
	v[1] ^= 0xdd;
	geonn_siphash_rounds(v, 4);
	hash[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif							/* GEONN_SIPHASH_H */
