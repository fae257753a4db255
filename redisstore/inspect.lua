-- Tells who holds the lock.
--
-- KEYS  1 the lock
-- Returns {token, label, microseconds left}, or {} if the lock is free.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local token, expires, label = unpack(redis.call('HMGET', KEYS[1], 'token', 'expires', 'label'))
expires = tonumber(expires or 0)
if now >= expires then
  return {}
end
return {token, label, string.format('%.0f', expires - now)}
