// SPDX-License-Identifier: Apache-2.0
// True return addresses of methods that Android's runtime traces: in maps as both C++ libraries make them, and in maps
// that are none.
#include <string.h>

#include "libqut/art/traced.h"
#include "tests/support/tap.h"

extern const struct arch arch_x86_64, arch_aarch64;

enum { WORDS = 512, NODE_WORDS = 11, NODES = 15, MAP_AT = 64, NODES_AT = 128, SELF = 0xe8 / 8, RETURNS = 0x140 / 8 };

#define MEMORY ((uint64_t)0x7f0000000000)
#define SLOT   ((uint64_t)0x7ffe00001008)

static uint64_t words[WORDS];
static unsigned reads;

static size_t read_fake(void *context, uint64_t address, void *to, size_t size)
{
    (void)context;
    reads++;
    uint64_t at = address - MEMORY;
    if (address < MEMORY || at >= sizeof words)
        return 0;
    size = size < sizeof words - at ? size : (size_t)(sizeof words - at);
    memcpy(to, (const uint8_t *)words + at, size);
    return size;
}

static struct elf_art_memory memory = {.read = read_fake, .arch = &arch_x86_64};

static uint64_t at(unsigned word)
{
    return MEMORY + word * 8;
}

static uint64_t slot_of(unsigned node)
{
    return SLOT + 64 * node;
}

// Nodes low to high - 1 as a tree. Its root.
static uint64_t put_nodes(unsigned low, unsigned high, unsigned left, unsigned right)
{
    if (low == high)
        return 0;
    unsigned middle = (low + high) / 2, node = NODES_AT + middle * NODE_WORDS;
    words[node + left] = put_nodes(low, middle, left, right);
    words[node + right] = put_nodes(middle + 1, high, left, right);
    words[node + 4] = slot_of(middle);
    words[node + 7] = 0x1000 + middle;
    return at(node);
}

static void begin(bool is_libcxx)
{
    memset(words, 0, sizeof words);
    words[SELF] = MEMORY;
    words[RETURNS] = at(MAP_AT);
    unsigned left = is_libcxx ? 0 : 2, right = left + 1;
    words[MAP_AT + (is_libcxx ? 1 : 2)] = put_nodes(0, NODES, left, right);
    if (is_libcxx)
        words[MAP_AT] = at(NODES_AT); // the first node; then how many there are
    words[MAP_AT + (is_libcxx ? 2 : 5)] = NODES;
    reads = 0;
}

static uint64_t found(uint64_t thread, uint64_t slot)
{
    uint64_t pc = 0;
    return art_true_return(&memory, thread, slot + 8, &pc) ? pc : 0;
}

TEST(each_one_is_found)
{
    for (unsigned is_libcxx = 0; is_libcxx < 2; is_libcxx++) {
        begin(is_libcxx);
        for (unsigned i = 0; i < NODES; i++)
            CHECK(found(MEMORY, slot_of(i)) == 0x1000 + i, "%u, %u", is_libcxx, i);
        CHECK(found(MEMORY, slot_of(3) + 8) == 0 && found(MEMORY, slot_of(0) - 8) == 0, "none is kept for it");
    }
}

// What a copy of a stack is walked with.
static uint64_t found_later(uint64_t thread, uint64_t slot, size_t max, size_t *count)
{
    struct art_return returns[2 * NODES];
    uint64_t pc = 0;
    *count = art_true_returns(&memory, thread, returns, max);
    return art_true_return_of(returns, *count, slot + 8, &pc) ? pc : 0;
}

TEST(all_are_listed)
{
    size_t count = 0;
    for (unsigned is_libcxx = 0; is_libcxx < 2; is_libcxx++) {
        begin(is_libcxx);
        for (unsigned i = 0; i < NODES; i++)
            CHECK(found_later(MEMORY, slot_of(i), 2 * NODES, &count) == 0x1000 + i && count == NODES, "%u, %u: %zu",
                  is_libcxx, i, count);
        CHECK(found_later(MEMORY, slot_of(3) + 8, 2 * NODES, &count) == 0, "none is kept for it");
        CHECK(found_later(MEMORY + 8, slot_of(3), 2 * NODES, &count) == 0 && count == 0, "no thread");
        // The root is the first of them: what there is no room for is left out.
        CHECK(found_later(MEMORY, slot_of(NODES / 2), 4, &count) == 0x1000 + NODES / 2 && count == 4, "%zu", count);
        CHECK(found_later(MEMORY, slot_of(3), 0, &count) == 0 && count == 0, "no room");
    }
    begin(false);
    words[MAP_AT + 2] = 0;
    CHECK(found_later(MEMORY, slot_of(3), 2 * NODES, &count) == 0 && count == 0, "an empty map");
    // A node that cannot be read, or says nothing, is none; the others count.
    begin(false);
    words[NODES_AT + 0 * NODE_WORDS + 7] = 0;
    words[NODES_AT + 2 * NODE_WORDS + 3] = MEMORY - 8;
    CHECK(found_later(MEMORY, slot_of(0), 2 * NODES, &count) == 0 && count == NODES - 1, "%zu", count);
    CHECK(found_later(MEMORY, slot_of(2), 2 * NODES, &count) == 0x1002, "its neighbour");
}

TEST(what_makes_no_sense_is_not_believed)
{
    begin(false);
    CHECK(found(0, slot_of(3)) == 0 && found(MEMORY + 4, slot_of(3)) == 0 && found(8, slot_of(3)) == 0, "no thread");
    words[SELF] = MEMORY + 8;
    CHECK(found(MEMORY, slot_of(3)) == 0, "it is another thread's");
    begin(false);
    words[RETURNS] = 0;
    CHECK(found(MEMORY, slot_of(3)) == 0, "no map");
    words[RETURNS] = at(MAP_AT) + 1;
    CHECK(found(MEMORY, slot_of(3)) == 0, "no place for a map");
    begin(false);
    words[NODES_AT + 3 * NODE_WORDS + 7] = 0;
    CHECK(found(MEMORY, slot_of(3)) == 0, "no address");
    begin(false);
    memory.arch = &arch_aarch64;
    CHECK(found(MEMORY, slot_of(3)) == 0, "it is not known there");
    memory.arch = &arch_x86_64;
}

TEST(a_map_that_leads_round_ends)
{
    begin(false);
    for (unsigned i = 0; i < NODES; i++)
        words[NODES_AT + i * NODE_WORDS + 2] = words[NODES_AT + i * NODE_WORDS + 3] = words[MAP_AT + 2];
    CHECK(found(MEMORY, slot_of(3)) == 0, "%u reads", reads);
    CHECK(reads <= 150, "%u reads", reads);
    size_t count;
    found_later(MEMORY, slot_of(3), 2 * NODES, &count);
    CHECK(count <= 2 * NODES, "%zu", count);
}

int main(void)
{
    RUN(each_one_is_found);
    RUN(all_are_listed);
    RUN(what_makes_no_sense_is_not_believed);
    RUN(a_map_that_leads_round_ends);
    return tap_finish();
}
