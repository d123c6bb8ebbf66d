-- SPDX-License-Identifier: Apache-2.0
-- The scripts run inside Redis and Valkey: Lua 5.1 with a few libraries more, and nothing global may be written.
std = "lua51"
max_line_length = 120
-- The operator's one script runs inside Envoy, which calls the function it defines.
files["operator/src/weir_operator/render/envoy_closed.lua"] = {
  read_globals = { "CLOSED" }, globals = { "envoy_on_request" },
}
-- Argo CD runs this one with the object as a global.
files["docs/how-to/argo-cd-health.lua"] = { read_globals = { "obj" } }
read_globals = { "redis", "struct", "KEYS", "ARGV" }
