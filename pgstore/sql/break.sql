-- Frees the lease that is unexpired and carries exactly the token, whoever holds it, and
-- notifies those who watch the key. The next token is greater than this one, which is
-- nobody's: the broken holder's does not match it.
--
-- $1 key   $2 token   $3 channel; empty to notify nobody
--
-- Answers one row if there was such a lease.
WITH freed AS (
    UPDATE {leases} SET token = token + 1, expires = '-infinity', label = ''
    WHERE key = $1::text AND token = $2::bigint AND expires > clock_timestamp()
    RETURNING key, watched > clock_timestamp() AND $3::text <> '' AS notify
)
SELECT CASE WHEN notify THEN pg_notify($3::text, key) IS NOT NULL END FROM freed
