// SPDX-License-Identifier: Apache-2.0
// Functions of a play as compilers make them. Each does the same; what differs is where its frame's parts lie.
#include <stdalign.h>

#include "tests/proof/tiers/play.h"

// Two calls that cannot be made one, and neither is a tail call.
static inline __attribute__((always_inline)) bool go_on(struct play *play)
{
    play_function *next = play_next(play);
    if (!next)
        return false;
    if (play->site) {
        next(play);
        __asm__ volatile("/* from one place */" ::: "memory");
    } else {
        next(play);
        __asm__ volatile("/* from the other */" ::: "memory");
    }
    return true;
}

#define ENTER(play) play_enter((play), (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))

static inline __attribute__((always_inline)) void fill(volatile unsigned char *room, size_t size,
                                                       const struct play *play)
{
    room[0] = (unsigned char)play->depth;
    room[size - 1] = (unsigned char)play->data;
}

// `number` keeps equal functions from being made one.
#define SIZED(name, size, number)                                                                                      \
    __attribute__((noinline)) static void name(struct play *play)                                                      \
    {                                                                                                                  \
        volatile unsigned char room[size];                                                                             \
        ENTER(play);                                                                                                   \
        do                                                                                                             \
            fill(room, size, play);                                                                                    \
        while (go_on(play));                                                                                           \
        play->sink += room[0] * number;                                                                                \
    }

SIZED(twin, 48, 1001)
SIZED(other_twin, 48, 1002)

__attribute__((noinline)) static void with_alloca(struct play *play)
{
    volatile unsigned char *room = __builtin_alloca(play->bytes + 64);
    size_t size = play->bytes + 64;
    ENTER(play);
    do
        fill(room, size, play);
    while (go_on(play));
    play->sink += room[0];
}

__attribute__((noinline)) static void aligned(struct play *play)
{
    alignas(64) volatile unsigned char room[128];
    ENTER(play);
    do
        fill(room, sizeof room, play);
    while (go_on(play));
    play->sink += room[0] + ((uintptr_t)room & 63);
}

__attribute__((noinline)) static void aligned_with_alloca(struct play *play)
{
    alignas(64) volatile unsigned char room[64];
    volatile unsigned char *more = __builtin_alloca(play->bytes + 64);
    ENTER(play);
    do {
        fill(room, sizeof room, play);
        fill(more, 64, play);
    } while (go_on(play));
    play->sink += (uintptr_t)room[0] + more[0];
}

__attribute__((noinline)) static void heavy(struct play *play)
{
    uintptr_t a = play->data, b = a * 3 + 1, c = a ^ 0x5555, d = a + b, e = b ^ c, f = c * 5, g = d + e, h = e * 7;
    ENTER(play);
    // Each changes in every round and is needed in the next: all live in registers that calls keep.
    while (go_on(play)) {
        a += h;
        b ^= a;
        c += b;
        d ^= c;
        e += d;
        f ^= e;
        g += f;
        h ^= g;
    }
    play->sink += a + b + c + d + e + f + g + h;
}

SIZED(size_8, 8, 1)
SIZED(size_24, 24, 2)
SIZED(size_40, 40, 3)
SIZED(size_56, 56, 4)
SIZED(size_72, 72, 5)
SIZED(size_88, 88, 6)
SIZED(size_104, 104, 7)
SIZED(size_120, 120, 8)
SIZED(size_136, 136, 9)
SIZED(size_168, 168, 10)
SIZED(size_200, 200, 11)
SIZED(size_232, 232, 12)
SIZED(size_264, 264, 13)
SIZED(size_328, 328, 14)
SIZED(size_392, 392, 15)
SIZED(size_520, 520, 16)
SIZED(size_776, 776, 17)
SIZED(size_1032, 1032, 18)

play_function *const play_functions[] = {
    [PLAY_PLAIN] = play_plain,
    [PLAY_DATA] = play_keep_data,
    [PLAY_BASE] = play_base,
    [PLAY_LOSE] = play_lose,
    [PLAY_OTHER] = play_other_base,
    [PLAY_TURN] = play_turn,
    [PLAY_TWIN] = twin,
    [PLAY_OTHER_TWIN] = other_twin,
    [PLAY_ALLOCA] = with_alloca,
    [PLAY_ALIGNED] = aligned,
    [PLAY_ALIGNED_ALLOCA] = aligned_with_alloca,
    [PLAY_HEAVY] = heavy,
    [PLAY_SIZES] = size_8,
    size_24,
    size_40,
    size_56,
    size_72,
    size_88,
    size_104,
    size_120,
    size_136,
    size_168,
    size_200,
    size_232,
    size_264,
    size_328,
    size_392,
    size_520,
    size_776,
    size_1032,
};
const size_t play_function_count = sizeof play_functions / sizeof *play_functions;
