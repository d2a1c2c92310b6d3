-- One change of one variable: into the hashes from which a gate begins, and into the stream from
-- which gates hear of each other. Both in one step, so that neither is ahead.
--
-- KEYS: the stream; the hash of stamps and lifetimes; the hash of values.
-- ARGV: how long the stream may be (0: the change came from there), who made it, when (ms), the place;
-- then what the stream holds: collection, key, name, what, stamp, value, lifetime, its stamp, sum.
-- Stamps are decimal with 20 digits, so that they compare as texts.
local stream, about, values = KEYS[1], KEYS[2], KEYS[3]
local length, from, at, place = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local what, stamp, value, lifetime, given, sum =
    ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12], ARGV[13]
local known = redis.call('HGET', about, place)
local has, kept, since, last = '', 'record', '', '0'
if known then
    has, kept, since, last = string.match(known, '^(%d+) (%S+) (%d+) (%d+)$')
end
local function note(stamp, lifetime, given)
    redis.call('HSET', about, place, stamp .. ' ' .. lifetime .. ' ' .. given .. ' ' .. at)
end
local news = false
if what == 'set' then
    if has < stamp then
        note(stamp, lifetime, given)
        redis.call('HSET', values, place, value)
        news = true
    elseif has == stamp and since < given then
        note(stamp, lifetime, given)
        news = true
    end
elseif what == 'add' then
    if has == stamp then
        local added = redis.pcall('HINCRBY', values, place, value)
        if type(added) == 'table' and added.err then
            redis.call('HSET', values, place, sum)
        end
        note(stamp, kept, since)
        news = true
    elseif has < stamp then
        note(stamp, 'record', stamp)
        redis.call('HSET', values, place, sum)
        news = true
    end
elseif what == 'keep' then
    if has == stamp and since < given then
        note(stamp, lifetime, given)
        news = true
    end
elseif what == 'del' then
    if known and has < stamp then
        redis.call('HDEL', about, place)
        redis.call('HDEL', values, place)
    end
    news = true
elseif what == 'gone' then
    -- Forgotten by one gate; another may have written it since, which this one has not heard of yet.
    if known and tonumber(last) + 1000 < tonumber(at) then
        redis.call('HDEL', about, place)
        redis.call('HDEL', values, place)
    end
end
if news and length ~= '0' then
    redis.call('XADD', stream, 'MAXLEN', '~', length, '*', 'from', from, 'collection', ARGV[5],
        'key', ARGV[6], 'name', ARGV[7], 'change', what, 'stamp', stamp, 'value', value,
        'lifetime', lifetime, 'given', given, 'sum', sum)
end
return 0
