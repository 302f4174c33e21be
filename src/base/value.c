/*
 * value.c
 *		Values of a type that is known only when the statement runs.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "base/value.h"

/*
 * A btree index asks the same of the type's operator class before it merges equal values.
 */
bool
geonn_equal_is_same(Oid type, Oid collation)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY);
	Oid			function;

	/* values of char without a length compare as equal if they differ in trailing blanks only */
	if (!OidIsValid(entry->btree_opf) || type == BPCHAROID)
		return false;
	function = get_opfamily_proc(entry->btree_opf, entry->btree_opintype, entry->btree_opintype,
								 BTEQUALIMAGE_PROC);
	return OidIsValid(function) &&
		DatumGetBool(OidFunctionCall1Coll(function, collation,
										  ObjectIdGetDatum(entry->btree_opintype)));
}
