// SPDX-License-Identifier: Apache-2.0
// V8's memory, made up: what a frame's function is called and where its bytecode stands, and what memory that lies
// leads to.
#include <string.h>

#include "tests/support/tap.h"
#include "tests/unit/libqut/v8/fake_v8.h"

static struct v8_function found;

static bool take(void)
{
    return v8_read_function(&layout, &memory, function, &found);
}

TEST(a_function)
{
    make_function();
    CHECK(take(), "found%s", "");
    CHECK(strcmp(found.name, "walk") == 0 && strcmp(found.file, "/a.js") == 0, "%s %s", found.name, found.file);
    CHECK(found.start == 4 && found.script.id == 7, "%d, script %d", found.start, found.script.id);
    CHECK(v8_holds_script(&layout, &memory, &found.script), "the script is there%s", "");
    put(script + 8, name + TAG);
    CHECK(!v8_holds_script(&layout, &memory, &found.script), "with another text it is not%s", "");
}

TEST(names)
{
    make_function();
    put(scope + 8, number(1 << 14)); // only one that was made, in the first place
    put(scope + 48, text("exports.run") + TAG);
    CHECK(take() && strcmp(found.name, "exports.run") == 0, "%s", found.name);
    put(scope + 8, 1 << 14); // half a word, as from V8 13 on
    CHECK(take() && strcmp(found.name, "exports.run") == 0, "%s", found.name);
    put(shared + 16, name + TAG); // no scope: the text itself
    CHECK(take() && strcmp(found.name, "walk") == 0, "%s", found.name);
    put(shared + 16, number(0));
    CHECK(take() && !*found.name, "none: %s", found.name);
    put(shared + 16, script + TAG);
    CHECK(!take(), "neither a text nor a scope%s", "");
}

// What lies at an address need not be what it was.
TEST(others)
{
    make_function();
    put(function, shared + TAG); // its map is none
    CHECK(!take(), "a map that is none%s", "");
    make_function();
    put(function + 24, scope + TAG);
    CHECK(!take(), "no shared part%s", "");
    make_function();
    put(function + 24, number(3));
    CHECK(!take(), "a number%s", "");
    make_function();
    put(function + 24, 0x7ffffffffff1);
    CHECK(!take(), "no memory%s", "");
    make_function();
    put(shared + 32, scope + TAG);
    CHECK(take() && !*found.file && !found.script.address, "no script%s", "");
    make_function();
    put(scope + 24, number(INT32_MAX));
    CHECK(!take(), "too many variables%s", "");
    make_function();
    put(scope + 24, number(-1));
    CHECK(!take(), "less than none%s", "");
}

TEST(moved_objects)
{
    make_function();
    uint64_t copy = room(64);
    memcpy(bytes + (copy - BASE), bytes + (function - BASE), 64);
    put(function, copy); // the collector leaves the new address without a tag
    CHECK(take() && strcmp(found.name, "walk") == 0, "%s", found.name);
    put(copy, function); // and back
    CHECK(!take(), "a cycle%s", "");
}

// ---- texts

static char told[32];

static bool tell(uint64_t address)
{
    return v8_read_text(&layout, &memory, address, told, sizeof told);
}

TEST(texts)
{
    begin();
    uint64_t left = text("left "), right = text("right"), empty = text("");
    CHECK(tell(left) && strcmp(told, "left ") == 0, "%s", told);
    uint64_t both = pair(TYPE_CONS, 10, left + TAG, right + TAG);
    CHECK(tell(both) && strcmp(told, "left right") == 0, "%s", told);
    CHECK(tell(pair(TYPE_THIN, 10, both + TAG, 0)) && strcmp(told, "left right") == 0, "%s", told);
    CHECK(tell(pair(TYPE_SLICED, 3, right + TAG, number(1))) && strcmp(told, "igh") == 0, "%s", told);
    uint64_t wide = object(TYPE_TWO_BYTE, 32);
    put(wide + 8, (uint64_t)3 << 32);
    put(wide + 16, 0x20ac00e40061 & 0xffffffffffff);
    CHECK(tell(wide) && strcmp(told, "a\xc3\xa4\xe2\x82\xac") == 0, "%s", told);
    uint64_t resource = room(64);
    memcpy(bytes + (resource - BASE), "outside", 7);
    CHECK(tell(pair(TYPE_EXTERNAL, 7, 0, resource)) && strcmp(told, "outside") == 0, "%s", told);
    struct v8_characters characters;
    CHECK(!v8_find_characters(&layout, &memory, both, &characters), "two pieces%s", "");
    CHECK(v8_find_characters(&layout, &memory, pair(TYPE_CONS, 5, right + TAG, empty + TAG), &characters) &&
              characters.count == 5 && characters.address == right + 16,
          "%u characters", characters.count);
    CHECK(tell(text("longer than there is room for, by far")) && strlen(told) == sizeof told - 1, "%s", told);
}

TEST(texts_that_lie)
{
    begin();
    uint64_t self = pair(TYPE_THIN, 4, 0, 0);
    put(self + 16, self + TAG);
    CHECK(!tell(self), "a cycle%s", "");
    struct v8_characters characters;
    CHECK(!v8_find_characters(&layout, &memory, self, &characters), "a cycle%s", "");
    uint64_t tree = pair(TYPE_CONS, 4, 0, 0);
    put(tree + 16, tree + TAG);
    put(tree + 24, tree + TAG);
    CHECK(!tell(tree), "a tree of itself%s", "");
    uint64_t slice = pair(TYPE_SLICED, 4, text("abc") + TAG, number(100));
    CHECK(!tell(slice), "behind its end%s", "");
    put(slice + 24, number(-4));
    CHECK(!tell(slice), "before its beginning%s", "");
    uint64_t huge = text("abc");
    put(huge + 8, (uint64_t)0xffffffff << 32);
    CHECK(!tell(huge), "a length that cannot be%s", "");
    put(huge + 8, (uint64_t)0x3fffffff << 32);
    tell(huge); // into what memory there is
    CHECK(!tell(object(TYPE_SCRIPT, 64)), "no text%s", "");
    CHECK(!tell(0) && !tell(BASE + BYTES - 4) && !tell(3), "no memory%s", "");
}

// ---- frames and places

TEST(frames)
{
    begin();
    uint64_t words[6] = {number(54 - 1 + 9), BASE + 64 + TAG, number(1), BASE + 128 + TAG, BASE + 192 + TAG, 0};
    uint8_t raw[V8_FRAME_BYTES + 8];
    struct v8_frame frame = {0};
    words[5] = BASE + 4096;
    memcpy(raw, words, sizeof words);
    CHECK(v8_frame_of(&layout, raw, &frame) && frame.function == BASE + 128 && frame.bytecodes == BASE + 64 &&
              frame.offset == 9,
          "offset %u", frame.offset);
    CHECK(v8_may_be_frame(&layout, raw + V8_FRAME_BYTES, BASE + 2048, BASE + 8192), "a link%s", "");
    CHECK(!v8_may_be_frame(&layout, raw + V8_FRAME_BYTES, BASE + 4096, BASE + 8192), "to itself%s", "");
    CHECK(!v8_may_be_frame(&layout, raw + V8_FRAME_BYTES, BASE + 2048, BASE + 4096), "out of the stack%s", "");
    words[0] = number(2); // in front of the first bytecode
    memcpy(raw, words, sizeof words);
    CHECK(v8_frame_of(&layout, raw, &frame) && !frame.bytecodes, "no offset%s", "");
    words[4] = 26; // a kind of frame
    memcpy(raw, words, sizeof words);
    CHECK(v8_frame_of(&layout, raw, &frame) && !frame.function, "the machine's own%s", "");
    words[4] = 12346; // nothing
    memcpy(raw, words, sizeof words);
    CHECK(!v8_frame_of(&layout, raw, &frame), "no frame%s", "");
}

static uint64_t make_table(const uint8_t *table, size_t size)
{
    uint64_t array = object(TYPE_BYTES, 16 + size), bytecodes = object(TYPE_BYTECODES, 96);
    put(array + 8, number((int32_t)size));
    memcpy(bytes + (array - BASE) + 16, table, size);
    put(bytecodes + 32, array + TAG);
    return bytecodes;
}

TEST(positions)
{
    // At 2 place 10, at 5 (no statement) place 40: doubled, positions have one more, and a bit below.
    static const uint8_t table[] = {6, 44, 7, 120},
                         endless[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    begin();
    uint64_t bytecodes = make_table(table, sizeof table);
    static const struct {
        uint32_t offset;
        int32_t position;
    } expected[] = {{0, -1}, {1, -1}, {2, 10}, {4, 10}, {5, 40}, {5000, 40}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int32_t position = v8_position_at(&layout, &memory, bytecodes, expected[i].offset);
        CHECK(position == expected[i].position, "at %u: %d", expected[i].offset, position);
    }
    CHECK(v8_position_at(&layout, &memory, make_table(endless, sizeof endless), 5) == -1, "a number without end%s", "");
    put(bytecodes + 32, number(0));
    CHECK(v8_position_at(&layout, &memory, bytecodes, 5) == -1, "none was kept%s", "");
    put(bytecodes + 32, bytecodes + TAG);
    CHECK(v8_position_at(&layout, &memory, bytecodes, 5) == -1, "no table%s", "");
    CHECK(v8_position_at(&layout, &memory, BASE + BYTES, 5) == -1, "no memory%s", "");
}

static uint32_t starts[16];
static size_t start_count;

static void note(void *context, uint32_t position)
{
    (void)context;
    if (start_count < 16)
        starts[start_count++] = position;
}

TEST(lines)
{
    static const char whole[] = "a\nb\r\nc\rd\r";
    for (size_t cut = 0; cut < sizeof whole; cut++) {
        struct v8_line_count count = {0};
        start_count = 0;
        v8_count_lines(&count, (const uint8_t *)whole, cut, 1, note, NULL);
        v8_count_lines(&count, (const uint8_t *)whole + cut, sizeof whole - 1 - cut, 1, note, NULL);
        CHECK(start_count == 3 && starts[0] == 2 && starts[1] == 5 && starts[2] == 7,
              "cut at %zu: %zu lines, at %u, %u, %u", cut, start_count, starts[0], starts[1], starts[2]);
        if (cut == sizeof whole - 1)
            break;
    }
}

TEST(proofs)
{
    make_function();
    struct v8_proof proof = {.address = {function}};
    for (unsigned step = 0; step < V8_PROOF_STEPS; step++) {
        CHECK(proof.address[step], "step %u", step);
        proof.got[step] =
            (uint8_t)read_fake(NULL, proof.address[step], v8_proof_bytes(&proof, step), v8_proof_size(step));
        v8_proof_lead(&layout, &proof, step);
    }
    CHECK(proof.address[V8_PROOF_SHARED] == shared && proof.address[V8_PROOF_NAME] == scope &&
              proof.address[V8_PROOF_TEXT] == name,
          "to its name%s", "");
    struct v8_proof cut = {.address = {function}, .got = {12}};
    v8_proof_lead(&layout, &cut, V8_PROOF_FUNCTION);
    CHECK(!cut.address[V8_PROOF_SHARED], "half an object%s", "");
}

// Whatever is there, it ends, within memory.
TEST(any_memory)
{
    uint32_t random = 1;
    for (unsigned round = 0; round < 4000; round++) {
        make_function();
        pair(TYPE_CONS, 10, name + TAG, name + TAG);
        for (unsigned i = 0; i < 12; i++) {
            random = random * 1664525 + 1013904223;
            uint64_t place = BASE + 64 + (random >> 4) % (uint32_t)(next - BASE - 128) / 8 * 8;
            uint64_t value = random % 3 ? BASE + 64 + (random >> 6) % (uint32_t)(next - BASE - 128) / 8 * 8 + TAG
                                        : (uint64_t)random << (random % 33);
            put(place, value);
        }
        take();
        CHECK(strlen(found.name) < V8_NAME_BYTES && strlen(found.file) < V8_FILE_BYTES, "round %u", round);
    }
}

static uint64_t find_symbol(void *context, const char *symbol)
{
    const char *without = context;
    if (without && strstr(symbol, without))
        return 0;
    if (strstr(symbol, "scopeinfo"))
        return BASE + 8;
    return strstr(symbol, "off_fp") ? BASE + 16 : BASE + 24;
}

TEST(layouts)
{
    struct arch arch = {.word_bytes = 8};
    struct v8_layout read;
    const char *missing = NULL;
    begin();
    memory.arch = &arch;
    put(BASE + 8, 3);
    put(BASE + 16, (uint32_t)-16);
    put(BASE + 24, 24);
    CHECK(v8_layout_read(&(struct v8_symbols){find_symbol, NULL}, &memory, &read, &missing) && read.map_type == 24 &&
              read.frame_context == -16,
          "%s", missing ? missing : "read");
    CHECK(!v8_layout_read(&(struct v8_symbols){find_symbol, "Script__source"}, &memory, &read, &missing) &&
              strstr(missing, "Script__source"),
          "%s", missing ? missing : "nothing is missing");
    CHECK(v8_layout_read(&(struct v8_symbols){find_symbol, "TrustedByteArray"}, &memory, &read, &missing) &&
              read.trusted_byte_array_type == -1,
          "%s", missing ? missing : "read");
    put(BASE + 16, 16);
    CHECK(!v8_layout_read(&(struct v8_symbols){find_symbol, NULL}, &memory, &read, &missing), "above the pointer%s",
          "");
    arch.word_bytes = 4;
    CHECK(!v8_layout_read(&(struct v8_symbols){find_symbol, NULL}, &memory, &read, &missing), "32 bits%s", "");
}

int main(void)
{
    RUN(a_function);
    RUN(names);
    RUN(others);
    RUN(moved_objects);
    RUN(texts);
    RUN(texts_that_lie);
    RUN(frames);
    RUN(positions);
    RUN(lines);
    RUN(proofs);
    RUN(any_memory);
    RUN(layouts);
    return tap_finish();
}
