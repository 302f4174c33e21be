/*
 * column_pairs.c
 *		Names of columns in arguments, which may be pairs, one for each side.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "common/protocol.h"
#include "points/column_pairs.h"

/* Raise an error if an element of this argument may be a pair that the type name has truncated. */
static void
check_pair(const char *argument, const char *element)
{
	if (strlen(element) < NAMEDATALEN - 1 || strchr(element, '=') == NULL)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_NAME_TOO_LONG),
			 errmsg("a pair of columns of the argument %s is too long: \"%s\"", argument, element),
			 errdetail("A pair takes %d bytes at most.", NAMEDATALEN - 2),
			 errhint("Give both columns one name, in a view or in a query of geonn_nearest_sql.")));
}

static char *
name_of_side(const char *element, bool is_reference)
{
	const char *sign = strchr(element, '=');

	if (sign == NULL)
		return pstrdup(element);
	return is_reference ? pstrdup(sign + 1) : pnstrdup(element, sign - element);
}

List *
geonn_names_of_side(List *elements, bool is_reference)
{
	List	   *names = NIL;
	ListCell   *cell;

	foreach(cell, elements)
		names = lappend(names, name_of_side(lfirst(cell), is_reference));
	return names;
}

const char *
geonn_pair_of_names(const char *observation, const char *reference)
{
	return strcmp(observation, reference) == 0 ? reference :
		psprintf("%s=%s", observation, reference);
}

/* ---- the arguments ---- */

List *
geonn_column_names(const char *argument, Datum array)
{
	List	   *list = NIL;
	Datum	   *names;
	bool	   *is_null;
	int			count;

	deconstruct_array(DatumGetArrayTypeP(array), NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR,
					  &names, &is_null, &count);
	for (int i = 0; i < count; i++)
	{
		ListCell   *cell;
		char	   *name;

		if (is_null[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("the argument %s has a NULL in it", argument),
					 errhint("Give an array of column names, as in ARRAY['country'].")));
		name = NameStr(*DatumGetName(names[i]));
		check_pair(argument, name);
		foreach(cell, list)
		{
			if (strcmp(lfirst(cell), name) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_DUPLICATE_COLUMN),
						 errmsg("the argument %s names column \"%s\" twice", argument, name),
						 errhint("Name each column once.")));
		}
		list = lappend(list, pstrdup(name));
	}
	return list;
}

/*
 * Return the columns that the argument names.  Raises an error if they are more than `most`; detail and hint, each
 * with a %d for `most`, say why, and what to do with the other columns.
 */
static List *
names_up_to(int most, const char *argument, Datum array, const char *detail, const char *hint)
{
	List	   *names = geonn_column_names(argument, array);

	if (list_length(names) > most)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the argument %s names %d columns", argument, list_length(names)),
				 errdetail(detail, most),
				 errhint(hint, most)));
	return names;
}

List *
geonn_differs_names(Datum array)
{
	return names_up_to(GEONN_PARTIES_MAX, "differs", array, "A call compares %d of them at most.",
					   "Name %d of them, and filter the rows of geonn_within by the other columns.");
}

List *
geonn_overlaps_names(Datum array)
{
	return names_up_to(GEONN_WINDOWS_MAX, "overlaps", array, "Points have %d windows at most.",
					   "Name %d of them, and filter the rows of geonn_within by the other columns.");
}

List *
geonn_weights_names(Datum array)
{
	return names_up_to(GEONN_WEIGHTS_MAX, "weights", array, "References have %d weights at most.",
					   "Name %d of them, and the others in another call.");
}
