-- Frees an unexpired lease that carries the token, or any lease if token is empty.
--
-- KEYS  1 the lock
-- ARGV  1 token, or the empty string    2 tag of this release
-- Returns 1, or 0 if nothing was changed. Times are as in acquire.lua.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local token, since, ttl, freed = unpack(redis.call('HMGET', KEYS[1], 'token', 'since', 'ttl', 'freed'))
-- A client that lost the reply asks again: its release has happened.
if freed == ARGV[2] then
  return 1
end
if (since or 0) + (ttl or 0) <= now or (ARGV[1] ~= '' and token ~= ARGV[1]) then
  return 0
end
-- The record stays, for the sake of its token. It must not come to life when the
-- clock is set back, so it says nothing any more of when the lease was taken.
redis.call('HSET', KEYS[1], 'since', '0', 'ttl', '0', 'freed', ARGV[2])
-- Whether this user may publish must not decide about the lease.
redis.pcall('PUBLISH', KEYS[1], token)
return 1
