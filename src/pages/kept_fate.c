/*
 * kept_fate.c
 *		References that the engine keeps: found by the labels of a table's present state, and left there by a
 *		call that reads them.
 */
#include "postgres.h"

#include "base/settings.h"
#include "pages/kept_dataset.h"

/* The note that stays with kept references. */
typedef struct KeptNote
{
	uint64		counts[POINT_STATUSES]; /* as in PreparedJoin */
	uint64		part_bytes;		/* geonn_reference_memory_part_bytes */
	uint8		words[GEONN_WEIGHTS_MAX];	/* geonn_reference_memory_words */
} KeptNote;

StaticAssertDecl(sizeof(KeptNote) <= GEONN_NOTE_BYTES, "a note has no room");

/* Write labels of the table's present state.  Returns their number. */
static int
label(const JoinPreparation *preparation, struct geonn_label *labels)
{
	/* Keep datasets of tables with settled pages?  For given points, a base serves instead. */
	bool		settled = preparation->join->given == NULL || preparation->known == NULL;

	return geonn_label_dataset(preparation->join->references, preparation->table, &preparation->prepared->question,
							   preparation->detail, settled, labels);
}

/* Implements ReferenceFate.keep.  Looks at the table only now, because reading pages prunes them. */
static bool
keep(const JoinPreparation *preparation, ReferenceMemory *memory)
{
	struct geonn_label labels[GEONN_LABELS_MAX];
	KeptNote	note;

	if (preparation->label_count == 0 || label(preparation, labels) == 0)
		return false;
	memcpy(note.counts, preparation->prepared->counts, sizeof(note.counts));
	memcpy(note.words, geonn_reference_memory_words(memory), sizeof(note.words));
	note.part_bytes = geonn_reference_memory_part_bytes(memory);
	geonn_client_keep(preparation->prepared->client, labels[0].version, &note, sizeof(note));
	return true;
}

static void
use_kept_references(const GeonnJoin *join, ReferenceDetail detail, PreparedJoin *prepared)
{
	ReferenceMemory *memory = geonn_reference_memory_create(join->references->title, prepared->question.columns,
															prepared->question.places);
	KeptNote	note;

	prepared->kept = true;
	memcpy(&note, geonn_client_note(prepared->client), sizeof(note));
	memcpy(prepared->counts, note.counts, sizeof(note.counts));
	geonn_begin_references(join, detail, prepared, NULL);

	/* Count the bytes of the files, unless another join of this process counts the same dataset. */
	if (!geonn_reference_memory_name(memory, geonn_client_dataset(prepared->client)))
	{
		uint64		bytes = geonn_references_file_bytes(prepared->references);

		if (prepared->groups != NULL)
			bytes += geonn_groups_file_bytes(prepared->groups);
		for (int i = 0; i < GEONN_PARTIES_MAX && prepared->parties[i] != NULL; i++)
			bytes += geonn_groups_file_bytes(prepared->parties[i]);
		geonn_reference_memory_add(memory, geonn_client_references(prepared->client));
		geonn_reference_memory_add_words(memory, note.words);
		geonn_reference_memory_add_parts(memory, note.part_bytes);
		geonn_reference_memory_add_bytes(memory, bytes, "ids and keys of groups");
	}
	geonn_tell_of_references(join, prepared->counts);
}

/* Ask the engine for a dataset with one of the labels.  If the engine keeps none, the client has a new dataset. */
static const char *
ask_engine(JoinPreparation *preparation)
{
	PreparedJoin *prepared = preparation->prepared;

	prepared->client = geonn_client_open(&prepared->question, preparation->labels, preparation->label_count,
										 &preparation->message);
	if (!geonn_client_is_sealed(prepared->client))
		return "the engine keeps no dataset of their table as it is now";
	use_kept_references(preparation->join, preparation->detail, prepared);
	return NULL;
}

static const char *
find(JoinPreparation *preparation)
{
	if (geonn_kept_memory_limit == 0)
		return "geonn.kept_memory_limit is 0";
	if (preparation->table == NULL)
		return "they are not the rows of one table";
	preparation->label_count = label(preparation, preparation->labels);
	if (preparation->label_count == 0)
		return "their table is being changed, or is temporary, unlogged or on a standby";
	return ask_engine(preparation);
}

static const char *
find_again(JoinPreparation *preparation)
{
	if (preparation->label_count == 0 || preparation->prepared->client != NULL)
		return "the engine need not be asked again";
	return ask_engine(preparation);
}

const ReferenceFate geonn_kept_fate = {
	.name = "kept",
	.prepare = find,
	.keep = keep
};

const ReferenceFate geonn_kept_meanwhile_fate = {
	.name = "kept meanwhile",
	.prepare = find_again
};
