/*
 * id_hash.h
 *		Hashes of ids: equal ids have equal hashes.
 */
#ifndef GEONN_CACHE_ID_HASH_H
#define GEONN_CACHE_ID_HASH_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "utils/datum.h"
#include "utils/typcache.h"

typedef struct IdHash
{
	Form_pg_attribute id;
	TypeCacheEntry *type;		/* its eq_opr_finfo says whether ids are equal */
	int			bits;			/* of an id that is equal to another one if its bits are; else 0 */
	bool		same_bytes;		/* ids are equal only if their bytes are */
} IdHash;

/* How ids of this column are hashed.  Lives as long as the column's descriptor. */
extern IdHash geonn_id_hash_of(Form_pg_attribute id);

/*
 * Most ids are numbers, and calling their type's hash function for each of a table's rows takes
 * longer than reading the rows.  Ids of a type without a hash function all have the same hash, unless
 * their bytes tell.
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
