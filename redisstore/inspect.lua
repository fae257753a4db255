-- Tells who holds the lock.
--
-- KEYS  1 the lock
-- Returns {token, label, time left}, or {} if the lock is free. Times are as in
-- acquire.lua.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local token, since, ttl, label = unpack(redis.call('HMGET', KEYS[1], 'token', 'since', 'ttl', 'label'))
local left = (since or 0) + (ttl or 0) - now
if left <= 0 then
  return {}
end
return {token, label, string.format('%.0f', left)}
