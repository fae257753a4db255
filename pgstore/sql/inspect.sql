-- $1 key
--
-- Answers token, label and microseconds left of the unexpired lease.
SELECT token, label, ceil(extract(epoch FROM expires - clock_timestamp()) * 1000000)::bigint
FROM {leases}
WHERE key = $1::text AND expires > clock_timestamp()
