/*
 * own_names.c
 *		What the names in the module's own statements are found to be.
 *
 * The module's statements name their schema, and a schema's owner can rename it at any
 * time: no lock keeps a schema's name.  Between the moment when the module reads that name and
 * the moment when the parser looks it up, another schema can get it, with
 * tables, triggers and functions of its owner's; these would run with the privileges that the
 * statement has.  It is not enough to look at a plan before it is executed: when the plan cache
 * hears that a relation was analyzed, it parses the text again, and names can then be
 * found elsewhere.
 *
 * So a hook looks at each analysis of such a statement, the first one and all later ones.  It
 * comes before rewriting and planning, and thus before anything of what was found has
 * run: rules, policies and constant expressions of another's relation do not count.  Later nothing is
 * looked up by name any more, and the relations stay locked.
 *
 *	 - A statement that writes a cache's table must have found that table.
 *	 - All others must have found relations and functions of pg_catalog, of this extension and of
 *	   pg_cron.  Only superusers, and the role that created an extension, can add to it.
 *
 * Statements that triggers or functions execute meanwhile have another text.
 *
 * Where the module opens a table of its own by access methods, it checks in the same way that the name
 * is that of this extension's table.
 */
#include "postgres.h"

#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "parser/parse_node.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "cache/own_names.h"
#include "base/compat.h"

/* what this backend looks at, or NULL */
static const GeonnOwnNames *looked_at = NULL;

static post_parse_analyze_hook_type previous_hook;

/*
 * The name of the extension that the object belongs to; an empty string if it belongs to none.
 */
static const char *
extension_of(Oid catalog, Oid object)
{
	Oid			extension = getExtensionOfObject(catalog, object);
	const char *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;

	return name == NULL ? "" : name;
}

static bool
is_trusted(Oid catalog, Oid object, Oid schema)
{
	const char *extension;

	if (schema == PG_CATALOG_NAMESPACE)
		return true;
	extension = extension_of(catalog, object);
	return strcmp(extension, "geonn") == 0 || strcmp(extension, "pg_cron") == 0;
}

bool
geonn_is_own_relation(Oid relation)
{
	return strcmp(extension_of(RelationRelationId, relation), "geonn") == 0;
}

static bool
is_foreign_function(Oid function, void *state pg_attribute_unused())
{
	return !is_trusted(ProcedureRelationId, function, get_func_namespace(function));
}

/*
 * Does the tree have a relation or a function that is none of those?
 */
static bool
has_foreign(Node *node, void *state)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, has_foreign, state, QTW_EXAMINE_RTES_BEFORE);
	if (IsA(node, RangeTblEntry))
	{
		/* what else it has comes next */
		Oid			relation = ((RangeTblEntry *) node)->relid;

		return ((RangeTblEntry *) node)->rtekind == RTE_RELATION &&
			!is_trusted(RelationRelationId, relation, get_rel_namespace(relation));
	}
	return check_functions_in_node(node, is_foreign_function, state) ||
		expression_tree_walker(node, has_foreign, state);
}

static bool
is_meant(Query *query, Oid target)
{
	if (!OidIsValid(target))
		return !has_foreign((Node *) query, NULL);
	return query->resultRelation > 0 &&
		rt_fetch(query->resultRelation, query->rtable)->relid == target;
}

static void
look_at_query(ParseState *state, Query *query, geonn_jumble_state *jumble)
{
	if (previous_hook != NULL)
		previous_hook(state, query, jumble);
	if (looked_at == NULL || state->p_sourcetext == NULL ||
		strcmp(state->p_sourcetext, looked_at->statement) != 0 ||
		is_meant(query, looked_at->target))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("a name in a statement of geonn's is that of another object"),
			 errdetail("The statement is: %s", looked_at->statement),
			 errhint("If a schema was renamed meanwhile, run the same command again.")));
}

const GeonnOwnNames *
geonn_look_at_names(const GeonnOwnNames *names)
{
	const GeonnOwnNames *former = looked_at;

	looked_at = names;
	return former;
}

void
geonn_own_names(void)
{
	previous_hook = post_parse_analyze_hook;
	post_parse_analyze_hook = look_at_query;
}
