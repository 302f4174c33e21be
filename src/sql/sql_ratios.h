/*
 * sql_ratios.h
 *		How many times as long as on the sphere lines of the spheroid are.
 */
#ifndef GEONN_SQL_RATIOS_H
#define GEONN_SQL_RATIOS_H

/* the bounds for all lines, as sql_ratios.c says */
#define LEAST_RATIO 0.9944
#define GREATEST_RATIO 1.0045

/*
 * Set the bounds for the shortest line from a place at this latitude, in degrees, to one that is so many metres from it on the
 * sphere.
 */
extern void geonn_ratios_near(double latitude, double distance, double *least, double *greatest);

#endif							/* GEONN_SQL_RATIOS_H */
