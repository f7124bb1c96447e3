// SPDX-License-Identifier: Apache-2.0
// Lines and inlined methods, from memory that is made up: what is there is told, and what contradicts itself is not.
#include <stdlib.h>
#include <string.h>

#include "libqut/hotspot/inside.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/hotspot/fake_hotspot.h"

static struct fake_hotspot fake;
static struct hotspot_machine machine;
static struct hotspot_levels levels;
static struct hotspot_source source;
static uint64_t code, outer, middle, inner;

enum { BLOCK = FAKE_CODE + 0x2000, STUBS = FAKE_CODE + 0x4000, CODE_BYTES = 70, COMPILE_ID = 77 };

// 0: line 10; 5: line 12; 40: line 300; 60: line 290; the end.
static const uint8_t lines_17[] = {0xff, 0, 20, 5 << 3 | 2, 0xff, 70, 192, 6, 0xff, 40, 19, 0};
// Scopes: at 1 the outer method's, at 5 the middle's within it, at 9 the inner's within that. Each with one more
// number.
static const uint8_t scopes_17[] = {0, 0, 1, 6, 0, 1, 2, 1, 0, 5, 3, 41, 0, 9, 1, 9, 0};
static const int32_t places[][2] = {{-1, 0}, {0x10, 1}, {0x20, 5}, {0x30, 9}, {0x40, 0}, {0x1000000, 0}};

// As 20 and later write them: each digit one more.
static void from_one(const uint8_t *bytes, size_t count, uint8_t *to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (uint8_t)(bytes[i] + 1);
}

static void put_scopes(const uint8_t *bytes, size_t count)
{
    const uint64_t methods[] = {outer, middle, inner};
    fake_scopes(&fake, BLOCK, COMPILE_ID,
                &(struct fake_scopes){places, sizeof places / sizeof places[0], bytes, count, methods, 3});
}

static void start(enum fake_release release, const char *without)
{
    static const uint8_t nops[0x80];
    uint8_t digits[sizeof scopes_17], lines[sizeof lines_17];
    fake_begin(&fake, release, without);
    code = fake_blob(&fake, BLOCK, 0x1000, 8, 4, nops, sizeof nops);
    fake_put_word(&fake, fake.call_stub_at, fake_blob(&fake, STUBS, 0x1000, 0, -1, nops, sizeof nops) + 9);
    fake_interpreter(&fake, FAKE_CODE + 0x1000, nops, sizeof nops);
    from_one(scopes_17, sizeof scopes_17, digits);
    memcpy(lines, lines_17, sizeof lines);
    if (release != FAKE_17) { // escapes and the end stay
        const size_t numbers[] = {1, 2, 5, 6, 7, 9, 10};
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            lines[numbers[i]]++;
    }
    outer = fake_method_of(&fake, "a/Outer", "go", "Outer.java", CODE_BYTES, lines, sizeof lines);
    middle = fake_method_of(&fake, "a/Middle$One", "run", "Middle.java", 9, NULL, 0);
    inner = fake_method_of(&fake, "a/Inner", "call", NULL, 50, lines, sizeof lines);
    fake_name_blob(&fake, BLOCK, "nmethod", outer);
    put_scopes(release == FAKE_17 ? scopes_17 : digits, sizeof scopes_17);
    hotspot_machine_free(&machine);
    hotspot_machine_read(&fake.memory, fake.structs, fake.types, &machine);
}

static unsigned levels_at(uint64_t offset, enum arch_pc_kind kind)
{
    return hotspot_levels_at(&machine, &fake.memory, code + offset, kind, &levels) ? levels.count : 0;
}

static uint32_t line_at(uint64_t method, int32_t bytecode)
{
    const struct hotspot_level level = {method, bytecode};
    return hotspot_source_of(&machine, &fake.memory, &level, &source) ? source.line : UINT32_MAX;
}

static void check_lines(void)
{
    static const int32_t forms[][2] = {{0, 10}, {4, 10}, {5, 12}, {39, 12}, {40, 300}, {60, 290}, {69, 290}, {-1, 10}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        CHECK(line_at(outer, forms[i][0]) == (uint32_t)forms[i][1], "at %d: %u", forms[i][0], source.line);
    CHECK(strcmp(source.method, "a.Outer.go") == 0 && strcmp(source.file, "Outer.java") == 0, "%s %s", source.method,
          source.file);
    CHECK(line_at(outer, CODE_BYTES) == 0 && *source.file, "behind the bytecode");
    CHECK(line_at(outer, HOTSPOT_NO_BYTECODE) == 0 && *source.file, "no bytecode");
    CHECK(line_at(middle, 3) == 0 && strcmp(source.file, "Middle.java") == 0, "no table: %s", source.file);
    CHECK(line_at(inner, 3) == 0 && !*source.file, "no file");
}

static void check_levels(void)
{
    CHECK(levels_at(0x10, ARCH_PC_RETURN) == 1 && levels.items[0].method == outer && levels.items[0].bytecode == 5,
          "%d", levels.items[0].bytecode);
    CHECK(levels_at(0x20, ARCH_PC_RETURN) == 2 && levels.items[0].method == middle && levels.items[0].bytecode == 0 &&
              levels.items[1].method == outer,
          "%u", levels.count);
    CHECK(levels_at(0x30, ARCH_PC_RETURN) == 3 && levels.items[0].method == inner && levels.items[0].bytecode == 40 &&
              levels.items[2].method == outer && levels.items[2].bytecode == 5,
          "%u", levels.count);
    CHECK(levels_at(0x21, ARCH_PC_EXACT) == 2 && levels.is_near && levels.items[0].method == middle &&
              levels.items[1].method == outer,
          "what both places are in: %u", levels.count);
    CHECK(levels_at(0x18, ARCH_PC_EXACT) == 1 && levels.is_near && levels.items[0].bytecode == 5 &&
              levels.bytecode_before == 5,
          "a call that is inlined begins");
    CHECK(levels_at(0x30, ARCH_PC_EXACT) == 3 && !levels.is_near, "the place");
    CHECK(levels_at(0x21, ARCH_PC_RETURN) == 1 && levels.items[0].bytecode == HOTSPOT_NO_BYTECODE && !levels.is_near,
          "no call is described there");
    CHECK(levels_at(0x40, ARCH_PC_RETURN) == 1 && levels.items[0].bytecode == HOTSPOT_NO_BYTECODE, "no scope");
    CHECK(levels_at(0x60, ARCH_PC_EXACT) == 1 && levels.items[0].bytecode == HOTSPOT_NO_BYTECODE, "behind all");
    CHECK(levels_at(0, ARCH_PC_EXACT) == 1 && levels.items[0].bytecode == 5, "before all");
    CHECK(hotspot_levels_hold(&machine, &fake.memory, code, &levels), "the same");
    CHECK(levels.compile_id == COMPILE_ID && hotspot_code_id(&machine, &fake.memory, code) == COMPILE_ID, "its number");
}

TEST(lines_of_17)
{
    start(FAKE_17, NULL);
    check_lines();
}

TEST(lines_of_25)
{
    start(FAKE_25, NULL);
    check_lines();
}

TEST(levels_of_17)
{
    start(FAKE_17, NULL);
    check_levels();
}

TEST(levels_of_25)
{
    start(FAKE_25, NULL);
    check_levels();
}

TEST(numbers)
{
    static const struct {
        uint8_t bytes[5], count;
        uint32_t number;
    } forms[] = {{{0}, 1, 0},
                 {{191}, 1, 191},
                 {{192, 0}, 2, 192},
                 {{255, 191}, 2, 12479},
                 {{192, 192, 0}, 3, 12480},
                 {{192, 192, 192, 192, 1}, 5, 67907776}};
    uint64_t at = fake.next;
    struct hotspot_stream stream;
    for (unsigned one = 0; one < 2; one++)
        for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
            uint8_t bytes[5];
            memcpy(bytes, forms[i].bytes, sizeof bytes);
            for (unsigned b = 0; b < 5 && one; b++)
                bytes[b]++;
            if (one && (forms[i].bytes[0] == 255 || forms[i].bytes[0] == 191))
                continue; // has another form then
            fake_put(&fake, at, bytes, sizeof bytes);
            hotspot_stream_begin(&stream, &fake.memory, at, at + forms[i].count, one);
            uint32_t number = hotspot_stream_number(&stream);
            CHECK(number == forms[i].number && !stream.is_bad && stream.at == at + forms[i].count, "%zu: %u", i,
                  number);
            hotspot_stream_begin(&stream, &fake.memory, at, at + forms[i].count - 1, one);
            CHECK(hotspot_stream_number(&stream) == 0 && stream.is_bad, "%zu: cut off", i);
        }
    hotspot_stream_begin(&stream, &fake.memory, FAKE_BASE + FAKE_BYTES - 1, FAKE_BASE + FAKE_BYTES + 9, true);
    CHECK(hotspot_stream_number(&stream) == 0 && stream.is_bad, "0 is no digit");
    hotspot_stream_begin(&stream, &fake.memory, FAKE_BASE + FAKE_BYTES, UINT64_MAX, false);
    CHECK(hotspot_stream_byte(&stream) == 0 && stream.is_bad, "no memory");
}

// An interpreted frame's word.
TEST(interpreted)
{
    struct hotspot_level level;
    start(FAKE_17, NULL);
    uint64_t bytecodes = fake.constant + 48; // inner's: the last that was made
    CHECK(hotspot_level_of_word(&machine, &fake.memory, arch_interpreted_word(inner, bytecodes + 40), &level) &&
              level.method == inner && level.bytecode == 40,
          "%d", level.bytecode);
    CHECK(hotspot_level_of_word(&machine, &fake.memory, arch_interpreted_word(inner, bytecodes + 50), &level) &&
              level.bytecode == HOTSPOT_NO_BYTECODE,
          "behind it");
    CHECK(hotspot_level_of_word(&machine, &fake.memory, inner, &level) && level.bytecode == HOTSPOT_NO_BYTECODE,
          "not known");
    CHECK(!hotspot_level_of_word(&machine, &fake.memory, inner + 4, &level), "beside it");
    uint32_t id = hotspot_code_id(&machine, &fake.memory, inner);
    CHECK(id && id != hotspot_code_id(&machine, &fake.memory, outer), "by its constants");
}

TEST(native_method_has_no_line)
{
    uint16_t access = 0x101;
    start(FAKE_17, NULL);
    fake_put(&fake, outer + 40, &access, sizeof access);
    CHECK(line_at(outer, 5) == 0 && !*source.file && strcmp(source.method, "a.Outer.go") == 0, "%s", source.file);
    fake_name_blob(&fake, BLOCK, "native nmethod", outer);
    CHECK(levels_at(0x10, ARCH_PC_RETURN) == 1, "its wrapper");
}

TEST(code_that_was_replaced)
{
    start(FAKE_17, NULL);
    levels_at(0x30, ARCH_PC_RETURN);
    fake_put_int(&fake, fake.compile_id_at, COMPILE_ID + 1);
    CHECK(!hotspot_levels_hold(&machine, &fake.memory, code, &levels), "another compilation");
    fake_put_int(&fake, fake.compile_id_at, COMPILE_ID);
    CHECK(hotspot_levels_hold(&machine, &fake.memory, code, &levels), "the same");
    fake_name_blob(&fake, BLOCK, "nmethod", middle);
    CHECK(!hotspot_levels_hold(&machine, &fake.memory, code, &levels), "another method");
    CHECK(levels_at(0x30, ARCH_PC_RETURN) == 1 && levels.items[0].method == middle, "its scopes are not that method's");
    fake_put(&fake, BLOCK + 8, "", 1);
    CHECK(levels_at(0x30, ARCH_PC_RETURN) == 0, "freed");
}

// Of scopes that contradict themselves, only whose code it is is told.
static void check_refused(const uint8_t *bytes, size_t count, const char *what)
{
    start(FAKE_17, NULL);
    put_scopes(bytes, count);
    CHECK(levels_at(0x30, ARCH_PC_RETURN) == 1 && levels.items[0].bytecode == HOTSPOT_NO_BYTECODE, "%s", what);
}

TEST(scopes_that_cannot_be)
{
    uint8_t bytes[sizeof scopes_17];
    const struct {
        uint8_t at, byte;
        const char *what;
    } forms[] = {{9, 9, "within itself"},
                 {9, 10, "within a later one"},
                 {5, 5, "a cycle"},
                 {10, 0, "no method"},
                 {10, 4, "methods are three"},
                 {10, 191, "a huge index"},
                 {2, 2, "another outermost one"},
                 {9, 3, "into the middle of one"}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        memcpy(bytes, scopes_17, sizeof bytes);
        bytes[forms[i].at] = forms[i].byte;
        check_refused(bytes, sizeof bytes, forms[i].what);
    }
    memcpy(bytes, scopes_17, sizeof bytes);
    memset(bytes + 9, 0xff, sizeof bytes - 9);
    check_refused(bytes, sizeof bytes, "numbers without an end");
    check_refused(scopes_17, 8, "cut off"); // the rest is zeros
    start(FAKE_17, NULL);
    fake_put_word(&fake, fake.methods_at + 16, FAKE_BASE + FAKE_BYTES);
    CHECK(levels_at(0x30, ARCH_PC_RETURN) == 3 && line_at(levels.items[0].method, 0) == UINT32_MAX, "no method there");
}

TEST(deep_scopes)
{
    uint8_t bytes[4 * (HOTSPOT_LEVELS_MAX + 2)] = {0};
    unsigned count = 0;
    for (unsigned i = 0; i <= HOTSPOT_LEVELS_MAX; i++) { // each within the one before
        bytes[1 + 3 * i] = (uint8_t)(i ? 1 + 3 * (i - 1) : 0);
        bytes[2 + 3 * i] = 1;
        bytes[3 + 3 * i] = 1;
        count = 1 + 3 * i;
    }
    for (unsigned more = 0; more < 2; more++) {
        start(FAKE_17, NULL);
        put_scopes(bytes, sizeof bytes);
        fake_put_int(&fake, fake.places_at + 3 * 16 + 4, (int32_t)(count - 3 + 3 * more));
        CHECK(levels_at(0x30, ARCH_PC_RETURN) == (more ? 1 : HOTSPOT_LEVELS_MAX), "%u", levels.count);
    }
}

TEST(tables_that_cannot_be)
{
    start(FAKE_17, NULL);
    const uint64_t head = fake.compile_id_at;
    const int32_t bad[] = {-1, INT32_MAX, INT32_MIN, 0};
    for (unsigned field = 1; field <= 3; field++) // places, their end, methods
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            start(FAKE_17, NULL);
            fake_put_int(&fake, head + 4 * field, bad[i]);
            unsigned count = levels_at(0x30, ARCH_PC_RETURN);
            CHECK(count == 1 || count == 3, "%u: %u", field, count);
        }
    start(FAKE_17, NULL);
    fake_put_int(&fake, fake.constant + 24, 1 << 30); // the constants' size
    CHECK(line_at(inner, 3) == 0, "a huge size");
    fake_put_int(&fake, fake.constant + 24, 2);
    CHECK(line_at(inner, 3) == 0, "smaller than the bytecode");
}

TEST(line_tables_that_cannot_be)
{
    static const struct {
        uint8_t bytes[8];
        const char *what;
    } forms[] = {{{0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a}, "no end"},
                 {{0xff, 1, 2, 0}, "before the bytecode"},
                 {{0xff, 192, 191, 2, 0}, "behind the bytecode"},
                 {{0xff, 0, 3, 0}, "a line below zero"},
                 {{0xff, 0, 255, 255, 255, 255, 255, 0}, "a line that no file has"},
                 {{0xff}, "cut off"}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        start(FAKE_17, NULL);
        uint64_t method = fake_method_of(&fake, "a/A", "f", "A.java", 16, forms[i].bytes, sizeof forms[i].bytes);
        uint32_t line = line_at(method, 7);
        CHECK(line == 0, "%s: %u", forms[i].what, line);
    }
}

TEST(missing_fields)
{
    static const char *const lines[] = {"_code_size", "_constMethod_size", "_access_flags", "_vm_major_version"};
    static const char *const scopes[] = {"_scopes_data_begin", "_scopes_pcs_offset", "_metadata_offset", "_compile_id"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        start(FAKE_17, lines[i]);
        CHECK(line_at(outer, 5) == 0 && strcmp(source.method, "a.Outer.go") == 0, "%s", lines[i]);
    }
    for (size_t i = 0; i < sizeof scopes / sizeof scopes[0]; i++) {
        start(FAKE_17, scopes[i]);
        CHECK(levels_at(0x30, ARCH_PC_RETURN) == 0 && line_at(outer, 5) == 12, "%s", scopes[i]);
    }
}

// Whatever stands there: an answer, within memory and bounds.
TEST(damage)
{
    static struct fake_hotspot whole;
    for (unsigned release = 0; release < 2; release++) {
        start(release ? FAKE_25 : FAKE_17, NULL);
        whole = fake;
        srand(11);
        unsigned complete = 0;
        for (unsigned i = 0; i < 20000; i++) {
            fake = whole;
            fake.memory.context = &fake;
            unsigned used = (unsigned)(whole.next - FAKE_BASE), block = (unsigned)(BLOCK - FAKE_BASE);
            unsigned at = (unsigned)rand() % (used + 0x800);
            at = at < used ? at : block + (at - used);
            fake.bytes[at] = (uint8_t)rand();
            for (unsigned offset = 0; offset < 0x60; offset += 8) {
                levels_at(offset, offset % 16 ? ARCH_PC_EXACT : ARCH_PC_RETURN);
                for (unsigned level = 0; level < levels.count; level++)
                    hotspot_source_of(&machine, &fake.memory, &levels.items[level], &source);
                complete += levels.count == 3;
            }
        }
        CHECK(complete > 10000, "%u", complete);
    }
}

int main(void)
{
    RUN(lines_of_17);
    RUN(lines_of_25);
    RUN(levels_of_17);
    RUN(levels_of_25);
    RUN(numbers);
    RUN(interpreted);
    RUN(native_method_has_no_line);
    RUN(code_that_was_replaced);
    RUN(scopes_that_cannot_be);
    RUN(deep_scopes);
    RUN(tables_that_cannot_be);
    RUN(line_tables_that_cannot_be);
    RUN(missing_fields);
    RUN(damage);
    hotspot_machine_free(&machine);
    return tap_finish();
}
