/*
 * setups.h
 *		Engines set up in different ways.
 */
#ifndef GEONN_TEST_SETUPS_H
#define GEONN_TEST_SETUPS_H

#include "../lib/engine_client.h"

/* engines, each in its own way, and devices of theirs */
#define SETUPS_MAX 4

/* one way to set up an engine, and which of its devices is asked */
struct setup
{
	char		name[64];
	const struct engine *engine;
	enum geonn_device_choice device;
};

extern struct setup setups[SETUPS_MAX];
extern int	setup_count;

/*
 * Start the engines: one for each CPU path that the processor has, or for the GPUs.  sanitized: of the GPUs'
 * ways, one alone.
 */
extern void setups_start(const char *program, bool gpu, bool sanitized);
extern void setups_stop(void);

#endif							/* GEONN_TEST_SETUPS_H */
