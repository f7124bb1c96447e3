// SPDX-License-Identifier: Apache-2.0
// Exceptions through traced functions. usage: SUBJECT CASE [ROUNDS]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/proof/trace_calls/account.h"

#define FUNCTIONS(X)     X(leaf) X(thrower) X(passes) X(cleans) X(catches) X(again) X(destroyed)
#define DEFINE(function) static struct account account_##function = {"traced_" #function, 0, 0, 0, 0, 0};
FUNCTIONS(DEFINE)
#define POINT(function) &account_##function,
static const struct account *const accounts[] = {FUNCTIONS(POINT) nullptr};

extern "C" {
TRACED uint64_t traced_leaf(uint64_t x)
{
    ENTER(leaf);
    uint64_t result = x + 1;
    LEAVE(leaf);
    return result;
}

TRACED void traced_destroyed(uint64_t *sum)
{
    ENTER(destroyed);
    *sum += traced_leaf(1);
    LEAVE(destroyed);
}
}

struct guard {
    uint64_t *sum;
    ~guard()
    {
        traced_destroyed(sum); // while an exception passes, too
    }
};

extern "C" {
TRACED uint64_t traced_thrower(uint64_t x)
{
    ENTER(thrower);
    if (x % 3 != 0) {
        UNWOUND(thrower);
        throw std::runtime_error("x");
    }
    LEAVE(thrower);
    return x;
}

// Deeper and deeper; nothing here to clean up.
TRACED uint64_t traced_passes(unsigned depth, uint64_t x)
{
    ENTER(passes);
    const bool throws = x % 3 != 0;
    if (throws)
        UNWOUND(passes);
    uint64_t result = depth ? traced_passes(depth - 1, x) + 1 : traced_thrower(x);
    __asm__ volatile("" : "+r"(result)); // so that it is no loop
    if (!throws)
        LEAVE(passes);
    return result;
}

TRACED uint64_t traced_cleans(unsigned depth, uint64_t x, uint64_t *sum)
{
    ENTER(cleans);
    const bool throws = x % 3 != 0;
    guard one{sum};
    if (throws)
        UNWOUND(cleans);
    uint64_t result = traced_passes(depth, x);
    if (!throws)
        LEAVE(cleans); // `one` is destroyed behind it
    return result;
}

TRACED uint64_t traced_again(unsigned depth, uint64_t x, uint64_t *sum)
{
    ENTER(again);
    uint64_t result = 0;
    try {
        result = traced_cleans(depth, x, sum);
    } catch (const std::exception &) {
        *sum += traced_leaf(2);
        UNWOUND(again);
        throw;
    }
    LEAVE(again);
    return result;
}

TRACED uint64_t traced_catches(unsigned depth, uint64_t x)
{
    ENTER(catches);
    uint64_t sum = 0;
    try {
        sum += traced_again(depth, x, &sum);
    } catch (const std::runtime_error &error) {
        sum += traced_leaf(std::strlen(error.what()));
    }
    LEAVE(catches);
    return sum;
}
}

static uint64_t throws(unsigned rounds)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < rounds; i++)
        result += traced_catches(i % 6, i);
    return result;
}

static uint64_t threads(unsigned rounds)
{
    std::vector<std::thread> all;
    std::vector<uint64_t> results(4);
    for (unsigned n = 0; n < 4; n++)
        all.emplace_back([&results, n, rounds] { results[n] = throws(rounds); });
    for (auto &one : all)
        one.join();
    return results[0] + results[1] + results[2] + results[3];
}

int main(int argc, char **argv)
{
    const std::string name = argc > 1 ? argv[1] : "throws";
    const unsigned rounds = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 100;
    if (!account_wait_for_patch(reinterpret_cast<const void *>(traced_leaf))) {
        std::fprintf(stderr, "was not traced\n");
        return 3;
    }
    const uint64_t result = name == "threads" ? threads(rounds) : throws(rounds);
    account_write(name.c_str(), accounts, result);
    account_linger();
    return 0;
}
