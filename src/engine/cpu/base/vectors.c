/*
 * vectors.c
 *		Converts points in degrees to vectors and codes on the curve, block by
 *		block.
 */
#include "engine/cpu/base/vectors.h"

#include "common/metric.h"
#include "engine/cpu/base/curve.h"

void
CPU_PATH_NAME(cpu_vectors) (enum geonn_metric metric, const double *latitude,
							const double *longitude, size_t count,
							double *restrict x, double *restrict y, double *restrict z)
{
	/*
	 * Two loops, simple enough for compilers to vectorize: for unit vectors, and for the vectors of
	 * other metrics (metric.h).
	 */
	if (geonn_metric_chord_decides(metric))
		for (size_t i = 0; i < count; i++)
		{
			struct geonn_vector vector = geonn_unit_vector(latitude[i], longitude[i]);

			x[i] = vector.x;
			y[i] = vector.y;
			z[i] = vector.z;
		}
	else
		for (size_t i = 0; i < count; i++)
		{
			struct geonn_vector vector = geonn_metric_vector(metric, latitude[i], longitude[i]);

			x[i] = vector.x;
			y[i] = vector.y;
			z[i] = vector.z;
		}
}

/* Computes the codes of space_curve_code(), except for points on the very edge of a cell. */
void
CPU_PATH_NAME(cpu_curve_codes) (const double *x, const double *y, const double *z,
								size_t count, int levels, uint64_t *code)
{
	double		cells = (double) (1u << levels);
	int32_t		last = (int32_t) (1u << levels) - 1;
	int32_t		face[CPU_VECTORS_BLOCK];
	int32_t		column[CPU_VECTORS_BLOCK];
	int32_t		row[CPU_VECTORS_BLOCK];

	for (size_t i = 0; i < count; i++)
	{
		bool		y_largest = fabs(y[i]) > fabs(x[i]);
		double		largest = y_largest ? y[i] : x[i];
		double		u = y_largest ? z[i] : y[i];
		double		v = y_largest ? x[i] : z[i];
		double		axis = y_largest ? 2.0 : 0.0;
		bool		z_largest = fabs(z[i]) > fabs(largest);
		double		scale;

		u = z_largest ? x[i] : u;
		v = z_largest ? y[i] : v;
		axis = z_largest ? 4.0 : axis;
		largest = z_largest ? z[i] : largest;
		scale = 0.5 * cells / fabs(largest);
		face[i] = (int32_t) (largest < 0.0 ? axis + 1.0 : axis);
		column[i] = (int32_t) (u * scale + 0.5 * cells);
		row[i] = (int32_t) (v * scale + 0.5 * cells);
		column[i] = column[i] < last ? column[i] : last;
		row[i] = row[i] < last ? row[i] : last;
	}
	for (size_t i = 0; i < count; i++)
		code[i] = cpu_curve_code((uint32_t) face[i], (uint32_t) column[i],
								 (uint32_t) row[i], levels);
}

bool
CPU_PATH_NAME(cpu_valid) (const double *latitude, const double *longitude, size_t count)
{
	int64_t		invalid = 0;

	for (size_t i = 0; i < count; i++)
		invalid |= geonn_coordinates_valid(latitude[i], longitude[i]) ? 0 : 1;
	return invalid == 0;
}
