/*
 * plan.h
 *		Faults to order, in an engine that is built for tests.
 *
 * build/test/geonn-engine-faults is made of the same object files as the
 * engine; the linker has some of their calls go through functions of this folder,
 * which fail where a test wants that.  So the engine itself knows nothing of
 * faults.
 *
 * The environment variable GEONN_FAULTS names a folder.  The engine reads a plan
 * there when it starts, from the file "start", and when a client connects, from
 * the file "session"; it removes the file then, so a plan is followed once.  Each
 * plan takes the place of the one before.  A plan is two words and a number:
 *
 *	none - 0		nothing fails any more
 *	wait PLACE N	the thread that is the Nth to get to this place waits there,
 *					until the file "fired" is removed
 *	hang PLACE N	the same, and whenever the engine looks how much time it was given,
 *					it is an hour
 *	kill PLACE N	the process kills itself there
 *	exhaust PLACE N	from there on no memory is left
 *	fail call N		the Nth call into the system from now on fails
 *	crowd call N	the next N messages that would take a descriptor along fail, as when
 *					too many are on their way
 *	fail cuda N		the Nth call into CUDA from now on fails
 *	lose cuda N		and all that follow it
 *
 * The file "fired" appears when that has happened, and says at which place and
 * what failed.  The places are, in their order:
 *
 *	start		the engine listens, and has not said so yet
 *	references	a batch of references has come
 *	sort		the references are being sorted
 *	build		a device is about to build what it needs of the references
 *	search		a device is about to begin a search
 *	drain		pairs are about to be sent
 */
#ifndef GEONN_FAULTS_PLAN_H
#define GEONN_FAULTS_PLAN_H

#include <stdbool.h>

enum fault_place
{
	FAULT_START,
	FAULT_REFERENCES,
	FAULT_SORT,
	FAULT_BUILD,
	FAULT_SEARCH,
	FAULT_DRAIN
};

/* what counts calls; a plan is for one of them */
enum fault_family
{
	FAULT_CALL,
	FAULT_CUDA
};

/* Read the plan for the start, or for a new session, if the folder has one. */
extern void fault_read_plan(const char *name);

/* This thread gets to this place; any thread. */
extern void fault_reach(enum fault_place place);

/* Whether a message with a descriptor is to fail. */
extern bool fault_crowds(void);

/* Whether a thread hangs now. */
extern bool fault_hangs(void);

/*
 * Whether this call, one that is counted, is to fail.  A call that takes memory fails
 * while none is left, too.  Any thread.
 */
extern bool fault_fails(enum fault_family family, const char *call, bool takes_memory);

#endif							/* GEONN_FAULTS_PLAN_H */
