/*
 * options.c
 *		The argument options: which columns to use, and how to search.
 *
 * The argument is a JSON object.  columns.c looks the columns up, and raises an
 * error for a missing one; this file checks everything else, and raises an error
 * for an unknown key.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

#include "common/protocol.h"
#include "points/options.h"
#include "base/settings.h"
#include "base/words.h"

typedef enum OptionKind
{
	OPTION_COLUMN,				/* char *: the name of a column */
	OPTION_CHOICE,				/* int: one of choices */
	OPTION_ROWS,				/* int: 1 ... GEONN_BATCH_ROWS_MAX */
	OPTION_SWITCH				/* bool; of functions of one relation, too */
} OptionKind;

typedef struct OptionRule
{
	const char *prefix;			/* obs_, ref_ or nothing, before the name */
	const char *name;
	OptionKind	kind;
	size_t		offset;			/* where GeonnOptions has the value */
	const struct config_enum_entry *choices;
} OptionRule;

/* the options that say how to search; those that name columns come before them (get_rule) */
static const OptionRule rules[] = {
	{"", "device", OPTION_CHOICE, offsetof(GeonnOptions, device), geonn_device_options},
	{"", "algorithm", OPTION_CHOICE, offsetof(GeonnOptions, algorithm), geonn_algorithm_options},
	{"", "batch_rows", OPTION_ROWS, offsetof(GeonnOptions, batch_rows), NULL},
	{"", "transform", OPTION_SWITCH, offsetof(GeonnOptions, transform), NULL}
};

#define RULES (2 * COLUMN_ROLES + (int) lengthof(rules))

/* Are the columns those of one relation, whose options have no prefix? */
static bool
is_of_one(GeonnOptionsScope scope)
{
	return scope == GEONN_OPTIONS_RELATION || scope == GEONN_OPTIONS_CLUSTERS;
}

/*
 * Get the rule of this number, below RULES: for each role the columns of the observations, then those of the references,
 * then the table.  False: the function has no such option.
 */
static bool
get_rule(GeonnOptionsScope scope, int number, OptionRule *rule)
{
	ColumnRole	role = (ColumnRole) (number % COLUMN_ROLES);
	bool		is_reference = number >= COLUMN_ROLES;

	if (number >= 2 * COLUMN_ROLES)
	{
		*rule = rules[number - 2 * COLUMN_ROLES];
		return scope != GEONN_OPTIONS_RELATION || rule->kind == OPTION_SWITCH;
	}
	*rule = (OptionRule)
	{
		.prefix = is_of_one(scope) ? "" : is_reference ? "ref_" : "obs_",
			.name = geonn_role_option(role),
			.kind = OPTION_COLUMN,
			.offset = (is_reference ? offsetof(GeonnOptions, reference.names) : offsetof(GeonnOptions, observation.names)) +
			role * sizeof(char *)
	};
	if (scope == GEONN_OPTIONS_CLUSTERS && (role == COLUMN_SHAPE || role == COLUMN_RADIUS))
		return false;
	return is_reference || scope == GEONN_OPTIONS_JOIN;
}

static char *
list_options(GeonnOptionsScope scope)
{
	List	   *names = NIL;
	OptionRule	rule;

	for (int i = 0; i < RULES; i++)
	{
		if (get_rule(scope, i, &rule))
			names = lappend(names, psprintf("%s%s", rule.prefix, rule.name));
	}
	return geonn_list_names(names, "", "and");
}

/*
 * Find the rule of an option.  False: the function has none of this name.
 */
static bool
find_rule(GeonnOptionsScope scope, const char *name, OptionRule *rule)
{
	for (int i = 0; i < RULES; i++)
	{
		if (get_rule(scope, i, rule) && strncmp(name, rule->prefix, strlen(rule->prefix)) == 0 &&
			strcmp(name + strlen(rule->prefix), rule->name) == 0)
			return true;
	}
	return false;
}

static OptionRule
require_rule(GeonnOptionsScope scope, const char *name)
{
	OptionRule	rule;
	bool		elsewhere;

	if (find_rule(scope, name, &rule))
		return rule;
	elsewhere = find_rule(GEONN_OPTIONS_JOIN, name, &rule) || find_rule(GEONN_OPTIONS_RELATION, name, &rule);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 elsewhere ? errmsg("option \"%s\" is not one of this function's", name) :
			 errmsg("unknown option \"%s\"", name),
			 elsewhere && scope == GEONN_OPTIONS_POINTS ?
			 errdetail("The observations are the points of the arrays.") : 0,
			 errhint("The options of this function are %s.",
					 list_options(scope))));
}

/* Return the value as JSON; its type, if the value may be long. */
static char *
describe_value(JsonbValue *value)
{
	switch (value->type)
	{
		case jbvNull:
			return "null";
		case jbvBool:
			return value->val.boolean ? "the boolean true" : "the boolean false";
		case jbvNumeric:
			return psprintf("the number %s",
							DatumGetCString(DirectFunctionCall1(numeric_out,
																NumericGetDatum(value->val.numeric))));
		case jbvString:
			return psprintf("the string \"%.*s\"", value->val.string.len,
							value->val.string.val);
		default:
			return psprintf("an %s", JsonbTypeName(value));
	}
}

static void
raise_wrong_value(const OptionRule *rule, JsonbValue *value,
				  const char *expected)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("option \"%s%s\" is %s", rule->prefix, rule->name, describe_value(value)),
			 errhint("Give %s.", expected)));
}

static int
parse_choice(const OptionRule *rule, JsonbValue *value)
{
	int			choice;

	/* words may be in upper or lower case, as in settings */
	if (value->type == jbvString &&
		geonn_find_word(rule->choices, value->val.string.val, value->val.string.len, true, &choice))
		return choice;
	raise_wrong_value(rule, value,
					  psprintf("a string, one of %s", geonn_list_words(rule->choices, "\"", "and")));
	pg_unreachable();
}

static int
parse_rows(const OptionRule *rule, JsonbValue *value)
{
	if (value->type == jbvNumeric)
	{
		Datum		number = NumericGetDatum(value->val.numeric);
		Datum		whole = DirectFunctionCall1(numeric_floor, number);
		double		rows = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
															  number));

		if (DatumGetBool(DirectFunctionCall2(numeric_eq, number, whole)) &&
			rows >= 1 && rows <= GEONN_BATCH_ROWS_MAX)
			return (int) rows;
	}
	raise_wrong_value(rule, value,
					  psprintf("an integer from 1 to %d", GEONN_BATCH_ROWS_MAX));
	pg_unreachable();
}

static void
parse_option(const OptionRule *rule, JsonbValue *value, GeonnOptions *options)
{
	void	   *field = (char *) options + rule->offset;

	switch (rule->kind)
	{
		case OPTION_COLUMN:
			if (value->type != jbvString)
				raise_wrong_value(rule, value, "a string, the name of a column");
			*(char **) field = pnstrdup(value->val.string.val,
										value->val.string.len);
			break;
		case OPTION_CHOICE:
			*(int *) field = parse_choice(rule, value);
			break;
		case OPTION_ROWS:
			*(int *) field = parse_rows(rule, value);
			break;
		case OPTION_SWITCH:
			if (value->type != jbvBool)
				raise_wrong_value(rule, value, "true or false");
			*(bool *) field = value->val.boolean;
			break;
	}
}

/* Check that names give a point one column, or a latitude and a longitude, and give a shape one column. */
static void
check_names(const GeonnColumnNames *names)
{
	const char *prefix = names->prefix;
	bool		has_latitude = names->names[COLUMN_LATITUDE] != NULL;
	bool		has_longitude = names->names[COLUMN_LONGITUDE] != NULL;
	bool		has_point = names->names[COLUMN_POINT] != NULL;
	const char *given = has_latitude ? "lat" : "lon";
	const char *missing = has_latitude ? "lon" : "lat";

	if (names->names[COLUMN_SHAPE] != NULL && (has_latitude || has_longitude || has_point))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options \"%sshape\" and \"%s%s\" contradict each other", prefix, prefix,
						has_point ? "geog" : given),
				 errdetail("A side has shapes of one column, or points."),
				 errhint("Give \"%sshape\" alone for lines and polygons, and the others for points.", prefix)));
	if (!has_latitude && !has_longitude)
		return;
	if (has_point)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options \"%sgeog\" and \"%s%s\" contradict each other",
						prefix, prefix, given),
				 errdetail("A point is read from one column of points, or from a latitude and a longitude."),
				 errhint("Give \"%sgeog\" alone, or \"%slat\" and \"%slon\".",
						 prefix, prefix, prefix)));
	if (!has_latitude || !has_longitude)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s%s\" is given without \"%s%s\"",
						prefix, given, prefix, missing),
				 errhint("Name the columns of both the latitude and the longitude, or of neither.")));
}

void
geonn_parse_options(Jsonb *json, GeonnOptionsScope scope,
					GeonnOptions *options)
{
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	value;
	OptionRule	rule = {0};

	memset(options, 0, sizeof(*options));
	options->device = geonn_device;
	options->algorithm = geonn_algorithm;
	options->transform = true;

	JsonbToJsonbValue(json, &value);
	if (!JB_ROOT_IS_OBJECT(json))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options are a JSON %s, not an object",
						JsonbTypeName(&value)),
				 errhint("The options of this function are %s, as in '{\"%s\": \"code\"}'.",
						 list_options(scope),
						 is_of_one(scope) ? "id" : "ref_id")));

	iterator = JsonbIteratorInit(&json->root);
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			rule = require_rule(scope, pnstrdup(value.val.string.val,
												value.val.string.len));
		else if (token == WJB_VALUE)
		{
			Assert(rule.name != NULL);	/* a key comes before its value */
			parse_option(&rule, &value, options);
		}
	}

	options->observation.prefix = "obs_";
	options->reference.prefix = is_of_one(scope) ? "" : "ref_";
	options->observation.refuses_srids = options->reference.refuses_srids = !options->transform;
	options->observation.paired = options->reference.paired = scope == GEONN_OPTIONS_JOIN;
	options->reference.points_alone = scope == GEONN_OPTIONS_CLUSTERS;
	check_names(&options->observation);
	check_names(&options->reference);
}
