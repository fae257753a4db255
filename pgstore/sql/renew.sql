-- Sets the time left of the leases that are unexpired and carry exactly the token.
--
-- $1 keys   $2 tokens   $3 ttls, in microseconds
-- $4 how long a token outlives its lease, in microseconds   $5 channel
--
-- Answers key and token of each lease that was renewed. Tells those who watch a key
-- if its lease now ends earlier.
WITH asked AS (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS asked (key, token, ttl)
), locked AS MATERIALIZED (
    -- In one order, so that two of these cannot wait for each other.
    SELECT lease.key, lease.expires, asked.ttl
    FROM {leases} AS lease JOIN asked ON lease.key = asked.key AND lease.token = asked.token
    ORDER BY lease.key
    FOR UPDATE OF lease
), moment AS MATERIALIZED (
    -- The clock is read when all locks are held, however long that took.
    SELECT clock_timestamp() AS now FROM (SELECT count(*) FROM locked) AS barrier
), renewed AS (
    UPDATE {leases} AS lease SET
        expires   = moment.now + locked.ttl * interval '1 microsecond',
        forget_at = greatest(lease.forget_at,
            date_trunc('hour', moment.now + (locked.ttl + $4::bigint) * interval '1 microsecond') + interval '1 hour')
    FROM locked, moment
    WHERE lease.key = locked.key AND locked.expires > moment.now
    RETURNING lease.key, lease.token, lease.expires < locked.expires AS shortened
)
SELECT key, token, CASE WHEN shortened THEN pg_notify($5::text, key) IS NOT NULL END
FROM renewed
