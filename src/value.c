/*
 * value.c
 *		Values of a type that is known only when the statement runs.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "value.h"

/*
 * Btree indexes ask the same of the type's operator class, before they merge equal values.
 */
bool
geonn_equal_is_same(Oid type, Oid collation)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY);
	Oid			function;

	/* what blanks are at the end of char without a length makes no difference to its order */
	if (!OidIsValid(entry->btree_opf) || type == BPCHAROID)
		return false;
	function = get_opfamily_proc(entry->btree_opf, entry->btree_opintype, entry->btree_opintype,
								 BTEQUALIMAGE_PROC);
	return OidIsValid(function) &&
		DatumGetBool(OidFunctionCall1Coll(function, collation,
										  ObjectIdGetDatum(entry->btree_opintype)));
}
