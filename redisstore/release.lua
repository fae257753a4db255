-- Frees an unexpired lease that carries the token.
--
-- KEYS  1 the lock    2 the trace of this release, or nothing
-- ARGV  1 token    2 how long the trace stays, in milliseconds
-- Returns 1, or 0 if nothing was changed. Times are as in acquire.lua.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local token, since, ttl = unpack(redis.call('HMGET', KEYS[1], 'token', 'since', 'ttl'))
if token == ARGV[1] and (since or 0) + (ttl or 0) > now then
  -- The record stays, for the sake of its token. It must not come to life when the clock
  -- is set back, so it no longer says when the lease was taken. A server whose memory is
  -- full allows this, and then the rest.
  redis.call('HDEL', KEYS[1], 'since', 'ttl')
  if KEYS[2] then
    redis.call('SET', KEYS[2], '', 'PX', ARGV[2])
  end
  -- Whether this user may publish must not decide about the lease.
  redis.pcall('PUBLISH', KEYS[1], token)
  return 1
end
-- A client that lost the reply asks again: its release has happened.
if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 1 then
  return 1
end
-- A replica may be behind. It refuses to write, also this, which changes nothing.
redis.call('HDEL', KEYS[1], '')
return 0
