/*
 * sql_ratios.h
 *		Whether two places are within a radius on the spheroid, by their distance on the sphere.
 */
#ifndef GEONN_SQL_RATIOS_H
#define GEONN_SQL_RATIOS_H

/* the bounds for all lines, as sql_ratios.c says */
#define LEAST_RATIO 0.9944
#define GREATEST_RATIO 1.0045

/* what a search on the sphere says of a pair */
typedef enum Verdict
{
	VERDICT_WITHIN,
	VERDICT_BEYOND,
	VERDICT_OPEN				/* PostGIS's function decides */
} Verdict;

/*
 * Return whether a pair with this distance on the sphere is within the radius, by PostGIS's function, whose error is at most the
 * margin.  All are in metres.  On the spheroid, the latitude is that of one of both places, in degrees; NaN: unknown.
 */
extern Verdict geonn_verdict(double distance, double radius, double margin, bool is_spheroid, double latitude);

#endif							/* GEONN_SQL_RATIOS_H */
