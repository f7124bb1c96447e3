// SPDX-License-Identifier: Apache-2.0
// Names of code that was made at run time, asked for while a segment is collected, and found in the file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/trace/files.h"
#include "tests/unit/tracer/trace/maker.h"

enum {
    CODE = 0x7f0000010000,
    CODE_BYTES = 0x100,
    METHOD = 0x7f1000000008,
    METHOD_BYTES = 88,
    UNKNOWN = 0x7f2000000000
};

// What the process knows: so many pieces of code, one behind the other, and one method's description.
struct machine {
    unsigned code_count, asked;
    uint64_t moved_bytes;            // later code begins so much before the end of what was there
    unsigned past_count, past_asked; // code behind that, which is told at the end only
    uint64_t past_met_ns;
    bool has_levels;
    bool has_moved; // there has been other code at CODE + 0x20, and nobody knows which at CODE + 0x30
};

static bool name_code(void *context, uint64_t address, uint64_t since_ns, struct collect_code *code)
{
    struct machine *machine = context;
    machine->asked++;
    ck_assert_uint_le(since_ns, base_clock_now_ns());
    if (machine->has_moved && address != CODE + 5) {
        *code = (struct collect_code){.start = CODE, .end = CODE + CODE_BYTES, .may_move = true};
        snprintf(code->name, sizeof code->name, "app.Main.newer");
        return address == CODE + 0x20;
    }
    if (address >= METHOD && address < METHOD + METHOD_BYTES) {
        *code = (struct collect_code){.start = METHOD, .end = METHOD + METHOD_BYTES, .name = "app.Main.interpreted"};
        return true;
    }
    uint64_t number = (address - CODE) / CODE_BYTES;
    if (address < CODE || number >= machine->code_count)
        return false;
    code->start = CODE + number * CODE_BYTES - (number ? machine->moved_bytes : 0);
    code->end = CODE + (number + 1) * CODE_BYTES;
    code->may_move = machine->has_moved;
    snprintf(code->name, sizeof code->name, "app.Main.method%u", (unsigned)number);
    return true;
}

static bool name_past_code(void *context, uint64_t address, uint64_t met_ns, struct collect_code *code)
{
    struct machine *machine = context;
    machine->past_asked++;
    machine->past_met_ns = met_ns;
    uint64_t number = (address - CODE) / CODE_BYTES;
    if (address < CODE || number >= machine->code_count + machine->past_count)
        return false;
    *code = (struct collect_code){.start = CODE + number * CODE_BYTES, .end = CODE + (number + 1) * CODE_BYTES};
    snprintf(code->name, sizeof code->name, "app.Main.late%u", (unsigned)number);
    return true;
}

// Of one place two functions, of a place in a method that is interpreted its line.
static const uint64_t interpreted_place = (uint64_t)0x1234 << 48 | METHOD;

static size_t levels_of_code(void *context, uint64_t address, struct collect_level *levels)
{
    if (!((struct machine *)context)->has_levels)
        return 0;
    if (address == interpreted_place)
        levels[0] = (struct collect_level){.line = 7, .function = "app.Main.interpreted", .file = "Main.java"};
    levels[1] = (struct collect_level){.line = 70, .function = "app.Main.method0", .file = "Main.java"};
    if (address == CODE + 5)
        levels[0] = (struct collect_level){.function = "app.Other.inlined"};
    return address == CODE + 5 ? 2 : address == interpreted_place;
}

static uint32_t add_node(struct segment *segment, uint64_t address, unsigned class)
{
    return segment_node(segment, 0, segment_raw(segment, address), class << QUT_TRACE_CLASS_SHIFT);
}

static bool is_mapped; // a file, where the method is

// One sample at each node, and the file that is made of it.
static struct trace collect_samples(struct machine *machine, const uint64_t *addresses, const unsigned *classes,
                                    size_t count, struct collect_result *result)
{
    struct segment segment;
    const struct segment_options options = {
        .segment_bytes = 4 << 20, .mode = QUT_TRACE_STREAM, .arch = 1, .word_bytes = 8, .command = "made by a test"};
    ck_assert_int_eq(segment_create(&segment, &options), 0);
    const struct qut_trace_module archive = {
        .start = METHOD - 0x1000, .code_bytes = 0x2000, .load_ns = 1, .flags = QUT_TRACE_MODULE_FILE};
    ck_assert_int_ge(is_mapped ? segment_module_add(&segment, &archive, "/usr/lib/classes.jsa") : 0, 0);
    struct qut_trace_thread *thread = segment_thread_begin(&segment, 100, "main", 1);
    for (size_t i = 0; i < count; i++) {
        const struct segment_sample sample = {
            .time_ns = 10 + i, .node = add_node(&segment, addresses[i], classes[i]), .kind = QUT_TRACE_KIND_CPU};
        struct qut_trace_writer *writer = segment_begin(thread, 0, 0, 0);
        ck_assert_int_ge(segment_append(&segment, thread, writer, &sample), 0);
        segment_end_of(thread);
    }
    int segment_fd = dup(segment.fd), fd = new_file();
    segment_close(&segment);
    struct base_error error = {0};
    const struct collect_options collected = {.segment_fd = segment_fd,
                                              .file_fd = fd,
                                              .stop_fd = -1,
                                              .process_fd = -1,
                                              .name_code = machine ? name_code : NULL,
                                              .name_past_code = name_past_code,
                                              .levels_of_code = levels_of_code,
                                              .name_context = machine};
    char text[256];
    ck_assert_msg(collect(&collected, result, &error) == 0, "%s", base_error_text(&error, text, sizeof text));
    struct trace trace = read_file(fd);
    close(segment_fd);
    close(fd);
    return trace;
}

static const char *name_of(const struct trace *trace, uint64_t address)
{
    for (size_t i = 1; i < trace->node_count; i++)
        if (trace->nodes[i].pc == address)
            return trace->nodes[i].module == TRACE_NONE ? "" : trace->modules[trace->nodes[i].module].path;
    return "no such node";
}

START_TEST(code_and_methods_have_names)
{
    static const uint64_t addresses[] = {CODE + 5, CODE + 0x85, CODE + 0x105, METHOD, UNKNOWN};
    static const unsigned classes[] = {QUT_TRACE_CLASS_JIT, QUT_TRACE_CLASS_JIT, QUT_TRACE_CLASS_JIT,
                                       QUT_TRACE_CLASS_DEX, QUT_TRACE_CLASS_RAW};
    struct machine machine = {.code_count = 2};
    struct collect_result result;
    struct trace trace = collect_samples(&machine, addresses, classes, 5, &result);
    ck_assert_str_eq(name_of(&trace, CODE + 5), "app.Main.method0");
    ck_assert_str_eq(name_of(&trace, CODE + 0x85), "app.Main.method0");
    ck_assert_str_eq(name_of(&trace, CODE + 0x105), "app.Main.method1");
    ck_assert_str_eq(name_of(&trace, METHOD), "app.Main.interpreted");
    ck_assert_str_eq(name_of(&trace, UNKNOWN), "");
    ck_assert_uint_eq(trace.module_count, 3);
    ck_assert_uint_eq(machine.asked, 4); // once for each piece of code
    ck_assert_uint_eq(result.code_names_left, 0);
    ck_assert(trace.is_complete);
    trace_free(&trace);
}
END_TEST

// A description may lie in a file: a class of OpenJDK's archive.
START_TEST(method_in_a_file)
{
    static const uint64_t address = METHOD;
    static const unsigned class = QUT_TRACE_CLASS_DEX;
    struct machine machine = {0};
    struct collect_result result;
    is_mapped = true;
    struct trace trace = collect_samples(&machine, &address, &class, 1, &result);
    is_mapped = false;
    ck_assert_str_eq(name_of(&trace, METHOD), "app.Main.interpreted");
    ck_assert_uint_eq(trace.module_count, 2);
    trace_free(&trace);
}
END_TEST

// Older code keeps what newer code has not taken.
START_TEST(code_that_overlaps)
{
    static const uint64_t addresses[] = {CODE + 5, CODE + 0x105, CODE + 0xf5};
    static const unsigned classes[] = {QUT_TRACE_CLASS_JIT, QUT_TRACE_CLASS_JIT, QUT_TRACE_CLASS_JIT};
    struct machine machine = {.code_count = 2, .moved_bytes = 0x20};
    struct collect_result result;
    struct trace trace = collect_samples(&machine, addresses, classes, 3, &result);
    ck_assert_str_eq(name_of(&trace, CODE + 5), "app.Main.method0");
    ck_assert_str_eq(name_of(&trace, CODE + 0xf5), "app.Main.method0");
    ck_assert_str_eq(name_of(&trace, CODE + 0x105), "app.Main.method1");
    trace_free(&trace);
}
END_TEST

START_TEST(code_that_moves)
{
    // In the order in which the segment has them, which is any.
    static const uint64_t addresses[] = {CODE + 5, CODE + 0x20, CODE + 0x30};
    static const unsigned classes[] = {QUT_TRACE_CLASS_JIT, QUT_TRACE_CLASS_JIT, QUT_TRACE_CLASS_JIT};
    struct machine machine = {.code_count = 1, .has_moved = true};
    struct collect_result result;
    struct trace trace = collect_samples(&machine, addresses, classes, 3, &result);
    ck_assert_str_eq(name_of(&trace, CODE + 5), "app.Main.method0");
    ck_assert_str_eq(name_of(&trace, CODE + 0x20), "app.Main.newer");
    ck_assert_str_eq(name_of(&trace, CODE + 0x30), "[unknown method]");
    ck_assert_uint_eq(machine.asked, 3);
    trace_free(&trace);
}
END_TEST

START_TEST(names_without_room_are_counted)
{
    enum { COUNT = 4000 };
    uint64_t *addresses = calloc(COUNT, sizeof *addresses);
    unsigned *classes = calloc(COUNT, sizeof *classes);
    ck_assert(addresses && classes);
    for (unsigned i = 0; i < COUNT; i++) {
        addresses[i] = CODE + (uint64_t)i * CODE_BYTES + 1;
        classes[i] = QUT_TRACE_CLASS_JIT;
    }
    struct machine machine = {.code_count = COUNT};
    struct collect_result result;
    struct trace trace = collect_samples(&machine, addresses, classes, COUNT, &result);
    ck_assert_uint_gt(result.code_names_left, 0);
    ck_assert_uint_eq(trace.module_count + result.code_names_left, COUNT);
    ck_assert_str_eq(name_of(&trace, CODE + 1), "app.Main.method0");
    ck_assert_uint_eq(trace_note_sum(&trace, "code-names-left"), result.code_names_left);
    ck_assert(trace.is_complete);
    trace_free(&trace);
    free(addresses);
    free(classes);
}
END_TEST

START_TEST(names_that_are_told_at_the_end)
{
    static const uint64_t addresses[] = {CODE + 5, CODE + 0x105, CODE + 0x185, UNKNOWN};
    static const unsigned classes[] = {QUT_TRACE_CLASS_JIT, QUT_TRACE_CLASS_JIT, QUT_TRACE_CLASS_JIT,
                                       QUT_TRACE_CLASS_RAW};
    struct machine machine = {.code_count = 1, .past_count = 1};
    struct collect_result result;
    uint64_t begin_ns = base_clock_now_ns();
    struct trace trace = collect_samples(&machine, addresses, classes, 4, &result);
    ck_assert_str_eq(name_of(&trace, CODE + 5), "app.Main.method0");
    ck_assert_str_eq(name_of(&trace, CODE + 0x105), "app.Main.late1");
    ck_assert_str_eq(name_of(&trace, CODE + 0x185), "app.Main.late1");
    ck_assert_str_eq(name_of(&trace, UNKNOWN), "");
    ck_assert_uint_eq(machine.past_asked, 2); // once for the code, once for what nobody knows
    ck_assert(machine.past_met_ns >= begin_ns && machine.past_met_ns <= base_clock_now_ns());
    trace_free(&trace);
}
END_TEST

START_TEST(places_have_lines)
{
    static const uint64_t addresses[] = {CODE + 5, CODE + 0x85, interpreted_place};
    static const unsigned classes[] = {QUT_TRACE_CLASS_JIT, QUT_TRACE_CLASS_JIT, QUT_TRACE_CLASS_DEX};
    struct machine machine = {.code_count = 1, .has_levels = true};
    struct collect_result result;
    struct trace trace = collect_samples(&machine, addresses, classes, 3, &result);
    ck_assert_uint_eq(trace.module_count, 3);
    ck_assert_str_eq(name_of(&trace, CODE + 5), "app.Main.method0");
    ck_assert_str_eq(name_of(&trace, CODE + 0x85), "app.Main.method0");
    ck_assert_str_eq(name_of(&trace, METHOD), "app.Main.interpreted"); // an address again
    for (size_t i = 1; i < trace.node_count; i++) {
        const struct trace_module *module = &trace.modules[trace.nodes[i].module];
        const struct trace_level *levels = module->levels;
        ck_assert_uint_eq(module->level_count, trace.nodes[i].pc == CODE + 5 ? 2 : trace.nodes[i].pc == METHOD ? 1 : 0);
        if (module->level_count == 2) {
            ck_assert_str_eq(levels[0].function, "app.Other.inlined");
            ck_assert_ptr_null(levels[0].file);
            ck_assert_str_eq(levels[1].file, "Main.java");
            ck_assert_uint_eq(levels[1].line, 70);
        }
        if (module->level_count == 1)
            ck_assert_uint_eq(levels[0].line, 7);
    }
    ck_assert(trace.is_complete);
    trace_free(&trace);
}
END_TEST

START_TEST(nobody_knows)
{
    static const uint64_t address = CODE + 5;
    static const unsigned class = QUT_TRACE_CLASS_JIT;
    struct collect_result result;
    struct trace trace = collect_samples(NULL, &address, &class, 1, &result);
    ck_assert_str_eq(name_of(&trace, CODE + 5), "");
    ck_assert_uint_eq(trace.module_count, 0);
    trace_free(&trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("code_names");
    TCase *tcase = tcase_create("code_names");
    tcase_add_test(tcase, code_and_methods_have_names);
    tcase_add_test(tcase, method_in_a_file);
    tcase_add_test(tcase, code_that_overlaps);
    tcase_add_test(tcase, code_that_moves);
    tcase_add_test(tcase, names_without_room_are_counted);
    tcase_add_test(tcase, names_that_are_told_at_the_end);
    tcase_add_test(tcase, places_have_lines);
    tcase_add_test(tcase, nobody_knows);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
