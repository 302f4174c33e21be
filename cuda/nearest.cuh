/*
 * nearest.cuh
 *		A piece of a search for the nearest reference alone.
 */
#ifndef GEONN_NEAREST_CUH
#define GEONN_NEAREST_CUH

#include "brute.cuh"
#include "index.cuh"
#include "results.cuh"

enum nearest_phase
{
	NEAREST_COPY_IN,
	NEAREST_SEARCH,
	NEAREST_DECIDE,				/* by index: what its search left ambiguous */
	NEAREST_COUNT,				/* who has a neighbour within max_distance */
	NEAREST_COPY_OUT
};

struct nearest_piece
{
	enum nearest_phase phase;
	uint32_t	rows;
	bool		all_matched;	/* every observation has its neighbour */
	double	   *latitude;		/* [rows] degrees, on the GPU; later packed
								 * distances */
	double	   *longitude;		/* later packed tags */
	struct results results;		/* its distance and tag: what was found */

	/* by one of these */
	struct brute_search brute;
	struct brute_room brute_room;
	struct index_nearest index;
};

#endif							/* GEONN_NEAREST_CUH */
