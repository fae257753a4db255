-- Frees the key whoever holds it, and tells those who watch it. The token stays, so
-- that the next one is greater.
--
-- $1 key   $2 channel
--
-- Answers one row if there was an unexpired lease.
WITH freed AS (
    UPDATE {leases} SET expires = '-infinity', label = ''
    WHERE key = $1::text AND expires > clock_timestamp()
    RETURNING key
)
SELECT pg_notify($2::text, key) FROM freed
