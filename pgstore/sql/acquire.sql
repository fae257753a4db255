-- Takes the key if it is free, and tells who has it otherwise.
--
-- $1 key   $2 tag of this acquisition   $3 label, for people   $4 ttl, in microseconds
-- $5 how long the token outlives the lease, in microseconds
--
-- Answers one row: whether it is granted, token, label of the holder, microseconds
-- left. No row if another acquisition was granted meanwhile, which the present
-- snapshot cannot show.
WITH live AS MATERIALIZED (
    -- A refusal is read without a lock: it writes nothing and waits for nobody.
    SELECT token, tag, label, expires
    FROM {leases}
    WHERE key = $1::text AND expires > clock_timestamp()
), taken AS (
    INSERT INTO {leases} AS lease (key, token, tag, label, expires, forget_at)
    SELECT $1::text,
           (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
           $2::bigint,
           $3::text,
           clock_timestamp() + $4::bigint * interval '1 microsecond',
           date_trunc('hour', clock_timestamp() + ($4::bigint + $5::bigint) * interval '1 microsecond') + interval '1 hour'
    WHERE NOT EXISTS (SELECT FROM live)
    -- What follows is computed when the lock on the row is held, however long that
    -- took, and on the row as it is then. An UPDATE would compute it before.
    ON CONFLICT (key) DO UPDATE SET
        token     = greatest(lease.token + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
        tag       = excluded.tag,
        label     = excluded.label,
        expires   = clock_timestamp() + $4::bigint * interval '1 microsecond',
        forget_at = greatest(lease.forget_at,
            date_trunc('hour', clock_timestamp() + ($4::bigint + $5::bigint) * interval '1 microsecond') + interval '1 hour')
    -- No tag is granted twice, nor after it was undone.
    WHERE lease.expires <= clock_timestamp() AND excluded.tag <> ALL (lease.undone || lease.tag)
    RETURNING token, tag, label, expires
)
SELECT tag = $2::bigint, token, label, ceil(extract(epoch FROM expires - clock_timestamp()) * 1000000)::bigint
FROM (SELECT * FROM live UNION ALL SELECT * FROM taken) AS answer
