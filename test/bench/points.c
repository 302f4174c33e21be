/*
 * points.c
 *		The benchmark's points, made on the host.
 */
#include "points.h"

#include "../lib/parallel.h"

#define FILL_PIECE ((size_t) 1 << 16)

/* the sine of 60 degrees, beyond which there are no cities */
#define CITIES_SINE_MAX 0.86602540378443865

#define KILOMETRES_PER_DEGREE 111.195

/* points_fill_parallel's arguments */
struct fill
{
	const struct points *points;
	uint64_t	first;
	double	   *latitude;
	double	   *longitude;
};

/*
 * Draws are made by Walker's method: each of the table's places has the same
 * share of them and gives what its own city does not need to one other.
 */
static void
make_draws(struct points_city *cities)
{
	static double wanted[POINTS_CITY_COUNT];	/* in shares of one place */
	static uint32_t short_of[POINTS_CITY_COUNT];
	static uint32_t rich_in[POINTS_CITY_COUNT];
	int			poor = 0;
	int			rich = 0;
	double		sum = 0.0;

	for (int i = 0; i < POINTS_CITY_COUNT; i++)
		sum += 1.0 / (i + 1);
	for (uint32_t i = 0; i < POINTS_CITY_COUNT; i++)
	{
		wanted[i] = (double) POINTS_CITY_COUNT / (i + 1) / sum;
		if (wanted[i] < 1.0)
			short_of[poor++] = i;
		else
			rich_in[rich++] = i;
	}
	while (poor > 0 && rich > 0)
	{
		uint32_t	giver = short_of[--poor];
		uint32_t	taker = rich_in[rich - 1];

		cities[giver].probability = wanted[giver];
		cities[giver].other = taker;
		wanted[taker] -= 1.0 - wanted[giver];
		if (wanted[taker] < 1.0)
			short_of[poor++] = rich_in[--rich];
	}

	/* but for rounding these have a whole place each */
	while (poor > 0 || rich > 0)
	{
		uint32_t	city = poor > 0 ? short_of[--poor] : rich_in[--rich];

		cities[city].probability = 1.0;
		cities[city].other = city;
	}
}

void
points_make_cities(uint64_t seed, struct points_city *cities)
{
	uint64_t	key = points_mix(seed ^ UINT64_C(0x636974696573));

	for (uint32_t i = 0; i < POINTS_CITY_COUNT; i++)
	{
		struct points_city *city = &cities[i];
		double		sine;
		double		cosine;

		city->centre.latitude =
			points_arc_sine(CITIES_SINE_MAX * (2.0 * points_random(key, 2 * i) - 1.0));
		city->centre.longitude = 360.0 * points_random(key, 2 * i + 1) - 180.0;
		city->deviation = (2.0 + 18.0 / sqrt(i + 1.0)) / KILOMETRES_PER_DEGREE;
		geonn_sincosd(city->centre.latitude, &sine, &cosine);
		city->stretch = 1.0 / cosine;
	}
	make_draws(cities);
}

struct points
points_of(enum points_distribution distribution, uint64_t seed, enum points_set set,
		  const struct points_city *cities)
{
	struct points points = {
		.distribution = distribution,
		.key = points_mix(points_mix(seed) + set),
		.cities = cities
	};

	return points;
}

void
points_fill(const struct points *points, uint64_t first, size_t count, double *latitude,
			double *longitude)
{
	for (size_t i = 0; i < count; i++)
	{
		struct point point = points_get(points, first + i);

		latitude[i] = point.latitude;
		longitude[i] = point.longitude;
	}
}

static void
fill_piece(void *argument, size_t begin, size_t end)
{
	const struct fill *fill = argument;

	points_fill(fill->points, fill->first + begin, end - begin, fill->latitude + begin,
				fill->longitude + begin);
}

void
points_fill_parallel(const struct points *points, uint64_t first, size_t count,
					 double *latitude, double *longitude)
{
	struct fill fill = {points, first, latitude, longitude};

	parallel(count, FILL_PIECE, fill_piece, &fill);
}
