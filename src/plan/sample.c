/*
 * sample.c
 *		Some points of a table, for estimates.
 *
 * How many references lie within a distance depends on where the points are, and on
 * both tables together: cities are where cities are.  PostgreSQL's statistics have a histogram of
 * latitudes and one of longitudes, which do not tell that.  So some points are read when a join with a
 * distance is planned: a few rows of some pages, which are spread evenly over the
 * table, so that planning takes less than a millisecond.
 *
 * Two tables are often filled in the same order, that of time or of a key for example.  Rows at the same
 * share of both would then be of the same moments and groups, and candidates would seem to be far more
 * common than they are.  So chance decides which page of each of SAMPLE_PAGES parts is read, and which rows of
 * it.  The seed is the table's name, lest estimates change from one server to the next.
 *
 * A statement is estimated several times while it is planned.  So the process keeps its latest
 * samples, for a minute at most; and as long as the table has the same file and about as many pages.  Privileges
 * are checked each time.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "common/geodesy.h"
#include "base/compat.h"
#include "plan/sample.h"
#include "points/column_pairs.h"
#include "points/geometry.h"
#include "points/table_reader.h"
#include "points/window_column.h"

/* pages that are read */
#define SAMPLE_PAGES 48

/* samples that are kept, and for how many milliseconds */
#define SAMPLES_KEPT 8
#define SAMPLE_MILLISECONDS 60000

/* columns to join by; with more there is no sample */
#define BY_MAX 8

#define COLUMNS_MAX (2 + BY_MAX + 1 + GEONN_WINDOWS_MAX)

/* the columns of a table that are read */
typedef struct SampleColumns
{
	int			count;
	int			coordinates;	/* 2: latitude and longitude; 1: a point */
	int			by;				/* columns up to the last one to join by; a radius follows, and windows */
	bool		has_radius;
	AttrNumber	attributes[COLUMNS_MAX];
	Oid			types[COLUMNS_MAX];	/* below any domain */
	Oid			collations[COLUMNS_MAX];
	int			windows;
	WindowType	window_types[GEONN_WINDOWS_MAX];
} SampleColumns;

typedef struct KeptSample
{
	Oid			relation;		/* InvalidOid: none */
	Oid			file;
	BlockNumber pages;
	TimestampTz taken;
	SampleColumns columns;
	PointSample sample;
	GeonnLimits *limits;		/* [SAMPLE_POINTS], for the sample; NULL: none had any so far */
} KeptSample;

static KeptSample *kept_samples;	/* [SAMPLES_KEPT]; NULL: none has been taken */
static int	next_kept;
static uint64 samples_taken;

/* ---- columns ---- */

static void
add_column(SampleColumns *columns, Relation table, AttrNumber attribute)
{
	Form_pg_attribute form = TupleDescAttr(RelationGetDescr(table), attribute - 1);

	columns->attributes[columns->count] = attribute;
	columns->types[columns->count] = getBaseType(form->atttypid);
	columns->collations[columns->count] = form->attcollation;
	columns->count++;
}

/*
 * The column that has one of these names; 0: none has.
 */
static AttrNumber
find_name(Relation table, const char *const *names)
{
	TupleDesc	descriptor = RelationGetDescr(table);

	for (; *names != NULL; names++)
	{
		for (int i = 0; i < descriptor->natts; i++)
		{
			if (!TupleDescAttr(descriptor, i)->attisdropped &&
				pg_strcasecmp(NameStr(TupleDescAttr(descriptor, i)->attname), *names) == 0)
				return i + 1;
		}
	}
	return 0;
}

/*
 * The first column of points; 0: none.
 */
static AttrNumber
find_point(Relation table)
{
	TupleDesc	descriptor = RelationGetDescr(table);

	for (int i = 0; i < descriptor->natts; i++)
	{
		if (!TupleDescAttr(descriptor, i)->attisdropped &&
			geonn_point_kind(getBaseType(TupleDescAttr(descriptor, i)->atttypid)) != GEONN_POINT_NONE)
			return i + 1;
	}
	return 0;
}

static bool
is_number(Oid type)
{
	return type == FLOAT8OID || type == FLOAT4OID || type == INT8OID || type == INT4OID ||
		type == INT2OID || type == NUMERICOID;
}

/*
 * The columns of the coordinates, as a join finds them (points/columns.c), but without errors.
 * False: not found.
 */
static bool
find_coordinates(SampleColumns *columns, Relation table, const GeonnColumnNames *named)
{
	static const char *const latitudes[] = {"lat", "latitude", NULL};
	static const char *const longitudes[] = {"lon", "lng", "long", "longitude", NULL};
	Oid			relation = RelationGetRelid(table);
	AttrNumber	latitude = 0;
	AttrNumber	longitude = 0;
	AttrNumber	point = 0;

	if (named->point != NULL)
		point = get_attnum(relation, named->point);
	else if (named->latitude != NULL && named->longitude != NULL)
	{
		latitude = get_attnum(relation, named->latitude);
		longitude = get_attnum(relation, named->longitude);
	}
	else
	{
		latitude = find_name(table, latitudes);
		longitude = find_name(table, longitudes);
		if (latitude == 0 && longitude == 0)
			point = find_point(table);
	}
	if (point > 0)
	{
		add_column(columns, table, point);
		columns->coordinates = 1;
		return geonn_point_kind(columns->types[0]) != GEONN_POINT_NONE;
	}
	if (latitude <= 0 || longitude <= 0)
		return false;
	add_column(columns, table, latitude);
	add_column(columns, table, longitude);
	columns->coordinates = 2;
	return is_number(columns->types[0]) && is_number(columns->types[1]);
}

/*
 * Can values of this type be hashed while planning?  Only if that runs nothing but PostgreSQL's own
 * function: those of arrays and rows call others.
 */
static bool
can_hash(Oid type)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_HASH_PROC);

	return (entry->typtype == TYPTYPE_BASE || entry->typtype == TYPTYPE_ENUM) &&
		!OidIsValid(get_element_type(type)) && OidIsValid(entry->hash_proc) &&
		entry->hash_proc < FirstNormalObjectId;
}

/*
 * Add columns by their names, or by this side's of pairs.  False: not found, or more than so many.
 */
static bool
find_named(SampleColumns *columns, Relation table, ArrayType *array, bool is_reference, int most)
{
	Datum	   *names;
	bool	   *is_null;
	int			count;

	if (array == NULL)
		return true;
	deconstruct_array(array, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &names, &is_null, &count);
	if (count > most)
		return false;
	for (int i = 0; i < count; i++)
	{
		AttrNumber	attribute = is_null[i] ? 0 :
			get_attnum(RelationGetRelid(table),
					   geonn_name_of_side(NameStr(*DatumGetName(names[i])), is_reference));

		if (attribute <= 0)
			return false;
		add_column(columns, table, attribute);
	}
	return true;
}

/*
 * The columns to join by.  False: not found, or of types that cannot be hashed here.
 */
static bool
find_by(SampleColumns *columns, Relation table, ArrayType *by, bool is_reference)
{
	if (!find_named(columns, table, by, is_reference, BY_MAX))
		return false;
	for (int i = columns->coordinates; i < columns->count; i++)
	{
		if (!can_hash(columns->types[i]))
			return false;
	}
	columns->by = columns->count;
	return true;
}

/*
 * The columns with limits.  False: not found, or of other types than limits can have.
 */
static bool
find_limits(SampleColumns *columns, Relation table, const char *radius, ArrayType *overlaps,
			bool is_reference)
{
	int			first;

	if (radius != NULL)
	{
		AttrNumber	attribute = get_attnum(RelationGetRelid(table), radius);

		if (attribute <= 0)
			return false;
		add_column(columns, table, attribute);
		columns->has_radius = is_number(columns->types[columns->count - 1]);
		if (!columns->has_radius)
			return false;
	}
	first = columns->count;
	if (!find_named(columns, table, overlaps, is_reference, GEONN_WINDOWS_MAX))
		return false;
	for (int i = first; i < columns->count; i++)
	{
		if (!geonn_window_find_type(columns->types[i], &columns->window_types[columns->windows++]))
			return false;
	}
	return true;
}

bool
geonn_may_read(Oid relation, Oid role, const Bitmapset *columns)
{
	int			column = -1;

	if (pg_class_aclcheck(relation, role, ACL_SELECT) == ACLCHECK_OK)
		return true;
	if (bms_is_empty(columns))
		return pg_attribute_aclcheck_all(relation, role, ACL_SELECT, ACLMASK_ANY) == ACLCHECK_OK;
	while ((column = bms_next_member(columns, column)) >= 0)
	{
		AttrNumber	number = (AttrNumber) (column + FirstLowInvalidHeapAttributeNumber);

		/* 0: a whole row */
		if ((number == 0 ? pg_attribute_aclcheck_all(relation, role, ACL_SELECT, ACLMASK_ALL) :
			 pg_attribute_aclcheck(relation, number, role, ACL_SELECT)) != ACLCHECK_OK)
			return false;
	}
	return true;
}

static bool
may_read(Relation table, const SampleColumns *columns)
{
	Oid			relation = RelationGetRelid(table);
	Bitmapset  *read = NULL;

	for (int i = 0; i < columns->count; i++)
		read = bms_add_member(read, columns->attributes[i] - FirstLowInvalidHeapAttributeNumber);
	return check_enable_rls(relation, InvalidOid, true) == RLS_NONE &&
		geonn_may_read(relation, GetUserId(), read);
}

/* ---- rows ---- */

static double
number(Oid type, Datum value)
{
	switch (type)
	{
		case FLOAT8OID:
			return DatumGetFloat8(value);
		case FLOAT4OID:
			return DatumGetFloat4(value);
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
			return DatumGetInt32(value);
		case INT8OID:
			return (double) DatumGetInt64(value);
		default:
			return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
	}
}

static bool
read_coordinates(const SampleColumns *columns, const Datum *values, const bool *nulls,
				 double *latitude, double *longitude)
{
	int32		detail;

	if (nulls[0] || nulls[columns->coordinates - 1])
		return false;
	if (columns->coordinates == 1)
		return geonn_point_decode(geonn_point_kind(columns->types[0]), values[0], latitude,
								  longitude, &detail) == GEONN_POINT_OK;
	*latitude = number(columns->types[0], values[0]);
	*longitude = number(columns->types[1], values[1]);
	return true;
}

static uint32
read_group(const SampleColumns *columns, const Datum *values, const bool *nulls)
{
	uint32		hash = 1;

	for (int i = columns->coordinates; i < columns->by; i++)
	{
		TypeCacheEntry *type = lookup_type_cache(columns->types[i], TYPECACHE_HASH_PROC_FINFO);

		if (nulls[i])
			return SAMPLE_NO_GROUP;
		hash = hash_combine(hash, DatumGetUInt32(FunctionCall1Coll(&type->hash_proc_finfo,
																   columns->collations[i], values[i])));
	}
	return Max(hash, 1);
}

static void
read_limits(const SampleColumns *columns, const Datum *values, const bool *nulls,
			GeonnLimits *limits)
{
	int			column = columns->by;

	geonn_limits_begin(limits);
	if (columns->has_radius)
	{
		geonn_limits_set_radius(limits, nulls[column] ? 0 : number(columns->types[column], values[column]),
								nulls[column]);
		column++;
	}
	for (int i = 0; i < columns->windows; i++, column++)
		geonn_window_read(&columns->window_types[i], geonn_window_range(&columns->window_types[i]),
						  values[column], nulls[column], i, limits);
}

static void
take_row(PointSample *sample, const SampleColumns *columns, const Datum *values, const bool *nulls)
{
	double		latitude;
	double		longitude;
	struct geonn_vector vector;

	if (!read_coordinates(columns, values, nulls, &latitude, &longitude) ||
		!geonn_coordinates_valid(latitude, longitude))
		return;
	vector = geonn_unit_vector(latitude, longitude);
	sample->x[sample->count] = vector.x;
	sample->y[sample->count] = vector.y;
	sample->z[sample->count] = vector.z;
	sample->groups[sample->count] = read_group(columns, values, nulls);
	if (sample->limits != NULL)
		read_limits(columns, values, nulls, &sample->limits[sample->count]);
	sample->count++;
}

/*
 * A number of this part, of so many parts that the numbers below count are divided into.
 */
static uint64
number_in_part(pg_prng_state *chance, int part, int parts, uint64 count)
{
	uint64		first = part * count / parts;
	uint64		last = (part + 1) * count / parts - 1;

	return pg_prng_uint64_range(chance, first, last);
}

/*
 * Read a few rows of some pages, as the active snapshot sees them.
 */
static void
take(PointSample *sample, Relation table, BlockNumber blocks, SampleColumns *columns)
{
	PlainTable	plain = {.relation = table, .attributes = columns->attributes};
	PageRange	ranges[SAMPLE_PAGES];
	int			pages = (int) Min(blocks, SAMPLE_PAGES);
	TablePages	sampled = {RelationGetRelid(table), ranges, pages};
	int			rows_a_page = pages > 0 ? SAMPLE_POINTS / pages : 0;
	const char *name = RelationGetRelationName(table);
	pg_prng_state chance;
	TableReader *reader;
	Datum	   *values;
	bool	   *nulls;
	int			rows;

	pg_prng_seed(&chance, hash_bytes((const unsigned char *) name, (int) strlen(name)));
	sample->number = ++samples_taken;
	sample->count = 0;
	sample->grouped = columns->by > columns->coordinates;
	sample->has_radius = columns->has_radius;
	sample->windows = columns->windows;
	sample->complete = blocks <= SAMPLE_PAGES;
	if (pages == 0)
		return;
	for (int i = 0; i < pages; i++)
		ranges[i].first = ranges[i].last = (BlockNumber) number_in_part(&chance, i, pages, blocks);
	reader = geonn_table_reader_begin(list_make1(&plain), columns->count, GetActiveSnapshot());
	geonn_table_reader_limit(reader, &sampled);
	while ((rows = geonn_table_reader_next(reader, &values, &nulls)) > 0)
	{
		int			wanted = Min(Min(rows, rows_a_page), SAMPLE_POINTS - sample->count);

		if (wanted < rows)
			sample->complete = false;
		for (int i = 0; i < wanted; i++)
		{
			int			row = (int) number_in_part(&chance, i, wanted, rows);

			take_row(sample, columns, values + row * columns->count, nulls + row * columns->count);
		}
	}
	geonn_table_reader_end(reader);
}

/* ---- samples that are kept ---- */

static bool
is_same(const KeptSample *kept, Relation table, BlockNumber pages, const SampleColumns *columns)
{
	return kept->relation == RelationGetRelid(table) && kept->file == table->rd_rel->relfilenode &&
		Max(kept->pages, pages) - Min(kept->pages, pages) <= kept->pages / 16 &&
		memcmp(&kept->columns, columns, sizeof(SampleColumns)) == 0 &&
		!TimestampDifferenceExceeds(kept->taken, GetCurrentTimestamp(), SAMPLE_MILLISECONDS);
}

/*
 * The sample of the table, a kept one if it still serves.
 */
static const PointSample *
sample_table(Relation table, SampleColumns *columns)
{
	BlockNumber pages = RelationGetNumberOfBlocks(table);
	KeptSample *kept;
	MemoryContext memory;
	MemoryContext former;

	if (kept_samples == NULL)
		kept_samples = MemoryContextAllocZero(TopMemoryContext, SAMPLES_KEPT * sizeof(KeptSample));
	for (int i = 0; i < SAMPLES_KEPT; i++)
	{
		if (is_same(&kept_samples[i], table, pages, columns))
			return &kept_samples[i].sample;
	}
	kept = &kept_samples[next_kept];
	next_kept = (next_kept + 1) % SAMPLES_KEPT;
	kept->relation = InvalidOid;
	memory = AllocSetContextCreate(CurrentMemoryContext, "geonn sample", ALLOCSET_DEFAULT_SIZES);
	former = MemoryContextSwitchTo(memory);
	if (columns->count > columns->by && kept->limits == NULL)
		kept->limits = MemoryContextAlloc(TopMemoryContext, SAMPLE_POINTS * sizeof(GeonnLimits));
	kept->sample.limits = columns->count > columns->by ? kept->limits : NULL;
	take(&kept->sample, table, pages, columns);
	MemoryContextSwitchTo(former);
	MemoryContextDelete(memory);
	kept->file = table->rd_rel->relfilenode;
	kept->pages = pages;
	kept->taken = GetCurrentTimestamp();
	kept->columns = *columns;
	kept->relation = RelationGetRelid(table);
	return &kept->sample;
}

const PointSample *
geonn_sample(Oid relation, const GeonnColumnNames *named, bool is_reference, ArrayType *by,
			 ArrayType *overlaps)
{
	Relation	table;
	SampleColumns columns;
	const PointSample *sample = NULL;

	if (!ActiveSnapshotSet())
		return NULL;
	table = try_relation_open(relation, AccessShareLock);
	if (table == NULL)
		return NULL;
	memset(&columns, 0, sizeof(columns));
	if ((table->rd_rel->relkind == RELKIND_RELATION || table->rd_rel->relkind == RELKIND_MATVIEW) &&
		!table->rd_rel->relhassubclass && RelationIsPopulated(table) &&
		table->rd_tableam == GetHeapamTableAmRoutine() &&
		!RELATION_IS_OTHER_TEMP(table) && find_coordinates(&columns, table, named) &&
		find_by(&columns, table, by, is_reference) &&
		find_limits(&columns, table, named->radius, overlaps, is_reference) &&
		may_read(table, &columns))
		sample = sample_table(table, &columns);
	relation_close(table, NoLock);
	return sample != NULL && sample->count > 0 ? sample : NULL;
}
