/*
 * groups.c
 *		Numbers for the groups that a join is by, and for parties: equal keys, equal numbers.
 *
 * The engine knows groups as int32 numbers.  A key is the values of all by
 * columns of a row.  A hash table gives the references' keys numbers from 0 on,
 * and the key of each observation is looked up in it: an observation whose key is
 * missing has no candidate, and neither has one with a NULL, since NULL equals nothing.
 * Each column of the argument differs has a table of its own, whose numbers are parties: a value
 * that no reference has differs from all, and a NULL from none.
 * Keys are compared by the default equality of their type and the references'
 * collation.  Values of a type without a hash function, as money and bit varying, are
 * hashed by their bytes, if equal values have equal bytes; else all of them have one
 * hash, and a key is compared with every other.
 *
 * When all references have come, the table is written to a file that stays with
 * their dataset, and from then on keys are looked up there, by this process and by
 * others that attach to the dataset.  The file has the keys, one column's value
 * after the other; then slots, a power of two and at least twice as many as keys, a
 * key in the first free slot from that of its hash on; and the number of slots.  A
 * process that attached distrusts the file: it checks places before it reads them, and
 * a lookup ends after as many slots as the file has.
 *
 * The groups of a base (live_base.c) go on: keys of rows that were added to its table since, and that the file has
 * not, go to a table of this process, with numbers after those of the file.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "base/compat.h"
#include "client/connection.h"
#include "client/memory_file.h"
#include "common/protocol.h"
#include "join/groups.h"
#include "points/column_pairs.h"
#include "base/value.h"

#define FILE_PURPOSE "keys of groups"

/* a slot of the sealed file */
typedef struct GroupSlot
{
	uint32		hash;
	int32		number;			/* -1: the slot is free */
	uint64		key;			/* where the key begins in the file */
} GroupSlot;

typedef struct GroupEntry
{
	Datum	   *key;			/* [by_count] */
	uint32		hash;
	int32		number;
	char		status;			/* simplehash's */
} GroupEntry;

/*
 * A group takes at most this many bytes besides its key: two hash table entries, and four slots each in the
 * file and in the memory from which the file is written.
 */
#define GROUP_BYTES (2 * sizeof(GroupEntry) + 2 * 4 * sizeof(GroupSlot))

typedef struct GroupColumn
{
	FmgrInfo   *hash;			/* the type's hash function; NULL: the type has none */
	bool		same_bytes;		/* equal values have equal bytes */
	FmgrInfo   *equal;
	Oid			collation;
	bool		by_value;
	int16		length;
} GroupColumn;

struct GeonnGroups
{
	int			first;			/* number of the key's first column, among the columns of the argument by followed by
								 * those of differs */
	int			by_count;		/* how many columns a key has */
	GroupColumn *columns;		/* [by_count] */
	int			file_kind;		/* enum geonn_file_kind */

	/* Before the groups are sealed.  Groups of a base have a table afterwards as well, with the keys added since. */
	ReferenceMemory *memory;	/* NULL: the groups are a base's */
	MemoryContext context;		/* the context of the table and its keys */
	struct grouptable_hash *table;	/* NULL: none */
	uint64		bytes;			/* for groups of a base: the bytes that keys in the table take */

	/* after that */
	MemoryFile *file;
	const GroupSlot *slots;		/* [slot_count] */
	uint64		slot_count;
	uint32		file_groups;	/* how many groups the file has; set for groups of a base, and if this process made the
								 * file */
	Datum	   *found;			/* [by_count] a key of the file */
};

static uint32
value_hash(const GroupColumn *column, Datum value)
{
	if (column->hash != NULL)
		return DatumGetUInt32(FunctionCall1Coll(column->hash, column->collation, value));
	return column->same_bytes ? datum_image_hash(value, column->by_value, column->length) : 0;
}

static uint32
key_hash(const GeonnGroups *groups, const Datum *key)
{
	uint32		hash = 0;

	for (int i = 0; i < groups->by_count; i++)
		hash = hash_combine(hash, value_hash(&groups->columns[i], key[i]));
	return murmurhash32(hash);
}

static bool
keys_equal(const GeonnGroups *groups, const Datum *a, const Datum *b)
{
	for (int i = 0; i < groups->by_count; i++)
	{
		const GroupColumn *column = &groups->columns[i];

		if (!DatumGetBool(FunctionCall2Coll(column->equal, column->collation, a[i], b[i])))
			return false;
	}
	return true;
}

#define SH_PREFIX grouptable
#define SH_ELEMENT_TYPE GroupEntry
#define SH_KEY_TYPE Datum *
#define SH_KEY key
#define SH_HASH_KEY(table, key) key_hash((table)->private_data, key)
#define SH_EQUAL(table, a, b) keys_equal((table)->private_data, a, b)
#define SH_SCOPE static inline
#define SH_STORE_HASH
#define SH_GET_HASH(table, entry) (entry)->hash
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Check column number `number` of the arguments by and differs. */
static void
check_column(const PointSource *observations, const PointSource *references, int number)
{
	const char *argument = number < geonn_group_columns(references) ? "by" : "differs";
	const PointColumn *observation = &observations->by[number];
	const PointColumn *reference = &references->by[number];
	TypeCacheEntry *type;

	if (observation->base_type != reference->base_type)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of the argument %s has two types",
						geonn_pair_of_names(observation->name, reference->name), argument),
				 errdetail("The column has type %s in %s, and type %s in %s.",
						   format_type_be(observation->type), observations->title,
						   format_type_be(reference->type), references->title),
				 errhint("Cast one of them in a view, or in a query of geonn_nearest_sql.")));

	type = lookup_type_cache(reference->base_type, TYPECACHE_EQ_OPR_FINFO);
	if (!OidIsValid(type->eq_opr_finfo.fn_oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("column \"%s\" of the argument %s has type %s, which has no equality",
						geonn_pair_of_names(observation->name, reference->name), argument,
						format_type_be(reference->type)),
				 errhint("Cast it to a type that has one, such as text, in a view.")));
}

/* Prepare to compare values of a column that check_column() has checked. */
static void
prepare_column(GroupColumn *column, const PointColumn *reference)
{
	TypeCacheEntry *type = lookup_type_cache(reference->base_type,
											 TYPECACHE_HASH_PROC_FINFO | TYPECACHE_EQ_OPR_FINFO);

	column->hash = OidIsValid(type->hash_proc_finfo.fn_oid) ? &type->hash_proc_finfo : NULL;
	column->same_bytes = geonn_equal_is_same(reference->base_type, reference->collation);
	column->equal = &type->eq_opr_finfo;
	column->collation = reference->collation;
	get_typlenbyval(reference->base_type, &column->length, &column->by_value);
}

bool
geonn_groups_has_null(const GeonnGroups *groups, const bool *is_null)
{
	for (int i = 0; i < groups->by_count; i++)
	{
		if (is_null[groups->first + i])
			return true;
	}
	return false;
}

uint64
geonn_groups_file_bytes(const GeonnGroups *groups)
{
	return geonn_memory_file_length(groups->file);
}

uint32
geonn_groups_count(const GeonnGroups *groups)
{
	return groups->file_groups + (groups->table != NULL ? groups->table->members : 0);
}

uint64
geonn_groups_bytes(const GeonnGroups *groups)
{
	return groups->bytes;
}

/* Count a key's bytes twice, because in the end both the table and the file have the key. */
static void
add_to_memory(GeonnGroups *groups, const Datum *key)
{
	uint64		bytes = 0;

	for (int i = 0; i < groups->by_count; i++)
	{
		const GroupColumn *column = &groups->columns[i];

		bytes += column->by_value ? sizeof(Datum) :
			column->length == -1 ? MAXALIGN64(toast_raw_datum_size(key[i])) :
			MAXALIGN64(column->length);
	}
	if (groups->memory != NULL)
		geonn_reference_memory_add_bytes(groups->memory, 2 * bytes + GROUP_BYTES, "keys of groups");
	else
		groups->bytes += 2 * bytes + GROUP_BYTES;
}

/*
 * Copy a key to the memory of the table.
 */
static Datum *
keep_key(const GeonnGroups *groups, const Datum *key)
{
	MemoryContext former = MemoryContextSwitchTo(groups->context);
	Datum	   *kept = palloc(groups->by_count * sizeof(Datum));

	for (int i = 0; i < groups->by_count; i++)
	{
		const GroupColumn *column = &groups->columns[i];

		kept[i] = geonn_copy_value(key[i], column->by_value, column->length);
	}
	MemoryContextSwitchTo(former);
	return kept;
}

/*
 * Create the table of keys that are added.
 */
static void
create_table(GeonnGroups *groups, MemoryContext parent)
{
	groups->context = AllocSetContextCreate(parent, "geonn groups", ALLOCSET_DEFAULT_SIZES);
	groups->table = grouptable_create(groups->context, 256, groups);
}

/* ---- the file ---- */

/*
 * Append a key; returns its file offset.
 */
static uint64
write_key(GeonnGroups *groups, const Datum *key)
{
	uint64		place = 0;

	for (int i = 0; i < groups->by_count; i++)
	{
		const GroupColumn *column = &groups->columns[i];
		const void *bytes = column->by_value ? (const void *) &key[i] : DatumGetPointer(key[i]);
		Size		length = column->by_value ? sizeof(Datum) :
			datumGetSize(key[i], false, column->length);
		uint64		at = geonn_memory_file_append(groups->file, bytes, length);

		if (i == 0)
			place = at;
	}
	return place;
}

static void
write_table(GeonnGroups *groups)
{
	uint64		count = pg_nextpower2_64(Max(2 * (uint64) groups->table->members, 2));
	GroupSlot  *slots = MemoryContextAllocHuge(groups->context, count * sizeof(GroupSlot));
	grouptable_iterator iterator;
	GroupEntry *entry;

	for (uint64 i = 0; i < count; i++)
		slots[i] = (GroupSlot) {.number = -1};
	grouptable_start_iterate(groups->table, &iterator);
	while ((entry = grouptable_iterate(groups->table, &iterator)) != NULL)
	{
		uint64		i = entry->hash & (count - 1);

		CHECK_FOR_INTERRUPTS();
		while (slots[i].number >= 0)
			i = (i + 1) & (count - 1);
		slots[i] = (GroupSlot) {
			.hash = entry->hash,
			.number = entry->number,
			.key = write_key(groups, entry->key)
		};
	}
	geonn_memory_file_append(groups->file, slots, count * sizeof(GroupSlot));
	geonn_memory_file_append(groups->file, &count, sizeof(count));
}

/* Find the slots of the sealed file, and check that they lie within the file. */
static void
find_slots(GeonnGroups *groups)
{
	uint64		length = geonn_memory_file_length(groups->file);
	const uint64 *count = length < sizeof(uint64) ? NULL :
		geonn_memory_file_bytes(groups->file, length - sizeof(uint64), sizeof(uint64));

	if (count != NULL && *count > 0 && (*count & (*count - 1)) == 0 &&
		*count <= (length - sizeof(uint64)) / sizeof(GroupSlot))
	{
		uint64		bytes = *count * sizeof(GroupSlot);

		groups->slot_count = *count;
		groups->slots = geonn_memory_file_bytes(groups->file, length - sizeof(uint64) - bytes,
												bytes);
	}
	if (groups->slots == NULL)
		geonn_connection_violation("a malformed table of groups");
}

void
geonn_groups_seal(GeonnGroups *groups, GeonnClient *client)
{
	write_table(groups);
	groups->file_groups = groups->table->members;
	MemoryContextDelete(groups->context);
	groups->table = NULL;
	groups->bytes = 0;
	geonn_memory_file_seal(groups->file);
	geonn_client_leave_file(client, groups->file_kind, groups->file);
	find_slots(groups);
}

void
geonn_groups_close_descriptor(GeonnGroups *groups)
{
	geonn_memory_file_close_descriptor(groups->file);
}

/* Prepare to compare keys of `count` columns of the references, from column `first` on. */
static GeonnGroups *
prepare_columns(const PointSource *references, int first, int count)
{
	GeonnGroups *groups = palloc0(sizeof(GeonnGroups));

	groups->first = first;
	groups->by_count = count;
	groups->columns = palloc0(count * sizeof(GroupColumn));
	groups->found = palloc0(count * sizeof(Datum));
	for (int i = 0; i < count; i++)
		prepare_column(&groups->columns[i], &references->by[first + i]);
	return groups;
}

void
geonn_groups_check(const PointSource *observations, const PointSource *references)
{
	for (int i = 0; i < geonn_group_columns(references); i++)
		check_column(observations, references, i);
}

GeonnGroups *
geonn_groups_of_base(const PointSource *references, MemoryFile *file)
{
	GeonnGroups *groups = prepare_columns(references, 0, geonn_group_columns(references));

	groups->file_kind = GEONN_FILE_GROUPS;
	groups->file = file;
	if (file != NULL)
	{
		find_slots(groups);
		for (uint64 i = 0; i < groups->slot_count; i++)
			groups->file_groups += groups->slots[i].number >= 0;
	}
	else
	{
		groups->file = geonn_memory_file_create(FILE_PURPOSE);
		create_table(groups, CurrentMemoryContext);
	}
	return groups;
}

GeonnGroups *
geonn_groups_begin(const PointSource *observations, const PointSource *references, GroupKey key,
				   ReferenceMemory *memory, GeonnClient *client)
{
	int			first = 0;
	int			count = geonn_group_columns(references);
	int			file_kind = GEONN_FILE_GROUPS;
	GeonnGroups *groups;

	if (key >= GROUP_KEY_DIFFERS)
	{
		first = count + key - GROUP_KEY_DIFFERS;
		count = 1;
		file_kind = GEONN_FILE_PARTIES + key - GROUP_KEY_DIFFERS;
	}
	for (int i = first; i < first + count; i++)
		check_column(observations, references, i);
	groups = prepare_columns(references, first, count);
	groups->file_kind = file_kind;
	if (memory == NULL)
	{
		groups->file = geonn_client_take_file(client, groups->file_kind, FILE_PURPOSE);
		find_slots(groups);
		return groups;
	}
	groups->memory = memory;
	create_table(groups, CurrentMemoryContext);
	groups->file = geonn_memory_file_create(FILE_PURPOSE);
	return groups;
}

static const Datum *
read_key(const GeonnGroups *groups, uint64 place)
{
	for (int i = 0; i < groups->by_count; i++)
	{
		const GroupColumn *column = &groups->columns[i];
		uint64		length = column->by_value ? sizeof(Datum) : Max(column->length, 0);
		const void *bytes;

		if (column->length == -1)
		{
			const struct varlena *value = geonn_memory_file_varlena(groups->file, place);

			length = value != NULL ? VARSIZE(value) : 0;
			bytes = value;
		}
		else
			bytes = geonn_memory_file_bytes(groups->file, place, length);
		if (bytes == NULL)
			geonn_connection_violation("a table of groups without its keys");
		groups->found[i] = column->by_value ? *(const Datum *) bytes : PointerGetDatum(bytes);
		place += MAXALIGN64(length);
	}
	return groups->found;
}

/* Return the number of a key with this hash, or GEONN_NO_GROUP. */
static int32
find_key(const GeonnGroups *groups, const Datum *key, uint32 hash)
{
	const GroupEntry *entry;

	for (uint64 i = 0; i < groups->slot_count; i++)
	{
		const GroupSlot *slot = &groups->slots[(hash + i) & (groups->slot_count - 1)];

		if (slot->number < 0)
			break;
		if (slot->hash == hash && keys_equal(groups, read_key(groups, slot->key), key))
			return slot->number;
	}
	entry = groups->table != NULL ? grouptable_lookup_hash(groups->table, unconstify(Datum *, key), hash) : NULL;
	return entry != NULL ? entry->number : GEONN_NO_GROUP;
}

int32
geonn_groups_find(GeonnGroups *groups, const Datum *values, const bool *is_null)
{
	const Datum *key = values + groups->first;

	return geonn_groups_has_null(groups, is_null) ? GEONN_NO_GROUP : find_key(groups, key, key_hash(groups, key));
}

int32
geonn_groups_add(GeonnGroups *groups, const Datum *values, const bool *is_null)
{
	const Datum *key = values + groups->first;
	GroupEntry *entry;
	uint32		hash;
	int32		number;
	bool		found;

	if (geonn_groups_has_null(groups, is_null))
		return GEONN_NO_GROUP;
	hash = key_hash(groups, key);
	number = find_key(groups, key, hash);
	if (number != GEONN_NO_GROUP)
		return number;
	if (groups->table == NULL)
		create_table(groups, GetMemoryChunkContext(groups));
	if (geonn_groups_count(groups) == PG_INT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the references have more than %d groups", PG_INT32_MAX),
				 errhint("Join a part of the references at a time, as by a view of them with a range of a column.")));
	/* Count the memory first: if that raises an error, the table of a base is as it was. */
	add_to_memory(groups, key);
	entry = grouptable_insert_hash(groups->table, keep_key(groups, key), hash, &found);
	entry->number = (int32) geonn_groups_count(groups) - 1;
	return entry->number;
}
