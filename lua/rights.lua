-- SPDX-License-Identifier: Apache-2.0
--[[ Which of the given commands the connected user may not run. Runs none of them.

  ARGV[i]    command     `name|arguments`, separated by single spaces; a name may have two words: `SCRIPT LOAD|x`

  Returns    the names of the refused commands, in their order; empty when the user may run them all
  Cost       O(commands)
]]

local refused = {}
for _, command in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(command, '[^| ]+') do
    words[#words + 1] = word
  end
  if not redis.acl_check_cmd(unpack(words)) then
    refused[#refused + 1] = string.match(command, '^[^|]*')
  end
end
return refused
