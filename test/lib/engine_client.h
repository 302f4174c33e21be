/*
 * engine_client.h
 *		A client of the engine for tests and benchmarks: it speaks protocol.h,
 *		and waits where the module would wait on a latch.
 *
 * What can't happen in a sound test (no memory, no process) ends the program
 * with a message.  Every other function that returns bool says whether it
 * worked; where it did not, the client's last message tells what came instead,
 * and the session is over.
 */
#ifndef ENGINE_CLIENT_H
#define ENGINE_CLIENT_H

#include "common/batch_layout.h"
#include "common/channel.h"
#include "engine_process.h"

/* points to send; the caller's columns */
struct client_points
{
	size_t		count;
	const double *latitude;		/* [count] degrees */
	const double *longitude;	/* [count] degrees */
	const int64_t *tag;			/* [count], of references only */
	const int32_t *group;		/* [count], where the dataset has groups */
	const int64_t *excluded_first;	/* [count], of observations that exclude tags */
	const int64_t *excluded_last;
	const double *radius;		/* [count] metres, where it has radiuses */
	const int64_t *low[GEONN_WINDOWS_MAX];	/* [count], of each window that it has */
	const int64_t *high[GEONN_WINDOWS_MAX];
	const uint16_t *edges;		/* [count], where it has windows */
	const double *weight[GEONN_WEIGHTS_MAX];	/* [count], of references, each that the dataset has */
	const int32_t *party[GEONN_PARTIES_MAX];	/* [count], of each party that it has */
	const double *end_latitude; /* [count], of references that are arcs, and of observations that are shapes */
	const double *end_longitude;
	const int32_t *shape;		/* [count] numbers as protocol_dataset.h says; of observations too, which are numbered by them */
	const int32_t *polygon;
};

/* what is asked of every observation; protocol_search.h has the limits */
/* What a pair has of its places: latitude and longitude on the reference, and on the observation; and the fraction. */
enum client_place
{
	CLIENT_LATITUDE,
	CLIENT_LONGITUDE,
	CLIENT_OWN_LATITUDE,
	CLIENT_OWN_LONGITUDE,
	CLIENT_FRACTION,
	CLIENT_PLACES
};

struct client_question
{
	uint32_t	k;				/* 0: all within max_distance */
	bool		ties;			/* and all that tie with the k-th */
	enum geonn_algorithm algorithm;
	double		max_distance;	/* metres, inclusive; may be INFINITY */
	uint32_t	radii;			/* with k = 0: count within so many radii instead; 0: no count */
	bool		shapes;			/* the observations are shapes, and the rows their arcs */
	bool		places;			/* pairs have their places */
	bool		extremes;		/* a count finds the least and the greatest weights, too */
	double		radius[GEONN_RADII_MAX];	/* metres, rising; may be INFINITY */
};

/*
 * Pairs as they come: those of so many observations from first on, in the
 * batch's own memory.  Parts of different batches come in any order, those of
 * one batch in order.  What an observation has may be spread over several
 * parts, each of that observation alone.
 */
struct client_part
{
	size_t		first;			/* in the caller's columns, or among the caller's shapes */
	uint32_t	observations;
	const uint32_t *count;		/* [observations], or NULL: each has one pair */
	uint32_t	pairs;
	const int64_t *tag;			/* [pairs] */
	const double *distance;		/* [pairs] metres */
	const double *places[CLIENT_PLACES];	/* [pairs] */
};

typedef void (*client_take_part) (void *argument, const struct client_part *part);

/*
 * All pairs of a search: those of observation i are at first[i] ...
 * first[i + 1] - 1.  The arrays are client_free_answers()'s to free.
 */
struct client_answers
{
	size_t		count;			/* observations */
	size_t	   *first;			/* [count + 1] */
	int64_t    *tag;			/* [first[count]] */
	double	   *distance;		/* [first[count]] metres */
	double	   *places[CLIENT_PLACES];	/* [first[count]], of a question for places */
};

/* one answer of a search for the nearest: tag and distance, or count 0 */
struct answer
{
	uint32_t	count;
	int64_t		tag;
	double		distance;
};

struct client_slot
{
	void	   *start;			/* NULL until allocated */
	size_t		bytes;
	struct geonn_batch_columns columns;
	bool		sent;			/* references or observations under way */
	uint32_t	rows;			/* rows sent */
	uint32_t	observations;	/* that these are */
	size_t		offset;			/* the first observation's number, in the caller's columns or among the caller's shapes */
	uint32_t	next;			/* observation that the next results begin with */
};

struct client
{
	int			socket;
	uint64_t	dataset;		/* as opened, sealed or attached to; 0: none yet */
	uint32_t	columns;		/* GEONN_COLUMN_..., of its dataset */
	uint64_t	references;		/* of a sealed dataset */
	bool		sealed;			/* it had them when it was opened */
	uint8_t		note[GEONN_NOTE_BYTES]; /* of a kept one */
	const struct geonn_call *call;	/* that it works for, said after its hello, or NULL */
	bool		keep;			/* the dataset that is sent next, with this note and version */
	uint8_t		version[GEONN_VERSION_BYTES];	/* client_open_labelled sets it */
	int			files[GEONN_FILE_KINDS];	/* that were left with it, or -1 */
	struct client_slot slots[GEONN_RING_SLOTS];
	union geonn_message message;	/* the last one received */
	int			descriptor;		/* that came with it, or -1 */
};

/* Connect; the client has said nothing yet. */
extern void client_connect(struct client *client, const struct engine *engine);

/* The same, and whether an engine listens; if not, the client is not to be closed. */
extern bool client_try_connect(struct client *client, const struct engine *engine);
extern void client_close(struct client *client);

extern void client_send(struct client *client, int type, void *message);

/*
 * Wait for a message and return its type; 0 at the end of the connection, -1
 * where nothing came for the time.
 */
extern int	client_receive(struct client *client, int timeout_ms);

/* client_receive, and whether the type is this one */
extern bool client_expect(struct client *client, int type);

/* hello, and the call if the client has one */
extern bool client_hello(struct client *client);

/* hello, and open a new dataset of this metric with these columns */
extern bool client_create(struct client *client, enum geonn_device_choice device,
						  enum geonn_metric metric, uint32_t columns);

/* the same on the sphere without columns, with a label */
extern bool client_open_labelled(struct client *client, enum geonn_device_choice device,
								 const char *subject, const char *version);

/* hello, and attach to a sealed dataset: its id was in opened */
extern bool client_attach(struct client *client, enum geonn_device_choice device,
						  uint64_t dataset);

/* a dataset on the sphere without columns, or (dataset not 0) attach */
extern bool client_open(struct client *client, enum geonn_device_choice device,
						uint64_t dataset);

/* Leave a file with the dataset, or what is none. */
extern void client_leave(struct client *client, uint32_t kind, int descriptor);

/* A memfd with this text, with these seals; the caller's to close. */
extern int	text_file(const char *text, int seals);

/* Allocate a slot's batch and map it. */
extern bool client_allocate(struct client *client, uint32_t slot, uint32_t rows,
							uint32_t room);

/* Send all references, batch by batch, and seal. */
extern bool client_send_dataset(struct client *client,
								const struct client_points *references,
								bool order_by_tag);

/* the same without further columns */
extern bool client_send_references(struct client *client, size_t count,
								   const double *latitude, const double *longitude,
								   const int64_t *tag, bool order_by_tag);

/*
 * Ask the question of all observations through all slots that have been
 * allocated, and hand out the pairs as they come.
 */
extern bool client_ask(struct client *client, const struct client_question *question,
					   const struct client_points *observations,
					   client_take_part take, void *argument);

/*
 * The same, with all pairs in the order of the observations.  Where it fails
 * nothing is to be freed.
 */
extern bool client_collect(struct client *client, const struct client_question *question,
						   const struct client_points *observations,
						   struct client_answers *answers);
extern void client_free_answers(struct client_answers *answers);

/* The nearest reference of each observation, put in order into the array. */
extern bool client_search(struct client *client, size_t count,
						  const double *latitude, const double *longitude,
						  struct answer *answers);

/* Ask an engine for its status, over a connection of its own. */
extern bool engine_status(const struct engine *engine,
						  struct geonn_engine_status *status,
						  struct geonn_device_status *devices, int devices_max);

#endif							/* ENGINE_CLIENT_H */
