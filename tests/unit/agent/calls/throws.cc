// SPDX-License-Identifier: Apache-2.0
// Exceptions are thrown through traced functions and caught where they should be; backtraces are whole; and what the
// rings say agrees. Runs with libgcc's unwinder, and again with LLVM's in front of it.
//
// usage: agent_calls_throws [THROWS]
#include <cstdio>
#include <cstdlib>
#include <unwind.h>

#include "tests/unit/agent/calls/thunks.h"

namespace {

enum { DEEP = 1, CATCHER, CLEANER, DEPTH = 5, DRAIN_EVERY = 512 };
long told[CLEANER + 1], cleaned, failed;
int volatile sink;

struct cleaner {
    ~cleaner() { cleaned++; }
};

void check(bool holds, char const *what, long a = 0, long b = 0)
{
    if (holds)
        return;
    failed++;
    std::printf("not so: %s: %ld, %ld\n", what, a, b);
}

TRACED void deep(int depth)
{
    told[DEEP]++;
    cleaner here;
    if (depth == 0)
        throw depth + 7;
    deep(depth - 1);
    sink = sink + 1;
}

TRACED int catcher(int depth)
{
    told[CATCHER]++;
    try {
        deep(depth);
    } catch (int value) {
        return value;
    }
    return -1;
}

bool rethrown()
{
    try {
        try {
            deep(2);
        } catch (int) {
            throw;
        }
    } catch (int value) {
        return value == 7;
    }
    return false;
}

_Unwind_Reason_Code count_frame(_Unwind_Context *context, void *count)
{
    unsigned long const start = (unsigned long)_Unwind_GetRegionStart(context);
    *static_cast<unsigned *>(count) += thunks_header() && start == thunks_header()->enter_stub ? 1000 : 1;
    return _URC_NO_REASON;
}

TRACED unsigned walker(int depth)
{
    told[CLEANER]++;
    unsigned frames = 0;
    if (depth > 0)
        frames = walker(depth - 1);
    else
        _Unwind_Backtrace(count_frame, &frames);
    sink = sink + 1;
    return frames;
}

} // namespace

int main(int argument_count, char **arguments)
{
    long const throws = argument_count > 1 ? std::atol(arguments[1]) : 100000;
    unsigned const frames_before = walker(DEPTH);
    if (thunks_begin(1 << 20, 4) != 0)
        return 77;
    told[CLEANER] = 0;
    check(THUNKS_TRACE(deep, DEEP) && THUNKS_TRACE(catcher, CATCHER) && THUNKS_TRACE(walker, CLEANER), "nops");
    for (long i = 0; i < throws; i++) {
        check(catcher(DEPTH) == 7, "caught", i);
        if (i % DRAIN_EVERY == 0)
            thunks_drain();
    }
    check(cleaned == throws * (DEPTH + 1), "cleaned", cleaned, throws * (DEPTH + 1));
    check(rethrown(), "thrown again");
    unsigned const frames = walker(DEPTH);
    check(frames == frames_before + (DEPTH + 1) * 1000, "frames", frames, frames_before);
    thunks_drain();
    struct thunks_sums const *sums = thunks_sums();
    long const enters = long(sums->enters[DEEP]), exits = long(sums->exits[DEEP]);
    check(enters == told[DEEP] && exits == 0, "enters of what throws", enters, exits);
    check(long(sums->exits[CATCHER]) == throws && long(sums->enters[CATCHER]) == throws, "exits of what catches",
          long(sums->exits[CATCHER]), throws);
    check(sums->unpaired == 0 && sums->bad_ids == 0, "unpaired", long(sums->unpaired));
    std::printf("%ld throws, %ld events\n", throws, long(sums->events));
    return failed != 0;
}
