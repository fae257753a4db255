-- Ends an acquisition whose outcome its caller does not know, wherever its request
-- is: it frees the lease if there is one, and leaves a tombstone for a request that
-- is still on its way.
--
-- KEYS  1 the lock    2 the tombstone of this acquisition
-- ARGV  1 tag of the acquisition    2 how long the tombstone stays, in milliseconds
--       3 how long the token outlives the lease, in milliseconds
-- Returns 1 if there was a lease, or 0.
redis.call('SET', KEYS[2], '', 'PX', ARGV[2])
local token, expires, owner = unpack(redis.call('HMGET', KEYS[1], 'token', 'expires', 'owner'))
if owner ~= ARGV[1] or tonumber(expires or 0) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], 'expires', '0')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.pcall('PUBLISH', KEYS[1], token)
return 1
