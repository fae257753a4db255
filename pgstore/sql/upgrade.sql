-- A table of version 0.1.0 keeps its leases and tokens. A process of that version can
-- renew and release on it, and acquires nothing: it misses the columns that go.
ALTER TABLE {leases}
    ADD COLUMN IF NOT EXISTS client     bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS request    bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS watched    timestamptz NOT NULL DEFAULT '-infinity',
    ADD COLUMN IF NOT EXISTS tombstones jsonb NOT NULL DEFAULT '{}',
    DROP COLUMN IF EXISTS tag,
    DROP COLUMN IF EXISTS undone;
