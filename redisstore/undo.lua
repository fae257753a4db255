-- Ends an acquisition whose outcome its caller does not know, wherever its request
-- is: it frees the lease if there is one, and leaves a tombstone for a request that
-- is still on its way.
--
-- KEYS  1 the lock    2 the tombstone of this acquisition
-- ARGV  1 tag of the acquisition    2 how long the tombstone stays, in milliseconds
-- Returns 1 if the acquisition had the lease, or 0.
local token, ttl, owner = unpack(redis.call('HMGET', KEYS[1], 'token', 'ttl', 'owner'))
local leased = owner == ARGV[1] and ttl
-- A server whose memory is full allows the first of these, and then the second.
redis.call('HDEL', KEYS[1], unpack(leased and {'since', 'ttl'} or {''}))
redis.call('SET', KEYS[2], '', 'PX', ARGV[2])
if not leased then
  return 0
end
redis.pcall('PUBLISH', KEYS[1], token)
return 1
