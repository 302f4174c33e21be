/*
 * prepare.c
 *		The command that comes before all others of a shard.
 *
 * It creates schemas and the extension, and checks what trust.c describes.  A shard may have the
 * extension already, but in the schema in which the other commands call it.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "shard/commands.h"
#include "shard/prepare.h"
#include "shard/trust.h"

/*
 * The objects, other than PostgreSQL's own, that commands name to create these tables on a shard: as rows
 * (type, names, arguments) of SQL, NULL for none.  Defaults stay with the coordinator, and checks of
 * other tables than the first.
 */
static char *
objects_of(List *tables)
{
	static const char query[] =
		"SELECT string_agg(format('(%L, %L::text[], %L::text[])', i.type, i.object_names, i.object_args), ', '"
		" ORDER BY i.type, i.object_names, i.object_args)"
		" FROM (SELECT DISTINCT refclassid, refobjid FROM pg_depend"
			" WHERE refclassid IN ('pg_type'::regclass, 'pg_proc'::regclass, 'pg_operator'::regclass,"
				" 'pg_collation'::regclass, 'pg_opclass'::regclass)"
			" AND (classid = 'pg_class'::regclass AND (objid = ANY ($1)"
				" OR objid IN (SELECT indexrelid FROM pg_index WHERE indrelid = ANY ($1)))"
			" OR classid = 'pg_attrdef'::regclass AND objid IN (SELECT d.oid FROM pg_attrdef d"
				" JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum"
				" WHERE adrelid = ANY ($1) AND attgenerated <> '')"
			" OR classid = 'pg_constraint'::regclass AND objid IN (SELECT oid FROM pg_constraint"
				" WHERE conrelid = $1[1] AND contype = 'c'))) o,"
			" LATERAL pg_identify_object_as_address(refclassid, refobjid, 0) i";
	const Oid	types[] = {OIDARRAYOID};
	Datum		values[1];
	Datum	   *oids = palloc(sizeof(Datum) * list_length(tables));
	ListCell   *cell;
	char	   *objects = NULL;

	foreach(cell, tables)
		oids[foreach_current_index(cell)] = ObjectIdGetDatum(((ShardTable *) lfirst(cell))->oid);
	values[0] = PointerGetDatum(construct_array(oids, list_length(tables), OIDOID, sizeof(Oid), true,
												TYPALIGN_INT));
	(void) geonn_shard_ask(query, lengthof(types), types, values, 1, &objects);
	return objects;
}

/*
 * Functions beside the extension's that calls by name could find are objects that must be trusted, too.
 */
void
geonn_shard_prepare(ReturnSetInfo *commands, const char *server, List *tables,
						const char *geonn)
{
	char	   *objects = objects_of(tables);
	List	   *schemas = list_make1(unconstify(char *, geonn));
	char	   *named = psprintf("SELECT 'pg_proc'::regclass::oid, p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace"
								 " WHERE nspname = %s AND starts_with(proname, 'geonn_')",
								 quote_literal_cstr(geonn));
	char	   *problem;
	char	   *body;
	ListCell   *cell;

	foreach(cell, tables)
	{
		char	   *schema = ((ShardTable *) lfirst(cell))->schema;

		if (!geonn_is_named(schemas, schema))
			schemas = lappend(schemas, schema);
	}
	if (objects != NULL)
		named = psprintf("%s UNION ALL SELECT a.classid, a.objid FROM (VALUES %s) o (type, names, arguments),"
						 " LATERAL pg_get_object_address(type, names, arguments) a", named, objects);
	problem = geonn_trust_query(named, schemas);
	body = psprintf("DECLARE named text; problem text;"
					" BEGIN"
					" FOREACH named IN ARRAY %s::text[] LOOP"
					" IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = named) THEN EXECUTE format('CREATE SCHEMA %%I', named); END IF;"
					" END LOOP;"
					" problem := (%s);"
					" IF problem IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = problem, DETAIL = %s, HINT = %s; END IF;"
					" IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'geonn') THEN CREATE EXTENSION geonn SCHEMA %s; END IF;"
					" problem := (SELECT nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'geonn');"
					" IF problem <> %s THEN RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = format('extension geonn is in schema %%I, and the coordinator has it in another one', problem), HINT = %s; END IF;"
					" END",
					geonn_names_array(schemas), problem, quote_literal_cstr(geonn_trust_detail),
					quote_literal_cstr(geonn_trust_hint),
					quote_identifier(geonn), quote_literal_cstr(geonn),
					quote_literal_cstr(psprintf("Run ALTER EXTENSION geonn SET SCHEMA %s on this shard.",
												quote_identifier(geonn))));
	geonn_command(commands, server, GEONN_CATALOG_PATH "DO %s", quote_literal_cstr(body));
}
