-- Ends an acquisition whose outcome its caller does not know, wherever its request
-- is: frees the lease if there is one, and leaves the tag as a tombstone for a
-- request that is still on its way. The last hundred of a key are kept.
--
-- $1 key   $2 tag of the acquisition
-- $3 how long the tombstone stays, in microseconds   $4 channel
WITH buried AS (
    INSERT INTO {leases} AS lease (key, token, tag, label, expires, undone, forget_at)
    VALUES ($1::text, 0, 0, '', '-infinity', ARRAY[$2::bigint],
            date_trunc('hour', clock_timestamp() + $3::bigint * interval '1 microsecond') + interval '1 hour')
    ON CONFLICT (key) DO UPDATE SET
        expires   = CASE WHEN lease.tag = $2::bigint THEN '-infinity' ELSE lease.expires END,
        undone    = (lease.undone || $2::bigint)[greatest(1, cardinality(lease.undone) - 98):],
        forget_at = greatest(lease.forget_at, excluded.forget_at)
    RETURNING key
)
SELECT pg_notify($4::text, key) FROM buried
