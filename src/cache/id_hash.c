/*
 * id_hash.c
 *		Hashes of ids: equal ids have equal hashes.
 *
 * Ids are equal if the btree operator class of their type says so, with the column's collation.
 * PostgreSQL's type cache gives a hash function only if it goes with that equality.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/lsyscache.h"

#include "cache/id_hash.h"
#include "base/value.h"

IdHash
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
