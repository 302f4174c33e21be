/*
 * nearest_oracle.c
 *		Checks nearest-neighbour answers against brute force in long double.
 *
 * Usage: nearest_oracle observations.csv references.csv answers.csv [name]
 *
 * The first two files have lines id,latitude,longitude, the third has lines
 * obs_id,ref_id,distance.  Prints "ok - ..." or "not ok - ..." for each
 * property.
 *
 * Nothing here is shared with what it checks: sines and cosines are libm's,
 * and the distance is R atan2(|u x v|, u . v), which is exact to far less
 * than a nanometre from coincident to antipodal points where long double has
 * 64 bits or more.  To be quick, the search itself compares squared chords,
 * and takes the distance where two of them are too close to call.
 */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RADIUS 6371008.7714150598L
#define PI 3.14159265358979323846264338327950288L

/* squared chords that differ by less may be of equal distances: near the
 * antipode a chord of 2 loses half of the digits */
#define TOO_CLOSE 1e-17L

#define FARTHER_ALLOWED 20e-9L
#define DISTANCE_ALLOWED 10e-9L

struct point
{
	int64_t		id;
	double		latitude;
	double		longitude;
	long double vector[3];
};

struct answer
{
	int64_t		obs_id;
	int64_t		ref_id;
	double		distance;
};

struct table
{
	struct point *points;
	size_t		count;
};

/* what a thread finds in its share of the observations */
struct share
{
	pthread_t	thread;
	size_t		first;
	size_t		end;
	long double farthest;		/* returned minus nearest, metres */
	long double worst_distance; /* returned distance minus the truth */
	size_t		wrong_ties;
	size_t		unknown;
};

static struct table observations;
static struct table references;
static struct answer *answers;
static size_t answer_count;

static void
fail(const char *what, const char *name)
{
	fprintf(stderr, "nearest_oracle: %s: %s\n", what, name);
	exit(2);
}

static void
set_vector(struct point *point)
{
	long double latitude = point->latitude * PI / 180;
	long double longitude = point->longitude * PI / 180;

	point->vector[0] = cosl(latitude) * cosl(longitude);
	point->vector[1] = cosl(latitude) * sinl(longitude);
	point->vector[2] = sinl(latitude);
}

static long double
squared_chord(const struct point *a, const struct point *b)
{
	long double x = a->vector[0] - b->vector[0];
	long double y = a->vector[1] - b->vector[1];
	long double z = a->vector[2] - b->vector[2];

	return x * x + y * y + z * z;
}

static long double
distance(const struct point *a, const struct point *b)
{
	const long double *u = a->vector;
	const long double *v = b->vector;
	long double x = u[1] * v[2] - u[2] * v[1];
	long double y = u[2] * v[0] - u[0] * v[2];
	long double z = u[0] * v[1] - u[1] * v[0];
	long double dot = u[0] * v[0] + u[1] * v[1] + u[2] * v[2];

	return RADIUS * atan2l(sqrtl(x * x + y * y + z * z), dot);
}

static bool
coincident(const struct point *a, const struct point *b)
{
	return a->latitude == b->latitude && a->longitude == b->longitude;
}

static int
by_id(const void *left, const void *right)
{
	int64_t		a = ((const struct point *) left)->id;
	int64_t		b = ((const struct point *) right)->id;

	return (a > b) - (a < b);
}

static int
by_obs_id(const void *left, const void *right)
{
	int64_t		a = ((const struct answer *) left)->obs_id;
	int64_t		b = ((const struct answer *) right)->obs_id;

	return (a > b) - (a < b);
}

static struct table
read_points(const char *name)
{
	struct table table = {NULL, 0};
	FILE	   *file = fopen(name, "r");
	char		line[256];

	if (file == NULL)
		fail("cannot open", name);
	while (fgets(line, sizeof(line), file) != NULL)
	{
		struct point point;

		if (sscanf(line, "%ld,%lf,%lf", &point.id, &point.latitude, &point.longitude) != 3)
			fail("a line is not id,latitude,longitude", name);
		set_vector(&point);
		if ((table.count & (table.count + 1)) == 0)
			table.points = realloc(table.points, 2 * (table.count + 1) * sizeof(struct point));
		if (table.points == NULL)
			fail("out of memory", name);
		table.points[table.count++] = point;
	}
	fclose(file);
	qsort(table.points, table.count, sizeof(struct point), by_id);
	return table;
}

static void
read_answers(const char *name)
{
	FILE	   *file = fopen(name, "r");
	char		line[256];

	if (file == NULL)
		fail("cannot open", name);
	while (fgets(line, sizeof(line), file) != NULL)
	{
		struct answer answer;

		if (sscanf(line, "%ld,%ld,%lf", &answer.obs_id, &answer.ref_id, &answer.distance) != 3)
			fail("a line is not obs_id,ref_id,distance", name);
		if ((answer_count & (answer_count + 1)) == 0)
		{
			struct answer *more = realloc(answers, 2 * (answer_count + 1) * sizeof(struct answer));

			if (more == NULL)
				fail("out of memory", name);
			answers = more;
		}
		answers[answer_count++] = answer;
	}
	fclose(file);
	qsort(answers, answer_count, sizeof(struct answer), by_obs_id);
}

static long double
nearest_distance(const struct point *from)
{
	long double nearest_chord = HUGE_VALL;
	long double nearest = HUGE_VALL;

	for (size_t i = 0; i < references.count; i++)
	{
		long double chord = squared_chord(from, &references.points[i]);
		long double metres;

		if (chord > nearest_chord + TOO_CLOSE)
			continue;
		metres = distance(from, &references.points[i]);
		if (metres < nearest)
			nearest = metres;
		if (chord < nearest_chord)
			nearest_chord = chord;
	}
	return nearest;
}

static void *
check_share(void *argument)
{
	struct share *share = argument;

	for (size_t i = share->first; i < share->end; i++)
	{
		const struct point *from = &observations.points[i];
		struct point key = {.id = answers[i].ref_id};
		const struct point *to = bsearch(&key, references.points, references.count,
										 sizeof(struct point), by_id);
		long double metres;

		if (to == NULL)
		{
			share->unknown++;
			continue;
		}
		metres = distance(from, to);
		share->farthest = fmaxl(share->farthest, metres - nearest_distance(from));
		share->worst_distance = fmaxl(share->worst_distance, fabsl(metres - answers[i].distance));

		/* references are in order of their ids */
		for (const struct point *other = references.points; other < to; other++)
		{
			if (coincident(other, to))
			{
				share->wrong_ties++;
				break;
			}
		}
	}
	return NULL;
}

static int
report(const char *name, bool fine, const char *property, long double figure, const char *unit)
{
	printf("%s - %s: %s (%.*Lf %s)\n", fine ? "ok" : "not ok", name, property,
		   figure == truncl(figure) ? 0 : 3, figure, unit);
	return fine ? 0 : 1;
}

int
main(int argc, char **argv)
{
	struct share total = {0};
	struct share *shares;
	size_t		threads = sysconf(_SC_NPROCESSORS_ONLN);
	size_t		missing = 0;
	const char *name;
	int			failed = 0;

	if (argc < 4)
		fail("usage", "nearest_oracle observations.csv references.csv answers.csv [name]");
	name = argc > 4 ? argv[4] : "nearest";
	observations = read_points(argv[1]);
	references = read_points(argv[2]);
	read_answers(argv[3]);

	for (size_t i = 0; i < observations.count; i++)
		missing += i >= answer_count || answers[i].obs_id != observations.points[i].id;
	failed += report(name, missing == 0 && answer_count == observations.count,
					 "every observation has one answer", answer_count, "answers");
	if (failed)
		return 1;

	shares = calloc(threads, sizeof(struct share));
	if (shares == NULL)
		fail("out of memory", name);
	for (size_t t = 0; t < threads; t++)
	{
		shares[t].first = observations.count * t / threads;
		shares[t].end = observations.count * (t + 1) / threads;
		if (pthread_create(&shares[t].thread, NULL, check_share, &shares[t]) != 0)
			fail("cannot start a thread", name);
	}
	for (size_t t = 0; t < threads; t++)
	{
		pthread_join(shares[t].thread, NULL);
		total.farthest = fmaxl(total.farthest, shares[t].farthest);
		total.worst_distance = fmaxl(total.worst_distance, shares[t].worst_distance);
		total.wrong_ties += shares[t].wrong_ties;
		total.unknown += shares[t].unknown;
	}

	failed += report(name, total.unknown == 0, "every answer is a reference", total.unknown, "unknown");
	failed += report(name, total.farthest <= FARTHER_ALLOWED,
					 "no answer more than 20 nm farther than the nearest", total.farthest * 1e9L, "nm at most");
	failed += report(name, total.worst_distance <= DISTANCE_ALLOWED,
					 "distances within 10 nm of the truth", total.worst_distance * 1e9L, "nm at most");
	failed += report(name, total.wrong_ties == 0,
					 "of coincident references the first id", total.wrong_ties, "others");
	return failed ? 1 : 0;
}
