-- What became of a lease that a release did not find, when an earlier attempt at that
-- release may have.
--
-- $1 key   $2 token
--
-- Answers one row if no other acquisition was granted since: whether it was released.
-- A lease that expired keeps the instant, and one that was broken has another token.
SELECT expires = '-infinity'
FROM {leases}
WHERE key = $1::text AND token = $2::bigint
