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

/* Begin and end a phase; the phases of a thread nest. */
static inline void
phase_begin(const char *name)
{
	nvtxRangePushA(name);
}

static inline void
phase_end(void)
{
	nvtxRangePop();
}

#else

static inline void
phase_begin(const char *name)
{
	(void) name;
}

static inline void
phase_end(void)
{
}

#endif

#endif							/* GEONN_PHASE_CUH */
