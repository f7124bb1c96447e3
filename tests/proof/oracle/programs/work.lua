-- SPDX-License-Identifier: Apache-2.0
-- The interpreter's own ways: calls, closures, tables, strings, metamethods, coroutines, errors that are caught.
local function fibonacci(n) if n < 2 then return n end return fibonacci(n - 1) + fibonacci(n - 2) end
local caught, words = 0, {}
local function deep(depth) if depth == 0 then error({ depth }) end return 1 + deep(depth - 1) end
for i = 1, 60 do
    local ok = pcall(deep, i % 13)
    if not ok then caught = caught + 1 end
    words[#words + 1] = string.format("%d-%s", i * 7919 % 1000, ("x"):rep(i % 5))
end
table.sort(words)
local vector = setmetatable({}, { __index = function(_, key) return key * 2 end, __add = function(_, n) return n + 1 end })
local sum = 0
local numbers = coroutine.wrap(function() for i = 1, 200 do coroutine.yield(i) end end)
for i = 1, 200 do sum = sum + vector[i] + (vector + i) + numbers() + math.floor(math.sqrt(i)) end
local text = table.concat(words, ","):gsub("%d+", function(digits) return #digits end)
print(fibonacci(16), caught, sum, #text)
