/*
 * column_pairs.c
 *		Columns that the two sides of a join call by different names.
 */
#include "postgres.h"

#include "points/column_pairs.h"

void
geonn_check_pair(const char *argument, const char *element)
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
