/*
 * geonn_bench.c
 *		geonn-bench: how fast are searches, and are their answers right?
 *
 * Makes points from a seed, searches them, once to warm up and then repeatedly,
 * holds a sample of the answers against an oracle, and prints a table and JSON.
 *
 *	geonn_bench.c	options
 *	suites.c		lists of runs: the published table, the goals
 *	bench.h			what a run is
 *	host_run.c		runs from host memory to host memory, through the engine
 *	host_samples.c	samples of its answers, which are checked
 *	gpu_run.cu		runs on data that is in the GPUs' memory (or no_gpu.c)
 *	points.h		uniform and city-like points
 *	conditions.h	groups, windows and radiuses of points
 *	shapes.h		lines and polygons in place of points
 *	../lib/oracle.c	the truth, in 128-bit floating point
 *	report.c		tables, JSON, rows of results, and the machine
 *
 * The script peers, beside this file, runs other programs on the same points.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "host_run.h"
#include "report.h"
#include "suites.h"

/* seconds that a line of a list may take, but for making its points */
#define SUITE_LIMIT_SECONDS 10

#define EXIT_WRONG 1
#define EXIT_USAGE 2

static const char usage[] =
"geonn-bench times exact nearest-neighbour searches, and checks their answers.\n"
"\n"
"Usage: geonn-bench [OPTION]...\n"
"\n"
"  --table                  the four problems of the published table, beside its\n"
"                           figures, on all devices of this machine\n"
"  --goals                  the project's goals, and what this machine reaches\n"
"\n"
"or one problem:\n"
"  -n, --observations N     (2^24; numbers may be written 2^N)\n"
"  -m, --references N       (2^16)\n"
"  -k, --neighbours K       of each observation, 1 to 1024 (1)\n"
"  --points uniform|cities  how they are distributed (uniform)\n"
"  --groups N               references of one of N groups are candidates (none)\n"
"  --steps N                references are there in one of N steps of time each, and\n"
"                           observations look at a moment (none)\n"
"  --present X              or: each is there for a share of all time, 0 to 1 (0)\n"
"  --observed X             and observations look for a share of all time (0)\n"
"  --radius METRES          each point has a radius from 0 to that (none)\n"
"  --within METRES          only references at most so far away are candidates (no limit)\n"
"  --count METRES,...       count the references within up to 16 radii, which rise\n"
"  --weights N              and add up so many weights of each, 0 to 4 (0)\n"
"  --lines N                references are segments of lines, N of each, not points (none)\n"
"  --polygons N             or sides of polygons with N corners (none)\n"
"  --exclude-self           observations are the references, in their order, and none is\n"
"                           a candidate of its own\n"
"  --metric sphere|spheroid (sphere; by spheroid, answers are not checked)\n"
"  --algorithm index|brute  (index)\n"
"  --device cpu|cuda        (cuda where there is a GPU, else cpu)\n"
"  --data host|device       host: degrees in host memory to answers in host memory,\n"
"                           through the engine; device: on the GPUs, the building\n"
"                           of the index included (device where there is a GPU)\n"
"  --gpus N                 so many of those that CUDA_VISIBLE_DEVICES shows (1)\n"
"  --threads N              of the CPU (0: one for each core)\n"
"  --batch-rows N           observations of a batch (0: as suits)\n"
"\n"
"and for both:\n"
"  --seed N                 of the points (1)\n"
"  --repetitions N          timed, after one to warm up; 1 to 1000 (5)\n"
"  --limit SECONDS          begin no repetition after this time (--table and\n"
"                           --goals: 10 s a line; else none)\n"
"  --check N                observations whose answers the oracle checks, at least 1 (48)\n"
"  --engine PATH            the program geonn-engine (the one beside this one's\n"
"                           folder)\n"
"  --json FILE              write the machine, all parameters and all times\n"
"  --results FILE           append a row of results for each line, as all benchmarks do\n"
"  --export FILE            write the points of one problem (--data host), and the\n"
"                           answers, as float64: latitudes and longitudes of the\n"
"                           references, of the observations, numbers of the k nearest\n"
"                           references of each observation, their distances\n"
"  --help                   print this\n"
"\n"
"Exit status: 0, 1 where answers were wrong, 2 where something could not be run.\n";

enum suite
{
	SUITE_NONE,
	SUITE_TABLE,
	SUITE_GOALS
};

struct arguments
{
	struct problem problem;
	enum suite	suite;
	const char *json;
	const char *results;
	const char *export;
	bool		device_given;
	bool		data_given;
};

enum option_code
{
	OPTION_TABLE = 256,
	OPTION_GOALS,
	OPTION_POINTS,
	OPTION_GROUPS,
	OPTION_STEPS,
	OPTION_PRESENT,
	OPTION_OBSERVED,
	OPTION_RADIUS,
	OPTION_WITHIN,
	OPTION_COUNT,
	OPTION_WEIGHTS,
	OPTION_LINES,
	OPTION_POLYGONS,
	OPTION_EXCLUDE_SELF,
	OPTION_METRIC,
	OPTION_ALGORITHM,
	OPTION_DEVICE,
	OPTION_DATA,
	OPTION_GPUS,
	OPTION_THREADS,
	OPTION_BATCH_ROWS,
	OPTION_SEED,
	OPTION_REPETITIONS,
	OPTION_LIMIT,
	OPTION_CHECK,
	OPTION_ENGINE,
	OPTION_JSON,
	OPTION_RESULTS,
	OPTION_EXPORT,
	OPTION_HELP
};

static const struct option options[] = {
	{"observations", required_argument, NULL, 'n'},
	{"references", required_argument, NULL, 'm'},
	{"neighbours", required_argument, NULL, 'k'},
	{"table", no_argument, NULL, OPTION_TABLE},
	{"goals", no_argument, NULL, OPTION_GOALS},
	{"points", required_argument, NULL, OPTION_POINTS},
	{"groups", required_argument, NULL, OPTION_GROUPS},
	{"steps", required_argument, NULL, OPTION_STEPS},
	{"present", required_argument, NULL, OPTION_PRESENT},
	{"observed", required_argument, NULL, OPTION_OBSERVED},
	{"radius", required_argument, NULL, OPTION_RADIUS},
	{"within", required_argument, NULL, OPTION_WITHIN},
	{"count", required_argument, NULL, OPTION_COUNT},
	{"weights", required_argument, NULL, OPTION_WEIGHTS},
	{"exclude-self", no_argument, NULL, OPTION_EXCLUDE_SELF},
	{"lines", required_argument, NULL, OPTION_LINES},
	{"polygons", required_argument, NULL, OPTION_POLYGONS},
	{"metric", required_argument, NULL, OPTION_METRIC},
	{"algorithm", required_argument, NULL, OPTION_ALGORITHM},
	{"device", required_argument, NULL, OPTION_DEVICE},
	{"data", required_argument, NULL, OPTION_DATA},
	{"gpus", required_argument, NULL, OPTION_GPUS},
	{"threads", required_argument, NULL, OPTION_THREADS},
	{"batch-rows", required_argument, NULL, OPTION_BATCH_ROWS},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"repetitions", required_argument, NULL, OPTION_REPETITIONS},
	{"limit", required_argument, NULL, OPTION_LIMIT},
	{"check", required_argument, NULL, OPTION_CHECK},
	{"engine", required_argument, NULL, OPTION_ENGINE},
	{"json", required_argument, NULL, OPTION_JSON},
	{"results", required_argument, NULL, OPTION_RESULTS},
	{"export", required_argument, NULL, OPTION_EXPORT},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0}
};

static void
refuse(const char *option, const char *expected, const char *found)
{
	fprintf(stderr, "geonn-bench: %s takes %s, not \"%s\"\n", option, expected, found);
	exit(EXIT_USAGE);
}

/*
 * A whole number in a range, perhaps as a power of two.
 */
static uint64_t
parse_number(const char *option, const char *text, uint64_t low, uint64_t high)
{
	bool		power = strncmp(text, "2^", 2) == 0;
	const char *digits = power ? text + 2 : text;
	char		expected[80];
	char	   *end;
	unsigned long long number;

	snprintf(expected, sizeof(expected), "a number from %llu to %llu",
			 (unsigned long long) low, (unsigned long long) high);
	errno = 0;
	number = strtoull(digits, &end, 10);
	if (digits[0] < '0' || digits[0] > '9' || *end != '\0' || errno != 0 ||
		(power && number > 62))
		refuse(option, expected, text);
	if (power)
		number = 1ULL << number;
	if (number < low || number > high)
		refuse(option, expected, text);
	return number;
}

/*
 * A number from 0 to a greatest one.
 */
static double
parse_real(const char *option, const char *text, double high)
{
	char		expected[80];
	char	   *end;
	double		number = strtod(text, &end);

	snprintf(expected, sizeof(expected), "a number from 0 to %g", high);
	if (end == text || *end != '\0' || !(number >= 0 && number <= high))
		refuse(option, expected, text);
	return number;
}

/*
 * Which of these words?
 */
static int
parse_word(const char *option, const char *text, const char *const *words, int count)
{
	char		expected[80] = "";

	for (int i = 0; i < count; i++)
	{
		if (strcmp(text, words[i]) == 0)
			return i;
		snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "%s%s",
				 i > 0 ? " or " : "", words[i]);
	}
	refuse(option, expected, text);
	return -1;
}

static void
parse_radii(struct problem *problem, const char *text)
{
	char	   *list = strdup(text);
	double		last = -1.0;

	problem->radii = 0;
	for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ","))
	{
		double		radius = parse_real("--count", word, 1e9);

		if (problem->radii == GEONN_RADII_MAX || radius <= last)
			refuse("--count", "up to 16 radii, which rise", text);
		problem->radius[problem->radii++] = last = radius;
	}
	if (problem->radii == 0)
		refuse("--count", "up to 16 radii, which rise", text);
	free(list);
}

static void
parse_option(struct arguments *arguments, int code, const char *value)
{
	static const char *const devices[] = {"cpu", "cuda"};
	static const char *const places[] = {"host", "device"};
	static const char *const metrics[] = {"sphere", "spheroid"};
	struct problem *problem = &arguments->problem;

	switch (code)
	{
		case 'n':
			problem->observations = parse_number("--observations", value, 1, (uint64_t) 1 << 32);
			break;
		case 'm':
			problem->references = (uint32_t) parse_number("--references", value, 1,
														  GEONN_REFERENCES_MAX);
			break;
		case 'k':
			problem->k = (uint32_t) parse_number("--neighbours", value, 1, GEONN_K_MAX);
			break;
		case OPTION_TABLE:
			arguments->suite = SUITE_TABLE;
			break;
		case OPTION_GOALS:
			arguments->suite = SUITE_GOALS;
			break;
		case OPTION_POINTS:
			problem->distribution = (enum points_distribution)
				parse_word("--points", value, distribution_names, 2);
			break;
		case OPTION_GROUPS:
			problem->conditions.groups = (uint32_t) parse_number("--groups", value, 1, 1 << 30);
			break;
		case OPTION_STEPS:
			problem->conditions.steps = (uint32_t) parse_number("--steps", value, 1, 1 << 30);
			break;
		case OPTION_PRESENT:
			problem->conditions.present = parse_real("--present", value, 1);
			break;
		case OPTION_OBSERVED:
			problem->conditions.observed = parse_real("--observed", value, 1);
			break;
		case OPTION_RADIUS:
			problem->conditions.radius = parse_real("--radius", value, 1e9);
			break;
		case OPTION_WITHIN:
			problem->conditions.within = parse_real("--within", value, 1e9);
			break;
		case OPTION_COUNT:
			parse_radii(problem, value);
			break;
		case OPTION_WEIGHTS:
			problem->conditions.weights = (uint32_t) parse_number("--weights", value, 0, GEONN_WEIGHTS_MAX);
			break;
		case OPTION_LINES:
			problem->conditions.lines = (uint32_t) parse_number("--lines", value, 1, 1 << 30);
			break;
		case OPTION_POLYGONS:
			problem->conditions.polygons = (uint32_t) parse_number("--polygons", value, 3, 1 << 30);
			break;
		case OPTION_EXCLUDE_SELF:
			problem->conditions.exclude_self = true;
			break;
		case OPTION_METRIC:
			problem->metric = parse_word("--metric", value, metrics, 2) == 0 ? GEONN_METRIC_SPHERE :
				GEONN_METRIC_SPHEROID;
			break;
		case OPTION_ALGORITHM:
			problem->algorithm = (enum geonn_algorithm)
				(GEONN_ALGORITHM_INDEX + parse_word("--algorithm", value, algorithm_names + 1, 2));
			break;
		case OPTION_DEVICE:
			problem->device = parse_word("--device", value, devices, 2) == 0 ? GEONN_DEVICE_CPU :
				GEONN_DEVICE_CUDA;
			arguments->device_given = true;
			break;
		case OPTION_DATA:
			problem->data = parse_word("--data", value, places, 2) == 0 ? BENCH_DATA_HOST :
				BENCH_DATA_DEVICE;
			arguments->data_given = true;
			break;
		case OPTION_GPUS:
			problem->gpus = (int) parse_number("--gpus", value, 1, BENCH_GPUS_MAX);
			break;
		case OPTION_THREADS:
			problem->threads = (int) parse_number("--threads", value, 0, 256);
			break;
		case OPTION_BATCH_ROWS:
			problem->batch_rows = (uint32_t) parse_number("--batch-rows", value, 0,
														  GEONN_BATCH_ROWS_MAX);
			break;
		case OPTION_SEED:
			problem->seed = parse_number("--seed", value, 0, UINT64_MAX);
			break;
		case OPTION_REPETITIONS:
			problem->repetitions = (int) parse_number("--repetitions", value, 1,
													  BENCH_REPETITIONS_MAX);
			break;
		case OPTION_LIMIT:
			problem->limit_ms = 1e3 * (double) parse_number("--limit", value, 1, 1000000);
			break;
		case OPTION_CHECK:
			problem->checked = (uint32_t) parse_number("--check", value, 1, 1 << 20);
			break;
		case OPTION_ENGINE:
			problem->engine = value;
			break;
		case OPTION_JSON:
			arguments->json = value;
			break;
		case OPTION_RESULTS:
			arguments->results = value;
			break;
		case OPTION_EXPORT:
			arguments->export = value;
			break;
		case OPTION_HELP:
			fputs(usage, stdout);
			exit(EXIT_SUCCESS);
		default:
			fprintf(stderr, "Try geonn-bench --help.\n");
			exit(EXIT_USAGE);
	}
}

/*
 * The engine that was built with this program: ../geonn-engine.
 */
static const char *
find_engine(void)
{
	static char path[PATH_MAX];
	ssize_t		length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char	   *slash = NULL;

	if (length > 0)
	{
		path[length] = '\0';
		for (int i = 0; i < 2 && (slash = strrchr(path, '/')) != NULL; i++)
			*slash = '\0';
	}
	if (slash == NULL || strlen(path) + sizeof("/geonn-engine") > sizeof(path))
		return "build/geonn-engine";
	strcat(path, "/geonn-engine");
	return path;
}

/*
 * What was left open depends on the machine; what can't be is refused.
 */
static void
complete(struct arguments *arguments, const struct machine *machine)
{
	struct problem *problem = &arguments->problem;

	if (!arguments->device_given)
		problem->device = arguments->data_given && problem->data == BENCH_DATA_DEVICE ? GEONN_DEVICE_CUDA :
			machine->gpus > 0 ? GEONN_DEVICE_CUDA : GEONN_DEVICE_CPU;
	if (!arguments->data_given)
		problem->data = problem->device == GEONN_DEVICE_CUDA && arguments->export == NULL ?
			BENCH_DATA_DEVICE : BENCH_DATA_HOST;
	if (problem->engine == NULL)
		problem->engine = find_engine();
	if (isinf(problem->limit_ms) && arguments->suite != SUITE_NONE)
		problem->limit_ms = SUITE_LIMIT_SECONDS * 1e3;

	if (problem->radii == 0 && problem->conditions.weights > 0)
		refuse("--weights", "0 without --count", "more");
	if (problem->conditions.lines > 0 && problem->conditions.polygons > 0)
		refuse("--polygons", "none with --lines", "some");
	if (conditions_columns(&problem->conditions) & GEONN_COLUMN_ARC &&
		(conditions_columns(&problem->conditions) != GEONN_COLUMN_ARC || problem->conditions.within > 0 ||
		 problem->radii > 0 || problem->metric != GEONN_METRIC_SPHERE))
		refuse(problem->conditions.lines > 0 ? "--lines" : "--polygons", "no other condition, count or metric", "one");
	if (problem->radii > 0)
		problem->k = problem->radii * (problem->conditions.weights > 0 ? problem->conditions.weights : 1);
	if (problem->device == GEONN_DEVICE_CPU)
	{
		if (problem->data == BENCH_DATA_DEVICE)
			refuse("--data", "host for --device cpu", "device");
		problem->gpus = 0;
	}
	else if (arguments->suite == SUITE_NONE && machine->gpus < problem->gpus)
	{
		if (machine->gpus == 0)
			fprintf(stderr, "geonn-bench: a GPU was asked for, and there is none: %s\n",
					machine->no_gpu);
		else
			fprintf(stderr, "geonn-bench: %d GPUs were asked for, and CUDA shows %d\n",
					problem->gpus, machine->gpus);
		exit(EXIT_USAGE);
	}
	if ((uint64_t) problem->gpus > problem->observations)
	{
		fprintf(stderr, "geonn-bench: %d GPUs were asked for, and there are %llu observations\n",
				problem->gpus, (unsigned long long) problem->observations);
		exit(EXIT_USAGE);
	}
	if ((conditions_any(&problem->conditions) || problem->radii > 0 || problem->metric != GEONN_METRIC_SPHERE) &&
		(problem->data != BENCH_DATA_HOST || arguments->suite != SUITE_NONE ||
		 (arguments->export != NULL && !problem->conditions.exclude_self)))
	{
		fprintf(stderr, "geonn-bench: groups, windows, radiuses, --within, --count, --lines, --polygons, --exclude-self and --metric spheroid are for one problem with --data host\n");
		exit(EXIT_USAGE);
	}
	if (arguments->export != NULL && (problem->data != BENCH_DATA_HOST || arguments->suite != SUITE_NONE ||
									  problem->radii > 0))
	{
		fprintf(stderr, "geonn-bench: --export is for one problem with --data host, without --count\n");
		exit(EXIT_USAGE);
	}
	if (access(problem->engine, X_OK) != 0)
	{
		fprintf(stderr, "geonn-bench: there is no engine at %s: %s\n", problem->engine, strerror(errno));
		exit(EXIT_USAGE);
	}
}

static FILE *
open_file(const char *path, const char *mode)
{
	FILE	   *file = fopen(path, mode);

	if (file != NULL)
		return file;
	fprintf(stderr, "geonn-bench: could not write %s: %s\n", path, strerror(errno));
	exit(EXIT_USAGE);
}

static void
close_file(FILE *file, const char *path)
{
	if (file == NULL || fclose(file) == 0)
		return;
	fprintf(stderr, "geonn-bench: could not write %s: %s\n", path, strerror(errno));
	exit(EXIT_USAGE);
}

/* "2^24 × 2^16 uniform, k = 1" */
static const char *
problem_text(const struct problem *problem)
{
	static char text[600];
	size_t		length;

	length = (size_t) snprintf(text, sizeof(text), "%s × %s %s%s%s, ", count_text(problem->observations),
							   count_text(problem->references), distribution_names[problem->distribution],
							   conditions_text(&problem->conditions),
							   problem->metric == GEONN_METRIC_SPHEROID ? ", spheroid" : "");
	if (problem->radii == 0)
		snprintf(text + length, sizeof(text) - length, "k = %u", problem->k);
	for (uint32_t i = 0; i < problem->radii; i++)
		length += (size_t) snprintf(text + length, sizeof(text) - length, "%s%g km", i == 0 ? "counts within " : ", ",
									problem->radius[i] / 1000);
	return text;
}

static void
print_problem(const struct problem *problem, const struct outcome *outcome)
{
	double		seconds = outcome->best_ms * 1e-3;

	printf("%s, seed %llu\n%s\n", problem_text(problem), (unsigned long long) problem->seed, run_text(problem));
	if (!outcome->finished)
	{
		printf("  failed: %s\n", outcome->failure);
		return;
	}
	printf("  best %s ms, median %s ms of %d: %.2f M observations/s",
		   time_text(outcome->best_ms), time_text(outcome->median_ms), outcome->repetitions,
		   (double) problem->observations / seconds * 1e-6);
	if (problem->algorithm == GEONN_ALGORITHM_BRUTE)
		printf(", %.3f T pairs/s",
			   (double) problem->observations * problem->references / seconds * 1e-12);
	printf("\n");
	if (problem->data == BENCH_DATA_DEVICE)
	{
		printf("  of it building: %s ms at best", time_text(outcome->best_build_ms));
		if (outcome->best_sort_ms > 0)
			printf(", sorting the observations: %s ms", time_text(outcome->best_sort_ms));
		printf("\n");
	}
	else
		printf("  apart from it: references sent and sealed in %s ms, first search, which builds, %s ms\n",
			   time_text(outcome->sent_ms), time_text(outcome->first_ms));
	printf("  answers: %s\n", answers_text(outcome));
}

static void
problem_row(const struct problem *problem, const struct outcome *outcome)
{
	char		work[800];

	snprintf(work, sizeof(work), "%s: %s", problem_text(problem), run_text(problem));
	if (!outcome->finished)
		results_failure("engine searches", work, outcome->failure);
	else
		results_figure(&(struct figure) {
			.section = "engine searches", .work = work, .geonn = "", .compared = "", .unit = "ms",
			.median = outcome->median_ms, .least = outcome->best_ms, .greatest = outcome->worst_ms
		});
}

/*
 * One problem; the exit status.
 */
static int
run_problem(const struct arguments *arguments, FILE *json)
{
	static struct outcome outcome;
	const struct problem *problem = &arguments->problem;

	if (arguments->export == NULL)
		bench_run(problem, &outcome);
	else
	{
		struct host_run *run = host_run_open(problem, outcome.failure);
		FILE	   *file = open_file(arguments->export, "w");

		if (run != NULL)
		{
			host_run_search(run, problem, &outcome);
			if (outcome.finished && !host_run_export(run, problem, file, outcome.failure))
				outcome.finished = false;
			host_run_close(run);
		}
		close_file(file, arguments->export);
	}
	print_problem(problem, &outcome);
	problem_row(problem, &outcome);
	json_run(json, problem, &outcome);
	if (!outcome.finished)
		return EXIT_USAGE;
	return outcome.verdict.right ? EXIT_SUCCESS : EXIT_WRONG;
}

int
main(int argument_count, char **words)
{
	struct arguments arguments = {
		.problem = {
			.observations = (uint64_t) 1 << 24,
			.references = (uint32_t) 1 << 16,
			.k = 1,
			.distribution = POINTS_UNIFORM,
			.seed = 1,
			.algorithm = GEONN_ALGORITHM_INDEX,
			.gpus = 1,
			.repetitions = 5,
			.limit_ms = INFINITY,
			.checked = 48
		}
	};
	static struct machine machine;
	FILE	   *json = NULL;
	FILE	   *results = NULL;
	int			code;
	int			status;

	while ((code = getopt_long(argument_count, words, "n:m:k:", options, NULL)) != -1)
		parse_option(&arguments, code, optarg);
	if (optind < argument_count)
	{
		fprintf(stderr, "geonn-bench: what is \"%s\"?  Try geonn-bench --help.\n", words[optind]);
		return EXIT_USAGE;
	}
	machine_describe(&machine);
	complete(&arguments, &machine);
	if (arguments.json != NULL)
		json = open_file(arguments.json, "w");
	if (arguments.results != NULL)
		results = open_file(arguments.results, "a");
	results_to(results);

	machine_print(&machine);
	json_begin(json, &machine);
	if (arguments.suite == SUITE_TABLE)
		status = suite_table(&machine, &arguments.problem, json) ? EXIT_SUCCESS : EXIT_WRONG;
	else if (arguments.suite == SUITE_GOALS)
		status = suite_goals(&machine, &arguments.problem, json) ? EXIT_SUCCESS : EXIT_WRONG;
	else
		status = run_problem(&arguments, json);
	json_end(json);
	close_file(json, arguments.json);
	close_file(results, arguments.results);
	return status;
}
