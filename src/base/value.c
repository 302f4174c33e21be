/*
 * value.c
 *		Values of a type that is known only when the statement runs.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_collation.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "base/value.h"

/*
 * Asks the type's operator class, as a btree index does before it deduplicates equal values.
 */
bool
geonn_equal_is_same(Oid type, Oid collation)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY);
	Oid			function;

	/* Values of bpchar, the type of char(n), are equal even if they differ in trailing blanks. */
	if (!OidIsValid(entry->btree_opf) || type == BPCHAROID)
		return false;
	function = get_opfamily_proc(entry->btree_opf, entry->btree_opintype, entry->btree_opintype,
								 BTEQUALIMAGE_PROC);
	return OidIsValid(function) &&
		DatumGetBool(OidFunctionCall1Coll(function, collation,
										  ObjectIdGetDatum(entry->btree_opintype)));
}

char *
geonn_type_sql(Oid type, int32 typmod, Oid collation)
{
	char	   *text = format_type_extended(type, typmod,
											FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
	Oid			schema;

	if (!OidIsValid(collation) || collation == get_typcollation(type))
		return text;
	schema = GetSysCacheOid1(COLLOID, Anum_pg_collation_collnamespace, ObjectIdGetDatum(collation));
	return psprintf("%s COLLATE %s", text,
					quote_qualified_identifier(get_namespace_name(schema),
											   get_collation_name(collation)));
}
