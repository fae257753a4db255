-- One row for each key that was used lately.
CREATE TABLE IF NOT EXISTS {leases} (
    key       text COLLATE "C" PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 512),
    token     bigint NOT NULL,                 -- the last one issued
    tag       bigint NOT NULL,                 -- of the acquisition that got it
    label     text NOT NULL,                   -- of its holder, for people
    expires   timestamptz NOT NULL,            -- the end of the lease; -infinity once it was freed
    undone    bigint[] NOT NULL DEFAULT '{}',  -- tags of acquisitions that must not be granted
    forget_at timestamptz NOT NULL             -- when the row may be deleted
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS {index} ON {leases} (forget_at);
