/*-------------------------------------------------------------------------
 *
 * geodesy_parity.cu
 *	  Compares the bits of src/common/geodesy.h, spheroid.h and arc.h on the GPU with
 *	  the host's
 *
 * The same headers are compiled twice in this file, by nvcc for the device and by
 * the host's compiler, both with contraction off (nvcc -fmad=false, host
 * -ffp-contract=off).  Every result must have the same 64 bits.
 *
 * Usage: geodesy_parity [seed [cases]].  Exits with 0 if all is equal, 1 if
 * not, 2 without a GPU or where it fails.
 *
 *
 * rooms: common cuda/base
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arc.h"
#include "common/spheroid.h"
#include "../lib/hostile.h"

#define BATCH_CASES (1 << 20)
#define THREADS_PER_BLOCK 256
#define DEGREES_PER_RADIAN 57.29577951308232

struct input
{
	double		latitude1;
	double		longitude1;
	double		latitude2;
	double		longitude2;
	double		latitude3;		/* of a point, beside the arc between both */
	double		longitude3;
	double		angle;			/* degrees, of sincosd */
	double		ratio;			/* of asin */
};

struct output
{
	double		sincosd[2];
	double		asin;
	struct geonn_vector vectors[2];
	double		chord_squared;
	double		antichord_squared;
	double		chord_limit;
	double		distance;
	double		radius_limit;
	double		certain_limit;
	double		foot_distance;
	struct geonn_vector spheroid_vectors[2];
	double		spheroid_limit;
	double		spheroid_radius_limit;
};

static const struct
{
	const char *name;
	size_t		offset;
	size_t		size;
}			properties[] =
{
	{"sine and cosine", offsetof(struct output, sincosd), 2 * sizeof(double)},
	{"arc sine", offsetof(struct output, asin), sizeof(double)},
	{"unit vectors", offsetof(struct output, vectors), 2 * sizeof(struct geonn_vector)},
	{"squared chord", offsetof(struct output, chord_squared), sizeof(double)},
	{"squared antichord", offsetof(struct output, antichord_squared), sizeof(double)},
	{"chord limit", offsetof(struct output, chord_limit), sizeof(double)},
	{"distance", offsetof(struct output, distance), sizeof(double)},
	{"radius limit", offsetof(struct output, radius_limit), sizeof(double)},
	{"certain limit", offsetof(struct output, certain_limit), sizeof(double)},
	{"distance to an arc", offsetof(struct output, foot_distance), sizeof(double)},
	{"spheroid vectors", offsetof(struct output, spheroid_vectors), 2 * sizeof(struct geonn_vector)},
	{"spheroid limit", offsetof(struct output, spheroid_limit), sizeof(double)},
	{"spheroid radius limit", offsetof(struct output, spheroid_radius_limit), sizeof(double)},
};

static constexpr int property_count = sizeof(properties) / sizeof(properties[0]);


static void
check(cudaError_t status, const char *action)
{
	if (status == cudaSuccess)
		return;
	fprintf(stderr, "could not %s: %s\n", action, cudaGetErrorString(status));
	exit(2);
}

static void *
allocate(size_t size)
{
	void	   *memory = malloc(size);

	if (memory == NULL)
	{
		fprintf(stderr, "out of memory\n");
		exit(2);
	}
	return memory;
}

static __host__ __device__ void
compute(const struct input *input, struct output *output)
{
	struct geonn_vector u = geonn_unit_vector(input->latitude1, input->longitude1);
	struct geonn_vector v = geonn_unit_vector(input->latitude2, input->longitude2);

	geonn_sincosd(input->angle, &output->sincosd[0], &output->sincosd[1]);
	output->asin = geonn_asin(input->ratio);
	output->vectors[0] = u;
	output->vectors[1] = v;
	output->chord_squared = geonn_chord_squared(u, v);
	output->antichord_squared = geonn_antichord_squared(u, v);
	output->chord_limit = geonn_chord_limit(output->chord_squared);
	output->distance = geonn_distance_degrees(input->latitude1, input->longitude1,
											  input->latitude2, input->longitude2);
	output->radius_limit = geonn_radius_limit(output->distance);
	output->certain_limit = geonn_certain_limit(output->distance);
	output->foot_distance = geonn_arc_is_long(u, v) ? 0.0 :
		geonn_foot_distance(geonn_unit_vector(input->latitude3, input->longitude3), u, v);

	u = geonn_spheroid_vector(input->latitude1, input->longitude1);
	v = geonn_spheroid_vector(input->latitude2, input->longitude2);
	output->spheroid_vectors[0] = u;
	output->spheroid_vectors[1] = v;
	output->spheroid_limit = geonn_spheroid_limit(geonn_chord_squared(u, v));
	output->spheroid_radius_limit = geonn_spheroid_radius_limit(output->distance);
}

static __global__ void
compute_batch(const struct input *inputs, struct output *outputs, int count)
{
	int			i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		compute(&inputs[i], &outputs[i]);
}

static double
clamped(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

/* Anywhere, on the half-degree grid, at and beside multiples of 45, or tiny */
static double
random_degrees(double low, double high)
{
	switch (random_below(6))
	{
		case 0:
			return clamped(0.5 * (random_below(1441) - 720), low, high);
		case 1:
			return clamped(45.0 * (random_below(17) - 8), low, high);
		case 2:
			return clamped(45.0 * (random_below(17) - 8) +
						   random_magnitude(1e-16, 1e-3), low, high);
		case 3:
			return random_below(8) ? clamped(random_magnitude(5e-324, 1.0), low, high) :
				random_below(2) ? 0.0 : -0.0;
		default:
			return random_between(low, high);
	}
}

static struct input
random_input(void)
{
	struct input input;
	double		off = random_magnitude(1e-17, 1e-2);
	int			kind = random_below(6);

	input.latitude1 = random_degrees(-90.0, 90.0);
	input.longitude1 = random_degrees(-180.0, 360.0);
	input.latitude2 = random_degrees(-90.0, 90.0);
	input.longitude2 = random_degrees(-180.0, 360.0);
	if (kind == 0)				/* coincident or near */
	{
		input.latitude2 = clamped(input.latitude1 + off, -90.0, 90.0);
		input.longitude2 = clamped(input.longitude1 - off * random_below(3), -180.0, 360.0);
	}
	else if (kind == 1)			/* antipodal or near */
	{
		input.latitude2 = clamped(-input.latitude1 + off * random_below(2), -90.0, 90.0);
		input.longitude2 = clamped(input.longitude1 + (input.longitude1 > 0.0 ? -180.0 : 180.0) -
								   off * random_below(3), -180.0, 360.0);
	}
	else if (kind == 2)			/* about a quarter of the circle apart */
	{
		double		east = random_between(-90.0, 90.0);

		input.longitude1 = random_between(0.0, 180.0);
		input.longitude2 = input.longitude1 + east;
		input.latitude2 = -atan(1.0 / (tan(input.latitude1 / DEGREES_PER_RADIAN) /
									   cos(east / DEGREES_PER_RADIAN))) * DEGREES_PER_RADIAN;
		input.latitude2 = clamped(input.latitude2, -90.0, 90.0);
	}
	else if (kind == 3)
	{
		input.latitude1 = hostile_latitude();
		input.longitude1 = hostile_longitude();
		input.latitude2 = hostile_latitude();
		input.longitude2 = hostile_longitude();
	}
	input.latitude3 = random_below(2) ? hostile_latitude() : random_degrees(-90.0, 90.0);
	input.longitude3 = random_below(2) ? hostile_longitude() : random_degrees(-180.0, 360.0);
	input.angle = random_degrees(-360.0, 360.0);
	input.ratio = random_below(4) ? random_between(0.0, 0.7072) :
		random_below(2) ? 0.5 + random_magnitude(1e-17, 1e-3) :
		fabs(random_magnitude(5e-324, 0.7));
	return input;
}

int
main(int argc, char **argv)
{
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240229;
	long		cases = argc > 2 ? strtol(argv[2], NULL, 0) : 8L * BATCH_CASES;
	long		differences[property_count] = {0};
	int			failed_count = 0;
	int			device_count;
	struct input *inputs;
	struct output *outputs;
	struct input *device_inputs;
	struct output *device_outputs;

	if (cudaGetDeviceCount(&device_count) != cudaSuccess || device_count == 0)
	{
		printf("no GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
		return 2;
	}

	random_state = seed;
	printf("seed %llu, %ld cases\n", (unsigned long long) seed, cases);

	inputs = (struct input *) allocate(BATCH_CASES * sizeof(*inputs));
	outputs = (struct output *) allocate(BATCH_CASES * sizeof(*outputs));
	check(cudaMalloc((void **) &device_inputs, BATCH_CASES * sizeof(*inputs)),
		  "allocate inputs");
	check(cudaMalloc((void **) &device_outputs, BATCH_CASES * sizeof(*outputs)),
		  "allocate outputs");

	for (long done = 0; done < cases; done += BATCH_CASES)
	{
		int			count = (int) (cases - done < BATCH_CASES ? cases - done : BATCH_CASES);

		for (int i = 0; i < count; i++)
			inputs[i] = random_input();
		check(cudaMemcpy(device_inputs, inputs, count * sizeof(*inputs),
						 cudaMemcpyHostToDevice), "copy inputs");
		compute_batch<<<(count + THREADS_PER_BLOCK - 1) / THREADS_PER_BLOCK,
			THREADS_PER_BLOCK>>>(device_inputs, device_outputs, count);
		check(cudaGetLastError(), "start the kernel");
		check(cudaMemcpy(outputs, device_outputs, count * sizeof(*outputs),
						 cudaMemcpyDeviceToHost), "run the kernel and copy outputs");

		for (int i = 0; i < count; i++)
		{
			struct output expected;

			compute(&inputs[i], &expected);
			for (int p = 0; p < property_count; p++)
				differences[p] += memcmp((char *) &outputs[i] + properties[p].offset,
										 (char *) &expected + properties[p].offset,
										 properties[p].size) != 0;
		}
	}

	for (int p = 0; p < property_count; p++)
	{
		failed_count += differences[p] != 0;
		printf("%s - same bits as the host: %s (differences %ld of %ld)\n",
			   differences[p] == 0 ? "ok" : "not ok", properties[p].name,
			   differences[p], cases);
	}
	printf("%d passed, %d failed\n", property_count - failed_count, failed_count);

	check(cudaFree(device_inputs), "free inputs");
	check(cudaFree(device_outputs), "free outputs");
	free(inputs);
	free(outputs);
	return failed_count == 0 ? 0 : 1;
}
