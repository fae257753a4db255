-- Makes whatever frees the keys notify, for a time.
--
-- $1 keys   $2 for how long, in microseconds   $3 how long a row is kept, in microseconds
--
-- Answers the keys that were not watched until now: a signal may have been missed.
WITH before AS MATERIALIZED (
    -- In one order, so that two of these cannot wait for each other.
    SELECT key, watched FROM {leases} WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE
), marked AS (
    INSERT INTO {leases} AS lease (key, token, label, expires, watched, forget_at)
    SELECT key, 0, '', '-infinity', clock_timestamp() + $2::bigint * interval '1 microsecond',
           date_trunc('hour', clock_timestamp() + $3::bigint * interval '1 microsecond') + interval '1 hour'
    FROM unnest($1::text[]) AS key, (SELECT count(*) FROM before) AS barrier
    ORDER BY key COLLATE "C"
    ON CONFLICT (key) DO UPDATE SET
        watched   = greatest(lease.watched, excluded.watched),
        forget_at = greatest(lease.forget_at, excluded.forget_at)
)
SELECT key FROM unnest($1::text[]) AS key
WHERE NOT EXISTS (SELECT FROM before WHERE before.key = key.key AND before.watched > clock_timestamp())
