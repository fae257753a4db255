-- Takes the lock if it is free, and tells who has it otherwise.
--
-- KEYS  1 the lock    2 the tombstone of this acquisition
-- ARGV  1 ttl, in microseconds    2 tag of this acquisition    3 label, for people
--       4 how long the token outlives the lease, in milliseconds
-- Returns {1, token} or {0, label of the holder, microseconds left}.
local ttl, tag = tonumber(ARGV[1]), ARGV[2]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local token, expires, owner, label = unpack(redis.call('HMGET', KEYS[1], 'token', 'expires', 'owner', 'label'))
token, expires = tonumber(token or 0), tonumber(expires or 0)

-- A client that lost the reply asks again: it meets its own lease.
if now < expires and owner == tag then
  return {1, string.format('%.0f', token)}
end
if now < expires then
  return {0, label, string.format('%.0f', expires - now)}
end
-- A request that was held up on its way arrives after its own end. Zero is what a
-- release leaves.
if (owner == tag and expires == 0) or redis.call('EXISTS', KEYS[2]) == 1 then
  return redis.error_reply('UNDONE this acquisition is over')
end

-- Lua counts in doubles, which hold every integer up to 2^53: the year 2255 in
-- microseconds. They are written out by %.0f: tostring would drop digits.
token = math.max(token + 1, now)
if token >= 9007199254740992 then
  return redis.error_reply('EXHAUSTED no token is left below 2^53')
end
redis.call('HSET', KEYS[1],
  'token', string.format('%.0f', token),
  'expires', string.format('%.0f', now + ttl),
  'owner', tag,
  'label', ARGV[3])
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(ttl / 1000) + ARGV[4]))
return {1, string.format('%.0f', token)}
