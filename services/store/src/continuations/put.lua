-- Keeps one state, its marker and its entry in the tenant's index; what is oldest makes room.
-- One atomic step. A repeated put changes nothing.
--
-- KEYS 1 state, 2 marker, 3 index, 4 sums; then state and marker of each entry that may have to
--      go, in the order of ARGV. Nothing else is touched.
-- ARGV 1 sealed state, 2 its life in ms, 3 the marker's life in ms, 4 name, 5 member,
--      6 cursors a member, 7 bytes a member, 8 bytes a tenant, 9 entries to name beyond those in
--      the way, 10... entries that may have to go
--
-- Answers nothing once the state is kept. Else no state has come or gone, and the answer names
-- entries that stand in the way: the caller puts again with their keys declared.
--
-- The index is read in the order of its texts. Each state has three in it: its entry
-- "a:<turn>:<member>:<end>:<bytes>:<name>", and for finding that "o:<member>:<turn>" and
-- "d:<end>:<turn>". The sums are the bytes of each member and of all, the last turn, and the end
-- of the last state.

local sealed, life, marker_life, name, member = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local member_count, member_bytes = tonumber(ARGV[6]), tonumber(ARGV[7])
local tenant_bytes, spare = tonumber(ARGV[8]), tonumber(ARGV[9])
local index, sums = KEYS[3], KEYS[4]
local size = #sealed

-- The marker outlives the state, so it tells a repeat from a first put.
if redis.call('EXISTS', KEYS[2]) == 1 then
  return {}
end
if tonumber(life) == 0 then
  redis.call('SET', KEYS[2], '', 'PX', marker_life)
  return {}
end
-- An index that lost its sums, or sums without an index, say nothing true any more.
if redis.call('EXISTS', index, sums) == 1 then
  redis.call('UNLINK', index, sums)
end

-- The first text that begins with "<order>:", or the next one after another such text.
local function first_of(order, before)
  local from = before and '(' .. before or '[' .. order .. ':'
  return redis.call('ZRANGE', index, from, '(' .. order .. ';', 'BYLEX', 'LIMIT', 0, 1)[1]
end

-- The entry to which a text of another order leads by the turn at its end.
local function entry_of(text)
  return first_of('a:' .. string.sub(text, -12))
end

local function read(entry)
  local owner, bytes = string.match(entry, '^a:%d+:(%x+):%d+:(%d+):')
  return owner, tonumber(bytes)
end

local function forget(entry)
  local turn, owner, ends, bytes = string.match(entry, '^a:(%d+):(%x+):(%d+):(%d+):')
  redis.call('ZREM', index, entry, 'o:' .. owner .. ':' .. turn, 'd:' .. ends .. ':' .. turn)
  redis.call('HINCRBY', sums, 'all', -bytes)
  if redis.call('HINCRBY', sums, owner, -bytes) == 0 then
    redis.call('HDEL', sums, owner)
  end
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local own = 'o:' .. member
local count, held, all, turn, last_end

local function is_crowded()
  return (count > 0 and (count >= member_count or held + size > member_bytes))
    or (all > 0 and all + size > tenant_bytes)
end

-- Expired entries go first, so that none of them costs a living one its place.
repeat
  local before = string.format('(d:%013.0f', now)
  local over = redis.call('ZRANGE', index, '[d:', before, 'BYLEX', 'LIMIT', 0, 256)
  for _, text in ipairs(over) do
    forget(entry_of(text))
  end
  count = redis.call('ZLEXCOUNT', index, '[' .. own .. ':', '(' .. own .. ';')
  local read_sums = redis.call('HMGET', sums, member, 'all', 'turn', 'end')
  held, all = tonumber(read_sums[1] or 0), tonumber(read_sums[2] or 0)
  turn, last_end = tonumber(read_sums[3] or 0), read_sums[4] or ''
until #over < 256 or not is_crowded()

-- The oldest of the member, and when none is left the oldest of the tenant.
local of_member, of_all, is_member_over
local function next_oldest()
  if not is_member_over then
    of_member = first_of(own, of_member)
    if of_member then
      return entry_of(of_member)
    end
    is_member_over = true
  end
  repeat
    of_all = first_of('a', of_all)
  until not of_all or read(of_all) ~= member
  return of_all
end

local declared = {}
for place = 10, #ARGV do
  declared[ARGV[place]] = 5 + 2 * (place - 10)
end

-- A state takes the room of about a hundred small ones. More stand in the way only where the caps
-- were lowered, and then they go by and by.
local leaving, is_declared = {}, true
while is_crowded() and #leaving < 256 do
  local entry = next_oldest()
  if not entry then
    break
  end
  local owner, bytes = read(entry)
  leaving[#leaving + 1] = entry
  is_declared = is_declared and declared[entry] ~= nil
  all = all - bytes
  if owner == member then
    count, held = count - 1, held - bytes
  end
end
if not is_declared then
  for _ = 1, spare do
    local entry = next_oldest()
    if not entry then
      break
    end
    leaving[#leaving + 1] = entry
  end
  return leaving
end

for _, entry in ipairs(leaving) do
  redis.call('UNLINK', KEYS[declared[entry]], KEYS[declared[entry] + 1])
  forget(entry)
end
redis.call('SET', KEYS[1], sealed, 'PX', life)
redis.call('SET', KEYS[2], '', 'PX', marker_life)

turn = string.format('%012.0f', turn + 1)
local ends = string.format('%013.0f', now + life)
local entry = string.format('a:%s:%s:%s:%d:%s', turn, member, ends, size, name)
redis.call('ZADD', index, 0, entry, 0, own .. ':' .. turn, 0, 'd:' .. ends .. ':' .. turn)
if ends > last_end then
  last_end = ends
end
redis.call('HSET', sums, member, held + size, 'all', all + size, 'turn', turn, 'end', last_end)
-- Once the last state is over, nobody needs the index.
redis.call('PEXPIREAT', index, last_end)
redis.call('PEXPIREAT', sums, last_end)
return {}
