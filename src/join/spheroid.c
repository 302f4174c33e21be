/*
 * spheroid.c
 *		Geodesics in the module: those of the library of the spheroid, which is
 *		loaded when this process asks for the first one (spheroid/library.c).
 */
#include "postgres.h"

#include "fmgr.h"

#include "common/spheroid_distance.h"
#include "installed.h"

#define LIBRARY "geonn_spheroid" DLSUFFIX

typedef double (*Geodesic) (double latitude1, double longitude1, double latitude2,
							double longitude2);

static Geodesic library_distance;
static Geodesic library_azimuth;

/*
 * Load the library, or raise PostgreSQL's error for why it cannot be loaded.
 */
static void
load_library(void)
{
	void	   *library;

	library_azimuth = (Geodesic) load_external_function(geonn_installed_file(LIBRARY),
														"geonn_spheroid_azimuth", true, &library);
	library_distance = (Geodesic) lookup_external_function(library, "geonn_spheroid_distance");
	if (library_distance == NULL)
		elog(ERROR, "could not find function geonn_spheroid_distance in %s", LIBRARY);
}

double
geonn_spheroid_distance(double latitude1, double longitude1, double latitude2, double longitude2)
{
	if (library_distance == NULL)
		load_library();
	return library_distance(latitude1, longitude1, latitude2, longitude2);
}

double
geonn_spheroid_azimuth(double latitude1, double longitude1, double latitude2, double longitude2)
{
	if (library_distance == NULL)
		load_library();
	return library_azimuth(latitude1, longitude1, latitude2, longitude2);
}
