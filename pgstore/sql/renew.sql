-- Sets the time left of the leases that are unexpired and carry exactly the token. A
-- request that a later one of the same client has overtaken changes nothing.
--
-- $1 keys   $2 tokens   $3 ttls, in microseconds   $4 client and $5 number of this request
-- $6 how long a token outlives its lease, in microseconds   $7 channel; empty to notify nobody
--
-- Answers key and token of each lease that was found. Notifies those who watch a key if
-- its lease now ends earlier.
WITH asked AS (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS asked (key, token, ttl)
), locked AS MATERIALIZED (
    -- In one order, so that two of these cannot wait for each other.
    SELECT lease.key, lease.expires, asked.ttl, lease.client = $4::bigint AND lease.request > $5::bigint AS late
    FROM {leases} AS lease JOIN asked ON lease.key = asked.key AND lease.token = asked.token
    ORDER BY lease.key
    FOR UPDATE OF lease
), moment AS MATERIALIZED (
    -- The clock is read when all locks are held, however long that took.
    SELECT clock_timestamp() AS now FROM (SELECT count(*) FROM locked) AS barrier
), renewed AS (
    UPDATE {leases} AS lease SET
        client    = CASE WHEN late THEN lease.client ELSE $4::bigint END,
        request   = CASE WHEN late THEN lease.request ELSE $5::bigint END,
        expires   = CASE WHEN late THEN lease.expires ELSE moment.now + locked.ttl * interval '1 microsecond' END,
        forget_at = greatest(lease.forget_at,
            date_trunc('hour', moment.now + (locked.ttl + $6::bigint) * interval '1 microsecond') + interval '1 hour')
    FROM locked, moment
    WHERE lease.key = locked.key AND locked.expires > moment.now
    RETURNING lease.key, lease.token, lease.expires < locked.expires AND lease.watched > moment.now AND $7::text <> '' AS notify
)
SELECT key, token, CASE WHEN notify THEN pg_notify($7::text, key) IS NOT NULL END
FROM renewed
