// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/truth/shares.h"

__attribute__((noinline)) static uint64_t library_inner(uint64_t rounds, uint64_t value)
{
    volatile char room[200]; // a frame of some size
    room[0] = (char)value;
    return shares_spin(rounds, value) + (uint64_t)room[0];
}

__attribute__((noinline, visibility("default"))) uint64_t library_part(uint64_t rounds)
{
    return library_inner(rounds, rounds) + 1;
}
