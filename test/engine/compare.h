/*
 * compare.h
 *		Engines set up in different ways, held against the definition.
 */
#ifndef GEONN_TEST_COMPARE_H
#define GEONN_TEST_COMPARE_H

#include "../lib/definition.h"
#include "setups.h"

/* how much to ask */
enum extent
{
	EXTENT_ALL,
	EXTENT_SHORT,				/* some of the questions of each case */
	EXTENT_SANITIZED			/* few, of small cases: sanitizers are slow */
};

/*
 * What is compared: the caller fills in the first part, finish_case() the
 * rest.
 */
struct test_case
{
	char		name[96];
	struct points references;
	struct points observations;
	enum geonn_metric metric;
	uint32_t	columns;		/* GEONN_COLUMN_... */
	bool		order_by_tag;
	size_t		repeated;		/* times that each observation is asked; 0: once */

	struct definition definition;	/* of the observations asked once */
	struct client leader[SETUPS_MAX];	/* hold the datasets */
	int			complaints;
};

/* how a search is cut into batches */
struct shape
{
	uint32_t	rows;
	uint32_t	room;
	int			slots;
};

/*
 * Start the engines: one for each CPU path that the processor has, or the
 * GPUs.  The seed is for complaints.
 */
extern void compare_start(const char *program, bool gpu, uint64_t seed, enum extent extent);

/* Stop them; whether all that was reported holds. */
extern bool compare_finish(void);

extern int	compare_setups(void);

/* Where the random numbers of shapes and questions begin. */
extern void compare_seed(uint64_t state);

/* Ask one engine one question in one shape: are the answers right? */
extern bool ask_right(struct test_case *test, int setup,
					  const struct client_question *question, const struct shape *shape);

/* The same where it must end the session with the protocol error. */
extern bool ask_refused(struct test_case *test, int setup,
						const struct client_question *question, const struct shape *shape);

/*
 * Ask all engines by index in this shape, and one of them by brute force in
 * the other: are the answers the same?  The definition is not looked at, so
 * the observations may be others than those it was made for.
 */
extern bool same_as_brute(struct test_case *test, struct client_question question,
						  const struct shape *shape, const struct shape *brute_shape);

/* Ask all engines by all algorithms, each in a shape of its own. */
extern bool question_right(struct test_case *test, struct client_question question);

/* The same for counts within radii. */
extern bool counts_right(struct test_case *test);

/* The same for questions of all kinds. */
extern bool questions_right(struct test_case *test);

/*
 * A distance that occurs: that of some observation's candidate of a rank below
 * the limit; 0 if no candidate has one.
 */
extern double draw_distance(const struct test_case *test, int limit);

/* Draw groups: so many for the references, one more for the observations; 0: the case has none. */
extern void case_draw_groups(struct test_case *test, uint32_t groups);

/* Draw the tags that observations exclude: of so many ranges; 0: the case has none. */
extern void case_draw_excluded(struct test_case *test, uint32_t ranges);

/*
 * Give the engines the case's references, find its definition of this depth,
 * and report whether it holds by this function.  Frees the case's points.
 */
extern void finish_case(struct test_case *test, size_t depth,
						bool (*right) (struct test_case *));

#endif							/* GEONN_TEST_COMPARE_H */
