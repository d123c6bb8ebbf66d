-- SPDX-License-Identifier: Apache-2.0
-- The scripts run inside Redis and Valkey: Lua 5.1 with a few libraries more, and nothing global may be written.
std = "lua51"
max_line_length = 120
read_globals = { "redis", "struct", "KEYS", "ARGV" }
