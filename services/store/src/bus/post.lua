-- Leaves an answer in the box of a stream, if it is its owner's and has room.
-- KEYS: owner, box. ARGV: owner, id, answer, the most that may wait, seconds that a box lasts.
-- Returns 0 for a stream that is not there or somebody else's, 1 if it is left, 2 for no room.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
if redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[4]) then
    return 2
end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[5])
return 1
