// SPDX-License-Identifier: Apache-2.0
// CPython's memory, made up: which functions are found, in which groups, and what memory that lies leads to.
#include <string.h>

#include "tests/support/tap.h"
#include "tests/unit/libqut/cpython/fake_cpython.h"

static struct fake_cpython fake;

static void expect(enum cpython_fault fault, size_t frames, size_t groups, const char *what)
{
    fake_take(&fake);
    CHECK(fake.stack.fault == fault, "%s: %s", what, cpython_fault_text(fake.stack.fault));
    CHECK(fake.stack.frame_count == frames, "%s: %zu frames", what, fake.stack.frame_count);
    CHECK(fake.stack.group_count == groups, "%s: %zu groups", what, fake.stack.group_count);
}

TEST(layouts)
{
    struct cpython_layout layout;
    fake_begin(&fake, 13);
    uint64_t runtime = fake.runtime.runtime;
    for (unsigned minor = 0; minor < 300; minor++)
        CHECK(cpython_layout_of(minor, &fake.memory, runtime, &layout) == (minor >= 8 && minor <= 13), "3.%u", minor);
    // What tells its own offsets may tell nonsense.
    fake_put(&fake, runtime + 43 * 8, 1 << 20);
    CHECK(!cpython_layout_of(13, &fake.memory, runtime, &layout), "an offset that cannot be%s", "");
    fake_put(&fake, runtime + 43 * 8, 200);
    fake_put(&fake, runtime + 2 * 8, 1);
    CHECK(!cpython_layout_of(13, &fake.memory, runtime, &layout), "without the lock%s", "");
    fake_put(&fake, runtime + 2 * 8, 0);
    fake_put(&fake, runtime, 0);
    CHECK(!cpython_layout_of(13, &fake.memory, runtime, &layout), "no cookie%s", "");
    CHECK(!cpython_layout_of(13, &fake.memory, 64, &layout), "no memory%s", "");
}

// 3.8 to 3.10: one evaluator for each function.
TEST(frame_objects)
{
    fake_begin(&fake, 9);
    uint64_t outer = fake_frame(&fake, fake_code(&fake, "outer", "a.py"), 0, 0, false);
    uint64_t inner = fake_frame(&fake, fake_code(&fake, "inner", "a.py"), outer, 0, false);
    fake_set_innermost(&fake, inner);
    expect(CPYTHON_FINE, 2, 2, "two functions");
    // A list that leads back to itself.
    fake_put(&fake, outer + fake.runtime.layout.frame_previous, inner);
    fake_take(&fake);
    CHECK(fake.stack.fault == CPYTHON_TORN, "a cycle: %s", cpython_fault_text(fake.stack.fault));
    CHECK(fake.stack.frame_count < 8, "a cycle: %zu frames", fake.stack.frame_count);
    fake_put(&fake, outer + fake.runtime.layout.frame_previous, 0x7fffffffff00);
    expect(CPYTHON_UNREADABLE, 2, 2, "a frame in no memory");
    fake_put(&fake, outer + fake.runtime.layout.frame_previous, outer + 3);
    expect(CPYTHON_TORN, 2, 2, "a frame at an odd address");
}

// 3.11: C called `mid`, which called `leaf`; `outer` called C.
static uint64_t outer, mid, leaf, outer_record, record;

static void make_3_11(void)
{
    fake_begin(&fake, 11);
    uint64_t code = fake_code(&fake, "f", "a.py");
    outer = fake_frame(&fake, code, 0, 0, true);
    mid = fake_frame(&fake, code, outer, 0, true);
    leaf = fake_frame(&fake, code, mid, 0, false);
    outer_record = fake_record(&fake, outer, fake_root(&fake));
    record = fake_record(&fake, leaf, outer_record);
    fake_set_innermost(&fake, record);
}

TEST(entry_frames)
{
    make_3_11();
    expect(CPYTHON_FINE, 3, 2, "two groups");
    CHECK(fake.groups[0].count == 2 && fake.groups[0].anchor == record, "%u functions", fake.groups[0].count);
    CHECK(fake.groups[1].count == 1 && fake.groups[1].anchor == outer_record, "%u functions", fake.groups[1].count);
    CHECK(!fake.stack.is_entering, "all is made%s", "");
}

// A record that is linked, and names what stood on the stack before.
TEST(a_record_that_is_not_made_yet)
{
    const struct cpython_layout *layout = &fake.runtime.layout;
    static const uint64_t old_frames[] = {0, 8, 0x123457, 0x7fffffff0000};
    for (size_t i = 0; i < sizeof old_frames / sizeof *old_frames; i++) {
        make_3_11();
        fake_put(&fake, record + layout->record_frame, old_frames[i]);
        expect(CPYTHON_FINE, 1, 2, "an old frame");
        CHECK(fake.stack.is_entering && fake.groups[0].count == 0, "%u functions", fake.groups[0].count);
    }
    make_3_11();
    fake_put(&fake, leaf + layout->frame_previous, 0); // of a generator that has stopped
    expect(CPYTHON_FINE, 1, 2, "it leads elsewhere");
    make_3_11();
    fake_put(&fake, record + layout->record_frame, outer); // leads further than the record before
    expect(CPYTHON_FINE, 1, 2, "the caller's own");
    make_3_11();
    fake_put(&fake, mid + layout->frame_previous, leaf);
    fake_put(&fake, mid + layout->frame_entry, 0);
    expect(CPYTHON_FINE, 1, 2, "a cycle");
    make_3_11();
    fake_put(&fake, record + layout->record_previous, 0x777);
    expect(CPYTHON_TORN, 0, 0, "no record before it");
    make_3_11();
    fake_put(&fake, outer_record + layout->record_frame, leaf);
    fake_take(&fake);
    CHECK(fake.stack.fault != CPYTHON_FINE, "further out nothing is half made: %s",
          cpython_fault_text(fake.stack.fault));
    make_3_11();
    fake_put(&fake, outer_record + layout->record_previous, record);
    fake_take(&fake);
    CHECK(fake.stack.fault != CPYTHON_FINE, "records in a cycle: %s", cpython_fault_text(fake.stack.fault));
}

// Frames in memory that has been given up are left out, if they are the innermost.
TEST(frames_that_were_given_up)
{
    make_3_11();
    const struct cpython_layout *layout = &fake.runtime.layout;
    fake_put(&fake, fake.state + layout->thread_chunk, outer - 64);
    fake_put(&fake, fake.state + layout->thread_top, leaf);
    fake_put(&fake, fake.state + layout->thread_limit, leaf + 4096);
    expect(CPYTHON_FINE, 2, 2, "the innermost");
    fake_put(&fake, fake.state + layout->thread_top, mid);
    expect(CPYTHON_FINE, 1, 2, "both");
    fake_put(&fake, fake.state + layout->thread_top, leaf + 256);
    expect(CPYTHON_FINE, 3, 2, "none");
}

TEST(shims)
{
    for (unsigned minor = 12; minor <= 13; minor++) {
        fake_begin(&fake, minor);
        uint64_t code = fake_code(&fake, "f", "a.py");
        uint64_t outer_shim = fake_frame(&fake, 0, 0, CPYTHON_OWNED_BY_STACK, false);
        outer = fake_frame(&fake, code, outer_shim, 0, false);
        uint64_t shim = fake_frame(&fake, 0, outer, CPYTHON_OWNED_BY_STACK, false);
        mid = fake_frame(&fake, code, shim, 1, false);
        leaf = fake_frame(&fake, code, mid, 0, false);
        if (minor == 12)
            outer_record = fake_record(&fake, outer, fake_root(&fake));
        fake_set_innermost(&fake, minor == 12 ? fake_record(&fake, leaf, outer_record) : leaf);
        expect(CPYTHON_FINE, 3, 2, "two groups");
        CHECK(fake.groups[0].count == 2, "%u functions", fake.groups[0].count);
        if (minor == 12)
            continue;
        CHECK(fake.groups[0].anchor == shim && fake.groups[1].anchor == outer_shim, "3.%u", minor);
        fake_put(&fake, outer_shim + fake.runtime.layout.frame_previous, leaf);
        fake_take(&fake);
        CHECK(fake.stack.fault == CPYTHON_TORN, "a cycle: %s", cpython_fault_text(fake.stack.fault));
        fake_put(&fake, outer + fake.runtime.layout.frame_previous, 0);
        fake_take(&fake);
        CHECK(fake.stack.fault == CPYTHON_TORN, "without a shim: %s", cpython_fault_text(fake.stack.fault));
        CHECK(fake.stack.frame_count == 2, "what is sound: %zu", fake.stack.frame_count);
    }
}

TEST(more_frames_than_are_read)
{
    fake_begin(&fake, 9);
    uint64_t code = fake_code(&fake, "f", "a.py"), frame = 0;
    fake.next = FAKE_BASE + 0x8000;
    for (unsigned i = 0; i < CPYTHON_GROUPS_MAX - 10; i++) {
        uint64_t at = fake.next;
        fake_put(&fake, at + 24, frame);
        fake_put(&fake, at + 32, code);
        fake.next += 112;
        frame = at;
        if (fake.next + 200 > FAKE_BASE + FAKE_BYTES)
            break;
    }
    fake_set_innermost(&fake, frame);
    fake_take(&fake);
    CHECK(fake.stack.fault == CPYTHON_FINE && fake.stack.frame_count > 1900, "%zu frames, %s", fake.stack.frame_count,
          cpython_fault_text(fake.stack.fault));
}

TEST(threads)
{
    make_3_11();
    const struct cpython_layout *layout = &fake.runtime.layout;
    cpython_list_threads(&fake.runtime, &fake.memory);
    CHECK(fake.runtime.thread_count == 1 && fake.threads[0].tid == FAKE_TID, "%d", fake.threads[0].tid);
    cpython_take(&fake.runtime, &fake.memory, FAKE_TID + 1, &fake.stack);
    CHECK(fake.stack.fault == CPYTHON_NO_THREAD && fake.stack.frame_count == 0, "%s",
          cpython_fault_text(fake.stack.fault));
    // It has ended since, and its state's memory holds another thread's.
    fake_put(&fake, fake.state + layout->thread_native_id, FAKE_TID + 1);
    cpython_take(&fake.runtime, &fake.memory, FAKE_TID, &fake.stack);
    CHECK(fake.stack.fault == CPYTHON_NO_THREAD, "%s", cpython_fault_text(fake.stack.fault));
    make_3_11();
    fake_put(&fake, fake.state + layout->thread_next, fake.state);
    CHECK(cpython_list_threads(&fake.runtime, &fake.memory) == CPYTHON_TOO_MANY, "a cycle of threads: %zu",
          fake.runtime.thread_count);
    make_3_11();
    fake_put(&fake, fake.state + layout->thread_interpreter, fake.state);
    CHECK(cpython_list_threads(&fake.runtime, &fake.memory) == CPYTHON_TORN, "of another interpreter: %zu",
          fake.runtime.thread_count);
    make_3_11();
    fake_put(&fake, fake.interpreter + layout->interpreter_next, fake.interpreter);
    CHECK(cpython_list_threads(&fake.runtime, &fake.memory) == CPYTHON_TOO_MANY, "a cycle of interpreters%s", "");
    fake_put(&fake, fake.runtime.runtime + layout->runtime_interpreters, 0x7fffffffff00);
    CHECK(cpython_list_threads(&fake.runtime, &fake.memory) == CPYTHON_UNREADABLE, "an interpreter in no memory%s", "");
}

static bool reads(uint64_t text, const char *expected)
{
    char found[CPYTHON_NAME_BYTES];
    bool is_read = cpython_read_text(&fake.runtime, &fake.memory, text, found, sizeof found);
    return expected ? is_read && strcmp(found, expected) == 0 : !is_read;
}

TEST(texts)
{
    static const uint8_t latin[] = {'a', 0xe9, 0xff};
    static const uint16_t wide[] = {'a', 0x3b1, 0x20ac, 0xd800};
    static const uint32_t widest[] = {0x1f40d, 'b', 0x110000};
    char longest[2 * CPYTHON_NAME_BYTES];
    memset(longest, 'x', sizeof longest);
    for (unsigned minor = 11; minor <= 12; minor++) {
        fake_begin(&fake, minor);
        CHECK(reads(fake_text(&fake, "name", 4, 0), "name"), "3.%u: ASCII", minor);
        CHECK(reads(fake_text(&fake, latin, 3, 1), "a\xc3\xa9\xc3\xbf"), "3.%u: Latin", minor);
        CHECK(reads(fake_text(&fake, wide, 4, 2), "a\xce\xb1\xe2\x82\xac\xef\xbf\xbd"), "3.%u: 16 bits", minor);
        CHECK(reads(fake_text(&fake, widest, 3, 4), "\xf0\x9f\x90\x8d"
                                                    "b\xef\xbf\xbd"),
              "3.%u: 32 bits", minor);
        CHECK(reads(fake_text(&fake, "", 0, 0), NULL), "3.%u: empty", minor);
        uint64_t text = fake_text(&fake, longest, sizeof longest, 0);
        char found[CPYTHON_NAME_BYTES];
        CHECK(cpython_read_text(&fake.runtime, &fake.memory, text, found, sizeof found) &&
                  strlen(found) == sizeof found - 1,
              "cut: %zu", strlen(found));
        fake_put(&fake, text + fake.runtime.layout.text_length, UINT64_MAX);
        CHECK(reads(text, NULL), "3.%u: a length that cannot be", minor);
        fake_put(&fake, text + fake.runtime.layout.text_length, 4);
        fake_put(&fake, text + fake.runtime.layout.text_state, 3u << 2 | 32u);
        CHECK(reads(text, NULL), "3.%u: a width that cannot be", minor);
        fake_put(&fake, text + fake.runtime.layout.text_state, 1u << 2 | 64u);
        CHECK(reads(text, NULL), "3.%u: not compact", minor);
        CHECK(reads(0x7fffffffff00, NULL) && reads(3, NULL) && reads(0, NULL), "3.%u: no memory", minor);
    }
}

TEST(code_objects)
{
    for (unsigned minor = 8; minor <= 13; minor++) {
        struct cpython_code code;
        fake_begin(&fake, minor);
        uint64_t address = fake_code(&fake, "f", "a.py");
        bool is_read = cpython_read_code(&fake.runtime, &fake.memory, address, &code);
        CHECK(is_read && code.first_line == 7 && reads(code.name, "f") && reads(code.file, "a.py"), "3.%u", minor);
        CHECK(!cpython_is_internal(&code), "3.%u", minor);
        fake_put(&fake, address, 0x7f0012345678); // freed: the allocator's list goes through it
        CHECK(!cpython_read_code(&fake.runtime, &fake.memory, address, &code), "3.%u: freed", minor);
        fake_put(&fake, address, 1);
        fake_put(&fake, address + 8, fake.state);
        CHECK(!cpython_read_code(&fake.runtime, &fake.memory, address, &code), "3.%u: of another type", minor);
        CHECK(!cpython_read_code(&fake.runtime, &fake.memory, FAKE_BASE + FAKE_BYTES - 64, &code), "3.%u: cut", minor);
    }
}

// No memory whatever leads it astray: it ends, and keeps to its bounds.
TEST(any_memory)
{
    uint32_t random = 7;
    for (unsigned round = 0; round < 3000; round++) {
        if (round % 2)
            make_3_11();
        else
            fake_begin(&fake, 8 + round % 6);
        for (unsigned i = 0; i < 40; i++) {
            random = random * 1664525 + 1013904223;
            uint64_t place = FAKE_BASE + 4096 + (random >> 4) % 0x6000 / 8 * 8;
            uint64_t value = random % 3 ? FAKE_BASE + 4096 + (random >> 6) % 0x6000 / 8 * 8 : random;
            fake_put(&fake, place, value);
        }
        fake_take(&fake);
        for (size_t i = 0; i < fake.stack.group_count; i++)
            CHECK(fake.groups[i].first + fake.groups[i].count <= fake.stack.frame_count, "round %u", round);
    }
}

int main(void)
{
    RUN(layouts);
    RUN(frame_objects);
    RUN(entry_frames);
    RUN(a_record_that_is_not_made_yet);
    RUN(frames_that_were_given_up);
    RUN(shims);
    RUN(more_frames_than_are_read);
    RUN(threads);
    RUN(texts);
    RUN(code_objects);
    RUN(any_memory);
    return tap_finish();
}
