// SPDX-License-Identifier: Apache-2.0
// What code of ART's JIT was made of, by records that are made up as ART 11 makes them, and by records that do not
// agree.
#include <string.h>

#include "libqut/art/jit_methods.h"
#include "tests/support/tap.h"

extern const struct arch arch_x86_64, arch_aarch64;

// The heap lies where 32 bits reach.
enum {
    BASE = 0x70000000,
    SIZE = 0x4000,
    INSTANCE = BASE + 0x100,
    RUNTIME = BASE + 0x200,
    RECORDS = BASE + 0x600,
    NODES = BASE + 0x1000,
    NODE_BYTES = 64,
    NODE_COUNT = 31,
    METHODS = BASE + 0x2000,
    CLASS = BASE + 0x3000,
    DEX_CACHE = BASE + 0x3100,
    DEX_FILE = BASE + 0x3200,
    DEX = BASE + 0x3400,
    SHARED = BASE + 0x3800, // data of a compact dex file
    CODE_ITEM = 0x80,
};
#define CODE ((uint64_t)0x7f0000000000)

static uint8_t bytes[SIZE];
static const struct art_jit_cache cache = {CODE - 0x10000, CODE, CODE + 0x10000};

static size_t read_fake(void *context, uint64_t address, void *to, size_t size)
{
    (void)context;
    uint64_t at = address - BASE;
    if (address < BASE || at >= SIZE)
        return 0;
    size = size < SIZE - at ? size : (size_t)(SIZE - at);
    memcpy(to, bytes + at, size);
    return size;
}

static struct elf_art_memory memory = {.read = read_fake, .arch = &arch_x86_64};

static void put(uint64_t address, uint64_t word)
{
    memcpy(bytes + (address - BASE), &word, sizeof word);
}

static void put_half(uint64_t address, uint32_t half)
{
    memcpy(bytes + (address - BASE), &half, sizeof half);
}

static uint64_t code_of(unsigned node)
{
    return CODE + 0x100 * (node + 1);
}

static uint64_t method_of(unsigned node)
{
    return METHODS + 40 * node;
}

// Nodes low to high - 1 as a tree. Its root.
static uint64_t put_nodes(unsigned low, unsigned high)
{
    if (low == high)
        return 0;
    unsigned middle = (low + high) / 2;
    uint64_t node = NODES + (uint64_t)middle * NODE_BYTES, method = method_of(middle);
    put(node + 16, put_nodes(low, middle));
    put(node + 24, put_nodes(middle + 1, high));
    put(node + 32, code_of(middle));
    put(node + 40, method);
    put_half(method, CLASS);
    put_half(method + 8, CODE_ITEM + middle);
    return node;
}

static void begin(const char *magic, uint64_t data)
{
    memset(bytes, 0, sizeof bytes);
    put(INSTANCE, RUNTIME);
    put(RUNTIME + 0x218, RECORDS);
    put(RECORDS + 0x2a0, CODE);
    put(RECORDS + 0x370, put_nodes(0, NODE_COUNT));
    put(RECORDS + 0x468, 7);
    put_half(CLASS + 16, DEX_CACHE);
    put(DEX_CACHE + 16, DEX_FILE);
    put(DEX_FILE + 8, DEX);
    put(DEX_FILE + 24, data);
    memcpy(bytes + (DEX - BASE), magic, 4);
}

static uint64_t found(uint64_t code_start)
{
    uint64_t dex_pc = 0;
    return art_jit_bytecode_of(&memory, &cache, INSTANCE, code_start, &dex_pc) ? dex_pc : 0;
}

TEST(each_method)
{
    begin("dex\n", DEX);
    for (unsigned i = 0; i < NODE_COUNT; i++)
        CHECK(found(code_of(i)) == DEX + CODE_ITEM + i + 16, "%u: %#llx", i, (unsigned long long)found(code_of(i)));
    CHECK(!found(code_of(3) + 16) && !found(CODE) && !found(code_of(NODE_COUNT)), "no method begins there");
    begin("cdex", SHARED);
    CHECK(found(code_of(5)) == SHARED + CODE_ITEM + 5 + 4, "%#llx", (unsigned long long)found(code_of(5)));
}

TEST(what_does_not_agree_is_not_believed)
{
    static const uint64_t words[] = {INSTANCE,        RUNTIME + 0x218, RECORDS + 0x2a0,
                                     RECORDS + 0x370, DEX_CACHE + 16,  DEX_FILE + 8};
    static const uint64_t wrong[] = {0, 1, CODE + 0x1000, BASE + SIZE};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            begin("dex\n", DEX);
            put(words[i], wrong[k]);
            CHECK(!found(code_of(2)), "word %zu is %#llx", i, (unsigned long long)wrong[k]);
        }
    begin("dex\n", DEX);
    put_half(method_of(2) + 4, 0x100);
    CHECK(!found(code_of(2)), "a native method");
    begin("dex\n", DEX);
    put_half(method_of(2) + 8, 0);
    CHECK(!found(code_of(2)), "one without bytecode");
    begin("oat\n", DEX);
    CHECK(!found(code_of(2)), "no dex file");
    begin("dex\n", DEX);
    memory.arch = &arch_aarch64;
    CHECK(!found(code_of(2)), "it is not known there");
    memory.arch = &arch_x86_64;
}

TEST(a_map_that_leads_round_ends)
{
    begin("dex\n", DEX);
    for (unsigned i = 0; i < NODE_COUNT; i++) {
        put(NODES + i * NODE_BYTES + 16, NODES);
        put(NODES + i * NODE_BYTES + 24, NODES);
    }
    CHECK(!found(code_of(2)), "it is not found");
}

TEST(collections)
{
    struct art_jit_collections collections;
    begin("dex\n", DEX);
    CHECK(art_jit_collections_of(&memory, &cache, INSTANCE, &collections) && collections.begun == 7 &&
              !collections.is_under_way,
          "none is under way");
    bytes[RECORDS + 0x440 - BASE] = 1;
    CHECK(art_jit_collections_of(&memory, &cache, INSTANCE, &collections) && collections.is_under_way, "one is");
    bytes[RECORDS + 0x440 - BASE] = 2;
    CHECK(!art_jit_collections_of(&memory, &cache, INSTANCE, &collections), "neither");
    begin("dex\n", DEX);
    put(RECORDS + 0x2a0, CODE - 0x1000);
    CHECK(!art_jit_collections_of(&memory, &cache, INSTANCE, &collections), "of other code");
}

TEST(what_was_made_is_counted)
{
    const uint64_t methods = RECORDS + 0x388, made = RECORDS + 0x458, entered = RECORDS + 0x460;
    static const struct {
        uint64_t methods, made, entered;
        bool is_sound;
    } cases[] = {{NODE_COUNT, 40, 2, true}, {40, 40, 40, true},          {0, 40, 2, false},
                 {41, 40, 2, false},        {NODE_COUNT, 40, 41, false}, {NODE_COUNT, (uint64_t)1 << 32, 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin("dex\n", DEX);
        put(methods, cases[i].methods);
        put(made, cases[i].made);
        put(entered, cases[i].entered);
        CHECK(art_jit_made_at(&memory, &cache, INSTANCE) == (cases[i].is_sound ? made : 0), "case %zu", i);
    }
    put(made, 40);
    CHECK(art_jit_made_at(&memory, &cache, INSTANCE) == made && !art_jit_made_at(&memory, &cache, 0), "of a runtime");
    put(RECORDS + 0x2a0, CODE - 0x1000);
    CHECK(!art_jit_made_at(&memory, &cache, INSTANCE), "of other code");
}

int main(void)
{
    RUN(each_method);
    RUN(what_does_not_agree_is_not_believed);
    RUN(a_map_that_leads_round_ends);
    RUN(collections);
    RUN(what_was_made_is_counted);
    return tap_finish();
}
