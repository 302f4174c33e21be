-- What each refresh found to do, and who had it done.
SELECT to_char((SELECT max(hour) FROM timestep WHERE began <= started) * interval '1 hour', 'HH24:MI') AS clock,
	CASE WHEN pid IN (SELECT job_pid FROM cron.job_run_details) THEN 'pg_cron' ELSE 'CALL' END AS by,
	status, mode, rows, inserted, updated, deleted,
	round(1000 * extract(epoch FROM finished - started)) AS milliseconds
FROM geonn_cache_log
ORDER BY started;
