/*
 * array_argument.c
 *		Arrays of names and texts that the functions of this room are given.
 *
 * What PostgreSQL says of a wrong element names neither the argument nor what to give.  So its error
 * becomes the detail of another one.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "shard/array_argument.h"

ShardArray *
geonn_shard_array(Datum array, const char *argument, const char *hint)
{
	ArrayType  *given = DatumGetArrayTypeP(array);
	ShardArray *read = palloc0(sizeof(ShardArray));
	bool		of_names = ARR_ELEMTYPE(given) == NAMEOID;
	Datum	   *values;
	bool	   *nulls;

	if (ARR_NDIM(given) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("the argument %s has %d dimensions", argument, ARR_NDIM(given)),
				 errhint("%s", hint)));
	if (of_names)
		deconstruct_array(given, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &values, &nulls,
						  &read->count);
	else
		deconstruct_array(given, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &read->count);
	read->argument = argument;
	read->hint = hint;
	read->elements = palloc0(sizeof(char *) * Max(read->count, 1));
	for (int i = 0; i < read->count; i++)
	{
		if (!nulls[i])
			read->elements[i] = of_names ? pstrdup(NameStr(*DatumGetName(values[i]))) :
				TextDatumGetCString(values[i]);
	}
	return read;
}

void
geonn_check_no_nulls(const ShardArray *array)
{
	for (int i = 0; i < array->count; i++)
	{
		if (array->elements[i] == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("the argument %s has a NULL in it", array->argument),
					 errhint("%s", array->hint)));
	}
}

/*
 * An error's message and detail, without the dot at their end.
 */
static const char *
text_of(const ErrorData *error)
{
	size_t		length = error->detail == NULL ? 0 : strlen(error->detail);

	if (length == 0)
		return error->message;
	return psprintf("%s. %.*s", error->message,
					(int) (error->detail[length - 1] == '.' ? length - 1 : length), error->detail);
}

/*
 * Raise the error of an element that PostgreSQL does not read as a value of this type.
 */
__attribute__((noreturn))
static void
raise_element(const ShardArray *array, const char *element, Oid type, const ErrorData *error)
{
	ereport(ERROR,
			(errcode(error->sqlerrcode),
			 errmsg("the argument %s has an invalid element: \"%s\"", array->argument, element),
			 errdetail("As %s: %s.", format_type_be(type), text_of(error)),
			 errhint("%s", array->hint)));
}

/*
 * A type's input function changes nothing that a later error would not undo: the statement fails in
 * any case.
 */
Datum
geonn_element_value(const ShardArray *array, int element, Oid type, int32 modifier)
{
	MemoryContext context = CurrentMemoryContext;
	ErrorData  *error = NULL;
	Oid			function;
	Oid			parameter;
	volatile Datum value = 0;

	CHECK_FOR_INTERRUPTS();
	getTypeInputInfo(type, &function, &parameter);
	PG_TRY();
	{
		value = OidInputFunctionCall(function, array->elements[element], parameter, modifier);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_DATA_EXCEPTION &&
			ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION)
			PG_RE_THROW();
		FlushErrorState();
		raise_element(array, array->elements[element], type, error);
	}
	PG_END_TRY();
	return value;
}
