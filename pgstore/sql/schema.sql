-- One row for each key that was used lately.
CREATE TABLE IF NOT EXISTS {leases} (
    key        text COLLATE "C" PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 512),
    token      bigint NOT NULL,                           -- the last one issued
    client     bigint NOT NULL DEFAULT 0,                 -- whose request was the last to grant or renew the lease,
    request    bigint NOT NULL DEFAULT 0,                 -- and its number: an earlier one that arrives later does nothing
    label      text NOT NULL,                             -- of the holder, for people
    expires    timestamptz NOT NULL,                      -- the end of the lease; -infinity once it was freed
    watched    timestamptz NOT NULL DEFAULT '-infinity',  -- until then, freeing the key notifies
    tombstones jsonb NOT NULL DEFAULT '{}',               -- by client: its last acquisition that must not be granted
    forget_at  timestamptz NOT NULL                       -- when the row may be deleted
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS {index} ON {leases} (forget_at);
