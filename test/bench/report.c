/*
 * report.c
 *		What the benchmark prints, its JSON, and its rows of results.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/metric.h"
#include "gpu_run.h"
#include "../lib/parallel.h"

/* texts that may be in use at the same time */
#define TEXTS 8
#define TEXT_SIZE 400

const char *const distribution_names[] = {"uniform", "cities"};
const char *const algorithm_names[] = {"auto", "index", "brute"};

static char *
next_text(void)
{
	static char texts[TEXTS][TEXT_SIZE];
	static int	number;

	return texts[number++ % TEXTS];
}

/*
 * The rest of the first line of a file, or of what a command prints, that
 * begins with these words.
 */
static void
find_line(FILE *file, const char *words, char *text, size_t size)
{
	char		line[512];

	snprintf(text, size, "unknown");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
	{
		if (strncmp(line, words, strlen(words)) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(text, size, "%.*s", (int) size - 1,
				 line + strlen(words) + strspn(line + strlen(words), "\t :"));
		break;
	}
}

static void
describe_processor(struct machine *machine)
{
	FILE	   *file = fopen("/proc/cpuinfo", "r");

	find_line(file, "model name", machine->processor, sizeof(machine->processor));
	if (file != NULL)
		fclose(file);
	machine->cores = parallel_cores();
	machine->memory_gb = (double) sysconf(_SC_PHYS_PAGES) * (double) sysconf(_SC_PAGESIZE) * 1e-9;
}

static void
describe_gpus(struct machine *machine)
{
	FILE	   *file;

	machine->gpus = gpu_count(machine->no_gpu);
	if (machine->gpus == 0)
		return;
	gpu_name(0, machine->card);
	file = popen("nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>&1", "r");
	find_line(file, "", machine->driver, sizeof(machine->driver));
	if (file != NULL)
		pclose(file);
}

void
machine_describe(struct machine *machine)
{
	time_t		now = time(NULL);
	struct tm	parts;
	struct utsname system;

	memset(machine, 0, sizeof(*machine));
	strftime(machine->date, sizeof(machine->date), "%Y-%m-%d", gmtime_r(&now, &parts));
	if (uname(&system) == 0)
		snprintf(machine->system, sizeof(machine->system), "%.30s %.60s %.30s", system.sysname,
				 system.release, system.machine);
	describe_processor(machine);
	describe_gpus(machine);
}

void
machine_print(const struct machine *machine)
{
	printf("geonn %s, %s, %s, %d cores", GEONN_VERSION, machine->date, machine->processor,
		   machine->cores);
	if (machine->gpus > 0)
		printf(", %d x %s, driver %s\n", machine->gpus, machine->card, machine->driver);
	else
		printf("; no GPU: %s\n", machine->no_gpu);
}

const char *
count_text(uint64_t count)
{
	char	   *text = next_text();
	char		digits[24];
	size_t		length;
	size_t		out = 0;

	if (count >= 1024 && (count & (count - 1)) == 0)
	{
		snprintf(text, TEXT_SIZE, "2^%d", __builtin_ctzll(count));
		return text;
	}
	length = (size_t) snprintf(digits, sizeof(digits), "%llu", (unsigned long long) count);
	for (size_t i = 0; i < length; i++)
	{
		if (i > 0 && (length - i) % 3 == 0)
			text[out++] = ',';
		text[out++] = digits[i];
	}
	text[out] = '\0';
	return text;
}

const char *
time_text(double milliseconds)
{
	char	   *text = next_text();

	snprintf(text, TEXT_SIZE, "%.*f", milliseconds < 1 ? 3 : milliseconds < 10 ? 2 :
			 milliseconds < 1000 ? 1 : 0, milliseconds);
	return text;
}

const char *
run_text(const struct problem *problem)
{
	char	   *text = next_text();
	char		device[64];

	if (problem->device == GEONN_DEVICE_CUDA)
		snprintf(device, sizeof(device), "%d GPU%s", problem->gpus, problem->gpus > 1 ? "s" : "");
	else if (problem->threads > 0)
		snprintf(device, sizeof(device), "CPU, %d threads", problem->threads);
	else
		snprintf(device, sizeof(device), "CPU, %d cores", parallel_cores());
	snprintf(text, TEXT_SIZE, "%s, %s, %s", algorithm_names[problem->algorithm], device,
			 problem->data == BENCH_DATA_DEVICE ? "device-resident" : "host to host");
	return text;
}

const char *
answers_text(const struct outcome *outcome)
{
	char	   *text = next_text();

	if (!outcome->finished)
		snprintf(text, TEXT_SIZE, "%.350s", outcome->failure);
	else if (outcome->verdict.right)
		snprintf(text, TEXT_SIZE, "%u right, within %.1f nm", outcome->verdict.checked,
				 outcome->verdict.error_nm);
	else
		snprintf(text, TEXT_SIZE, "WRONG: %s", outcome->verdict.wrong);
	return text;
}

/*
 * JSON
 */

static bool json_first;

static void
json_string(FILE *file, const char *name, const char *value)
{
	fprintf(file, "\"%s\": \"", name);
	for (const char *letter = value; *letter != '\0'; letter++)
	{
		if (*letter == '"' || *letter == '\\')
			fprintf(file, "\\%c", *letter);
		else if ((unsigned char) *letter < ' ')
			fprintf(file, "\\u%04x", (unsigned char) *letter);
		else
			fputc(*letter, file);
	}
	fputc('"', file);
}

static void
json_times(FILE *file, const char *name, const double *times, int count)
{
	fprintf(file, "\"%s\": [", name);
	for (int i = 0; i < count; i++)
		fprintf(file, "%s%.6f", i > 0 ? ", " : "", times[i]);
	fprintf(file, "], ");
}

void
json_begin(FILE *file, const struct machine *machine)
{
	if (file == NULL)
		return;
	json_first = true;
	fprintf(file, "{\n  \"release\": \"%s\",\n  ", GEONN_VERSION);
	json_string(file, "date", machine->date);
	fprintf(file, ",\n  \"machine\": {");
	json_string(file, "system", machine->system);
	fprintf(file, ", ");
	json_string(file, "processor", machine->processor);
	fprintf(file, ", \"cores\": %d, \"memory_gb\": %.1f, \"gpus\": %d, ", machine->cores,
			machine->memory_gb, machine->gpus);
	json_string(file, "card", machine->card);
	fprintf(file, ", ");
	json_string(file, "driver", machine->driver);
	fprintf(file, ", ");
	json_string(file, "no_gpu", machine->no_gpu);
	fprintf(file, "},\n  \"runs\": [");
}

void
json_run(FILE *file, const struct problem *problem, const struct outcome *outcome)
{
	if (file == NULL)
		return;
	fprintf(file, "%s\n    {\"observations\": %llu, \"references\": %u, \"neighbours\": %u, "
			"\"points\": \"%s\", \"groups\": %u, \"steps\": %u, \"present\": %g, "
			"\"observed\": %g, \"radius\": %g, \"within\": %g, \"lines\": %u, \"polygons\": %u, \"exclude_self\": %s, \"metric\": \"%s\", "
			"\"seed\": %llu, \"algorithm\": \"%s\", \"device\": \"%s\", "
			"\"data\": \"%s\", \"gpus\": %d, \"threads\": %d, \"batch_rows\": %u, "
			"\"repetitions\": %d, ", json_first ? "" : ",",
			(unsigned long long) problem->observations, problem->references, problem->k,
			distribution_names[problem->distribution], problem->conditions.groups,
			problem->conditions.steps, problem->conditions.present, problem->conditions.observed,
			problem->conditions.radius, problem->conditions.within, problem->conditions.lines,
			problem->conditions.polygons,
			problem->conditions.exclude_self ? "true" : "false",
			geonn_metric_name(problem->metric), (unsigned long long) problem->seed,
			algorithm_names[problem->algorithm],
			problem->device == GEONN_DEVICE_CUDA ? "cuda" : "cpu",
			problem->data == BENCH_DATA_DEVICE ? "device" : "host", problem->gpus,
			problem->threads, problem->batch_rows, outcome->repetitions);
	json_first = false;
	if (!outcome->finished)
	{
		json_string(file, "failure", outcome->failure);
		fputc('}', file);
		return;
	}
	fprintf(file, "\"best_ms\": %.6f, \"median_ms\": %.6f, ", outcome->best_ms, outcome->median_ms);
	json_times(file, "total_ms", outcome->total_ms, outcome->repetitions);
	if (problem->data == BENCH_DATA_DEVICE)
	{
		json_times(file, "build_ms", outcome->build_ms, outcome->repetitions);
		json_times(file, "sort_ms", outcome->sort_ms, outcome->repetitions);
	}
	else
		fprintf(file, "\"sent_ms\": %.6f, \"first_ms\": %.6f, ", outcome->sent_ms, outcome->first_ms);
	fprintf(file, "\"checked\": %u, \"right\": %s, \"farther_nm\": %.3f, \"error_nm\": %.3f, ",
			outcome->verdict.checked, outcome->verdict.right ? "true" : "false",
			outcome->verdict.farther_nm, outcome->verdict.error_nm);
	json_string(file, "wrong", outcome->verdict.wrong);
	fputc('}', file);
}

void
json_end(FILE *file)
{
	if (file != NULL)
		fprintf(file, "\n  ]\n}\n");
}

/*
 * Rows of results
 */

static FILE *results;

void
results_to(FILE *file)
{
	results = file;
}

static void
results_number(double number)
{
	fprintf(results, "\t%.*f", number >= 100 ? 0 : number >= 10 ? 1 : number >= 1 ? 2 : 3, number);
}

static void
results_bound(double bound)
{
	if (bound == 0)
		fprintf(results, "\t");
	else
		fprintf(results, "\t%g", bound);
}

void
results_figure(const struct figure *figure)
{
	if (results == NULL)
		return;
	fprintf(results, "%s\t%s\t%s\t%s", figure->section, figure->work, figure->geonn, figure->compared);
	results_number(figure->median);
	fprintf(results, "\t%s", figure->unit);
	results_number(figure->least);
	results_number(figure->greatest);
	results_bound(figure->goal);
	results_bound(figure->at_least);
	fprintf(results, "\t\n");
	fflush(results);
}

void
results_failure(const char *section, const char *work, const char *why)
{
	if (results == NULL)
		return;
	fprintf(results, "%s\t%s\t\t\t\t\t\t\t\t\t%s\n", section, work, why);
	fflush(results);
}
