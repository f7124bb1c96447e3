// SPDX-License-Identifier: Apache-2.0
// What was found in code that nobody describes, is known again; of interrupted places only as long as what is known of
// such code is what it was.
#include "libqut/walk/known_code.h"

#include "libqut/arch/native.h"
#include "libqut/modules/registry.h"
#include "tests/support/tap.h"

enum { PC = 0x7f001000 };

TEST(calls_are_known)
{
    CHECK(!walk_is_known_call(PC), "nobody has looked yet");
    walk_keep_call(PC);
    CHECK(walk_is_known_call(PC), "it is known");
    CHECK(!walk_is_known_call(PC + 1), "its neighbour is not");
}

TEST(edges_are_known)
{
    const struct arch_frame_edge *edge = NULL;
    CHECK(!walk_known_edge(PC, &edge), "nobody has looked yet");
    walk_keep_edge(PC, NULL);
    if (sizeof(uintptr_t) < sizeof(uint64_t))
        SKIP("an address of 32 bits leaves no room for what is known of it");
    CHECK(walk_known_edge(PC, &edge) && edge == NULL, "nothing is there");
    CHECK(walk_known_edge(PC, NULL), "asked without wanting to know what");
    for (unsigned i = 0; i < arch_native_arch.frame_edge_count; i++) {
        walk_keep_edge(PC, &arch_native_arch.frame_edges[i]);
        CHECK(walk_known_edge(PC, &edge) && edge == &arch_native_arch.frame_edges[i], "edge %u", i);
    }
    CHECK(!walk_known_edge(PC + 1, &edge), "its neighbour is not known");
    uint64_t far = (uint64_t)1 << 52 | PC;
    walk_keep_edge(far, NULL);
    CHECK(!walk_known_edge(far, &edge), "an address that leaves no room");
    modules_made_has_changed();
    CHECK(!walk_known_edge(PC, &edge), "that was other code");
}

int main(void)
{
    RUN(calls_are_known);
    RUN(edges_are_known);
    return tap_finish();
}
