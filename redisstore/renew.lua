-- Sets the time left of an unexpired lease that carries the token.
--
-- KEYS  1 the lock
-- ARGV  1 token    2 ttl, in microseconds
--       3 how long the token outlives the lease, in milliseconds
-- Returns 1, or 0 if nothing was changed.
local ttl = tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local token, expires = unpack(redis.call('HMGET', KEYS[1], 'token', 'expires'))
expires = tonumber(expires or 0)
if token ~= ARGV[1] or now >= expires then
  return 0
end
redis.call('HSET', KEYS[1], 'expires', string.format('%.0f', now + ttl))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(ttl / 1000) + ARGV[3]))
-- Those who wait were told a longer time. Whether this user may publish must not
-- decide about the lease.
if now + ttl < expires then
  redis.pcall('PUBLISH', KEYS[1], token)
end
return 1
