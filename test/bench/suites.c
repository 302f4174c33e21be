/*
 * suites.c
 *		Lists of runs: the published table, and the goals.
 */
#include "suites.h"

#include <math.h>
#include <string.h>

#include "host_run.h"
#include "scaling.h"

#define MILLION 1e6
#define TRILLION 1e12

/* what somebody else's program took for a problem */
struct published
{
	const char *what;
	double		best_ms;
};

#define PUBLISHED_MAX 6

/* a problem of the published table */
struct table_problem
{
	uint64_t	observations;
	uint32_t	references;
	struct published published[PUBLISHED_MAX];
};

/*
 * The published multi-GPU Python baseline: brute force in float32.  Of 2^32
 * pairs it does not say of how many points.
 */
static const struct table_problem table_problems[] = {
	{
		1 << 16, 1 << 13, {
			{"Numba-CUDA, GPU", 9.0},
			{"cuML", 306.0},
			{"Numba, 24 CPU cores", 1100.0},
			{"NumPy", 12200.0},
			{"scikit-learn, brute force", 46900.0}
		}
	},
	{
		1 << 16, 1 << 16, {
			{"Numba-CUDA, 1 GPU (2^32 pairs)", 65.0},
			{"cuML (2^32 pairs)", 1870.0},
			{"Numba, 24 CPU cores (2^32 pairs)", 8720.0}
		}
	},
	{
		1 << 24, 1 << 14, {
			{"Numba-CUDA, 4 × T4", 1770.0},
			{"Numba-CUDA, 1 × T4", 5050.0},
			{"cuML", 131000.0},
			{"Numba, 24 CPU cores", 557000.0}
		}
	},
	{
		1 << 27, 1 << 16, {
			{"Numba-CUDA, threads and RMM, 4 × A100", 12700.0},
			{"Numba-CUDA, Dask, 4 × A100", 14500.0},
			{"Numba, CPU", 7380000.0}
		}
	}
};

static double
pairs_of(const struct problem *problem)
{
	return (double) problem->observations * problem->references;
}

static bool
is_wrong(const struct outcome *outcome)
{
	return outcome->finished && !outcome->verdict.right;
}

/* the row of a line, beside the published time */
static void
table_row(const struct problem *problem, const struct outcome *outcome, const struct published *published)
{
	char		work[256];
	char		geonn[64];
	char		compared[128];

	snprintf(work, sizeof(work), "%s × %s: %s", count_text(problem->observations),
			 count_text(problem->references), run_text(problem));
	if (!outcome->finished)
	{
		results_failure("engine table", work, outcome->failure);
		return;
	}
	snprintf(geonn, sizeof(geonn), "%s ms", time_text(outcome->median_ms));
	snprintf(compared, sizeof(compared), "%s: %s ms", published->what, time_text(published->best_ms));
	results_figure(&(struct figure) {
		.section = "engine table", .work = work, .geonn = geonn, .compared = compared, .unit = "×",
		.median = published->best_ms / outcome->median_ms,
		.least = published->best_ms / outcome->worst_ms,
		.greatest = published->best_ms / outcome->best_ms
	});
}

/*
 * One line of the published table, with the time that it has to beat.
 */
static bool
print_table_line(const struct problem *problem, const struct outcome *outcome,
				 const struct published *published, FILE *json)
{
	double		published_ms = published->best_ms;

	json_run(json, problem, outcome);
	table_row(problem, outcome, published);
	if (!outcome->finished)
		printf("| | geonn: %s | | | | | %s |\n", run_text(problem), outcome->failure);
	else
	{
		printf("| | geonn: %s | %s | %s |", run_text(problem), time_text(outcome->best_ms),
			   time_text(outcome->median_ms));
		if (problem->algorithm == GEONN_ALGORITHM_BRUTE)
			printf(" %.2f |", pairs_of(problem) / (outcome->best_ms * 1e-3) / TRILLION);
		else
			printf(" |");
		printf(" %.*f | %s |\n", published_ms < 10 * outcome->best_ms ? 1 : 0,
			   published_ms / outcome->best_ms, answers_text(outcome));
	}
	fflush(stdout);
	return !is_wrong(outcome);
}

/*
 * The runs of one problem on these devices, with the data on the host: one
 * engine answers by both algorithms, and the CPU by the index alone, as it
 * would compare all pairs for many minutes.
 */
static bool
table_host_runs(const struct problem *model, const struct published *published, FILE *json)
{
	static const enum geonn_algorithm algorithms[] = {GEONN_ALGORITHM_BRUTE, GEONN_ALGORITHM_INDEX};
	static struct outcome outcome;
	struct problem problem = *model;
	struct host_run *run;
	bool		right = true;

	memset(&outcome, 0, sizeof(outcome));
	problem.data = BENCH_DATA_HOST;
	run = host_run_open(&problem, outcome.failure);
	for (int i = problem.device == GEONN_DEVICE_CPU ? 1 : 0; i < 2; i++)
	{
		problem.algorithm = algorithms[i];
		if (run != NULL)
			host_run_search(run, &problem, &outcome);
		right = print_table_line(&problem, &outcome, published, json) && right;
	}
	if (run != NULL)
		host_run_close(run);
	return right;
}

static bool
table_device_runs(const struct problem *model, const struct published *published, FILE *json)
{
	static const enum geonn_algorithm algorithms[] = {GEONN_ALGORITHM_BRUTE, GEONN_ALGORITHM_INDEX};
	static struct outcome outcome;
	struct problem problem = *model;
	bool		right = true;

	problem.data = BENCH_DATA_DEVICE;
	for (int i = 0; i < 2; i++)
	{
		problem.algorithm = algorithms[i];
		bench_run(&problem, &outcome);
		right = print_table_line(&problem, &outcome, published, json) && right;
	}
	return right;
}

bool
suite_table(const struct machine *machine, const struct problem *model, FILE *json)
{
	bool		right = true;

	printf("\n| observations × references | program | best ms | median ms | T pairs/s | faster than the best published | answers |\n"
		   "|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof(table_problems) / sizeof(table_problems[0]); i++)
	{
		const struct table_problem *entry = &table_problems[i];
		const struct published *best = &entry->published[0];
		struct problem problem = *model;

		problem.observations = entry->observations;
		problem.references = entry->references;
		problem.k = 1;
		problem.distribution = POINTS_UNIFORM;
		printf("| **%s × %s** | | | | | | |\n", count_text(problem.observations),
			   count_text(problem.references));
		for (int j = 0; j < PUBLISHED_MAX && entry->published[j].what != NULL; j++)
			printf("| | published: %s | %s | | %.3g | | float32, not exact |\n",
				   entry->published[j].what, time_text(entry->published[j].best_ms),
				   pairs_of(&problem) / (entry->published[j].best_ms * 1e-3) / TRILLION);
		fflush(stdout);

		problem.device = GEONN_DEVICE_CUDA;
		for (problem.gpus = 1; problem.gpus <= machine->gpus;
			 problem.gpus = problem.gpus < machine->gpus ? machine->gpus : machine->gpus + 1)
		{
			right = table_device_runs(&problem, best, json) && right;
			right = table_host_runs(&problem, best, json) && right;
		}
		problem.device = GEONN_DEVICE_CPU;
		problem.gpus = 0;
		right = table_host_runs(&problem, best, json) && right;
	}
	return right;
}

/*
 * The goals
 */

enum measure
{
	MEASURE_TIME,				/* milliseconds: total */
	MEASURE_BUILD,				/* milliseconds: the index's build */
	MEASURE_PAIRS,				/* 10^12 pairs a second */
	MEASURE_SPEEDUP,			/* times the pairs a second of the goal before */
	MEASURE_OBSERVATIONS,		/* 10^6 observations a second */
	MEASURE_SESSIONS,			/* likewise, by MANY_THREADS, in batches of BATCH_ROWS that
								 * many sessions send */
	MEASURE_BATCHES,			/* times the observations a second that large
								 * batches reach, by batches of BATCH_ROWS */
	MEASURE_DEVICES,			/* times the observations a second of all cores */
	MEASURE_THREADS,			/* times the observations a second of one thread, by MANY_THREADS;
								 * goals are shares of what the machine gives */
	MEASURE_QUESTION			/* by one thread: times the milliseconds of a plainer question */
};

/* observations of the batches that MEASURE_BATCHES compares */
#define BATCH_ROWS ((uint32_t) 1 << 15)
#define LARGE_BATCH_ROWS ((uint32_t) 1 << 20)

/* threads of MEASURE_SESSIONS and MEASURE_THREADS */
#define MANY_THREADS 16

struct goal
{
	const char *work;
	uint64_t	observations;
	uint32_t	references;
	uint32_t	k;
	enum points_distribution distribution;
	enum geonn_algorithm algorithm;
	enum bench_data data;
	int			gpus;			/* 0: on the CPU, with two threads or MANY_THREADS */
	enum measure measure;
	double		goal;
	double		at_least;		/* 0: a multiple of another program's, which
								 * test/bench/peers measures */
	double		radius;			/* within which references are counted; 0: the nearest */
	bool		exclude_self;	/* observations are the references */
	bool		spheroid;
};

static const struct goal goals[] = {
	{"2^27 × 2^16 uniform, device-resident, build and sort included", 1 << 27, 1 << 16, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 9, 10, 0, false, false},
	{"2^27 × 2^16 city-like, device-resident, build and sort included", 1 << 27, 1 << 16, 1,
	POINTS_CITIES, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 8, 20, 0, false, false},
	{"2^27 × 2^16 uniform, host to host, one GPU", 1 << 27, 1 << 16, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 1, MEASURE_TIME, 43, 55, 0, false, false},
	{"2^27 × 2^16 city-like, host to host, one GPU", 1 << 27, 1 << 16, 1,
	POINTS_CITIES, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 1, MEASURE_TIME, 43, 55, 0, false, false},
	{"2^27 × 2^16 uniform, host to host, four GPUs", 1 << 27, 1 << 16, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 4, MEASURE_TIME, 13, 22, 0, false, false},
	{"2^27 × 2^20 city-like, device-resident", 1 << 27, 1 << 20, 1,
	POINTS_CITIES, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 12, 40, 0, false, false},
	{"2^27 × 2^24 uniform, device-resident", 1 << 27, 1 << 24, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 16, 50, 0, false, false},
	{"build, 2^24 references on the device", 1 << 20, 1 << 24, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_BUILD, 2.3, 6, 0, false, false},
	{"2^27 × 2^16, k = 10, device-resident", 1 << 27, 1 << 16, 10,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 40, 50, 0, false, false},
	{"2^22 × 2^20, k = 32, device-resident", 1 << 22, 1 << 20, 32,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 15, 20, 0, false, false},
	{"2^22 × 2^20, k = 64, device-resident", 1 << 22, 1 << 20, 64,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 30, 45, 0, false, false},
	{"2^22 × 2^20, k = 100, device-resident", 1 << 22, 1 << 20, 100,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 50, 80, 0, false, false},
	{"10,000,000 × 10,000,000, k = 2, device-resident", 10000000, 10000000, 2,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 17, 25, 0, false, false},
	{"10,000,000 × 10,000,000, k = 10, device-resident", 10000000, 10000000, 10,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 22, 35, 0, false, false},
	{"10,000,000 × 10,000,000, k = 30, device-resident", 10000000, 10000000, 30,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 40, 50, 0, false, false},
	{"brute force, one GPU (2^24 × 2^16)", 1 << 24, 1 << 16, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_BRUTE, BENCH_DATA_DEVICE, 1, MEASURE_PAIRS, 9, 7, 0, false, false},
	{"brute force, four GPUs (2^24 × 2^16)", 1 << 24, 1 << 16, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_BRUTE, BENCH_DATA_DEVICE, 4, MEASURE_SPEEDUP, 3.9, 3.8, 0, false, false},
	{"2^16 × 2^13, device-resident, by brute force", 1 << 16, 1 << 13, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_BRUTE, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 0.15, 0.5, 0, false, false},
	{"2^16 × 2^13, device-resident, by the index", 1 << 16, 1 << 13, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_DEVICE, 1, MEASURE_TIME, 0.15, 0.5, 0, false, false},
	{"CPU, two threads, 2^16 references, uniform", 1 << 24, 1 << 16, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 0, MEASURE_OBSERVATIONS, 20, 0, 0, false, false},
	{"CPU, two threads, 2^20 references, city-like", 1 << 24, 1 << 20, 1,
	POINTS_CITIES, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 0, MEASURE_OBSERVATIONS, 8, 0, 0, false, false},
	{"engine, two threads, batches of 32,768 ÷ batches of 1,048,576", 1 << 22, 1 << 16, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 0, MEASURE_BATCHES, 1, 0.9, 0, false, false},
	{"CPU, 16 threads, 2^16 references, batches of 32,768 from 128 sessions", 1 << 24, 1 << 16, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 0, MEASURE_SESSIONS, 110, 85, 0, false, false},
	{"counts within 300 km, 2^20 × 2^20, one GPU ÷ all cores", 1 << 20, 1 << 20, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 1, MEASURE_DEVICES, 10, 4, 300e3, false, false},
	{"counts within 672 km, 2^20 × 2^20, one GPU ÷ all cores", 1 << 20, 1 << 20, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 1, MEASURE_DEVICES, 10, 4, 672e3, false, false},
	{"CPU, one thread, 2^20 × 2^20: the time of k = 2 ÷ that of k = 1", 1 << 20, 1 << 20, 2,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 0, MEASURE_QUESTION, 1.2, 2, 0, false, false},
	{"CPU, one thread, 2^20 × 2^20: the time of exclude_self ÷ that of k = 2", 1 << 20, 1 << 20, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 0, MEASURE_QUESTION, 1.1, 1.3, 0, true, false},
	{"CPU, one thread, 2^20 × 2^20: the time by the spheroid ÷ that by the sphere", 1 << 20, 1 << 20, 1,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 0, MEASURE_QUESTION, 4, 6.5, 0, false, true},
	{"CPU, 2^20 × 2^20, k = 2: 16 threads ÷ one", 1 << 20, 1 << 20, 2,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 0, MEASURE_THREADS, 1, 0.9, 0, false, false},
	{"CPU, 2^20 × 2^20, k = 10: 16 threads ÷ one", 1 << 20, 1 << 20, 10,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 0, MEASURE_THREADS, 1, 0.9, 0, false, false},
	{"CPU, 2^20 × 2^20, k = 30: 16 threads ÷ one", 1 << 20, 1 << 20, 30,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 0, MEASURE_THREADS, 1, 0.9, 0, false, false},
	{"CPU, 2^20 × 2^20, k = 100: 16 threads ÷ one", 1 << 20, 1 << 20, 100,
	POINTS_UNIFORM, GEONN_ALGORITHM_INDEX, BENCH_DATA_HOST, 0, MEASURE_THREADS, 1, 0.9, 0, false, false}
};

static const char *const units[] = {"ms", "ms", "T pairs/s", "×", "M/s", "M/s", "×", "×", "×", "×"};

/* a goal's figure, for a repetition that took so long in all and for building */
static double
measured(enum measure measure, const struct problem *problem, double total_ms, double build_ms, double compared)
{
	double		seconds = total_ms * 1e-3;

	switch (measure)
	{
		case MEASURE_BUILD:
			return build_ms;
		case MEASURE_PAIRS:
			return pairs_of(problem) / seconds / TRILLION;
		case MEASURE_SPEEDUP:
			return pairs_of(problem) / seconds / TRILLION / compared;
		case MEASURE_OBSERVATIONS:
		case MEASURE_SESSIONS:
			return (double) problem->observations / seconds / MILLION;
		case MEASURE_BATCHES:
		case MEASURE_DEVICES:
		case MEASURE_THREADS:
			return compared / total_ms;
		case MEASURE_QUESTION:
			return total_ms / compared;
		default:
			return total_ms;
	}
}

static bool
less_is_better(const struct goal *goal)
{
	return goal->measure == MEASURE_TIME || goal->measure == MEASURE_BUILD || goal->measure == MEASURE_QUESTION;
}

static const char *
judge(const struct goal *goal, double value)
{
	if (less_is_better(goal) ? value <= goal->goal : value >= goal->goal)
		return "goal";
	if (goal->at_least == 0)
		return "below the goal";
	if (less_is_better(goal) ? value <= goal->at_least : value >= goal->at_least)
		return "at least";
	return "MISSED";
}

static void
print_goal(const struct goal *goal, const char *measured_text, const char *parts,
		   const char *verdict, const char *answers)
{
	printf("| %s | %.3g %s |", goal->work, goal->goal, units[goal->measure]);
	if (goal->at_least > 0)
		printf(" %.3g %s |", goal->at_least, units[goal->measure]);
	else
		printf(" see test/bench/peers |");
	printf(" %s | %s | %s | %s |\n", measured_text, parts, verdict, answers);
	fflush(stdout);
}

static void
print_failure(const struct goal *goal, const char *why)
{
	print_goal(goal, "", "", "", why);
	results_failure("engine goals", goal->work, why);
}

/* What came of a goal's problem. */
static void
print_outcome(const struct goal *goal, const struct problem *problem, const struct outcome *outcome, double compared)
{
	double		best = measured(goal->measure, problem, outcome->best_ms, outcome->best_build_ms, compared);
	double		median = measured(goal->measure, problem, outcome->median_ms, outcome->median_build_ms, compared);
	double		worst = measured(goal->measure, problem, outcome->worst_ms, outcome->worst_build_ms, compared);
	char		text[64];
	char		parts[64];

	snprintf(text, sizeof(text), median < 1 ? "%.3f (%.3f)" : "%.2f (%.2f)", median, best);
	snprintf(parts, sizeof(parts), "%s%s%s", problem->data == BENCH_DATA_DEVICE ? time_text(outcome->best_build_ms) : "",
			 outcome->best_sort_ms > 0 ? ", " : "", outcome->best_sort_ms > 0 ? time_text(outcome->best_sort_ms) : "");
	print_goal(goal, text, parts, judge(goal, median), answers_text(outcome));
	results_figure(&(struct figure) {
		.section = "engine goals", .work = goal->work, .geonn = "", .compared = "", .unit = units[goal->measure],
		.median = median, .least = less_is_better(goal) ? best : worst, .greatest = less_is_better(goal) ? worst : best,
		.goal = goal->goal, .at_least = goal->at_least
	});
}

/* Whether a goal's figure is a ratio to another problem's. */
static bool
is_compared(const struct goal *goal)
{
	return goal->measure == MEASURE_BATCHES || goal->measure == MEASURE_DEVICES || goal->measure == MEASURE_THREADS ||
		goal->measure == MEASURE_QUESTION;
}

/*
 * The problem that a goal's is compared with: by large batches, on all cores, by one thread, or a plainer
 * question.  Its median milliseconds, or 0 where it could not be run.
 */
static double
run_compared(const struct goal *goal, const struct problem *problem, FILE *json, bool *right)
{
	static struct outcome outcome;
	struct problem compared = *problem;

	if (goal->measure == MEASURE_BATCHES)
		compared.batch_rows = LARGE_BATCH_ROWS;
	else if (goal->measure == MEASURE_THREADS)
		compared.threads = 1;
	else if (goal->measure == MEASURE_QUESTION)
	{
		compared.k = goal->exclude_self ? 2 : 1;
		compared.conditions.exclude_self = false;
		compared.metric = GEONN_METRIC_SPHERE;
	}
	else
	{
		compared.device = GEONN_DEVICE_CPU;
		compared.gpus = 0;
	}
	bench_run(&compared, &outcome);
	json_run(json, &compared, &outcome);
	*right = *right && !is_wrong(&outcome);
	return outcome.finished ? outcome.median_ms : 0;
}

/*
 * How many times as much MANY_THREADS of this machine compute as one does, where nothing but arithmetic is to be done:
 * what MEASURE_THREADS can reach.  0 where that cannot be measured.
 */
static double
print_scaling(const struct machine *machine)
{
	static const char work[] = "what the machine gives, arithmetic in registers: 16 threads ÷ one";
	struct scaling scaling;

	if (machine->cores < MANY_THREADS)
	{
		results_failure("engine goals", work, "needs 16 cores");
		return 0;
	}
	if (!measure_scaling(MANY_THREADS, &scaling))
	{
		results_failure("engine goals", work, "could not create 16 threads");
		return 0;
	}
	printf("| %s |  |  | %.2f (%.2f) |  |  |  |\n", work, scaling.median, scaling.greatest);
	results_figure(&(struct figure) {
		.section = "engine goals", .work = work, .geonn = "", .compared = "", .unit = "×",
		.median = scaling.median, .least = scaling.least, .greatest = scaling.greatest
	});
	return scaling.median;
}

/* A goal of the table, in the unit of its figure. */
static struct goal
goal_on(const struct goal *listed, double scaling)
{
	struct goal goal = *listed;

	if (goal.measure == MEASURE_THREADS)
	{
		goal.goal = rint(10.0 * scaling * goal.goal) / 10.0;
		goal.at_least = rint(10.0 * scaling * goal.at_least) / 10.0;
	}
	return goal;
}

bool
suite_goals(const struct machine *machine, const struct problem *model, FILE *json)
{
	static struct outcome outcome;
	double		compared = 0.0;	/* one GPU's rate, or the time of the problem that
								 * a goal's is compared with */
	bool		right = true;
	double		scaling;

	printf("\n| work | goal | at least | median (best) | of it building, sorting | reached | answers |\n"
		   "|---|---|---|---|---|---|---|\n");
	scaling = print_scaling(machine);
	for (size_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++)
	{
		const struct goal on_machine = goal_on(&goals[i], scaling);
		const struct goal *goal = &on_machine;
		struct problem problem = *model;
		char		text[64];

		problem.observations = goal->observations;
		problem.references = goal->references;
		problem.k = goal->k;
		problem.radii = goal->radius > 0 ? 1 : 0;
		problem.radius[0] = goal->radius;
		problem.distribution = goal->distribution;
		problem.algorithm = goal->algorithm;
		problem.data = goal->data;
		problem.gpus = goal->gpus;
		problem.device = goal->gpus > 0 ? GEONN_DEVICE_CUDA : GEONN_DEVICE_CPU;
		problem.threads = goal->gpus > 0 || machine->cores <= 2 ? 0 : 2;
		problem.conditions.exclude_self = goal->exclude_self;
		problem.metric = goal->spheroid ? GEONN_METRIC_SPHEROID : GEONN_METRIC_SPHERE;
		if (goal->measure == MEASURE_QUESTION)
			problem.threads = 1;
		if (goal->measure == MEASURE_SESSIONS || goal->measure == MEASURE_THREADS)
			problem.threads = MANY_THREADS;
		if (goal->measure == MEASURE_SESSIONS || goal->measure == MEASURE_BATCHES)
			problem.batch_rows = BATCH_ROWS;
		if (goal->gpus > machine->gpus)
		{
			snprintf(text, sizeof(text), "needs %d GPU%s", goal->gpus, goal->gpus > 1 ? "s" : "");
			print_failure(goal, text);
			continue;
		}
		if (problem.threads > machine->cores)
		{
			snprintf(text, sizeof(text), "needs %d cores", problem.threads);
			print_failure(goal, text);
			continue;
		}
		if (is_compared(goal))
			compared = run_compared(goal, &problem, json, &right);
		bench_run(&problem, &outcome);
		json_run(json, &problem, &outcome);
		if (!outcome.finished)
		{
			print_failure(goal, outcome.failure);
			continue;
		}
		right = right && !is_wrong(&outcome);
		if (goal->measure == MEASURE_PAIRS)
			compared = measured(goal->measure, &problem, outcome.median_ms, 0, 0);
		print_outcome(goal, &problem, &outcome, compared);
	}
	return right;
}
