/*
 * spheroid.c
 *		Geodesics in the module: those of the library of the spheroid, which is
 *		loaded when this process asks for the first one (spheroid/library.c).
 */
#include "postgres.h"

#include "fmgr.h"

#include "common/spheroid_distance.h"
#include "base/installed.h"

#define LIBRARY "geonn_spheroid" DLSUFFIX

typedef double (*Geodesic) (double latitude1, double longitude1, double latitude2,
							double longitude2);

static Geodesic library_distance;
static Geodesic library_azimuth;

static void
hint_at_installing(void *argument pg_attribute_unused())
{
	errhint("\"make install\" or the geonn package puts that library beside the module; install geonn again, and PROJ if that is what is missing.");
}

/*
 * Load the library, or raise PostgreSQL's error for why it cannot be loaded.
 */
static void
load_library(void)
{
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = hint_at_installing
	};

	error_context_stack = &context;
	library_azimuth = (Geodesic) load_external_function(geonn_installed_file(LIBRARY),
														"geonn_spheroid_azimuth", true, NULL);
	library_distance = (Geodesic) load_external_function(geonn_installed_file(LIBRARY),
														 "geonn_spheroid_distance", true, NULL);
	error_context_stack = context.previous;
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
