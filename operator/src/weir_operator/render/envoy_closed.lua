-- SPDX-License-Identifier: Apache-2.0
--[[ Refuses a request that the limiter gave no answer to, where a Closed rule covers it.

  Runs in Envoy, after the ext_authz filter, and only for requests which that filter has marked: while the limiter
  answers it costs nothing. Above it `envoy_closed.py` puts one line, CLOSED = "...": the policies, as it writes them.

  Covers     what the limiter's own matching covers, no less and no more: crates/limiter-core/src/matching decides what
             that is, and a change there is a change here
  Read       at the first marked request, each host's policies at its own first: Envoy loads and runs the script on the
             threads that serve, and these must not stand still
  Failing    a fault in here refuses too: what a Closed rule covers must not pass because something broke
  Told       as the limiter tells it: problem.rs and respond.rs
]]

local CLOSED = CLOSED
local RETRY_AFTER_S = 1 -- as the limiter says itself when the store is away
local NAMESPACE = "envoy.filters.http.ext_authz" -- where the access log finds the limiter's own decisions

local index -- what CLOSED says, once it was read

local function new_node()
  return { literal = {}, exact = {}, below = {} }
end

local function decoded(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- The node for a pattern's path below `node`, and whether it covers what lies below that.
local function descend(node, path)
  for segment in path:gmatch("[^/]+") do
    if segment == "*" then
      return node, true
    elseif segment == "{}" then
      node.any = node.any or new_node()
      node = node.any
    else
      segment = decoded(segment)
      node.literal[segment] = node.literal[segment] or new_node()
      node = node.literal[segment]
    end
  end
  return node, false
end

local function add_route(tree, methods, path, policy)
  local node, open_ended = descend(tree, path)
  local set
  if methods ~= "*" then
    set = {}
    for method in methods:gmatch("[^,]+") do set[method] = true end
  end
  table.insert(open_ended and node.below or node.exact, { policy = policy, methods = set })
end

-- The policies of one host pattern, not read yet.
local function new_root()
  return { node = new_node(), waiting = {} }
end

local function root_of(roots, host)
  roots[host] = roots[host] or new_root()
  return roots[host]
end

-- A line is one policy: id, rule, P or S (public or silent), documentation or -, hosts or *, then methods and path of
-- each route. Only the hosts are read here; what nobody asks for need not be understood.
local function read(text)
  local found = { exact = {}, wildcard = {}, every = new_root(), longest = 0 }
  local order = 0
  for line in text:gmatch("[^\n]+") do
    order = order + 1
    local policy = { order = order, line = line }
    for host in line:match("^%S+ %S+ %S+ %S+ (%S+)"):gmatch("[^,]+") do
      local root = found.every
      if host:sub(1, 2) == "*." then
        root = root_of(found.wildcard, host:sub(3))
        found.longest = math.max(found.longest, #host - 2)
      elseif host ~= "*" then
        root = root_of(found.exact, host)
      end
      table.insert(root.waiting, policy)
    end
  end
  return found
end

-- The tree of a root, with all its policies.
local function tree_of(root)
  for _, policy in ipairs(root.waiting) do
    local words = {}
    for word in policy.line:gmatch("%S+") do words[#words + 1] = word end
    policy.id, policy.rule, policy.public = words[1], words[2], words[3] == "P"
    policy.documentation = words[4] ~= "-" and decoded(words[4]) or nil
    for place = 6, #words, 2 do add_route(root.node, words[place], words[place + 1], policy) end
  end
  root.waiting = {}
  return root.node
end

-- Lower case, without port and one trailing dot. Inside the brackets of an IPv6 address a colon begins no port.
local function normal_host(authority)
  local host, port = authority:match("^(.*):([^:]*)$")
  if not host or port:find("]", 1, true) then host = authority end
  return host:gsub("%.$", ""):lower()
end

-- One reading of a path: its segments, decoded once, in lower case, without empty ones and dots. `plain` and `escaped`
-- say which semicolons begin parameters.
local function segments_of(path, plain, escaped)
  local segments, parts, skipping = {}, {}, false
  local function close()
    local segment = table.concat(parts):lower()
    if segment == ".." then
      segments[#segments] = nil
    elseif segment ~= "" and segment ~= "." then
      segments[#segments + 1] = segment
    end
    parts, skipping = {}, false
  end
  local at = 1
  while at <= #path do
    local special = path:find("[%%;/\\]", at) or #path + 1
    if not skipping then parts[#parts + 1] = path:sub(at, special - 1) end
    local hex = path:match("^%%(%x%x)", special)
    local byte = hex and string.char(tonumber(hex, 16)) or path:sub(special, special)
    if byte == ";" then skipping = skipping or (hex and escaped) or (not hex and plain) end
    if byte == "/" or byte == "\\" then
      close()
    elseif not skipping then
      parts[#parts + 1] = byte
    end
    at = special + (hex and 3 or 1)
  end
  close()
  return segments
end

-- Every way in which some server may read a path: whether a semicolon begins a parameter is the server's choice.
local function readings_of(target)
  local path = target:match("^[^?#]*")
  local readings = { segments_of(path, true, true) }
  if path:find(";", 1, true) or path:find("%%3[bB]") then
    readings[2] = segments_of(path, false, false)
    readings[3] = segments_of(path, true, false)
  end
  return readings
end

-- Of several policies a public one is named, and of those the first.
local function better(policy, than)
  if than == nil or policy.public ~= than.public then return than == nil or policy.public end
  return policy.order < than.order
end

local function best_of(entries, method, found)
  for _, entry in ipairs(entries) do
    if (entry.methods == nil or entry.methods[method]) and better(entry.policy, found) then found = entry.policy end
  end
  return found
end

local function walk(node, segments, at, method, found)
  found = best_of(node.below, method, found)
  local segment = segments[at]
  if segment == nil then return best_of(node.exact, method, found) end
  if node.any then found = walk(node.any, segments, at + 1, method, found) end
  local literal = node.literal[segment]
  return literal and walk(literal, segments, at + 1, method, found) or found
end

-- The roots whose host patterns cover this authority.
local function roots_for(authority)
  local host = normal_host(authority)
  local roots = { index.every }
  roots[#roots + 1] = index.exact[host]
  local dot = host:find(".", math.max(1, #host - index.longest), true)
  while dot do
    roots[#roots + 1] = index.wildcard[host:sub(dot + 1)]
    dot = host:find(".", dot + 1, true)
  end
  return roots
end

-- The policy that the client is told of, if any covers the request.
local function covering(headers)
  index = index or read(CLOSED)
  local method = (headers:get(":method") or ""):upper()
  local readings = readings_of(headers:get(":path") or "")
  local found
  for _, root in ipairs(roots_for(headers:get(":authority") or "")) do
    local tree = tree_of(root)
    for _, segments in ipairs(readings) do found = walk(tree, segments, 1, method, found) end
  end
  return found
end

local function is_uuid(text)
  return #text == 36 and text:find("^%x+%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x+$") == 1 and text:sub(9, 9) == "-"
end

local function problem(policy, detail, request_id)
  if not policy.public then return '{"type":"about:blank","title":"Service Unavailable","status":503}' end
  local instance = is_uuid(request_id) and ('"instance":"urn:uuid:%s",'):format(request_id:lower()) or ""
  local link = policy.documentation and ',"documentation":' .. policy.documentation or ""
  return '{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",'
    .. ('"title":"Temporarily reduced capacity","status":503,"detail":"%s",'):format(detail:gsub('"', '\\"'))
    .. instance
    .. ('"code":"limiter_unavailable","policy":"%s","rule":"%s",'):format(policy.id, policy.rule)
    .. ('"retryAfterSeconds":%d,"violated-policies":["%s"]%s}'):format(RETRY_AFTER_S, policy.rule, link)
end

local function detail_of(policy)
  if not policy.public then return "Service Unavailable" end
  return ('Limit "%s" cannot be checked at the moment; retry in %d s.'):format(policy.rule, RETRY_AFTER_S)
end

local function is_grpc(content_type)
  return content_type == "application/grpc" or content_type:sub(1, 17) == "application/grpc+"
end

local function log(handle, policy)
  local metadata = handle:streamInfo():dynamicMetadata()
  metadata:set(NAMESPACE, "policy", policy.id)
  metadata:set(NAMESPACE, "rule", policy.rule)
  metadata:set(NAMESPACE, "decision", "closed")
  metadata:set(NAMESPACE, "mode", "Enforce")
end

function envoy_on_request(handle)
  local headers = handle:headers()
  local worked, policy = pcall(covering, headers)
  if not worked then
    handle:logErr("weir: closed rules cannot be read: " .. tostring(policy))
    policy = { id = "", rule = "", public = false }
  end
  if policy == nil then return end
  log(handle, policy)
  local answer = { [":status"] = "503", ["retry-after"] = tostring(RETRY_AFTER_S), ["cache-control"] = "no-store" }
  if is_grpc(headers:get("content-type") or "") then
    handle:respond(answer, detail_of(policy)) -- Envoy makes it grpc-status 14 with this as its grpc-message
    return
  end
  answer["content-type"] = "application/problem+json"
  handle:respond(answer, problem(policy, detail_of(policy), headers:get("x-request-id") or ""))
end
