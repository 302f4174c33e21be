/*
 * id_hash.h
 *		Hashes of ids: equal ids have equal hashes.
 *
 * Ids are equal if the btree operator class of their type says so, with the column's collation.
 * PostgreSQL's type cache gives a hash function only if it goes with that equality.
 */
#ifndef GEONN_CACHE_ID_HASH_H
#define GEONN_CACHE_ID_HASH_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "base/value.h"

typedef struct IdHash
{
	Form_pg_attribute id;
	TypeCacheEntry *type;		/* its eq_opr_finfo says whether ids are equal */
	int			bits;			/* how many bits an integer id has; 0: ids are not integers or OIDs */
	bool		same_bytes;		/* equal ids always have the same bytes */
} IdHash;

/* How to hash ids of this column.  The result lives as long as the column's descriptor. */
static inline IdHash
geonn_id_hash_of(Form_pg_attribute id)
{
	IdHash		hash = {
		.id = id,
		.type = lookup_type_cache(id->atttypid, TYPECACHE_EQ_OPR_FINFO |
								  TYPECACHE_HASH_EXTENDED_PROC_FINFO),
		.same_bytes = geonn_equal_is_same(getBaseType(id->atttypid), id->attcollation)
	};

	if (id->atttypid == INT2OID || id->atttypid == INT4OID || id->atttypid == INT8OID ||
		id->atttypid == OIDOID)
		hash.bits = id->attlen * BITS_PER_BYTE;
	return hash;
}

/*
 * The hash of an id.  Most ids are integers: to call their type's hash function for each of a table's rows
 * would take longer than to read the rows.  All ids of a type without a hash function have the same hash,
 * unless equal ids always have the same bytes.
 */
static inline uint64
geonn_id_hash(const IdHash *hash, Datum id)
{
	if (hash->bits > 0)
	{
		/*
		 * Fibonacci hashing (Knuth, The Art of Computer Programming 6.4), of the significant bits
		 */
		uint64		product = ((uint64) id << (64 - hash->bits)) * UINT64CONST(0x9E3779B97F4A7C15);

		return product ^ product >> 32;
	}
	if (OidIsValid(hash->type->hash_extended_proc))
		return DatumGetUInt64(FunctionCall2Coll(&hash->type->hash_extended_proc_finfo,
												hash->id->attcollation, id, Int64GetDatum(0)));
	return hash->same_bytes ? datum_image_hash(id, hash->id->attbyval, hash->id->attlen) : 0;
}

#endif							/* GEONN_CACHE_ID_HASH_H */
