/*
 * cppcheck.h
 *		What cppcheck has to know of PostgreSQL's macros, whose headers it does
 *		not read.
 */
#define foreach(cell, list) \
	for (ListCell *cell##_next = list_head(list); \
		 (cell = cell##_next) != NULL; cell##_next = lnext(list, cell))

/* an ERROR does not return */
#define ERROR 21
#define ereport(level, ...) \
	do { if ((level) >= ERROR) exit(1); } while (0)
