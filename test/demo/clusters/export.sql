-- what draw.gnuplot draws, as files in :folder; COPY TO takes no variables
\cd :folder
\pset format unaligned
\pset fieldsep ' '
\pset tuples_only on
-- a cluster's colour is that of its rank by cities
SELECT lon, lat, CASE WHEN cluster IS NULL THEN 'none' ELSE 'clustered' END, coalesce(number, 0)
FROM answer JOIN city ON city_id = id
LEFT JOIN (SELECT cluster, row_number() OVER (ORDER BY cities DESC, cluster) % 12 AS number FROM shown) s USING (cluster)
WHERE lon BETWEEN -11 AND 26 AND lat BETWEEN 36 AND 59 ORDER BY cluster NULLS FIRST, city_id \g cities
-- names take 200 km; those of larger clusters come first
SELECT lon, lat, '"' || around || ', ' || cities || '"'
FROM geonn_thin_sql('SELECT cluster AS id, cities, lat, lon FROM shown WHERE cities >= 70', 200000, 'cities') JOIN shown ON cluster = id
WHERE kept_by IS NULL ORDER BY cluster \g names
