-- Takes, keeps or leaves one of the seats that a caller has for what goes on for long. One atomic
-- step, and safe to be done twice.
--
-- KEYS the caller's seats, by the moment at which each is over
-- ARGV the seat, the milliseconds for which it lasts, and how many there may be: 0 keeps the seat
--      however many there are, -1 leaves it
--
-- Answers 1, or 0 if all seats are taken by others.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local seat, lasts, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if most < 0 then
  redis.call('ZREM', KEYS[1], seat)
  return 1
end
if most > 0 and not redis.call('ZSCORE', KEYS[1], seat)
    and redis.call('ZCARD', KEYS[1]) >= most then
  return 0
end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + lasts), seat)
redis.call('PEXPIRE', KEYS[1], lasts)
return 1
