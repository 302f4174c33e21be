/*
 * phase.cuh
 *		Names for a host thread's phases of work, which Nsight Systems shows.
 *
 * Where the CUDA toolkit lacks NVTX, phases have no names.  Without a profiler
 * a phase costs some nanoseconds.
 */
#ifndef GEONN_PHASE_CUH
#define GEONN_PHASE_CUH

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
#define nvtxRangePushA(name) ((void) (name))
#define nvtxRangePop() ((void) 0)
#endif

/* A phase lasts until the end of its block; the phases of a thread nest. */
struct phase
{
	explicit phase(const char *name)
	{
		nvtxRangePushA(name);
	}

	~phase()
	{
		nvtxRangePop();
	}
};

#endif							/* GEONN_PHASE_CUH */
