// SPDX-License-Identifier: Apache-2.0
// Exact calls: contents of blocks, as a part of calls has them, one behind the other: type, two bytes of size,
// contents. What is read can be gone through in every way that shows it, and adds up.
#include "tests/proof/fuzz/fuzz.h"
#include "tracer/call_times/lanes.h"
#include "tracer/call_times/slowest.h"

static bool count(void *context, const struct call_times_slice *slice)
{
    fuzz_require(slice->end_ns >= slice->begin_ns);
    ++*(size_t *)context;
    return true;
}

static void show(const struct call_events *calls)
{
    const struct call_times_part all = {.to_ns = UINT64_MAX};
    struct call_times_sums sums;
    struct call_times_lanes lanes;
    struct call_times_slowest slowest;
    struct base_error error = {0};
    uint64_t ended = 0, counted = 0;
    fuzz_require(call_times_sum(&sums, calls, &all, &error) == 0);
    for (unsigned i = 0; i < CALL_TIMES_HOW_COUNT; i++)
        ended += sums.account.how[i];
    fuzz_require(ended == sums.account.enters && sums.account.enters == calls->enters &&
                 sums.account.how[CALL_TIMES_RETURNED] + sums.account.exits_alone == calls->exits);
    for (size_t i = 0; i < sums.function_count; i++)
        counted += sums.functions[i].calls;
    fuzz_require(counted == calls->enters);
    free(call_times_tree_order(&sums));
    call_times_sums_free(&sums);

    fuzz_require(call_times_lanes_make(&lanes, calls, &all, SIZE_MAX, &error) == 0);
    size_t begun = 0, over = 0;
    bool no_memory = false;
    for (size_t i = 0; i < lanes.lanes.count; i++) {
        const struct call_times_slice_events begins = {count, count, &begun};
        fuzz_require(call_times_lane_replay(&lanes, &lanes.lanes.items[i], &begins, &no_memory));
        over += 2 * lanes.lanes.items[i].count;
    }
    fuzz_require(begun == over && lanes.slices.count == calls->enters);
    call_times_lanes_free(&lanes);

    bool *first = calloc(calls->functions.count + 1, sizeof *first);
    fuzz_require(first != NULL);
    first[0] = true;
    fuzz_require(call_times_slowest_find(&slowest, calls, &all, first, 0.5, &error) == 0);
    call_times_slowest_free(&slowest);
    free(first);
}

int fuzz_calls(const uint8_t *data, size_t size)
{
    enum { TYPES = QUT_TRACE_FILE_CALL_EVENTS - QUT_TRACE_FILE_CALLS + 1 };
    struct call_events *calls = call_events_new();
    bool no_memory = false;
    fuzz_require(calls != NULL);
    while (size >= 3) {
        const unsigned type = QUT_TRACE_FILE_CALLS + data[0] % TYPES;
        size_t length = data[1] | (size_t)data[2] << 8;
        data += 3;
        size -= 3;
        length = length < size ? length : size;
        call_events_take(calls, type, (struct base_bytes){data, length}, &no_memory);
        data += length;
        size -= length;
    }
    fuzz_require(!no_memory && call_events_settle(calls));
    show(calls);
    call_events_free(calls);
    return 0;
}
