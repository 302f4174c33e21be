-- schedules: when those of pg_cron are due
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS geonn;
RESET client_min_messages;
CREATE SCHEMA schedules;
SET search_path = schedules, public;
SET TimeZone = 'GMT';
SET DateStyle = 'ISO';

-- ---- what schedules there are ----

-- 2024-02-27 is a Tuesday of a leap year
SELECT schedule, geonn_next_start(schedule, '2024-02-27 10:17:30+00')
FROM unnest('{"* * * * *", "17 10 * * *", "18 10 * * *", "*/5 * * * *", "*/59 * * * *", "20-40/7 9,11 * * *",
    "0 0 29 2 *", "0 0 30 2 *", "0 0 31 */2 *", "0 0 $ * *", "30 23 $ 4,6 *", "0 12 * * 0", "0 12 * * 7",
    "0 12 * * SUN", "0 12 * * mon-Fri", "0 12 1 * mon", "0 12 $ * mon", "0 12 */28 2 4", "0 12 * jan,JUL *",
    "	5  4	3 2 * ", "@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually",
    "@reboot", "@restart", "1 second", "10 seconds", " 59SECONDS "}'::text[]) AS schedule;

-- it is later than the time that is given
SELECT geonn_next_start('17 10 * * *', after) FROM unnest('{2024-02-27 10:16:59.999999+00, 2024-02-27 10:17:00+00,
    1969-07-20 10:16:59.5+00, 1999-12-31 10:17:00.000001+00}'::timestamptz[]) AS after;
SELECT geonn_next_start('* * * * *', after) FROM unnest('{infinity, -infinity, NULL,
    294276-12-31 23:59:59+00, 4714-11-24 00:00:00+00 BC}'::timestamptz[]) AS after;
BEGIN;
SELECT geonn_next_start('* * * * *') = date_trunc('minute', now()) + interval '1 minute' AS is_next_minute;
COMMIT;

-- the 29th of February, when it is a Sunday
SELECT geonn_next_start('0 0 29 2 */7', '2060-03-01 00:00:00+00'), geonn_next_start('0 0 29 2 */7', '2088-03-01 00:00:00+00');

-- ---- clocks that are put forward and back ----

-- an hour that is skipped, one that there is twice, half an hour, and a minute past midnight
SELECT zone, schedule, after, geonn_next_start(schedule, after::timestamptz, zone)
FROM (VALUES
    ('Europe/Berlin', '30 2 * * *', '2024-03-31 00:00:00+00'),
    ('Europe/Berlin', '30 2 * * *', '2024-10-26 23:00:00+00'),
    ('Europe/Berlin', '30 2 * * *', '2024-10-27 00:30:00+00'),
    ('Europe/Berlin', '0 3 * * *', '2024-10-27 01:30:00+00'),
    ('Australia/Lord_Howe', '15 2 * * *', '2024-10-05 12:00:00+00'),
    ('Australia/Lord_Howe', '45 1 * * *', '2024-04-06 14:50:00+00'),
    ('America/St_Johns', '30 0 * * *', '2006-04-02 03:00:00+00'),
    ('America/St_Johns', '30 1 * * *', '2006-04-02 03:00:00+00'),
    ('America/St_Johns', '30 23 * * *', '2006-10-29 02:15:00+00'),
    ('Pacific/Apia', '0 12 30 12 *', '2011-12-01 00:00:00+00'),
    ('America/Havana', '0 0 * * *', '2024-03-09 12:00:00+00')) AS v (zone, schedule, after);
SELECT geonn_next_start('* * * * *', now(), 'Nowhere');

-- ---- compared with a look at every minute ----

-- the numbers of a field
CREATE FUNCTION numbers(field text, low integer, high integer) RETURNS integer[] IMMUTABLE LANGUAGE SQL AS $$
    SELECT array_agg(n)
    FROM unnest(string_to_array(field, ',')) item,
        LATERAL (SELECT split_part(item, '/', 1), coalesce(nullif(split_part(item, '/', 2), '')::integer, 1)) s(span, step),
        LATERAL (SELECT CASE WHEN span = '*' THEN low::text ELSE split_part(span, '-', 1) END,
            CASE WHEN span = '*' THEN high::text ELSE split_part(span, '-', 2) END) e(first, last),
        generate_series(first::integer, coalesce(nullif(last, ''), first)::integer, step) n
$$;
CREATE FUNCTION next_start_by_minutes(schedule text, after timestamptz, zone text, length interval)
    RETURNS timestamptz STABLE LANGUAGE SQL AS $$
    WITH f AS MATERIALIZED (
        SELECT field, numbers(field[1], 0, 59) AS minutes, numbers(field[2], 0, 23) AS hours, numbers(field[3], 1, 31) AS days,
            numbers(field[4], 1, 12) AS months, numbers(field[5], 0, 7) AS weekdays
        FROM regexp_split_to_array(schedule, ' ') field)
    SELECT min(moment)
    FROM f, generate_series(date_trunc('minute', after) + interval '1 minute', after + length, '1 minute') moment,
        LATERAL (SELECT moment AT TIME ZONE zone OFFSET 0) AS l(clock)
    WHERE extract(minute FROM clock)::integer = ANY (minutes)
        AND extract(hour FROM clock)::integer = ANY (hours)
        AND extract(month FROM clock)::integer = ANY (months)
        AND CASE WHEN field[3] LIKE '*%' OR field[5] LIKE '*%'
            THEN extract(day FROM clock)::integer = ANY (days)
                AND (extract(dow FROM clock)::integer = ANY (weekdays) OR extract(isodow FROM clock)::integer = ANY (weekdays))
            ELSE extract(day FROM clock)::integer = ANY (days)
                OR extract(dow FROM clock)::integer = ANY (weekdays) OR extract(isodow FROM clock)::integer = ANY (weekdays) END
$$;
-- a field at random, of what occurs within some days
CREATE FUNCTION random_field(low integer, high integer) RETURNS text VOLATILE LANGUAGE SQL AS $$
    WITH r AS MATERIALIZED (SELECT low + floor(random() * (high - low + 1))::integer AS a,
        low + floor(random() * (high - low + 1))::integer AS b, 1 + floor(random() * 9)::integer AS step, random() AS kind)
    SELECT CASE WHEN kind < 0.3 THEN '*' WHEN kind < 0.5 THEN '*/' || step
        WHEN kind < 0.6 THEN least(a, b) || '-' || greatest(a, b)
        WHEN kind < 0.7 THEN least(a, b) || '-' || greatest(a, b) || '/' || step
        WHEN kind < 0.8 THEN a || ',' || b ELSE a::text END FROM r
$$;
-- around times at which clocks are changed; seed 0.5
SELECT setseed(0.5);
CREATE TABLE tried AS
    SELECT i, schedule, after, zone, least(geonn_next_start(schedule, after, zone), after + interval '4 days 1 minute') AS next
    FROM generate_series(1, 160) i,
        LATERAL (SELECT (ARRAY['GMT', 'Europe/Berlin', 'Australia/Lord_Howe', 'America/St_Johns', 'Asia/Kolkata'])[i % 5 + 1],
            (ARRAY['2024-03-31 00:00+00', '2024-03-31 01:00+00', '2024-10-05 15:30+00', '2006-04-02 03:31+00', '2023-02-28 18:30+00',
                '2024-02-28 12:00+00', '2024-10-27 01:00+00', '2024-04-06 15:00+00', '2006-10-29 02:31+00', '2023-12-31 18:30+00'])
                [i % 10 + 1]::timestamptz - random() * interval '3 days') AS z(zone, after),
        LATERAL (SELECT concat_ws(' ', random_field(0, 59), random_field(0, 23), random_field(1, 31),
            CASE WHEN i % 3 = 0 THEN random_field(1, 12) ELSE '*' END, random_field(0, 7))) AS s(schedule);
SELECT count(DISTINCT schedule) > 150 AS are_many, count(*) FILTER (WHERE next < after + interval '4 days') > 50 AS most_are_due FROM tried;
SELECT * FROM tried
    WHERE next IS DISTINCT FROM coalesce(next_start_by_minutes(schedule, after, zone, '4 days'), after + interval '4 days 1 minute')
    ORDER BY i;

-- ---- what is none ----

CREATE FUNCTION fault(schedule text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    PERFORM geonn_next_start(schedule);
    RETURN 'none';
EXCEPTION WHEN invalid_parameter_value THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN detail;
END $$;
SELECT schedule, fault(schedule) FROM unnest('{"", " ", "* * * *", "* * * * * *", "* * * * * echo", "60 * * * *", "-1 * * * *",
    "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 8", "1/5 * * * *", "*/0 * * * *",
    "*/ * * * *", "9-5 * * * *", "5- * * * *", "1,,2 * * * *", "1, * * * *", "*5 * * * *", "5x * * * *", "99999999999 * * * *",
    "$ * * * *", "* * 5,$ * *", "* * * juni *", "* * * * fri-sun", "jan * * * *", "@never", "@DAILY", "@daily now",
    "0 seconds", "60 seconds", "5 minutes", "seconds", "2.5 seconds", "5 secondss"}'::text[]) AS schedule;
SELECT geonn_next_start('every minute');
SET client_min_messages = warning;
DROP SCHEMA schedules CASCADE;
