/*
 * probe.cu
 *		Finds the host's GPUs, and tests whether one can be used.
 *
 * A visible GPU may still be unusable: another process holds it exclusively,
 * it is too old for the code in this build, it is out of memory, or it is
 * broken.  So a probe ends with searches of its own, by the same operations as
 * any other search, and compares the answers with those that the host
 * computes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "common/geodesy.h"
#include "cuda/base/try.cuh"
#include "cuda/lane/dataset.cuh"
#include "cuda/lane/gpu.cuh"
#include "cuda/lane/lane.cuh"
#include "cuda/lane/memory.cuh"
#include "cuda/probe.cuh"

/* the self-test's sizes: enough observations for scan, and references for several chunks */
#define TEST_OBSERVATIONS 3000
#define TEST_REFERENCES 300

struct self_test
{
	struct dataset dataset;
	struct search search;
	atomic_bool cancelled;
	double		reference_latitude[TEST_REFERENCES];
	double		reference_longitude[TEST_REFERENCES];
	int64_t		reference_tag[TEST_REFERENCES];
	double		latitude[TEST_OBSERVATIONS];
	double		longitude[TEST_OBSERVATIONS];
	int64_t		tag[TEST_OBSERVATIONS];
	double		distance[TEST_OBSERVATIONS];
	uint32_t	count[TEST_OBSERVATIONS];
};

/*
 * Explain in words why the driver shows no GPU.
 */
static void
explain_no_gpu(struct failure *failure, cudaError_t error)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int			driver = 0;
	int			runtime = 0;

	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);

	if (driver == 0)
	{
		fail(failure, GEONN_ERROR_NO_DEVICE, "no NVIDIA driver was found");
		fail_hint(failure, "Install NVIDIA's driver, or give the container access to the GPUs.");
	}
	else if (error == cudaErrorInsufficientDriver)
	{
		fail(failure, GEONN_ERROR_NO_DEVICE,
			 "the NVIDIA driver supports CUDA %d.%d, and geonn was built with CUDA %d.%d",
			 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
		fail_detail(failure, "%s", cudaGetErrorString(error));
		fail_hint(failure, "Update the driver, or build geonn with an older CUDA.");
	}
	else if (error == cudaSuccess || error == cudaErrorNoDevice)
	{
		fail(failure, GEONN_ERROR_NO_DEVICE, "no GPU is visible");
		if (visible != NULL)
		{
			fail_detail(failure, "CUDA_VISIBLE_DEVICES is \"%s\".", visible);
			fail_hint(failure, "CUDA_VISIBLE_DEVICES is set in the environment in which the server was started.");
		}
		else
			fail_hint(failure, "Check what nvidia-smi shows to the user that runs the server.");
	}
	else
	{
		fail(failure, GEONN_ERROR_NO_DEVICE, "CUDA could not be started");
		fail_detail(failure, "%s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
		fail_hint(failure, "Check whether nvidia-smi works for the user that runs the server.");
	}
}

int
cuda_device_count(struct failure *failure)
{
	int			count = 0;
	cudaError_t error = cudaGetDeviceCount(&count);

	if (error != cudaSuccess || count == 0)
	{
		explain_no_gpu(failure, error);
		cudaGetLastError();
		return 0;
	}
	/* device 0 is the CPU */
	return count < GEONN_DEVICES_MAX - 1 ? count : GEONN_DEVICES_MAX - 1;
}

static bool
describe(struct device *device, struct failure *failure)
{
	struct cudaDeviceProp properties;
	const unsigned char *id = (const unsigned char *) properties.uuid.bytes;
	cudaError_t error = cudaGetDeviceProperties(&properties, device->ordinal);
	int			length;

	if (error != cudaSuccess)
		return cuda_fail(device, failure, error);
	snprintf(device->name, sizeof(device->name), "%.127s", properties.name);
	device->capability_major = (uint32_t) properties.major;
	device->capability_minor = (uint32_t) properties.minor;
	device->memory_total = properties.totalGlobalMem;

	/* in the form that nvidia-smi uses */
	length = snprintf(device->uuid, sizeof(device->uuid), "GPU");
	for (int i = 0; i < 16; i++)
		length += snprintf(device->uuid + length, sizeof(device->uuid) - (size_t) length,
						   i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
						   id[i]);
	return true;
}

/*
 * Make the GPU ready for searches.
 */
static cudaError_t
open_device(struct device *device, struct cuda_device *cuda)
{
	/* The host thread naps for microseconds; with the kernel's default slack each nap would last 50 us longer. */
	prctl(PR_SET_TIMERSLACK, 1000UL);

	/* A host thread that waits for a build sleeps instead of spinning. */
	CUDA_TRY(cudaInitDevice(device->ordinal, cudaDeviceScheduleBlockingSync,
							cudaInitDeviceFlagsAreValid));
	CUDA_TRY(cudaSetDevice(device->ordinal));
	CUDA_TRY(brute_measure(&cuda->machine));
	CUDA_TRY(cudaStreamCreateWithFlags(&cuda->building, cudaStreamNonBlocking));
	CUDA_TRY(cuda_memory_open(device));
	return cuda_lanes_open(device);
}

/*
 * Fill in points at least a tenth of a degree apart: among them poles, antipodes, the antimeridian, and many at equal
 * distances.  The last references repeat the points of the first ones, in another chunk.
 */
static void
fill_in(struct self_test *test, enum geonn_algorithm algorithm)
{
	for (int i = 0; i < TEST_REFERENCES; i++)
	{
		int			place = i % (TEST_REFERENCES - 30);

		test->reference_latitude[i] = place * 37 % 181 - 90;
		test->reference_longitude[i] = place * 59 % 541 - 180;
		test->reference_tag[i] = 1000000000000 + i;
	}
	for (int i = 0; i < TEST_OBSERVATIONS; i++)
	{
		test->latitude[i] = i * 7919 % 1801 / 10.0 - 90.0;
		test->longitude[i] = i * 104 % 5401 / 10.0 - 180.0;
	}

	test->dataset.count = TEST_REFERENCES;
	test->dataset.latitude = test->reference_latitude;
	test->dataset.longitude = test->reference_longitude;
	test->dataset.tag = test->reference_tag;

	test->search.dataset = &test->dataset;
	test->search.columns.rows = TEST_OBSERVATIONS;
	test->search.columns.room = TEST_OBSERVATIONS;
	test->search.columns.latitude = test->latitude;
	test->search.columns.longitude = test->longitude;
	test->search.columns.tag = test->tag;
	test->search.columns.distance = test->distance;
	test->search.columns.count = test->count;
	test->search.question = {};
	test->search.question.k = 1;
	test->search.question.algorithm = algorithm;
	test->search.question.max_distance = INFINITY;
	test->search.algorithm = algorithm;
	test->search.rows = TEST_OBSERVATIONS;
	test->search.cancelled = &test->cancelled;
}

/*
 * Compare one answer with the host's.
 */
static bool
check_answer(const struct self_test *test, const struct geonn_vector *references, int observation)
{
	struct geonn_vector vector = geonn_unit_vector(test->latitude[observation],
												   test->longitude[observation]);
	double		distance = geonn_distance_of(vector, references[0]);
	int			first = 0;

	for (int i = 1; i < TEST_REFERENCES; i++)
	{
		double		other = geonn_distance_of(vector, references[i]);

		if (other < distance)
		{
			distance = other;
			first = i;
		}
	}
	return (test->search.one_each || test->count[observation] == 1) &&
		test->tag[observation] == test->reference_tag[first] &&
		test->distance[observation] == distance;
}

static bool
run_self_test(struct device *device, struct self_test *test, enum geonn_algorithm algorithm,
			  struct failure *failure)
{
	struct geonn_vector references[TEST_REFERENCES];
	struct search *ended = NULL;

	fill_in(test, algorithm);
	if (!device->operations->build(device, &test->search, failure))
		return false;
	device->operations->start(device, &test->search);
	while (device->operations->advance(device, &ended) != DEVICE_FINISHED)
	{
		/* A piece has ended, but observations are left: start the search again. */
		if (ended != NULL)
			device->operations->start(device, ended);
		ended = NULL;
	}
	device->operations->discard(device, test->dataset.built[device->number]);

	if (test->search.failed)
	{
		*failure = test->search.failure;
		return false;
	}
	if (test->search.answered != TEST_OBSERVATIONS)
		return fail(failure, GEONN_ERROR_DEVICE, "device %d, %s, answered %u of %d observations of its test",
					device->number, device->name, test->search.answered, TEST_OBSERVATIONS);
	for (int i = 0; i < TEST_REFERENCES; i++)
		references[i] = geonn_unit_vector(test->reference_latitude[i],
										  test->reference_longitude[i]);
	for (int i = 0; i < TEST_OBSERVATIONS; i++)
		if (!check_answer(test, references, i))
		{
			fail(failure, GEONN_ERROR_DEVICE, "device %d, %s, computes wrong answers",
				 device->number, device->name);
			fail_detail(failure, "For (%g, %g) the device found tag %lld at %.9f m.",
						test->latitude[i], test->longitude[i],
						(long long) test->tag[i], test->distance[i]);
			fail_hint(failure, "Update NVIDIA's driver; if that doesn't help, the GPU may be damaged.");
			return false;
		}
	return true;
}

static bool
self_test(struct device *device, enum geonn_algorithm algorithm, struct failure *failure)
{
	struct self_test *test = (struct self_test *) calloc(1, sizeof(*test));
	bool		passed;

	if (test == NULL)
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory to test device %d",
					device->number);
	passed = run_self_test(device, test, algorithm, failure);
	free(test);
	return passed;
}

bool
cuda_device_probe(struct device *device, struct failure *failure)
{
	/* Device states are never freed: other threads may ask for a device's free memory at any time. */
	static struct cuda_device cuda_devices[GEONN_DEVICES_MAX];
	struct cuda_device *cuda = &cuda_devices[device->number];
	cudaError_t error;
	bool		passed;

	device->private_data = cuda;
	device->lanes = CUDA_LANES;
	if (!describe(device, failure))
		return false;

	error = open_device(device, cuda);
	if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction)
	{
		cuda_fail(device, failure, error);
		fail(failure, GEONN_ERROR_DEVICE,
			 "geonn was built without code for device %d, %s, of compute capability %u.%u",
			 device->number, device->name, device->capability_major, device->capability_minor);
		fail_hint(failure, "Build geonn with CUDA_ARCH=%u%u, if the CUDA compiler supports that architecture.",
				  device->capability_major, device->capability_minor);
		return false;
	}
	if (error != cudaSuccess)
		return cuda_fail(device, failure, error);

	passed = self_test(device, GEONN_ALGORITHM_BRUTE, failure) &&
		self_test(device, GEONN_ALGORITHM_INDEX, failure);
	if (passed)
		cuda_join(device);
	return passed;
}
