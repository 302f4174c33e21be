/*
 * report.h
 *		What the benchmark prints, its JSON, and its rows of results.
 */
#ifndef GEONN_BENCH_REPORT_H
#define GEONN_BENCH_REPORT_H

#include <stdio.h>

#include "bench.h"

struct machine
{
	char		date[32];		/* 2026-01-31 */
	char		system[128];	/* kernel and architecture */
	char		processor[128];
	int			cores;			/* that this process may use */
	double		memory_gb;
	int			gpus;
	char		card[256];		/* the first GPU's name; empty: none */
	char		driver[64];		/* of the GPUs */
	char		no_gpu[512];	/* why there is none */
};

extern void machine_describe(struct machine *machine);
extern void machine_print(const struct machine *machine);

/* words of the program's options */
extern const char *const distribution_names[];
extern const char *const algorithm_names[];

/* "2^27", or the number with commas; in one of several buffers */
extern const char *count_text(uint64_t count);

/* milliseconds with three digits or more */
extern const char *time_text(double milliseconds);

/* "index, 1 GPU, data on the GPU" */
extern const char *run_text(const struct problem *problem);

/* "48 right", or what was wrong */
extern const char *answers_text(const struct outcome *outcome);

/*
 * JSON: one object of the machine and all runs.  A file of NULL takes nothing.
 */
extern void json_begin(FILE *file, const struct machine *machine);
extern void json_run(FILE *file, const struct problem *problem,
					 const struct outcome *outcome);
extern void json_end(FILE *file);

/*
 * Rows of results: test/bench/Results.pm says what they are.
 */
struct figure
{
	const char *section;
	const char *work;
	const char *geonn;			/* what the figure is made of, and what it is compared with */
	const char *compared;
	const char *unit;
	double		median;
	double		least;			/* of the repetitions */
	double		greatest;
	double		goal;			/* 0: none */
	double		at_least;		/* 0: none */
};

/* Append rows to this file from now on; without a call, or of NULL, to none. */
extern void results_to(FILE *file);
extern void results_figure(const struct figure *figure);

/* a row of what could not be measured, and why */
extern void results_failure(const char *section, const char *work, const char *why);

#endif							/* GEONN_BENCH_REPORT_H */
