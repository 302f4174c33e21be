/*
 * columns.h
 *		Which columns of a relation are its id and its coordinates.
 */
#ifndef GEONN_COLUMNS_H
#define GEONN_COLUMNS_H

typedef enum ColumnRole
{
	COLUMN_ID,
	COLUMN_LATITUDE,
	COLUMN_LONGITUDE
} ColumnRole;

#define COLUMN_ROLES 3

typedef struct PointColumn
{
	char	   *name;
	Oid			type;			/* as declared */
	Oid			base_type;		/* below any domain */
	const char *reason;			/* why it was chosen */
} PointColumn;

typedef struct PointRelation
{
	Oid			oid;
	char	   *name;			/* for messages */
	char	   *schema;
	char	   *quoted_name;	/* with its schema, for SQL */
	PointColumn columns[COLUMN_ROLES];	/* by ColumnRole */
} PointRelation;

/*
 * Find them, or raise an error.  Takes the lock that a SELECT takes, until
 * the end of the transaction.  That keeps others from altering the relation,
 * though not this transaction itself, and nobody from renaming its schema.
 */
extern PointRelation *geonn_find_columns(Oid relation);

#endif							/* GEONN_COLUMNS_H */
