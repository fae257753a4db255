-- Ends an acquisition whose outcome its caller does not know, wherever its request
-- is: it frees the lease if there is one, and leaves a tombstone for a request that
-- is still on its way.
--
-- KEYS  1 the lock    2 the tombstone of this acquisition
-- ARGV  1 tag of the acquisition    2 how long the tombstone stays, in milliseconds
-- Returns 1 if the acquisition had the lease, or 0.
redis.call('SET', KEYS[2], '', 'PX', ARGV[2])
local token, ttl, owner = unpack(redis.call('HMGET', KEYS[1], 'token', 'ttl', 'owner'))
if owner ~= ARGV[1] or ttl == '0' then
  return 0
end
redis.call('HSET', KEYS[1], 'since', '0', 'ttl', '0')
redis.pcall('PUBLISH', KEYS[1], token)
return 1
