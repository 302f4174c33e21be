/*
 * value.h
 *		Values of a type that is known only when the statement runs.
 */
#ifndef GEONN_VALUE_H
#define GEONN_VALUE_H

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/datum.h"

/*
 * Copy a value other than NULL, of a type with these properties, to the current memory context.  A
 * value in a TOAST table is fetched.
 */
static inline Datum
geonn_copy_value(Datum value, bool by_value, int16 length)
{
	return length == -1 ? PointerGetDatum(PG_DETOAST_DATUM_COPY(value)) :
		datumCopy(value, by_value, length);
}

/*
 * Return whether equal values of this type, by its btree order and this collation, always have the
 * same bytes.  Returns false if that is unknown.
 */
extern bool geonn_equal_is_same(Oid type, Oid collation);

/* Return a type as SQL, with its schema, and with its collation unless that is the type's own. */
extern char *geonn_type_sql(Oid type, int32 typmod, Oid collation);

/* Return how many bytes a value of an integer type has; 0 for any other type. */
static inline int
geonn_integer_width(Oid type)
{
	return type == INT2OID ? 2 : type == INT4OID ? 4 : type == INT8OID ? 8 : 0;
}

/* Return a value of an integer type as a number. */
static inline int64
geonn_integer(Oid type, Datum value)
{
	return type == INT2OID ? DatumGetInt16(value) : type == INT4OID ? DatumGetInt32(value) :
		DatumGetInt64(value);
}

/* Return a number as a value of an integer type; the number must be in the type's range. */
static inline Datum
geonn_integer_value(Oid type, int64 number)
{
	return type == INT2OID ? Int16GetDatum((int16) number) :
		type == INT4OID ? Int32GetDatum((int32) number) : Int64GetDatum(number);
}

#endif							/* GEONN_VALUE_H */
