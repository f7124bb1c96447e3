// SPDX-License-Identifier: Apache-2.0
// Exceptions and forced unwinds through traced functions. usage: SUBJECT CASE [ROUNDS]
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <unwind.h>
#include <vector>

#include "tests/proof/trace_calls/account.h"

#define FUNCTIONS(X)                                                                                                   \
    X(leaf)                                                                                                            \
    X(thrower) X(passes) X(cleans) X(catches) X(again) X(destroyed) X(forces) X(forced) X(survives) X(ends) X(ended)
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

// ---- forced unwinds: by hand; and what pthread_exit and pthread_cancel do

static thread_local std::jmp_buf back;
static volatile bool always = true; // the compiler is not to see that a recursion never returns

static _Unwind_Reason_Code stop(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception *,
                                _Unwind_Context *context, void *function)
{
    if (actions & _UA_END_OF_STACK)
        std::abort();
    if (_Unwind_GetRegionStart(context) == reinterpret_cast<uintptr_t>(function))
        std::longjmp(back, 1);
    return _URC_NO_REASON;
}

extern "C" {
TRACED uint64_t traced_survives(unsigned depth);

TRACED void traced_forces()
{
    static thread_local _Unwind_Exception exception;
    ENTER(forces);
    UNWOUND(forces);
    if (always)
        _Unwind_ForcedUnwind(&exception, stop, reinterpret_cast<void *>(traced_survives));
}

TRACED uint64_t traced_forced(unsigned depth, uint64_t *sum)
{
    ENTER(forced);
    UNWOUND(forced);
    guard one{sum};
    if (depth)
        return traced_forced(depth - 1, sum) + 1;
    traced_forces();
    return *sum;
}

TRACED uint64_t traced_survives(unsigned depth)
{
    ENTER(survives);
    static thread_local uint64_t sum;
    sum = 0;
    if (setjmp(back) == 0)
        sum += traced_forced(depth, &sum);
    sum += traced_leaf(depth);
    LEAVE(survives);
    return sum;
}

enum { BY_EXIT, BY_ITSELF, BY_ANOTHER, WAYS };
static uint64_t ended_sums[8];

TRACED uint64_t traced_ended(unsigned number, unsigned depth)
{
    ENTER(ended);
    UNWOUND(ended);
    guard one{&ended_sums[number % 8]};
    if (depth)
        return traced_ended(number, depth - 1) + 1;
    if (number % WAYS == BY_EXIT)
        pthread_exit(nullptr);
    if (number % WAYS == BY_ITSELF)
        pthread_cancel(pthread_self());
    while (always)
        pause(); // where a thread is cancelled: as it comes here, or by a signal while it waits
    return 0;
}

TRACED void *traced_ends(void *number)
{
    ENTER(ends);
    UNWOUND(ends);
    const unsigned which = static_cast<unsigned>(reinterpret_cast<uintptr_t>(number));
    ended_sums[which % 8] += traced_ended(which, which % 6);
    return nullptr;
}
}

static uint64_t forced(unsigned rounds)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < rounds; i++)
        result += traced_survives(i % 6);
    return result;
}

// One at a time of each sum's writers; four threads at once, of which each ends in another way.
static uint64_t ends(unsigned rounds)
{
    enum { AT_ONCE = 4 };
    uint64_t result = 0;
    for (unsigned i = 0; i < rounds; i += AT_ONCE) {
        pthread_t ids[AT_ONCE];
        for (unsigned n = 0; n < AT_ONCE; n++)
            if (pthread_create(&ids[n], nullptr, traced_ends, reinterpret_cast<void *>(uintptr_t{i + n})) != 0)
                std::abort();
        for (unsigned n = 0; n < AT_ONCE; n++)
            if ((i + n) % WAYS == BY_ANOTHER)
                pthread_cancel(ids[n]);
        for (auto id : ids)
            pthread_join(id, nullptr);
    }
    for (uint64_t sum : ended_sums)
        result += sum;
    return result;
}

int main(int argc, char **argv)
{
    const std::string name = argc > 1 ? argv[1] : "throws";
    const unsigned rounds = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 100;
    if (!account_wait_for_patch(reinterpret_cast<const void *>(traced_leaf))) {
        std::fprintf(stderr, "was not traced\n");
        return 3;
    }
    const uint64_t result = name == "threads"  ? threads(rounds)
                            : name == "forced" ? forced(rounds)
                            : name == "ends"   ? ends(rounds)
                                               : throws(rounds);
    account_write(name.c_str(), accounts, result);
    account_linger();
    return 0;
}
