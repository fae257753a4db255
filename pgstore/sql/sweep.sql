-- Deletes a few rows of keys that were not used for long. It waits for nobody.
DELETE FROM {leases}
WHERE key = ANY (ARRAY(
    SELECT key FROM {leases}
    WHERE forget_at < now() AND expires < now()
    ORDER BY forget_at
    LIMIT 64
    FOR UPDATE SKIP LOCKED
))
