-- SPDX-License-Identifier: Apache-2.0
-- What Argo CD shows of a RateLimitPolicy or a RateLimitOverride: one script for both kinds.
-- Degraded is what a person has to mend, Suspended what a person has switched off on purpose.
-- A policy without traffic, or in shadow, is as it was written: Healthy, with the condition's message.

local SWITCHED_OFF = { SwitchedOff = true, KillSwitch = true, BreakGlass = true }
local STORE_AWAY = { StoreUnavailable = true, Degraded = true }

local status = obj.status or {}
local found = {}
for _, condition in ipairs(status.conditions or {}) do
  found[condition.type] = condition
end

local function health(name, condition)
  return { status = name, message = condition.reason .. ": " .. condition.message }
end

local ready, programmed, enforcing = found.Ready, found.Programmed, found.Enforcing
if not ready or status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "Waiting for the operator" }
end
if found.Stalled then
  return health("Degraded", found.Stalled)
end
if programmed and programmed.status ~= "True" then
  return health(programmed.reason == "Propagating" and "Progressing" or "Degraded", programmed)
end
if ready.status ~= "True" then
  return health("Progressing", ready)
end
if enforcing and enforcing.status ~= "True" then
  if SWITCHED_OFF[enforcing.reason] then
    return health("Suspended", enforcing)
  end
  return health(STORE_AWAY[enforcing.reason] and "Degraded" or "Healthy", enforcing)
end
return health("Healthy", enforcing or ready)
