-- Takes from several buckets at once: from all of them, or from none. One atomic step.
--
-- KEYS the buckets
-- ARGV for each of them: microseconds in which one token comes, tokens of a full one, what is
--      taken whatever is there, what is taken if there is enough in all
--
-- A bucket is the moment at which it is full again; one that is full has no key. Answers 1 or 0
-- for whether what was asked for was taken, then for each bucket the microseconds until it is
-- full.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full, granted = {}, 1

for n, key in ipairs(KEYS) do
  local interval, burst = tonumber(ARGV[4 * n - 3]), tonumber(ARGV[4 * n - 2])
  local told, cost = tonumber(ARGV[4 * n - 1]), tonumber(ARGV[4 * n])
  local at = math.max(tonumber(redis.call('GET', key) or 0), now)
  full[n] = math.max(at + told * interval, now)
  if cost > 0 and burst - (full[n] - now) / interval < math.min(cost, burst) then
    granted = 0
  end
end

local answer = { granted }
for n, key in ipairs(KEYS) do
  local told, cost = tonumber(ARGV[4 * n - 1]), tonumber(ARGV[4 * n]) * granted
  full[n] = full[n] + cost * tonumber(ARGV[4 * n - 3])
  local left = math.ceil(full[n] - now)
  if told ~= 0 or cost ~= 0 then
    if left > 0 then
      redis.call('SET', key, string.format('%.0f', full[n]), 'PX', math.ceil(left / 1000))
    else
      redis.call('DEL', key)
    end
  end
  answer[n + 1] = left
end
return answer
