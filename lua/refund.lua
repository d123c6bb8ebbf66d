-- SPDX-License-Identifier: Apache-2.0
--[[ Give back what one call of decide.lua charged, for a request that then did not take place.

  KEYS[i]    counters       as in decide.lua
  ARGV[1]    plan           as in decide.lua: the rules that were charged, with the numbers they were charged by; but b
                            of a bucket is what it owed before that charge, or less: max(0, (reset_us - 1) x l - a)
  ARGV[2]    charged_at_us  the now_us of that call's reply, one double, big-endian
  ARGV[3]    now_us         digits; absent = this server's own clock

  Returns    1
  Clock      TIME of the store, so that the limiters' skew cannot matter; ARGV[3] is for tests
  Atomicity  each rule by itself: what can no longer be given back for one does not keep the others from it
  Cost       O(records), O(entries) for a log; one TIME, per key one GET and at most one SET or DEL

  Nobody may have more afterwards than if the call had never been made. So nothing is given back where that is not
  certain: after a change of the limit, after the window of the charge, and of what may have drained since. A record's
  time stays, and so does the key's expiry, which only can be later than needed.
]]

local call, pack, unpack, floor = redis.call, struct.pack, struct.unpack, math.floor

local RULE, RECORD, RECORD_BYTES = '>BBBc8dddd', '>c8Bdddd', 41
local TOKEN_BUCKET, LEAKY_BUCKET, FIXED_WINDOW, SLIDING_COUNTER, SLIDING_LOG, CALENDAR_WINDOW = 1, 2, 3, 4, 5, 6
local LOG_HEAD_BYTES, LOG_ENTRY_BYTES = 24, 8

local plan, charged_at = ARGV[1], unpack('>d', ARGV[2])
local now = tonumber(ARGV[3])
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- What a bucket still owes without that charge, as of the record's time; nil if the limit has changed. Nothing of
-- the charge can be lost before what was owed has drained. A clock that was behind is in both, `before` and `drained`.
local function bucket(increment, before, p, l, at, debt, old_p, old_l)
  if p == old_p and l == old_l then
    local drained = math.max(0, math.max(now, at) - charged_at) * l
    debt = debt - math.max(0, increment - math.max(0, drained - before))
    return debt - math.max(0, now - at) * l > 0, debt, p, l
  end
end

-- A window's count without that charge; nil if it is not the window of the charge.
local function fixed_window(cost, window_end, count, record_end)
  if window_end == record_end then
    return count > cost, count - cost, record_end, 0
  end
end

-- The counts of two windows without that charge; nil if it was in neither of them.
local function sliding_counter(cost, period, at, current, previous, old_period)
  local start = floor(at / period) * period
  if period ~= old_period or charged_at < start - period then
    return nil
  elseif charged_at >= start then
    current = math.max(0, current - cost)
  else
    previous = math.max(0, previous - cost)
  end
  return current + previous > 0, current, previous, period
end

-- Where the window of the charge ends, by the edges of a calendar rule; nil outside them.
local function calendar_end(...)
  for i = 1, 3 do
    local first, last = select(i, ...)
    if charged_at >= first and charged_at < last then
      return last
    end
  end
end

local function put(key, value)
  if value == '' then
    call('DEL', key)
  else
    call('SET', key, value, 'KEEPTTL')
  end
end

-- Takes entries of the charge's time out of a log, at most as many as it cost.
local function refund_log(key, cost)
  local value = call('GET', key)
  if not value then
    return
  end
  local _, _, outside = unpack('>ddd', value)
  local unit = pack('>d', charged_at)
  local first, last
  for from = LOG_HEAD_BYTES + LOG_ENTRY_BYTES * outside + 1, #value, LOG_ENTRY_BYTES do
    if string.sub(value, from, from + LOG_ENTRY_BYTES - 1) == unit and not (first and last - first >= cost * 8) then
      first = first or from
      last = from + LOG_ENTRY_BYTES
    end
  end
  if first then
    value = string.sub(value, 1, first - 1) .. string.sub(value, last)
    put(key, #value > LOG_HEAD_BYTES + LOG_ENTRY_BYTES * outside and value or '')
  end
end

local function find(value, id)
  for from = 1, #value, RECORD_BYTES do
    if string.sub(value, from, from + 7) == id then
      return from
    end
  end
end

local function refund_record(key, kind, id, window_end, a, b, c, d)
  local value = call('GET', key)
  local from = value and find(value, id)
  if not from then
    return
  end
  local _, record_kind, at, x, y, z = unpack(RECORD, value, from)
  if at < charged_at then
    return -- the store has lost the charge, as a failover may
  end
  local left, new_x, new_y, new_z
  if kind == TOKEN_BUCKET or kind == LEAKY_BUCKET then
    left, new_x, new_y, new_z = bucket(a, b, c, d, at, x, y, z)
  elseif kind == SLIDING_COUNTER then
    left, new_x, new_y, new_z = sliding_counter(a, c, at, x, y, z)
  else
    left, new_x, new_y, new_z = fixed_window(a, window_end, x, y)
  end
  if left ~= nil then
    local record = left and pack(RECORD, id, record_kind, at, new_x, new_y, new_z) or ''
    put(key, string.sub(value, 1, from - 1) .. record .. string.sub(value, from + RECORD_BYTES))
  end
end

local place = 1
while place <= #plan do
  local kind, index, _, id, a, b, c, d, following = unpack(RULE, plan, place)
  local window_end
  if kind == CALENDAR_WINDOW then
    local first, second, third, fourth, after = unpack('>dddd', plan, following)
    window_end, following = calendar_end(first, second, third, fourth), after
  elseif kind == FIXED_WINDOW then
    window_end = floor(charged_at / c) * c + c
  end
  if kind == SLIDING_LOG then
    refund_log(KEYS[index], a)
  else
    refund_record(KEYS[index], kind, id, window_end, a, b, c, d)
  end
  place = following
end
return 1
