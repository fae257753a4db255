-- Sets the time left of unexpired leases that carry their token.
--
-- KEYS  the locks: one, or as many as there are on a server that is no cluster
-- ARGV  1 how long a token outlives its lease    2 the store that asks, 13 characters
--       3 the number of this request, greater than those of all before
--       then, for each lock: its token, ttl
-- Returns for each lock 1, or 0 if nothing was changed. Times are as in acquire.lua.
local clock = redis.call('TIME')
local stamp = clock[1] .. string.sub('00000' .. clock[2], -6)
local now = tonumber(stamp)
local store, number, sub = ARGV[2], tonumber(ARGV[3]), string.sub
local request = ARGV[2] .. ARGV[3]

-- A replica may be behind. It refuses to write, also this, which changes nothing. On a
-- server whose memory is full, what follows is allowed after a write that needs none.
redis.call('HDEL', KEYS[1], '')

local function renew(lock, token, ttl)
  local holder, since, before, kept, last =
    unpack(redis.call('HMGET', lock, 'token', 'since', 'ttl', 'kept', 'renewed'))
  local left = (since or 0) + (before or 0) - now
  if holder ~= token or left <= 0 then
    return 0
  end
  -- This request was here before, or a later one has overtaken it: that one counts.
  if last and sub(last, 1, 13) == store and tonumber(sub(last, 14)) >= number then
    return 1
  end
  redis.call('HSET', lock, 'since', stamp, 'ttl', ttl, 'renewed', request)

  local needed = now + ttl + ARGV[1]
  if needed > tonumber(kept or 0) then
    redis.call('HSET', lock, 'kept', string.format('%.0f', needed + ARGV[1]))
    redis.call('PEXPIRE', lock, string.format('%.0f', math.ceil((ttl + 2 * ARGV[1]) / 1000)))
  end
  -- Those who wait expect the longer time. Whether this user may publish must not decide
  -- about the lease.
  if tonumber(ttl) < left then
    redis.pcall('PUBLISH', lock, token)
  end
  return 1
end

local renewed = {}
for i, lock in ipairs(KEYS) do
  renewed[i] = renew(lock, ARGV[2 * i + 2], ARGV[2 * i + 3])
end
return renewed
