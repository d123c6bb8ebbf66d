-- SPDX-License-Identifier: Apache-2.0
--[[ Decide one request: charge every rule that applies to it, or none of them.

  KEYS[i]    counters     string of 41-byte records, one per rule of one policy and subject; but a SlidingWindowLog has
                          a key of its own: a head of 24 bytes, and 8 bytes for each unit admitted
  ARGV[1]    plan         the rules one after the other, each `>BBBc8dddd`: kind, index into KEYS from 1, 1 = enforcing
                          or 0 = shadow (counted, never refusing), id, and four numbers a, b, c, d by kind:
             1 TokenBucket           cost x p, burst x p, p, l
             2 LeakyBucket           cost x p, tolerance + p, p, l: a debt above the tolerance lets nobody in
             3 FixedWindow           cost, limit, period_us, 0
             4 SlidingWindowCounter  cost, limit, period_us, 0, with limit x period_us below 2^53
             5 SlidingWindowLog      cost, limit, period_us, 0
             6 FixedWindow, calendar cost, limit, 0, 0 and four doubles more: the edges in us of three windows in a row
  ARGV[2]    now_us       digits; absent = this server's own clock

  Returns    doubles, big-endian: allowed 1|0, now_us, then per rule ok 1|0, remaining, wait_us (refused: until it would
             pass, -1 = never; passed: how long a leaky bucket holds it), reset_us until nothing is used. Or only {-1,
             time_us}: that time is outside the edges of a calendar rule, and nothing was decided
  Clock      TIME of the store, so that the limiters' skew cannot matter; ARGV[2] is for tests.
             An older clock than a record's refills nothing and moves nothing back; waits count from it
  Atomicity  all enforcing rules pass and all are charged, or nothing is written; a shadow rule needs its own pass too
  Cost       O(records), O(log entries) for a log; one TIME, one GET per key, one PSETEX per key that was charged

  A bucket is kept as its debt, in 1/l microseconds: 0 is a full bucket. requests per period_us become l/p by dividing
  both by their greatest common divisor, so 7/s or 333/s stay integers and doubles hold them all.

  Written for few instructions, which is why all kinds are decided in one loop: to define a function, make a table or
  read a global costs hundreds at every call. x - x % 1 is floor(x) and x + -x % 1 is ceil(x), at a third of the cost.
]]

local call, pack, read = redis.call, struct.pack, struct.unpack

local now = ARGV[2]
if now then
  now = now + 0
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local plan, place, allowed, reply = ARGV[1], 1, 1, nil
-- Of the key at hand: its index, its value, the new records, how much of the value they replace, their longest life.
local key, value, fresh, replaced, life_us
local others, logs -- the same of the other keys, by index; the commands that write logs
repeat
  local kind, index, enforcing, id, a, b, c, d, following = read('>BBBc8dddd', plan, place)
  local from
  if kind ~= 5 then
    if index ~= key then
      local other
      if key then
        others = others or {}
        others[key], other = { value, fresh, replaced, life_us }, others[index]
      end
      key = index
      if other then
        value, fresh, replaced, life_us = other[1], other[2], other[3], other[4]
        others[key] = nil
      else
        value, fresh, replaced, life_us = call('GET', KEYS[key]), '', 0, 0
      end
    end
    from = value and value:find(id, 1, true)
    while from and from % 41 ~= 1 do
      from = value:find(id, from + 1, true)
    end
  end
  local t, last, x, y, z = now, 0, 0, 0, 0
  if from then
    last, x, y, z = read('>dddd', value, from + 9)
    if last > now then
      t = last
    end
  end
  local ok, remaining, wait_us, reset_us, record = 1, 0, 0, 0, nil

  if kind <= 2 then -- TokenBucket, LeakyBucket: x is the debt, y and z are p and l of the record, c and d of the rule
    local old_l
    if from then
      if y == c and z == d then
        x = x - (t - last) * d
      else
        -- A changed limit: the debt drains at the faster of both rates, since the record stays until its next charge.
        if z * c > d * y then
          old_l = z
          x = x - (t - last) * z
        end
        if x > 0 then
          -- The same tokens used, in other units: whole ones stay whole, the started one is rounded against the client.
          local started = x % y
          x = (x - started) / y * c + math.ceil(started * c / y)
        else
          old_l = nil
        end
        if not old_l then
          x = x - (t - last) * d
        end
      end
      if x < 0 then
        x = 0
      end
    end
    local need = a
    if kind == 2 and a > c then
      -- Whatever it costs, it may leave once those before it have left; but its debt has to stay below 2^53.
      need = a + (b - c) < 9007199254740992 and c or b + 1
    end
    local lacking = need - (b - x)
    if lacking > 0 and a > 0 then
      ok, wait_us = 0, -1
      if need <= b then
        wait_us = lacking / d
        wait_us = t - now + wait_us + -wait_us % 1
      end
    elseif allowed == 1 and a > 0 then
      if kind == 2 then
        wait_us = x / d
        wait_us = wait_us + -wait_us % 1
      end
      x, old_l = x + a, nil
      record = pack('>c8Bdddd', id, kind, t, x, c, d)
    end
    if x < b then
      remaining = (b - x) / c
      remaining = remaining - remaining % 1
    end
    reset_us = x / d
    reset_us = t - now + reset_us + -reset_us % 1
    if old_l then
      -- It drains by the old rate; a microsecond more makes up for the rounding of the conversion.
      reset_us = t - now + math.ceil(x * y / (old_l * c)) + 1
      if wait_us > 0 then
        wait_us = t - now + math.ceil(lacking * y / (old_l * c)) + 1
      end
    end

  elseif kind == 4 then -- SlidingWindowCounter: x and y are the counts of this window and the one before, z its period
    local start = t - t % c
    if z ~= c and from then
      -- Another period: what is used now under the record's own counts as used at its time under the new one.
      local elapsed = last % z
      local old = y * (z - elapsed) / z
      x, y = x + old + -old % 1, 0
      if now >= last - elapsed + 2 * z then
        x = 0
      elseif x * c >= 9007199254740992 then
        x = 9007199254740991 / c
        x = x - x % 1
      end
    end
    if last < start then
      y = last >= start - c and x or 0
      x = 0
    end
    local left = c - (t - start)
    local used = y * left / c
    used = x + used + -used % 1
    if used + a > b and a > 0 then
      ok, wait_us = 0, -1
      if a <= b then
        -- Until so much of a window has aged that the rest is what may be left beside this request: in this window, of
        -- the one before; else in the next window, of this one.
        local rest = b - x - a
        if rest >= 0 then
          wait_us = rest * c / y
          wait_us = t - now + left - (wait_us - wait_us % 1)
        else
          local aged = (b - a) * c / x
          aged = c - (aged - aged % 1)
          wait_us = start + c - now + (aged > 0 and aged or 0)
        end
      end
    elseif allowed == 1 and a > 0 then
      x, used = x + a, used + a
      record = pack('>c8Bdddd', id, 4, t, x, y, c)
    end
    if used < b then
      remaining = b - used
    end
    if x > 0 then
      reset_us = start + 2 * c - now
    elseif y > 0 then
      reset_us = start + c - now
    end

  elseif kind == 5 then -- SlidingWindowLog
    local name = KEYS[index]
    local head = call('GETRANGE', name, '0', '535')
    local size = #head
    local count, outside, period = 0, 0, 0
    if size > 0 then
      last, period, outside = read('>ddd', head)
      if size == 536 then
        size = call('STRLEN', name)
      end
      count = (size - 24) / 8
      if last > t then
        t = last
      end
    end
    local function entry(number)
      local at = 24 + 8 * (number - 1)
      if at + 8 <= #head then
        return (read('>d', head, at + 1))
      end
      return (read('>d', call('GETRANGE', name, at, at + 7)))
    end
    -- From where the last charge left the edge of the window, first in growing steps, then halving.
    if now >= last + period then
      outside = count
    end
    local inside, step = count + 1, 1
    while inside - outside > 1 do
      local middle = outside + step
      if middle >= inside then
        middle = outside + (inside - outside - (inside - outside) % 2) / 2
      end
      if entry(middle) > t - c then
        inside, step = middle, math.huge
      else
        outside, step = middle, step * 2
      end
    end
    local used = count - outside
    if used + a > b and a > 0 then
      ok, wait_us = 0, -1
      if a <= b then
        wait_us = entry(count + a - b) + c - now
      end
    elseif allowed == 1 and a > 0 then
      used, reset_us = used + a, t + c - now
      local units = string.rep(pack('>d', t), a)
      local ttl_ms = reset_us / 1000
      ttl_ms = ttl_ms + -ttl_ms % 1 + 1
      logs = logs or {}
      if size < 536 or outside > used / 4 then
        local kept = size < 536 and head:sub(25 + 8 * outside)
          or call('GETRANGE', name, 24 + 8 * outside, -1)
        logs[#logs + 1] = { 'PSETEX', name, ttl_ms, pack('>ddd', t, c, 0) .. kept .. units }
      else
        logs[#logs + 1] = { 'SETRANGE', name, 0, pack('>ddd', t, c, outside) }
        logs[#logs + 1] = { 'APPEND', name, units }
        logs[#logs + 1] = { 'PEXPIRE', name, ttl_ms }
      end
    end
    if used < b then
      remaining = b - used
    end
    if used > 0 and reset_us == 0 then
      reset_us = entry(count) + c - now
    end

  else -- FixedWindow, by period and by calendar: x is the count, y the end of its window
    local start, over
    if kind == 6 then
      local first, second, third, fourth, after = read('>dddd', plan, following)
      if now < first or now >= fourth then
        return pack('>dd', -1, now)
      end
      following, start, over = after, first, second
      if t >= third then
        start, over = third, fourth
        if t >= fourth then -- a record that is ahead of the edges brings the end of its window with it
          start, over = t, y
        end
      elseif t >= second then
        start, over = second, third
      end
    else
      start = t - t % c
      over = start + c
    end
    if last < start or now >= y then
      x = 0
    end
    if x + a > b and a > 0 then
      ok, wait_us = 0, a <= b and over - now or -1
    elseif allowed == 1 and a > 0 then
      x = x + a
      record = pack('>c8Bdddd', id, 3, t, x, over, 0)
    end
    if x < b then
      remaining = b - x
    end
    if x > 0 then
      reset_us = over - now
    end
  end

  if record then
    fresh = record .. fresh
    if from then
      replaced = replaced + 41
    end
    if reset_us > life_us then
      life_us = reset_us
    end
  elseif ok == 0 and enforcing == 1 and allowed == 1 then
    allowed = 0
    if place > 1 then -- the rules before this one are not charged after all: from the start again
      following, key, others, logs = 1, nil, nil, nil
    end
  end
  if place == 1 then
    reply = pack('>dddddd', allowed, now, ok, remaining, wait_us, reset_us)
  else
    reply = pack('>c0dddd', reply, ok, remaining, wait_us, reset_us)
  end
  place = following
until place > #plan

if allowed == 0 then
  return reply
end

-- All writing comes after all deciding. Of the old records, those stay that were not replaced and still say something.
while key do
  if fresh ~= '' then
    if value and replaced < #value then
      for from = 1, #value, 41 do
        local id, kind, last, x, y, z = read('>c8Bdddd', value, from)
        local left_us
        if kind <= 2 then
          left_us = math.ceil((x - (now - last) * z) / z)
        elseif kind == 3 then
          left_us = y - now
        else
          left_us = last - last % z + 2 * z - now
        end
        for other = 1, #fresh, 41 do
          if fresh:sub(other, other + 7) == id then
            left_us = 0
          end
        end
        if left_us > 0 then
          fresh = fresh .. value:sub(from, from + 40)
          if left_us > life_us then
            life_us = left_us
          end
        end
      end
    end
    -- A whole number of milliseconds, never 0, which would be an error.
    local life_ms = life_us / 1000
    call('PSETEX', KEYS[key], life_ms + -life_ms % 1 + 1, fresh)
  end
  key = others and next(others)
  if key then
    local other = others[key]
    value, fresh, replaced, life_us = other[1], other[2], other[3], other[4]
    others[key] = nil
  end
end
if logs then
  for i = 1, #logs do
    call(unpack(logs[i]))
  end
end
return reply
