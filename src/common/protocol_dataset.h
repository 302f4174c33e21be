/*
 * protocol_dataset.h
 *		Messages by which a session gets its dataset: devices, labels, columns, references, files.
 *
 * Candidates.  The columns of a dataset (GEONN_COLUMN_...) say which references are candidates of an
 * observation; without columns all are.  The order of the references is the one in which they were sent, or,
 * where seal says so, (tag, latitude, longitude).
 *
 * Kept datasets.  A dataset can stay in the engine after its last session, until its memory is needed:
 * geonn_configure has the limit.  A later session finds it by a label.  A label has two parts: the subject says
 * what the references are of, and the version says which state of it they are.  The session that opens the
 * dataset gives the subject.  When it seals the dataset, it asks for it to be kept, with the version that it
 * knows then.  From then on any session that opens a dataset with the same label gets the kept one, sealed,
 * with the note that the first session left.  The engine keeps one version of a subject.  A client that can use
 * any of several datasets gives the labels of all of them; if none is kept, the new dataset gets the first
 * one's subject.  A client may also ask for whichever version is kept.  The engine does not interpret labels;
 * clients must not give the same label to different references.
 *
 * Files hold what clients must know of the references beside their tags, so that a session that attaches to a
 * dataset knows it, too.  The engine does not read them.  A dataset has at most one file of each kind.
 *
 * Arcs.  The references of a dataset with GEONN_COLUMN_ARC are arcs of great circles (arc.h), and a search finds
 * shapes, each of which is one or more of these arcs.  Latitude and longitude are the place where the arc begins.
 * Further columns have the place where it ends, the number of its shape and that of its polygon.  An arc longer
 * than a quarter circle counts as two, by its middle (geonn_arc_middle()); a point is an arc of no length.
 *
 * Shapes have numbers from 0 on, in the order in which they are sent; their arcs are adjacent, and have the same
 * tag, group, radius, windows, weights and parties.  An arc of a point or a line has polygon 0.  The rings of a
 * polygon are adjacent and closed, each in the order of its vertices; a ring of one vertex is an arc of no length.
 * Their arcs have the polygon's number n, which is greater than those sent before.  Where an odd number of the
 * polygon's rings hold the north pole (geonn_ring_holds_pole()), they have -n instead.
 *
 * The distance of an observation to a shape is 0 inside one of its polygons and on its border, else the least to
 * its arcs.  The distance of two shapes is 0 where they have a place in common, else the least of any two of their arcs
 * (geonn_arcs_distance()).  Inside a polygon are the points that lie inside an odd number of its rings.  The order of the shapes
 * is the one in which they were sent, or, where seal says so, by tag, and of the same tag as sent.  Such a dataset
 * has the metric GEONN_METRIC_SPHERE.
 *
 * With GEONN_COLUMN_SEGMENT each arc has its number among those of its shape's lines and rings, from 1 on, and the number of
 * the last arc of its line or ring, whose arcs are adjacent; a point has 0 for both.  With GEONN_COLUMN_MEASURE an arc of a
 * line has the measures (M) of its ends, or NAN.
 */
#ifndef GEONN_PROTOCOL_DATASET_H
#define GEONN_PROTOCOL_DATASET_H

#include <stdint.h>

#include "common/protocol_header.h"

/* the message open has at most this many labels */
#define GEONN_LABELS_MAX		3

/* a dataset has at most this many references */
#define GEONN_REFERENCES_MAX	INT32_MAX

/* a reference takes at most this many bytes in the CPU's index */
#define GEONN_INDEX_BYTES		42

/*
 * In the CPU's index an arc takes at most GEONN_ARC_INDEX_BYTES, and a part of a shape GEONN_LINE_INDEX_BYTES (a line or
 * point) or GEONN_RING_INDEX_BYTES (a ring).  With the arc's 48 bytes in the dataset's columns, no vertex of a line or ring
 * takes more than 96.  An arc that the index cuts into pieces takes geonn_arc_pieces_bytes() more.  Searches for places also
 * need GEONN_FRACTION_BYTES for each arc, if some arcs are of lines, and searches of polygons GEONN_PART_BYTES for each part.
 */
#define GEONN_ARC_INDEX_BYTES	45
#define GEONN_LINE_INDEX_BYTES	24
#define GEONN_RING_INDEX_BYTES	104
#define GEONN_FRACTION_BYTES	8
#define GEONN_PART_BYTES		56

/* Return how many bytes more an arc takes in the index if the index cuts it into so many pieces (geonn_arc_pieces()). */
static inline uint64_t
geonn_arc_pieces_bytes(uint32_t pieces)
{
	return pieces > 1 ? (uint64_t) (pieces + 1) * GEONN_ARC_INDEX_BYTES : 0;
}

/* the bytes of the two parts of a label, and of a note */
#define GEONN_SUBJECT_BYTES		480
#define GEONN_VERSION_BYTES		32
#define GEONN_NOTE_BYTES		64

/* A file that stays with a dataset has at most this many bytes: more than any system has. */
#define GEONN_FILE_BYTES_MAX	(UINT64_C(1) << 50)

/* the kinds of devices, each with its word in SQL */
#define GEONN_DEVICE_KINDS(KIND) \
	KIND(CPU, "cpu") \
	KIND(CUDA, "cuda")

/* GEONN_KIND_CPU ... */
#define GEONN_DEVICE_KIND(NAME, word) GEONN_KIND_##NAME,
enum geonn_device_kind
{
	GEONN_DEVICE_KINDS(GEONN_DEVICE_KIND)
	GEONN_DEVICE_KIND_COUNT
};

/* The devices that a session may use.  GEONN_DEVICE_CPU and the others stand for the devices of one kind. */
#define GEONN_DEVICE_CHOICE(NAME, word) GEONN_DEVICE_##NAME,
enum geonn_device_choice
{
	GEONN_DEVICE_AUTO,			/* the GPUs that work; if none does, the CPU */
	GEONN_DEVICE_KINDS(GEONN_DEVICE_CHOICE)
	GEONN_DEVICE_CHOICE_COUNT
};

/* Return the choice that allows the devices of this kind alone. */
static inline enum geonn_device_choice
geonn_device_choice_of(enum geonn_device_kind kind)
{
	return (enum geonn_device_choice) (GEONN_DEVICE_AUTO + 1 + (int) kind);
}

/* how the distances that order neighbours are measured */
enum geonn_metric
{
	GEONN_METRIC_SPHERE,		/* along great circles of a sphere (geodesy.h) */
	GEONN_METRIC_SPHEROID		/* along geodesics of WGS84 (spheroid.h) */
};

/* Bits of the columns that the references of a dataset, and its observations, may have. */
#define GEONN_COLUMN_GROUP		1u	/* only references with the observation's group are candidates */
#define GEONN_COLUMN_EXCLUDED	2u	/* of observations alone: references with a tag in the observation's excluded range
									 * are no candidates */
#define GEONN_COLUMN_RADIUS		4u	/* only references within the observation's radius, and within their own radius,
									 * are candidates */
#define GEONN_COLUMN_WINDOW		8u	/* << 0 ... GEONN_WINDOWS_MAX - 1: only references whose
									 * window overlaps the observation's are candidates */
#define GEONN_COLUMN_WEIGHT		64u /* << 0 ... GEONN_WEIGHTS_MAX - 1, of references alone: numbers that a count adds
									 * up; NAN: the reference has no weight */
#define GEONN_COLUMN_PARTY		1024u	/* << 0 ... GEONN_PARTIES_MAX - 1: only references whose party differs from the
										 * observation's are candidates */
#define GEONN_COLUMN_ARC		4096u	/* each reference is an arc of a shape; with GEONN_SEARCH_SHAPES each observation is,
									 * too */
#define GEONN_COLUMN_SEGMENT	8192u	/* of arcs alone: each has its number in its shape */
#define GEONN_COLUMN_MEASURE	16384u	/* of arcs alone: each has the measures of its ends */
#define GEONN_COLUMNS_OF_ARCS	(GEONN_COLUMN_ARC | GEONN_COLUMN_SEGMENT | GEONN_COLUMN_MEASURE)
#define GEONN_COLUMNS_ALL		32767u

/* a point has at most this many windows (window.h) */
#define GEONN_WINDOWS_MAX		3
#define GEONN_COLUMNS_WINDOWS	(((1u << GEONN_WINDOWS_MAX) - 1) * GEONN_COLUMN_WINDOW)

/* a reference has at most this many weights */
#define GEONN_WEIGHTS_MAX		4
#define GEONN_COLUMNS_WEIGHTS	(((1u << GEONN_WEIGHTS_MAX) - 1) * GEONN_COLUMN_WEIGHT)

/* a point has at most this many parties */
#define GEONN_PARTIES_MAX		2
#define GEONN_COLUMNS_PARTIES	(((1u << GEONN_PARTIES_MAX) - 1) * GEONN_COLUMN_PARTY)

/* the contents of a file that stays with a dataset */
enum geonn_file_kind
{
	GEONN_FILE_RECORDS,			/* a record for each reference: its id, or the id's offset in GEONN_FILE_VALUES */
	GEONN_FILE_VALUES,			/* ids of references that are too long for records */
	GEONN_FILE_GROUPS,			/* the groups' keys with the groups' numbers */
	GEONN_FILE_BASE,			/* the references themselves, for clients that search alone */
	GEONN_FILE_PARTIES			/* + 0 ... GEONN_PARTIES_MAX - 1: the parties' keys with the parties' numbers */
};

#define GEONN_FILE_KINDS		(GEONN_FILE_PARTIES + GEONN_PARTIES_MAX)

/* A label.  The engine compares labels byte by byte, so clients set unused bytes to zero. */
struct geonn_label
{
	uint8_t		subject[GEONN_SUBJECT_BYTES];
	uint8_t		version[GEONN_VERSION_BYTES];
};

struct geonn_open
{
	struct geonn_header header;
	uint32_t	device;			/* enum geonn_device_choice */
	uint32_t	metric;			/* enum geonn_metric */
	uint32_t	columns;		/* GEONN_COLUMN_... */
	uint32_t	labels;			/* number of labels */
	uint32_t	any_version;	/* 1: the subject of a label alone finds a kept dataset, whatever its version */
	uint32_t	unused;
	struct geonn_label label[GEONN_LABELS_MAX]; /* the best first */
};

struct geonn_queued
{
	struct geonn_header header;
	uint32_t	limit;			/* how many processes may have sessions */
	uint32_t	ahead;			/* how many sessions were queued before this one */
};

struct geonn_attach
{
	struct geonn_header header;
	uint32_t	device;			/* enum geonn_device_choice */
	uint32_t	unused;
	uint64_t	dataset;		/* the number of a sealed dataset, from the message opened */
};

struct geonn_opened
{
	struct geonn_header header;
	uint64_t	dataset;		/* the dataset's number */
	uint64_t	references;		/* how many references the dataset has; 0: it is new */
	uint32_t	metric;			/* the metric and the columns with which a session first opened the dataset */
	uint32_t	columns;
	uint32_t	files;			/* bits 1 << enum geonn_file_kind: one message file follows for each bit */
	uint32_t	sealed;			/* 0: the dataset is new; otherwise 1 */
	uint8_t		note[GEONN_NOTE_BYTES]; /* the note of a kept dataset */
};

/* The messages leave and file.  Both carry a memfd, sealed against shrinking, growing and writing. */
struct geonn_file
{
	struct geonn_header header;
	uint32_t	kind;			/* enum geonn_file_kind */
	uint32_t	unused;
};

struct geonn_references
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	rows;
};

struct geonn_released
{
	struct geonn_header header;
	uint32_t	slot;
	uint32_t	unused;
};

struct geonn_seal
{
	struct geonn_header header;
	uint32_t	order_by_tag;	/* 0: references keep the order in which they were sent; 1: the engine sorts them by
								 * (tag, latitude, longitude) */
	uint32_t	keep;			/* 1: the engine keeps the dataset, so that later sessions find it by its label */
	uint8_t		version[GEONN_VERSION_BYTES];	/* the label's version, where keep is 1 */
	uint8_t		note[GEONN_NOTE_BYTES];
};

/* The outcome of a request to keep a dataset. */
enum geonn_keeping
{
	GEONN_KEEPING_UNASKED,
	GEONN_KEEPING_DONE,			/* the engine keeps the dataset, or another one with the same label */
	GEONN_KEEPING_TOO_LARGE,	/* the dataset takes more than kept_memory_limit (geonn_configure) */
	GEONN_KEEPING_NO_ROOM,		/* other kept datasets that sessions hold, and tables of squares, leave too little of
								 * the limit */
	GEONN_KEEPING_COUNT
};

struct geonn_sealed
{
	struct geonn_header header;
	uint64_t	references;
	uint64_t	bytes;			/* the bytes that the dataset would count as while it is kept; 0: keeping was not asked
								 * for */
	uint32_t	keeping;		/* enum geonn_keeping */
	uint32_t	is_news;		/* 1: the dataset is not kept, and since the limit changed the engine has told no
								 * client so about the dataset's subject */
};

#endif							/* GEONN_PROTOCOL_DATASET_H */
