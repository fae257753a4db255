-- Ends an acquisition whose outcome its caller does not know, wherever its request
-- is: frees the lease if there is one, and leaves a tombstone for a request that is
-- still on its way. A tombstone covers all earlier acquisitions of the client too: one
-- that is under way is sent again under a new number.
--
-- $1 key   $2 client and $3 number of the acquisition
-- $4 how long the tombstone stays, in microseconds   $5 channel; empty to notify nobody
WITH undone AS (
    INSERT INTO {leases} AS lease (key, token, client, request, label, expires, tombstones, forget_at)
    VALUES ($1::text, 0, 0, 0, '', '-infinity',
            jsonb_build_object($2::bigint::text, jsonb_build_object('request', $3::bigint, 'until', clock_timestamp() + $4::bigint * interval '1 microsecond')),
            date_trunc('hour', clock_timestamp() + $4::bigint * interval '1 microsecond') + interval '1 hour')
    ON CONFLICT (key) DO UPDATE SET
        expires    = CASE WHEN lease.client = $2::bigint AND lease.request = $3::bigint THEN '-infinity' ELSE lease.expires END,
        tombstones = (
            SELECT coalesce(jsonb_object_agg(old.key, old.value), '{}')
            FROM jsonb_each(lease.tombstones) AS old
            WHERE (old.value ->> 'until')::timestamptz > clock_timestamp()
        ) || jsonb_build_object($2::bigint::text, jsonb_build_object(
            'request', greatest($3::bigint, (lease.tombstones -> $2::bigint::text ->> 'request')::bigint),
            'until', clock_timestamp() + $4::bigint * interval '1 microsecond')),
        forget_at  = greatest(lease.forget_at, excluded.forget_at)
    RETURNING key, watched > clock_timestamp() AND $5::text <> '' AS notify
)
SELECT CASE WHEN notify THEN pg_notify($5::text, key) IS NOT NULL END FROM undone
