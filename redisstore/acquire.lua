-- Takes the lock if it is free, and tells who has it otherwise.
--
-- KEYS  1 the lock    2 the tombstone of this acquisition
-- ARGV  1 ttl    2 tag of this acquisition    3 label, for people
--       4 how long the token outlives the lease
--       5 empty, or, if this request may have been sent before, how long a tombstone
--         stays, in milliseconds
-- Returns {1, token} or {0, label of the holder, time left}.
--
-- Times are microseconds. An instant is written as the two numbers of TIME side by
-- side, or by %.0f: tostring would drop digits. Lua counts in doubles, which hold
-- every integer up to 2^53: as microseconds, the year 2255.
local clock = redis.call('TIME')
local stamp = clock[1] .. string.sub('00000' .. clock[2], -6)
local now = tonumber(stamp)
local token, since, ttl, owner, label, kept =
  unpack(redis.call('HMGET', KEYS[1], 'token', 'since', 'ttl', 'owner', 'label', 'kept'))
local left = (since or 0) + (ttl or 0) - now
local held, mine = left > 0, owner == ARGV[2]

-- A replica may be behind. It refuses to write, also this, which changes nothing.
if held then
  redis.call('HDEL', KEYS[1], '')
end
local over = not held and (mine or redis.call('EXISTS', KEYS[2]) == 1)
-- One of several requests is answered. The others may arrive when this lease has ended,
-- and must not take another one, which would be nobody's.
if ARGV[5] ~= '' then
  redis.call('SET', KEYS[2], '', 'PX', ARGV[5])
end
if over then
  return redis.error_reply('UNDONE this acquisition is over')
end
-- A client that lost the reply asks again: it meets its own lease.
if mine then
  return {1, token}
end
if held then
  return {0, label, string.format('%.0f', left)}
end

if token and tonumber(token) >= now then
  if tonumber(token) >= 9007199254740991 then
    return redis.error_reply('EXHAUSTED no token is left below 2^53')
  end
  token = string.format('%.0f', token + 1)
else
  token = stamp
end
redis.call('HSET', KEYS[1], 'token', token, 'since', stamp, 'ttl', ARGV[1], 'owner', ARGV[2], 'label', ARGV[3])

-- The server forgets the record at last. Asking for more than is needed makes this
-- rare.
local needed = now + ARGV[1] + ARGV[4]
if needed > tonumber(kept or 0) then
  redis.call('HSET', KEYS[1], 'kept', string.format('%.0f', needed + ARGV[4]))
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil((ARGV[1] + 2 * ARGV[4]) / 1000)))
end
return {1, token}
