/*
 * cron_time.c
 *		When a schedule of pg_cron is due.
 *
 * pg_cron looks at every minute's time of day and date, on the clocks of one time
 * zone, and starts a job where all five fields fit; of the day and the weekday one
 * is enough, unless one of the two begins with an asterisk.  What is read here is
 * what every version reads, '$' for a month's last day (1.6) and intervals of seconds
 * (1.5); words after the fifth field, ranges that run backwards and other slips, which pg_cron passes
 * over, are errors.
 *
 * The next start is found by walking over the minutes, too, but over a day or an hour at
 * once where none of it fits.  Such a step is taken only if clocks show at its end
 * what they should: they are put forward and back at any minute.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#include "cron_time.h"

#define MINUTES_AN_HOUR		60
#define MINUTES_A_DAY		(24 * MINUTES_AN_HOUR)

/* the 29th of February and a weekday meet again after at most so many years */
#define YEARS_TO_LOOK		40

PG_FUNCTION_INFO_V1(geonn_next_start);

/* ---- reading ---- */

typedef struct CronField
{
	const char *name;
	int			low;
	int			high;
	const char *const *words;	/* of the numbers from low, or NULL */
	int			count;			/* of words */
} CronField;

static const char *const month_words[] = {
	"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"
};

static const char *const weekday_words[] = {
	"sun", "mon", "tue", "wed", "thu", "fri", "sat"
};

#define FIELDS	5

/* in the order in which a schedule has them */
static const CronField fields[FIELDS] = {
	{"minute", 0, 59, NULL, 0},
	{"hour", 0, 23, NULL, 0},
	{"day", 1, 31, NULL, 0},
	{"month", 1, 12, month_words, lengthof(month_words)},
	{"weekday", 0, 7, weekday_words, lengthof(weekday_words)}
};

static const struct
{
	const char *word;
	const char *schedule;
}			shorthands[] =
{
	{"@hourly", "0 * * * *"},
	{"@daily", "0 0 * * *"},
	{"@midnight", "0 0 * * *"},
	{"@weekly", "0 0 * * 0"},
	{"@monthly", "0 0 1 * *"},
	{"@yearly", "0 0 1 1 *"},
	{"@annually", "0 0 1 1 *"}
};

/*
 * A number or one of these words.  Moves next behind it; returns -1 where there is none.
 */
static int
read_number(const char **next, const char *const *words, int count, int low)
{
	size_t		length = strspn(*next, "0123456789");
	const char *start = *next;

	if (length > 0)
	{
		*next += length;
		return length > 3 ? -1 : atoi(start);
	}
	length = strspn(start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	*next += length;
	for (int i = 0; i < count; i++)
	{
		if (length == strlen(words[i]) && pg_strncasecmp(start, words[i], length) == 0)
			return low + i;
	}
	return -1;
}

/*
 * One item of a field's list into its bits.
 */
static bool
read_range(const char **next, const CronField *field, uint64 *bits)
{
	bool		is_range = true;
	int			first = field->low;
	int			last = field->high;
	int			step = 1;

	if (**next == '*')
		(*next)++;
	else
	{
		first = last = read_number(next, field->words, field->count, field->low);
		is_range = **next == '-';
		if (is_range)
		{
			(*next)++;
			last = read_number(next, field->words, field->count, field->low);
		}
	}
	if (is_range && **next == '/')
	{
		(*next)++;
		step = read_number(next, NULL, 0, 0);
	}
	if (first < field->low || last > field->high || first > last || step < 1)
		return false;
	Assert(first >= 0 && last < 64);
	for (int i = first; i <= last; i += step)
		*bits |= UINT64CONST(1) << i;
	return true;
}

static bool
read_field(const char *text, const CronField *field, uint64 *bits)
{
	*bits = 0;
	for (;;)
	{
		if (!read_range(&text, field, bits))
			return false;
		if (*text != ',')
			return *text == '\0';
		text++;
	}
}

/*
 * The words between blanks; at most one more than there are fields.
 */
static int
split(const char *text, char *words[FIELDS + 1])
{
	int			count = 0;

	for (;;)
	{
		size_t		length;

		text += strspn(text, " \t");
		length = strcspn(text, " \t");
		if (length == 0 || count > FIELDS)
			return count;
		words[count++] = pnstrdup(text, length);
		text += length;
	}
}

/*
 * Is it so many seconds, be they right or not?
 */
static bool
read_interval(const char *text, int *seconds)
{
	const char *next = text + strspn(text, " \t");
	const char *digits = next;

	*seconds = read_number(&next, NULL, 0, 0);
	if (next == digits)
		return false;
	next += strspn(next, " \t");
	if (pg_strncasecmp(next, "second", strlen("second")) != 0)
		return false;
	next += strlen("second");
	if (*next == 's' || *next == 'S')
		next++;
	return next[strspn(next, " \t")] == '\0';
}

static char *
read_shorthand(const char *word, CronSchedule *schedule)
{
	if (strcmp(word, "@reboot") == 0 || strcmp(word, "@restart") == 0)
	{
		schedule->kind = CRON_RESTART;
		return NULL;
	}
	for (int i = 0; i < (int) lengthof(shorthands); i++)
	{
		if (strcmp(word, shorthands[i].word) == 0)
			return geonn_cron_read(shorthands[i].schedule, schedule);
	}
	return pstrdup("The words of a schedule are @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, @reboot and @restart.");
}

char *
geonn_cron_read(const char *text, CronSchedule *schedule)
{
	uint64	   *bits[FIELDS] = {&schedule->minutes, &schedule->hours, &schedule->days,
	&schedule->months, &schedule->weekdays};
	char	   *words[FIELDS + 1];
	int			count;

	memset(schedule, 0, sizeof(CronSchedule));
	if (read_interval(text, &schedule->seconds))
	{
		schedule->kind = CRON_INTERVAL;
		return schedule->seconds >= 1 && schedule->seconds <= 59 ? NULL :
			pstrdup("An interval has 1 to 59 seconds.");
	}
	count = split(text, words);
	if (count == 1 && words[0][0] == '@')
		return read_shorthand(words[0], schedule);
	if (count != FIELDS)
		return psprintf("It has %s the 5 fields minute, hour, day, month and weekday.",
						count > FIELDS ? "more than" : psprintf("%d of", count));
	for (int i = 0; i < FIELDS; i++)
	{
		if (bits[i] == &schedule->days && strcmp(words[i], "$") == 0)
			schedule->last_day = true;
		else if (!read_field(words[i], &fields[i], bits[i]))
			return psprintf("The %s \"%s\" is not made of %d to %d, as in \"%d\", \"%d-%d\", \"%d-%d/2\", \"*/2\" and lists of these.",
							fields[i].name, words[i], fields[i].low, fields[i].high,
							fields[i].low, fields[i].low, fields[i].low + 4,
							fields[i].low, fields[i].low + 4);
	}
	/* both 0 and 7 are Sunday */
	schedule->weekdays |= schedule->weekdays >> 7;
	schedule->both_days = words[2][0] == '*' || words[4][0] == '*';
	return NULL;
}

/* ---- the next start ---- */

static bool
has(uint64 bits, int number)
{
	return (bits >> number & 1) != 0;
}

static bool
fits_day(const CronSchedule *schedule, const struct pg_tm *clock)
{
	int			year = clock->tm_year + 1900;
	bool		day = has(schedule->days, clock->tm_mday) ||
		(schedule->last_day && clock->tm_mday == day_tab[isleap(year)][clock->tm_mon]);
	bool		weekday = has(schedule->weekdays, clock->tm_wday);

	return has(schedule->months, clock->tm_mon + 1) &&
		(schedule->both_days ? day && weekday : day || weekday);
}

/*
 * Do the clocks go on as usual for so many minutes?
 */
static bool
is_steady(pg_time_t time, int minutes, const struct pg_tm *clock, pg_tz *zone)
{
	pg_time_t	end = time + (pg_time_t) minutes * SECS_PER_MINUTE;

	return pg_localtime(&end, zone)->tm_gmtoff == clock->tm_gmtoff;
}

TimestampTz
geonn_cron_next(const CronSchedule *schedule, pg_tz *zone, TimestampTz after)
{
	const TimestampTz minute = USECS_PER_MINUTE;
	TimestampTz start = after - (after % minute + minute) % minute + minute;
	pg_time_t	time = timestamptz_to_time_t(start);
	pg_time_t	end = time + (pg_time_t) YEARS_TO_LOOK * 366 * SECS_PER_DAY;

	if (schedule->kind == CRON_INTERVAL)
		return after + schedule->seconds * USECS_PER_SEC;
	while (schedule->kind == CRON_TIMES && time < end)
	{
		struct pg_tm clock = *pg_localtime(&time, zone);
		int			to_hour = MINUTES_AN_HOUR - clock.tm_min;
		int			to_day = MINUTES_A_DAY - clock.tm_hour * MINUTES_AN_HOUR - clock.tm_min;
		bool		day = fits_day(schedule, &clock);
		bool		hour = day && has(schedule->hours, clock.tm_hour);
		int			step = 1;

		if (hour && has(schedule->minutes, clock.tm_min))
			return time_t_to_timestamptz(time);
		if (!day && is_steady(time, to_day, &clock, zone))
			step = to_day;
		else if (!hour && is_steady(time, to_hour, &clock, zone))
			step = to_hour;
		time += (pg_time_t) step * SECS_PER_MINUTE;
	}
	return DT_NOEND;
}

Datum
geonn_next_start(PG_FUNCTION_ARGS)
{
	char	   *words = text_to_cstring(PG_GETARG_TEXT_PP(0));
	TimestampTz after = PG_GETARG_TIMESTAMPTZ(1);
	char	   *zone_name = text_to_cstring(PG_GETARG_TEXT_PP(2));
	pg_tz	   *zone = pg_tzset(zone_name);
	CronSchedule schedule;
	char	   *fault = geonn_cron_read(words, &schedule);
	TimestampTz next;

	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid schedule: \"%s\"", words),
				 errdetail_internal("%s", fault)));
	if (zone == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("time zone \"%s\" not recognized", zone_name)));
	if (TIMESTAMP_NOT_FINITE(after))
		PG_RETURN_NULL();
	next = geonn_cron_next(&schedule, zone, after);
	if (next == DT_NOEND || !IS_VALID_TIMESTAMP(next))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(next);
}
