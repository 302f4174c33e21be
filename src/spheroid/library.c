/*
 * library.c
 *		The library of the spheroid, geonn_spheroid.so: geodesics for the module.
 *
 * It is src/common/spheroid_distance.c, which the engine has, too, and so gives
 * the same bytes; and it needs PROJ, with the forty libraries that PROJ needs.
 * To map all these takes longer than to load the module.  So the module is not
 * linked with it: a process loads it at its first geodesic (join/geodesics.c),
 * which few ever compute, as the engine computes those of joins.
 *
 * PostgreSQL loads only what says for which of its versions it was built.
 */
#include "postgres.h"

#include "fmgr.h"

#include "common/version.h"
#include "base/compat.h"

PG_MODULE_MAGIC_EXT(.name = "geonn_spheroid",.version = GEONN_VERSION);
