-- Tells who holds the lock.
--
-- KEYS  1 the lock
-- ARGV  1 empty, or "1" to ask the primary alone
-- Returns {token, label, time left}, or {} if the lock is free. Times are as in
-- acquire.lua.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
if ARGV[1] ~= '' then
  redis.call('HDEL', KEYS[1], '') -- which changes nothing, and which a replica refuses
end
local token, since, ttl, label = unpack(redis.call('HMGET', KEYS[1], 'token', 'since', 'ttl', 'label'))
local left = (since or 0) + (ttl or 0) - now
if left <= 0 then
  return {}
end
return {token, label, string.format('%.0f', left)}
