-- SPDX-License-Identifier: Apache-2.0
--[[ Decide one request: charge every rule that applies to it, or none of them.

  KEYS[i]    bucket       string of 41-byte records, one per rule of one policy and subject; distinct, with {hash tag}
  ARGV[1]    now_us       integer; empty = this server's own clock
  ARGV[2]    rules        number of rules, each with seven arguments from ARGV[3] on:
             key          index into KEYS, from 1
             id           8 raw bytes, unique among the rules of one call that share a key
             p            integer > 0: what one token weighs
             l            integer > 0: what the bucket drains per microsecond
             capacity     integer > 0, burst x p, below 2^53
             increment    integer >= 0, cost x p (0 asks without taking)
             enforcing    1, or 0 for a shadow rule: it is counted and never refuses

  Returns    {allowed 0|1, then per rule: ok 0|1, remaining tokens, retry_after_us (0 = ok, -1 = can never pass),
             reset_us until full}: always 1 + 4 x rules integers
  Clock      TIME of the store, so that the sidecars' skew cannot matter; ARGV[1] is for tests.
             An older clock than the stored one refills nothing and moves nothing back.
  Atomicity  all enforcing rules pass and all are charged, or nothing is written; a shadow rule needs its own pass too
  Cost       O(records); one TIME, one GET per key, one SET per key that was charged

  A bucket is kept as its debt, in 1/l microseconds: 0 is a full bucket, capacity an empty one. requests per period_us
  become l/p by dividing both by their greatest common divisor, so 7/s or 333/s stay integers and doubles hold them all.
]]

local call, floor, ceil, max = redis.call, math.floor, math.ceil, math.max

local RECORD = '>c8Bdddd' -- id, kind, at_us, debt, p, l
local RECORD_BYTES = 41
local TOKEN_BUCKET = 1
local ARGUMENTS_PER_RULE = 7

local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- A key's records in stored order, and the same records by rule id.
local function read(key)
  local bucket = { key = key, records = {}, by_id = {}, charged = false }
  local value = call('GET', key) or ''
  for from = 1, #value, RECORD_BYTES do
    local id, kind, at, debt, p, l = struct.unpack(RECORD, value, from)
    local record = { id = id, kind = kind, at = at, debt = debt, p = p, l = l }
    bucket.records[#bucket.records + 1] = record
    bucket.by_id[id] = record
  end
  return bucket
end

-- A debt under other units: the whole tokens used stay used, and the started one is rounded against the client.
local function convert(debt, old_p, new_p)
  local used = floor(debt / old_p)
  return used * new_p + ceil((debt - used * old_p) * new_p / old_p)
end

-- What the rule's subject owes now. After a change of the limit, the time since the last charge counts at the rate it
-- was charged under, and a lowered capacity binds at once.
local function debt_now(rule)
  local record = rule.bucket.by_id[rule.id]
  if not record then
    return 0
  end
  local debt = max(0, record.debt - max(0, now - record.at) * record.l)
  if record.p ~= rule.p or record.l ~= rule.l then
    debt = convert(debt, record.p, rule.p)
  end
  return debt < rule.capacity and debt or rule.capacity
end

local function charge(rule)
  rule.debt = rule.debt + rule.increment
  local bucket = rule.bucket
  local record = bucket.by_id[rule.id]
  if not record then
    record = { id = rule.id, kind = TOKEN_BUCKET, at = now }
    bucket.records[#bucket.records + 1] = record
    bucket.by_id[rule.id] = record
  end
  record.at, record.debt, record.p, record.l = max(now, record.at), rule.debt, rule.p, rule.l
  bucket.charged = true
end

-- Stores what still owes something; the key lives until the last of it is drained, and a millisecond longer.
local function write(bucket)
  local packed, longest_us = {}, 0
  for _, record in ipairs(bucket.records) do
    local owed = record.debt - (now - record.at) * record.l
    if owed > 0 then
      packed[#packed + 1] =
        struct.pack(RECORD, record.id, record.kind, record.at, record.debt, record.p, record.l)
      longest_us = max(longest_us, ceil(owed / record.l))
    end
  end
  -- Never 0, which would delete the key, and never a fraction, which SET refuses.
  call('SET', bucket.key, table.concat(packed), 'PX', string.format('%.0f', ceil(longest_us / 1000) + 1))
end

local buckets = {}
for i = 1, #KEYS do
  buckets[i] = read(KEYS[i])
end

local rules, allowed = {}, true
for i = 1, tonumber(ARGV[2]) do
  local a = 3 + (i - 1) * ARGUMENTS_PER_RULE
  local rule = {
    bucket = buckets[tonumber(ARGV[a])],
    id = ARGV[a + 1],
    p = tonumber(ARGV[a + 2]),
    l = tonumber(ARGV[a + 3]),
    capacity = tonumber(ARGV[a + 4]),
    increment = tonumber(ARGV[a + 5]),
  }
  rule.debt = debt_now(rule)
  -- In this order every step stays below 2^53; debt + increment - capacity might not.
  rule.excess = rule.increment - (rule.capacity - rule.debt)
  if rule.excess > 0 and ARGV[a + 6] == '1' then
    allowed = false
  end
  rules[i] = rule
end

local reply = { allowed and 1 or 0 }
for _, rule in ipairs(rules) do
  local ok, retry_after_us = rule.excess <= 0, 0
  if not ok then
    retry_after_us = rule.increment > rule.capacity and -1 or ceil(rule.excess / rule.l)
  elseif allowed and rule.increment > 0 then
    charge(rule)
  end
  local n = #reply
  reply[n + 1] = ok and 1 or 0
  reply[n + 2] = floor((rule.capacity - rule.debt) / rule.p)
  reply[n + 3] = retry_after_us
  reply[n + 4] = ceil(rule.debt / rule.l)
end

for _, bucket in ipairs(buckets) do
  if bucket.charged then
    write(bucket)
  end
end

return reply
