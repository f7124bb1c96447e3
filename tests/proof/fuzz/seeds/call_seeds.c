// SPDX-License-Identifier: Apache-2.0
// Seeds of the fuzzer of exact calls: every table, and events with each way of a call to end, in two threads.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proof/fuzz/seeds/seeds.h"
#include "tests/support/elf_builder.h"
#include "tracer/call_events/encode.h"

static void add_block(struct build_buffer *seed, enum qut_trace_file_type type, const void *contents, size_t size)
{
    const uint8_t head[] = {(uint8_t)(type - QUT_TRACE_FILE_CALLS), (uint8_t)size, (uint8_t)(size >> 8)};
    build_add(seed, head, sizeof head);
    build_add(seed, contents, size);
}

static void add_named(struct build_buffer *seed, enum qut_trace_file_type type, const void *item, size_t item_bytes,
                      const char *text)
{
    uint8_t contents[256];
    memcpy(contents, item, item_bytes);
    memcpy(contents + item_bytes, text, strlen(text));
    add_block(seed, type, contents, item_bytes + strlen(text));
}

static void add_tables(struct build_buffer *seed)
{
    const struct qut_trace_file_calls told = {.pid = 1, .begin_ns = 100, .end_ns = 100000};
    const struct qut_trace_file_call_module module = {.path_bytes = 8, .build_id_bytes = 20};
    const struct qut_trace_file_call_function function = {.vaddr = 0x1000, .size = 16, .id = 1, .name_bytes = 4};
    const struct qut_trace_file_call_thread threads[] = {{.tid = 1, .end_ns = 90000},
                                                         {.index = 1, .tid = 2, .end_ns = UINT64_MAX}};
    const struct qut_trace_file_call_clock clocks[] = {{1000, 100}, {2000, 600}, {200000, 99000}};
    const struct qut_trace_file_call_loss loss = {.thread = 1, .before_event = 2, .enters = 1, .exits = 1};
    const struct qut_trace_file_call_count count = {.id = 7, .count = 1000};
    add_block(seed, QUT_TRACE_FILE_CALLS, &told, sizeof told);
    add_named(seed, QUT_TRACE_FILE_CALL_MODULES, &module, sizeof module, "/bin/app");
    add_named(seed, QUT_TRACE_FILE_CALL_FUNCTIONS, &function, sizeof function, "main");
    add_block(seed, QUT_TRACE_FILE_CALL_THREADS, threads, sizeof threads);
    add_block(seed, QUT_TRACE_FILE_CALL_CLOCKS, clocks, sizeof clocks);
    add_block(seed, QUT_TRACE_FILE_CALL_LOSSES, &loss, sizeof loss);
    add_block(seed, QUT_TRACE_FILE_CALL_COUNTS, &count, sizeof count);
}

// A call for each letter, at the depth behind it; "/" before it is its exit, ">" a jump to it.
static void add_events(struct build_buffer *seed, uint32_t thread, const char *story)
{
    struct call_events_encoder *encoder = call_events_encoder_new(thread, 0);
    struct base_bytes pieces[CALL_EVENTS_PIECES];
    struct build_buffer contents = {0};
    bool no_memory = false;
    uint64_t ticks = 2000;
    for (; *story; story += 2) {
        const bool is_exit = *story == '/', is_jump = *story == '>';
        story += is_exit || is_jump;
        const uint64_t slot = UINT64_C(0x7ffff0000008) - 0x1000 * (uint64_t)(story[1] - '0') - ((uint64_t)thread << 20);
        const uint64_t word = qut_calls_word(slot, is_exit, (uint32_t)(story[0] - 'a' + 1));
        const struct qut_calls_event event = {.time_ticks = ticks += 100,
                                              .word = word | (is_jump ? QUT_CALLS_EVENT_TAIL : 0)};
        if (!encoder || call_events_encode(encoder, &event, 1, &no_memory) != 1)
            exit(EXIT_FAILURE);
    }
    call_events_block(encoder, pieces);
    for (unsigned i = 0; i < CALL_EVENTS_PIECES; i++)
        build_add(&contents, pieces[i].data, pieces[i].size);
    add_block(seed, QUT_TRACE_FILE_CALL_EVENTS, contents.data, contents.size);
    call_events_encoder_free(encoder);
    free(contents.data);
}

void call_seeds(void)
{
    static const char *const stories[] = {"a1b2/b2b2>c2/c2/a1", "a1b2c3/a1a1b2", "a1b9/a1c1/b9/c1",
                                          "a1a2a3b4/a1b1>b1/b1"};
    for (unsigned i = 0; i < sizeof stories / sizeof *stories; i++) {
        char name[16];
        struct build_buffer seed = {0};
        add_tables(&seed);
        add_events(&seed, 0, stories[i]);
        add_events(&seed, 1, stories[(i + 1) % 4]);
        snprintf(name, sizeof name, "story%u", i);
        write_seed("calls", name, -1, seed.data, seed.size);
        free(seed.data);
    }
}
