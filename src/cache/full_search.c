/*
 * full_search.c
 *		The rows that a cache's table should have: the search for all observations.
 *
 * The first fill and each full refresh search once, and each observation is read once: while the
 * search reads observations, they are added to the baseline, if one is to be made, and while it
 * returns their rows, the baseline gets their reaches.  The engine gets the references once.
 *
 * Rows come in about the order in which the observations are read, mostly that of their table: the
 * primary key is then made of ids that are nearly sorted, and a range of ids is in a few pages.  In
 * the order of the baseline, in which points that follow each other are near each other, the engine
 * would need less time, and readers of the table more.
 */
#include "postgres.h"

#include "cache/full_search.h"

/* a search under way */
typedef struct Watched
{
	const FullSearch *full;
	bool		has_read;		/* the search has read an observation */
} Watched;

/*
 * An observation with a NULL id is left to the rows: they raise the error.
 */
static bool
watch(void *state, const PointRow *row, bool will_send)
{
	Watched    *watched = state;
	const FullSearch *full = watched->full;

	watched->has_read = true;
	if (full->wants != NULL)
		return !row->id_is_null && full->wants(full->state, row->id);
	if (!row->id_is_null)
		geonn_baseline_build_add(full->build, row, will_send);
	return true;
}

/*
 * A copy of the join for a search that has been made before, which warns of nothing.
 */
static GeonnJoin
join_again(const FullSearch *full)
{
	GeonnJoin	join = *full->join;

	if (full->wants != NULL)
		join.invalid = GEONN_INVALID_COUNTED;
	return join;
}

static void
take_reach(const FullSearch *full, const GeonnSearch *search, const Datum *values,
		   const bool *nulls)
{
	uint64		number = geonn_search_number(search);

	if (number != GEONN_NOT_SENT && !nulls[TARGET_DISTANCE])
		geonn_baseline_build_reach(full->build, number, (uint64) DatumGetInt32(values[TARGET_RANK]),
								   DatumGetFloat8(values[TARGET_DISTANCE]));
}

uint64
geonn_full_search(const FullSearch *full)
{
	Watched		watched = {full, false};
	GeonnJoin	join = join_again(full);
	GeonnSearch *search = geonn_search_begin(&join, full->row_type);
	GeonnReport report;
	Datum		values[TARGET_COLUMNS];
	bool		nulls[TARGET_COLUMNS];
	uint64		rows = 0;

	if (full->build != NULL || full->wants != NULL)
		geonn_search_watch(search, watch, &watched);
	while (geonn_search_next(search, values, nulls))
	{
		if (nulls[TARGET_OBSERVATION_ID])
			geonn_cache_raise_null(full->cache);
		if (full->build != NULL)
			take_reach(full, search, values, nulls);
		full->consume(full->state, values, nulls);
		rows++;
	}
	report = geonn_search_report(search);
	geonn_search_log(search, &report);
	geonn_search_end(search);
	/* without references the search may have had no need to read */
	if (full->build != NULL && !watched.has_read)
		geonn_baseline_build_read(full->build, join.observations);
	return rows;
}
