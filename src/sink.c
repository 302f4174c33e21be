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

#include "sink.h"

void
geonn_sink_begin(GeonnSink *sink, FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	sink->result = (ReturnSetInfo *) fcinfo->resultinfo;
}

void
geonn_sink_put(GeonnSink *sink, const GeonnPair *pair)
{
	Datum		values[] = {
		Int64GetDatum(pair->observation_id),
		Int64GetDatum(pair->reference_id),
		Float8GetDatum(pair->distance)
	};
	bool		nulls[lengthof(values)] = {false};

	tuplestore_putvalues(sink->result->setResult, sink->result->setDesc,
						 values, nulls);
}
