/*
 * busy.h
 *		What keeps an engine busy: searches that take long, and sorts.
 */
#ifndef GEONN_TEST_BUSY_H
#define GEONN_TEST_BUSY_H

#include "../lib/definition.h"

enum hardship
{
	BRUTE_FORCE,
	ANTIPODE,
	ANTIPODE_NEIGHBOURS,
	ANTIPODE_SPHEROID,
	JITTER,
	HARDSHIPS
};

/* a search that takes long */
struct hard_search
{
	const char *name;
	enum geonn_metric metric;
	struct client_question question;
	struct points references;
	struct points observations;
};

/* A search of this kind; the caller frees its points. */
extern struct hard_search busy_hard_search(enum geonn_device_choice device, enum hardship hardship);

/*
 * Send a search's references, and its observations in two slots, the same in
 * each; whether they are on their way.
 */
extern bool busy_begin(struct client *client, enum geonn_device_choice device,
					   const struct hard_search *hard);

/* Send observations to the dataset that another session has, in one batch. */
extern bool busy_join(struct client *client, enum geonn_device_choice device, uint64_t dataset,
					  const struct hard_search *hard);

/* Send references whose tags are in disorder, without a seal. */
extern bool busy_send_unsorted(struct client *client, enum geonn_device_choice device, size_t count);

/* Wait until no session is left in an engine. */
extern bool busy_await_no_session(const struct engine *engine);

#endif							/* GEONN_TEST_BUSY_H */
