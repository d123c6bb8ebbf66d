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
             An older clock than the stored one refills nothing and moves nothing back; waits count from it.
  Atomicity  all enforcing rules pass and all are charged, or nothing is written; a shadow rule needs its own pass too
  Cost       O(records); one TIME, one GET per key, one SET per key that was charged

  A bucket is kept as its debt, in 1/l microseconds: 0 is a full bucket, capacity an empty one. requests per period_us
  become l/p by dividing both by their greatest common divisor, so 7/s or 333/s stay integers and doubles hold them all.
]]

local call, floor, ceil, sub = redis.call, math.floor, math.ceil, string.sub

local RECORD = '>c8Bdddd' -- id, kind, at_us, debt, p, l
local RECORD_BYTES = 41
local TOKEN_BUCKET = 1
local ARGUMENTS_PER_RULE = 7

local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Where a rule's record begins in a bucket string, or nil.
local function find(value, id)
  for from = 1, #value, RECORD_BYTES do
    if sub(value, from, from + 7) == id then
      return from
    end
  end
end

-- The same tokens used, in other units: whole ones stay whole, the started one is rounded against the client.
local function convert(debt, old_p, p)
  local used = floor(debt / old_p)
  return used * p + ceil((debt - used * old_p) * p / old_p)
end

-- What a record's subject owes now in units of p, perhaps more than the capacity; the time that this is the debt of:
-- now, or the record's own when the clock is behind it; and the p and l of the rate at which the debt drains. After a
-- change of the limit that is the faster of both rates, since the record stays as it is until its next charge.
local function debt_now(value, from, p, l)
  local _, _, at, debt, old_p, old_l = struct.unpack(RECORD, value, from)
  local elapsed = 0
  if now > at then
    elapsed, at = now - at, now
  end
  if old_p == p and old_l == l then
    debt = debt - elapsed * l
  elseif l * old_p >= old_l * p then
    debt = convert(debt, old_p, p) - elapsed * l
  else
    debt = debt - elapsed * old_l
    if debt > 0 then
      return convert(debt, old_p, p), at, old_p, old_l
    end
  end
  return debt > 0 and debt or 0, at, p, l
end

-- How long so many units of p take to drain, in microseconds. At an old rate a microsecond more makes up for the
-- rounding of the conversion, so that this wait is always enough.
local function drain_us(units, p, l, drain_p, drain_l)
  if drain_p == p and drain_l == l then
    return ceil(units / l)
  end
  return ceil(units * drain_p / (drain_l * p)) + 1
end

-- How long a record still owes something, in microseconds; 0 or less when it has drained.
local function drains_in_us(record)
  local _, _, at, debt, _, l = struct.unpack(RECORD, record)
  return ceil((debt - (now - at) * l) / l)
end

-- The bucket string with one record put in its place, or at the end.
local function put(value, id, record)
  local from = find(value, id)
  if not from then
    return value .. record
  end
  return sub(value, 1, from - 1) .. record .. sub(value, from + RECORD_BYTES)
end

-- Stores what still owes something; the key lives until the last of it has drained, and a millisecond longer.
local function write(key, value)
  local kept, longest_us = '', 0
  for from = 1, #value, RECORD_BYTES do
    local record = sub(value, from, from + RECORD_BYTES - 1)
    local owes_us = drains_in_us(record)
    if owes_us > 0 then
      kept = kept .. record
      if owes_us > longest_us then
        longest_us = owes_us
      end
    end
  end
  -- Never 0, which would delete the key, and never a fraction, which SET refuses.
  call('SET', key, kept, 'PX', string.format('%.0f', ceil(longest_us / 1000) + 1))
end

local values = {}
for i = 1, #KEYS do
  values[i] = call('GET', KEYS[i]) or ''
end

local rules, allowed = {}, true
for i = 1, ARGV[2] do
  local a = 3 + (i - 1) * ARGUMENTS_PER_RULE
  local key, id, p, l = ARGV[a] + 0, ARGV[a + 1], ARGV[a + 2] + 0, ARGV[a + 3] + 0
  local capacity, increment = ARGV[a + 4] + 0, ARGV[a + 5] + 0
  local owed, at, drain_p, drain_l = 0, now, p, l
  local from = find(values[key], id)
  if from then
    owed, at, drain_p, drain_l = debt_now(values[key], from, p, l)
  end
  local debt = owed > capacity and capacity or owed -- a lowered limit binds at once
  local retry_after_us = 0
  -- In this order every step stays below 2^53; debt + increment - capacity might not.
  if increment - (capacity - debt) > 0 then
    if ARGV[a + 6] == '1' then
      allowed = false
    end
    retry_after_us = -1
    if increment <= capacity then
      retry_after_us = at - now + drain_us(increment - (capacity - owed), p, l, drain_p, drain_l)
    end
  end
  local reset_us = at - now + drain_us(owed, p, l, drain_p, drain_l)
  rules[i] = { key, id, p, l, capacity, increment, debt, at, retry_after_us, reset_us }
end

local reply, charged = { allowed and 1 or 0 }, {}
for i = 1, #rules do
  local key, id, p, l, capacity, increment, debt, at, retry_after_us, reset_us = unpack(rules[i])
  local ok = retry_after_us == 0
  if ok and allowed and increment > 0 then
    debt = debt + increment
    reset_us = at - now + ceil(debt / l)
    values[key] = put(values[key], id, struct.pack(RECORD, id, TOKEN_BUCKET, at, debt, p, l))
    charged[key] = true
  end
  local n = 4 * i - 2
  reply[n] = ok and 1 or 0
  reply[n + 1] = floor((capacity - debt) / p)
  reply[n + 2] = retry_after_us
  reply[n + 3] = reset_us
end

for i = 1, #KEYS do
  if charged[i] then
    write(KEYS[i], values[i])
  end
end

return reply
