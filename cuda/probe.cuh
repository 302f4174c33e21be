/*
 * probe.cuh
 *		Finds the host's GPUs, and tests whether one can be used.
 */
#ifndef GEONN_CUDA_PROBE_CUH
#define GEONN_CUDA_PROBE_CUH

extern "C"
{
#include "engine/search/device.h"
}

/* device.h's count */
extern int	cuda_device_count(struct failure *failure);

/* Implement probe of device.h.  The probe tests device->operations. */
extern bool cuda_device_probe(struct device *device, struct failure *failure);

#endif							/* GEONN_CUDA_PROBE_CUH */
