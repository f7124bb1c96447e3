// SPDX-License-Identifier: Apache-2.0
// Samples that tell how much processor time they stand for: in few bytes, and no sum of them drifts.
#include <stdlib.h>

#include "libqut/include/qut/trace.h"
#include "libqut/segment/segment.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/segment/decode.h"

enum { UNIT_NS = 1 << QUT_TRACE_TIME_SHIFT, TICK_NS = 1000000, SAMPLES = 300 };

struct teller {
    struct segment segment;
    struct qut_trace_thread *thread;
    uint64_t now_ns;
    uint32_t node;
};

static bool begin(struct teller *teller, uint32_t flags)
{
    struct segment_options options = {.segment_bytes = 1 << 20, .thread_count = 4, .node_bits = 10, .flags = flags};
    int result = segment_create(&teller->segment, &options);
    if (!CHECK(result == 0, "%d", result))
        return false;
    teller->node = segment_node(&teller->segment, 0, 4096, 0);
    teller->thread = segment_thread_begin(&teller->segment, 1, "t", 1);
    teller->now_ns = (uint64_t)1000 * TICK_NS;
    return true;
}

static void tell(struct teller *teller, uint64_t told_ns)
{
    const struct segment_extra extra = {.key = QUT_TRACE_EXTRA_CPU_NS, .value = told_ns};
    struct segment_sample sample = {.time_ns = teller->now_ns,
                                    .cpu_ns = teller->now_ns,
                                    .node = teller->node,
                                    .kind = QUT_TRACE_KIND_CPU,
                                    .extras = &extra,
                                    .extra_count = 1};
    struct qut_trace_writer *writer = segment_begin(teller->thread, 0, 0, 0);
    CHECK(segment_append(&teller->segment, teller->thread, writer, &sample) == QUT_STORED, "stored");
    segment_end_of(teller->thread);
}

static uint32_t used_bytes(const struct teller *teller)
{
    const struct qut_trace_writer *writer = &teller->thread->writers[0];
    return writer->commits[writer->version & 1].used_bytes;
}

TEST(units_are_told_in_one_byte_and_the_rest_goes_on)
{
    struct teller teller;
    if (!begin(&teller, QUT_TRACE_HAS_CPU_TIME))
        return;
    uint64_t given_ns = 0, rest_ns = 0, sum_ns = 0, longest = 0;
    for (unsigned i = 0; i < SAMPLES; i++) {
        const uint64_t ns = TICK_NS - 5000 + i * 7919 % 10000; // what a tick of its thread measures
        uint32_t before = used_bytes(&teller);
        teller.now_ns += TICK_NS;
        given_ns += ns;
        rest_ns += ns;
        tell(&teller, segment_whole_units(&rest_ns));
        CHECK(rest_ns < UNIT_NS, "sample %u: %llu ns are left", i, (unsigned long long)rest_ns);
        if (i >= 2 && used_bytes(&teller) - before > longest)
            longest = used_bytes(&teller) - before;
    }
    // tag, node, time (2), processor time, told
    CHECK(longest == 6, "%llu bytes", (unsigned long long)longest);
    struct decode d;
    decode_segment(&d, teller.segment.header);
    CHECK(!d.fault && d.count == SAMPLES, "%s, %zu records", d.fault ? d.fault : "", d.count);
    for (size_t i = 0; i < d.count; i++)
        if (CHECK(d.records[i].extra_count == 1 && d.records[i].extra_keys[0] == QUT_TRACE_EXTRA_CPU_NS, "%zu", i))
            sum_ns += d.records[i].extra_values[0];
    CHECK(sum_ns + rest_ns == given_ns, "%llu ns and %llu, of %llu", (unsigned long long)sum_ns,
          (unsigned long long)rest_ns, (unsigned long long)given_ns);
    free(d.records);
    segment_close(&teller.segment);
}

// More than the thread used, much less, all that there is, and what no unit can say.
TEST(whatever_is_told_comes_out_to_the_nanosecond)
{
    static const uint64_t told_ns[] = {0,
                                       1,
                                       UNIT_NS - 1,
                                       UNIT_NS,
                                       UNIT_NS + 1,
                                       12345678,
                                       INT64_MAX,
                                       UINT64_MAX,
                                       UINT64_MAX - UNIT_NS + 1,
                                       (uint64_t)1 << 63};
    enum { COUNT = sizeof told_ns / sizeof *told_ns };
    for (uint32_t flags = 0; flags <= QUT_TRACE_HAS_CPU_TIME; flags++) {
        struct teller teller;
        if (!begin(&teller, flags))
            return;
        for (unsigned i = 0; i < COUNT; i++) {
            teller.now_ns += i == 5 ? (uint64_t)0 - TICK_NS : TICK_NS; // one from before the last
            tell(&teller, told_ns[i]);
        }
        struct decode d;
        decode_segment(&d, teller.segment.header);
        CHECK(!d.fault && d.count == COUNT, "%s, %zu records", d.fault ? d.fault : "", d.count);
        for (size_t i = 0; i < d.count; i++)
            CHECK(d.records[i].extra_count == (i == 5 ? 2 : 1) &&
                      d.records[i].extra_keys[0] == QUT_TRACE_EXTRA_CPU_NS &&
                      d.records[i].extra_values[0] == told_ns[i],
                  "flags %u: %llu, not %llu", flags, (unsigned long long)d.records[i].extra_values[0],
                  (unsigned long long)told_ns[i]);
        free(d.records);
        segment_close(&teller.segment);
    }
}

int main(void)
{
    RUN(units_are_told_in_one_byte_and_the_rest_goes_on);
    RUN(whatever_is_told_comes_out_to_the_nanosecond);
    return tap_finish();
}
