-- Takes the key if it is free, and tells who has it otherwise.
--
-- $1 key   $2 client and $3 number of this request   $4 label, for people
-- $5 ttl, in microseconds   $6 how long the token outlives the lease, in microseconds
--
-- Answers one row: whether it is granted, token, label of the holder, microseconds
-- left. No row if another acquisition was granted meanwhile, which the present
-- snapshot cannot show, or if the request was undone or overtaken by a later one.
WITH live AS MATERIALIZED (
    -- A refusal is read without a lock: it writes nothing and waits for nobody.
    SELECT token, client, request, label, expires
    FROM {leases}
    WHERE key = $1::text AND expires > clock_timestamp()
), taken AS (
    INSERT INTO {leases} AS lease (key, token, client, request, label, expires, forget_at)
    SELECT $1::text,
           (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
           $2::bigint,
           $3::bigint,
           $4::text,
           clock_timestamp() + $5::bigint * interval '1 microsecond',
           date_trunc('hour', clock_timestamp() + ($5::bigint + $6::bigint) * interval '1 microsecond') + interval '1 hour'
    WHERE NOT EXISTS (SELECT FROM live)
    -- What follows is computed when the lock on the row is held, however long that
    -- took, and on the row as it is then. An UPDATE would compute it before.
    ON CONFLICT (key) DO UPDATE SET
        token     = greatest(lease.token + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
        client    = excluded.client,
        request   = excluded.request,
        label     = excluded.label,
        expires   = clock_timestamp() + $5::bigint * interval '1 microsecond',
        forget_at = greatest(lease.forget_at,
            date_trunc('hour', clock_timestamp() + ($5::bigint + $6::bigint) * interval '1 microsecond') + interval '1 hour')
    WHERE lease.expires <= clock_timestamp()
      AND (lease.client <> $2::bigint OR lease.request < $3::bigint)
      AND coalesce((lease.tombstones -> $2::bigint::text ->> 'request')::bigint < $3::bigint, true)
    RETURNING token, client, request, label, expires
)
SELECT client = $2::bigint AND request = $3::bigint, token, label,
       ceil(extract(epoch FROM expires - clock_timestamp()) * 1000000)::bigint
FROM (SELECT * FROM live UNION ALL SELECT * FROM taken) AS answer
