/*
 * nearest_oracle.c
 *		Holds nearest-neighbour answers against the oracle.
 *
 * Usage: nearest_oracle observations.csv references.csv answers.csv
 *
 * The first two files have lines id,latitude,longitude, the third has lines
 * obs_id,ref_id,distance.  Prints "ok - ..." or "not ok - ..." for each
 * property.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../lib/oracle.h"
#include "../lib/verdict.h"

struct row
{
	int64_t		id;
	int64_t		reference;		/* of an answer */
	double		numbers[2];		/* a point in degrees, or an answer's distance in metres */
};

struct table
{
	struct row *rows;			/* in order of their ids */
	size_t		count;
};

static void
fail(const char *what, const char *name)
{
	fprintf(stderr, "nearest_oracle: %s: %s\n", what, name);
	exit(2);
}

static void *
allocate(size_t count, size_t size)
{
	void	   *memory = calloc(count + 1, size);

	if (memory == NULL)
		fail("out of memory", "tables");
	return memory;
}

static int
by_id(const void *left, const void *right)
{
	int64_t		a = ((const struct row *) left)->id;
	int64_t		b = ((const struct row *) right)->id;

	return (a > b) - (a < b);
}

static struct table
read_table(const char *name, bool answers)
{
	struct table table = {NULL, 0};
	FILE	   *file = fopen(name, "r");
	char		line[256];

	if (file == NULL)
		fail("cannot open", name);
	while (fgets(line, sizeof(line), file) != NULL)
	{
		struct row	row = {0};

		if (answers ? sscanf(line, "%ld,%ld,%lf", &row.id, &row.reference, &row.numbers[0]) != 3
			: sscanf(line, "%ld,%lf,%lf", &row.id, &row.numbers[0], &row.numbers[1]) != 3)
			fail(answers ? "a line is not obs_id,ref_id,distance" : "a line is not id,latitude,longitude", name);
		if ((table.count & (table.count + 1)) == 0)
		{
			struct row *more = realloc(table.rows, 2 * (table.count + 1) * sizeof(struct row));

			if (more == NULL)
				fail("out of memory", name);
			table.rows = more;
		}
		table.rows[table.count++] = row;
	}
	fclose(file);
	qsort(table.rows, table.count, sizeof(struct row), by_id);
	return table;
}

/*
 * Has a reference with a smaller id the same coordinates?
 */
static bool
has_earlier_twin(const struct table *references, const struct row *reference)
{
	for (const struct row *other = references->rows; other < reference; other++)
		if (other->numbers[0] == reference->numbers[0] && other->numbers[1] == reference->numbers[1])
			return true;
	return false;
}

/*
 * Report on the answers, of which each observation has one.
 */
static void
judge(const struct table *observations, const struct table *references, const struct table *answers)
{
	struct sample *samples = allocate(answers->count, sizeof(*samples));
	int64_t    *places = allocate(answers->count, sizeof(*places));
	double	   *latitude = allocate(references->count, sizeof(*latitude));
	double	   *longitude = allocate(references->count, sizeof(*longitude));
	struct verdict verdict;
	uint32_t	known = 0;
	long		wrong_ties = 0;

	for (size_t i = 0; i < references->count; i++)
	{
		latitude[i] = references->rows[i].numbers[0];
		longitude[i] = references->rows[i].numbers[1];
	}
	for (size_t i = 0; i < answers->count; i++)
	{
		const struct row key = {.id = answers->rows[i].reference};
		const struct row *reference = bsearch(&key, references->rows, references->count,
											  sizeof(key), by_id);

		if (reference == NULL)
			continue;
		wrong_ties += has_earlier_twin(references, reference);
		places[i] = reference - references->rows;
		samples[known++] = (struct sample) {
			.observation = (uint64_t) observations->rows[i].id,
			.latitude = observations->rows[i].numbers[0],
			.longitude = observations->rows[i].numbers[1],
			.count = 1,
			.reference = &places[i],
			.distance = &answers->rows[i].numbers[0]
		};
	}
	verdict = oracle_check(latitude, longitude, references->count, 1, samples, known);
	report_failures("every answer is a reference", (long) (answers->count - known));
	report_measure("no answer more than 20 nm farther than the nearest",
				   verdict.farther_nm <= ORACLE_FARTHER_LIMIT, "at most", verdict.farther_nm, "nm");
	report_measure("distances within 10 nm of the truth",
				   verdict.error_nm <= ORACLE_ERROR_LIMIT, "at most", verdict.error_nm, "nm");
	report(verdict.right ? "the oracle finds nothing else" : verdict.wrong, verdict.right);
	report_failures("of coincident references the first id", wrong_ties);
	free(samples);
	free(places);
	free(latitude);
	free(longitude);
}

int
main(int argc, char **argv)
{
	struct table observations;
	struct table references;
	struct table answers;
	size_t		answered = 0;

	if (argc != 4)
		fail("usage", "nearest_oracle observations.csv references.csv answers.csv");
	observations = read_table(argv[1], false);
	references = read_table(argv[2], false);
	answers = read_table(argv[3], true);
	while (answered < observations.count && answered < answers.count &&
		   answers.rows[answered].id == observations.rows[answered].id)
		answered++;
	report("every observation has one answer",
		   answered == observations.count && answered == answers.count);
	if (answered == answers.count)
		judge(&observations, &references, &answers);
	free(observations.rows);
	free(references.rows);
	free(answers.rows);
	return summed_up();
}
