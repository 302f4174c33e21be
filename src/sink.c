/*
 * sink.c
 *		Where the pairs go: the result of a set-returning function.
 *
 * A tuplestore keeps what fits into work_mem and spills the rest, so the
 * result may be larger than memory.
 */
#include "postgres.h"

#include "funcapi.h"
#include "utils/tuplestore.h"

#include "result.h"
#include "sink.h"

#define PAIR_COLUMNS 3

void
geonn_sink_begin(GeonnSink *sink, FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	sink->result = (ReturnSetInfo *) fcinfo->resultinfo;
	geonn_require_columns(sink->result->setDesc, PAIR_COLUMNS);
}

void
geonn_sink_put(GeonnSink *sink, const GeonnPair *pair)
{
	Datum		values[PAIR_COLUMNS] = {
		Int64GetDatum(pair->observation_id),
		Int64GetDatum(pair->reference_id),
		Float8GetDatum(pair->distance)
	};
	bool		nulls[PAIR_COLUMNS] = {false};

	tuplestore_putvalues(sink->result->setResult, sink->result->setDesc,
						 values, nulls);
}
