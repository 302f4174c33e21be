/*
 * cron_time.h
 *		When a schedule of pg_cron is due.
 */
#ifndef GEONN_CRON_TIME_H
#define GEONN_CRON_TIME_H

#include "datatype/timestamp.h"
#include "pgtime.h"

typedef enum CronKind
{
	CRON_TIMES,					/* at minutes of the calendar */
	CRON_INTERVAL,				/* so many seconds after the last start */
	CRON_RESTART				/* when the server starts */
} CronKind;

typedef struct CronSchedule
{
	CronKind	kind;
	int			seconds;		/* of CRON_INTERVAL: 1 to 59 */

	/* of CRON_TIMES, a bit for each number */
	uint64		minutes;
	uint64		hours;
	uint64		days;			/* of the month: 1 to 31 */
	uint64		months;			/* 1 to 12 */
	uint64		weekdays;		/* 0, Sunday, to 6 */
	bool		last_day;		/* of the month, besides days */
	bool		both_days;		/* day and weekday must fit, not one of them */
} CronSchedule;

/*
 * Read a schedule as the newest pg_cron does.  Returns NULL, or a sentence that says what is wrong
 * with the text.
 */
extern char *geonn_cron_read(const char *text, CronSchedule *schedule);

/*
 * The first start after the given time, which is finite, on the clocks of the zone; of an
 * interval the latest that it can be.  DT_NOEND where there is none within 40 years.
 */
extern TimestampTz geonn_cron_next(const CronSchedule *schedule, pg_tz *zone, TimestampTz after);

#endif							/* GEONN_CRON_TIME_H */
