-- Frees an unexpired lease that carries the token, or any lease if token is empty.
--
-- KEYS  1 the lock
-- ARGV  1 token, or the empty string    2 tag of this release
--       3 how long the token outlives the lease, in milliseconds
-- Returns 1, or 0 if nothing was changed.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local token, expires, freed = unpack(redis.call('HMGET', KEYS[1], 'token', 'expires', 'freed'))
-- A client that lost the reply asks again: its release has happened.
if freed == ARGV[2] then
  return 1
end
if now >= tonumber(expires or 0) or (ARGV[1] ~= '' and token ~= ARGV[1]) then
  return 0
end
redis.call('HSET', KEYS[1], 'expires', '0', 'freed', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
-- Whether this user may publish must not decide about the lease.
redis.pcall('PUBLISH', KEYS[1], token)
return 1
