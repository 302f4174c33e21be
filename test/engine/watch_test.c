/*
 * watch_test.c
 *		What the engine tells of calls, those under way and those that ended, and of
 *		GPUs' gauges.
 *
 * Usage: watch_test ENGINE [cpu|cuda [SEED [sanitized]]]
 *
 * rooms: engine/calls engine/server
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nearest.h"

#define REFERENCES		3000
#define OBSERVATIONS	5000

/* labels of which the engine keeps figures */
#define LABELS_MAX		1000

/* a list as it came; its entries are list_free()'s */
struct list
{
	uint64_t	count;
	int64_t		since;
	union
	{
		void	   *entries;
		struct geonn_call_status *calls;
		struct geonn_statistics *sums;
	};
};

static void
list_free(struct list *list)
{
	free(list->entries);
	list->entries = NULL;
}

static struct geonn_call
call_of(int32_t pid, uint64_t number, const char *function)
{
	struct geonn_call call = {
		.pid = pid,
		.number = number,
		.expected = OBSERVATIONS,
		.label = {.database = 1,.user = 2,.observations = 3,.references = 4}
	};

	strncpy(call.label.function, function, sizeof(call.label.function) - 1);
	return call;
}

/*
 * Ask for a list; false where what comes is none.
 */
static bool
get_list(const struct engine *engine, enum geonn_listing listing, struct list *list)
{
	struct geonn_list request_list = {.listing = listing};
	size_t		size = listing == GEONN_LIST_CALLS ? sizeof(struct geonn_call_status) :
		sizeof(struct geonn_statistics);
	struct client client;
	uint64_t	bytes = 0;
	bool		sound;

	list->entries = NULL;
	client_connect(&client, engine);
	sound = client_hello(&client);
	client_send(&client, GEONN_LIST, &request_list);
	sound = sound && client_expect(&client, GEONN_LISTED) && client.descriptor >= 0 &&
		geonn_file_is_sealed(client.descriptor, &bytes);
	if (sound)
	{
		list->count = client.message.listed.entries;
		list->since = client.message.listed.since;
		list->entries = malloc(bytes + 1);
		sound = bytes == list->count * size &&
			pread(client.descriptor, list->entries, bytes, 0) == (ssize_t) bytes;
	}
	client_close(&client);
	return sound;
}

/*
 * Wait until the list of calls under way has so many.
 */
static bool
wait_for_calls(const struct engine *engine, uint64_t count, struct list *list)
{
	double		begun = now_ms();

	while (get_list(engine, GEONN_LIST_CALLS, list))
	{
		if (list->count == count)
			return true;
		list_free(list);
		if (!wait_more(begun))
			return false;
	}
	return false;
}

static bool
has_statistics(const struct engine *engine, const char *function, struct geonn_statistics *sum)
{
	struct list list;
	bool		found = false;

	if (!get_list(engine, GEONN_LIST_STATISTICS, &list))
		return false;
	for (uint64_t i = 0; i < list.count && !found; i++)
	{
		found = strcmp(list.sums[i].label.function, function) == 0;
		*sum = list.sums[i];
	}
	list_free(&list);
	return found;
}

static uint64_t
total_time(const struct geonn_statistics *sum)
{
	uint64_t	total = 0;

	for (int phase = 0; phase < GEONN_PHASES; phase++)
		total += sum->microseconds[phase];
	return total;
}

/*
 * Nothing comes of a call that the engine cannot believe.
 */
static void
test_abuse(const struct engine *engine)
{
	struct geonn_call sound = call_of(1, 1, "abuse");
	struct geonn_call calls[] = {sound, sound, sound, sound};
	struct geonn_finished finished[] = {
		{.rows = UINT64_MAX},
		{.observations_skipped = UINT64_MAX},
		{.references_skipped = UINT64_MAX},
		{.unmatched = UINT64_MAX}
	};
	struct geonn_finished end = {0};
	struct geonn_list list = {.listing = GEONN_LIST_RESET + 1};
	struct client client;
	bool		right = true;

	calls[0].pid = 0;
	calls[1].pid = -1;
	calls[2].microseconds = UINT64_MAX;
	calls[3].expected = UINT64_MAX;
	for (int i = 0; i < 4; i++)
	{
		client_connect(&client, engine);
		client.call = &calls[i];
		right = !client_open(&client, request.device, 0) &&
			client.message.header.type == GEONN_ERROR &&
			client.message.error.code == GEONN_ERROR_PROTOCOL && right;
		client_close(&client);

		client_connect(&client, engine);
		client.call = &sound;
		right = client_open(&client, request.device, 0) && right;
		client_send(&client, GEONN_FINISHED, &finished[i]);
		right = client_expect(&client, GEONN_ERROR) && right;
		client_close(&client);
	}
	report("calls out of range end the session", right);

	client_connect(&client, engine);
	client.call = &sound;
	right = client_hello(&client);
	client_send(&client, GEONN_CALL, &sound);
	right = right && client_expect(&client, GEONN_ERROR);
	client_close(&client);

	client_connect(&client, engine);
	right = right && client_open(&client, request.device, 0);
	client_send(&client, GEONN_CALL, &sound);
	right = right && client_expect(&client, GEONN_ERROR);
	client_close(&client);

	client_connect(&client, engine);
	right = right && client_open(&client, request.device, 0);
	client_send(&client, GEONN_FINISHED, &end);
	right = right && client_expect(&client, GEONN_ERROR);
	client_close(&client);

	client_connect(&client, engine);
	client.call = &sound;
	right = right && client_open(&client, request.device, 0);
	client_send(&client, GEONN_FINISHED, &end);
	client_send(&client, GEONN_FINISHED, &end);
	right = right && client_expect(&client, GEONN_ERROR);
	client_close(&client);

	client_connect(&client, engine);
	right = right && client_hello(&client);
	client_send(&client, GEONN_LIST, &list);
	right = right && client_expect(&client, GEONN_ERROR);
	client_close(&client);
	report("calls and lists out of turn end the session", right);
}

/*
 * A call is seen from its first session on to the end of its last, with what they
 * have done together.
 */
static void
test_calls(const struct engine *engine)
{
	struct points references = uniform_points(REFERENCES);
	struct points observations = uniform_points(OBSERVATIONS);
	struct answer *answers = calloc(OBSERVATIONS, sizeof(*answers));
	struct geonn_call call = call_of(77, 5, "two sessions");
	struct geonn_finished finished = {
		.rows = 10,
		.observations_skipped = 20,
		.references_skipped = 30,
		.unmatched = 40
	};
	struct geonn_statistics sum = {0};
	struct list list = {0};
	struct client first;
	struct client second;
	bool		right;

	call.microseconds = 5000000;
	client_connect(&first, engine);
	first.call = &call;
	right = client_open(&first, request.device, 0) && client_allocate(&first, 0, 1000, 1000) &&
		wait_for_calls(engine, 1, &list) && list.calls[0].pid == 77 &&
		list.calls[0].sessions == 1 && list.calls[0].phase == GEONN_PHASE_REFERENCES &&
		list.calls[0].expected == OBSERVATIONS && list.calls[0].references == 0 &&
		memcmp(&list.calls[0].label, &call.label, sizeof(call.label)) == 0;
	report("a call that sends references is seen", right);
	list_free(&list);

	right = client_send_references(&first, REFERENCES, references.latitude, references.longitude,
								   references.tag, false) &&
		client_search(&first, OBSERVATIONS / 2, observations.latitude, observations.longitude,
					  answers) &&
		wait_for_calls(engine, 1, &list) && list.calls[0].references == REFERENCES &&
		list.calls[0].observations == OBSERVATIONS / 2 && list.calls[0].devices != 0 &&
		list.calls[0].phase == GEONN_PHASE_OBSERVATIONS;
	report("and how far it is", right);
	list_free(&list);

	client_connect(&second, engine);
	second.call = &call;
	right = client_attach(&second, request.device, first.dataset) &&
		client_allocate(&second, 0, 1000, 1000) &&
		client_search(&second, OBSERVATIONS / 2, observations.latitude, observations.longitude,
					  answers) &&
		wait_for_calls(engine, 1, &list) && list.calls[0].sessions == 2 &&
		list.calls[0].references == REFERENCES &&
		list.calls[0].observations == OBSERVATIONS;
	list_free(&list);
	client_send(&first, GEONN_FINISHED, &finished);
	client_close(&first);
	right = right && wait_for_calls(engine, 1, &list) && list.calls[0].sessions == 1 &&
		!has_statistics(engine, "two sessions", &sum);
	list_free(&list);
	report("sessions of one process and number are one call", right);

	client_send(&second, GEONN_FINISHED, &finished);
	client_close(&second);
	right = wait_for_calls(engine, 0, &list) && has_statistics(engine, "two sessions", &sum);
	list_free(&list);
	report("one that has ended is in the statistics instead", right);
	report("with the sums of its sessions' figures",
		   sum.calls == 1 && sum.failed == 0 && sum.rows == 20 &&
		   sum.observations_skipped == 40 && sum.references_skipped == 60 && sum.unmatched == 80 &&
		   sum.observations == OBSERVATIONS && sum.references == REFERENCES && sum.kept == 0 &&
		   sum.batches == 6 && sum.bytes == REFERENCES * 24 + OBSERVATIONS * 32 &&
		   sum.fallbacks == 0 && sum.last_error_at == 0);
	report("and times, of which some passed before the engine was told",
		   sum.microseconds[GEONN_PHASE_REFERENCES] >= 5000000 && total_time(&sum) < 65000000 &&
		   sum.microseconds[GEONN_PHASE_SEARCHING] > 0);
	free(answers);
	points_free(&references);
	points_free(&observations);
}

/*
 * A call by which nothing but an error is reached, and one whose client goes without
 * a word.
 */
static void
test_failures(const struct engine *engine)
{
	struct geonn_call call = call_of(78, 1, "failure");
	struct geonn_seal seal = {.keep = 1};
	struct geonn_statistics sum = {0};
	struct list list = {0};
	struct client client;
	bool		right;

	client_connect(&client, engine);
	client.call = &call;
	right = client_open(&client, request.device, 0);
	client_send(&client, GEONN_SEAL, &seal);
	right = right && client_expect(&client, GEONN_ERROR);
	client_close(&client);
	report("the engine's last error is in the statistics",
		   right && has_statistics(engine, "failure", &sum) && sum.calls == 1 &&
		   sum.failed == 1 && sum.last_error_at > 0 && strlen(sum.last_error) > 0);

	client_connect(&client, engine);
	client.call = &call;
	right = client_open(&client, request.device, 0);
	client_close(&client);
	right = right && wait_for_calls(engine, 0, &list);
	list_free(&list);
	report("a session that does not say that it has finished has failed",
		   right && has_statistics(engine, "failure", &sum) && sum.calls == 2 &&
		   sum.failed == 2 && strlen(sum.last_error) > 0);
}

/*
 * As many labels as users can think of do not fill the memory.
 */
static void
test_limit(const struct engine *engine)
{
	struct list list = {0};
	struct list anew = {0};
	struct geonn_statistics sum;
	struct geonn_finished finished = {0};
	bool		right = true;

	for (int i = 0; i < LABELS_MAX + 10; i++)
	{
		struct geonn_call call = call_of(79, (uint64_t) i, "limit");
		struct client client;

		call.label.references = (uint32_t) i;
		client_connect(&client, engine);
		client.call = &call;
		right = client_open(&client, request.device, 0) && right;
		client_send(&client, GEONN_FINISHED, &finished);
		client_close(&client);
	}
	right = right && wait_for_calls(engine, 0, &list);
	list_free(&list);
	right = right && get_list(engine, GEONN_LIST_STATISTICS, &list);
	report("statistics have a limit, and those called last stay",
		   right && list.count == LABELS_MAX &&
		   list.sums[0].label.references == LABELS_MAX + 9 &&
		   list.sums[LABELS_MAX - 1].label.references == 10 &&
		   !has_statistics(engine, "two sessions", &sum));

	right = get_list(engine, GEONN_LIST_RESET, &anew) && anew.count == LABELS_MAX;
	list_free(&anew);
	right = right && get_list(engine, GEONN_LIST_STATISTICS, &anew) && anew.count == 0 &&
		anew.since > list.since;
	report("and begin anew when they are reset", right);
	list_free(&anew);
	list_free(&list);
}

static bool
is_plausible(const struct geonn_device_status *device)
{
	bool		is_cpu = device->kind == GEONN_KIND_CPU;

	printf("# device %u: %d %%, %d degrees, %d mW\n", device->number, device->utilization,
		   device->temperature, device->power);
	return (device->utilization == GEONN_UNKNOWN ||
			(!is_cpu && device->utilization >= 0 && device->utilization <= 100)) &&
		(device->temperature == GEONN_UNKNOWN ||
		 (!is_cpu && device->temperature > 0 && device->temperature < 150)) &&
		(device->power == GEONN_UNKNOWN ||
		 (!is_cpu && device->power > 0 && device->power < 5000000));
}

/*
 * Take the answer to a status; whether all devices have gauges that can be, or none.
 */
static bool
take_status(struct client *client, bool gauges)
{
	uint32_t	devices;
	bool		right = client_expect(client, GEONN_ENGINE_STATUS);

	devices = right ? client->message.engine_status.devices : 0;
	for (uint32_t i = 0; i < devices; i++)
	{
		const struct geonn_device_status *device = &client->message.device_status;

		right = client_expect(client, GEONN_DEVICE_STATUS) && right;
		right = right && (gauges ? is_plausible(device) : device->number == i);
	}
	return right && devices > 0;
}

/*
 * Gauges come to the clients that ask for them, however many ask and whichever
 * go meanwhile, and the others do not wait.
 */
static void
test_gauges(const struct engine *engine)
{
	struct geonn_status with = {.gauges = 1};
	struct geonn_status without = {0};
	struct client clients[6];
	bool		right = true;

	for (int i = 0; i < 6; i++)
	{
		client_connect(&clients[i], engine);
		right = client_hello(&clients[i]) && right;
		client_send(&clients[i], GEONN_STATUS, i % 2 == 0 ? &with : &without);
	}
	client_close(&clients[2]);
	for (int i = 0; i < 6; i++)
		right = (i == 2 || take_status(&clients[i], i % 2 == 0)) && right;
	report("gauges come to the clients that ask for them", right);

	/* and again on the same connection */
	client_send(&clients[0], GEONN_STATUS, &without);
	right = take_status(&clients[0], false);
	client_send(&clients[0], GEONN_STATUS, &with);
	right = take_status(&clients[0], true) && right;
	report("as often as they do", right);
	for (int i = 0; i < 6; i++)
		if (i != 2)
			client_close(&clients[i]);
}

int
main(int argument_count, char **words)
{
	struct engine engine;

	tests_begin(argument_count, words);
	engine_start(&engine, request.engine_program, NULL);
	test_abuse(&engine);
	test_calls(&engine);
	test_failures(&engine);
	test_limit(&engine);
	test_gauges(&engine);
	report("the engine ends as it should", engine_stop(&engine) == 0);
	return summed_up();
}
