// SPDX-License-Identifier: Apache-2.0
// Following the memo: what most walks do for most of their frames.
#ifndef QUT_RUNTIME_MEMO_FOLLOW_INLINE_H
#define QUT_RUNTIME_MEMO_FOLLOW_INLINE_H

#include "libqut/runtime/memo.h"

// Whether `count` steps hold that read ra alone; then their pcs are written. `is_known`: they are of that kind.
static inline __attribute__((always_inline)) bool runtime_memo_follow_plain(const struct runtime_memo_frame *frame,
                                                                            uintptr_t *pc, const size_t count,
                                                                            const bool is_known)
{
    for (size_t i = 1; i <= count; i++) {
        if (!(is_known || runtime_memo_is_of_kind(frame + i, 0)) ||
            os_load(runtime_memo_ra_address(frame + i)) != frame[i].ra)
            return false;
        pc[i - 1] = arch_native_key(frame[i].ra) - 1;
    }
    return true;
}

// The same of steps that read ra and fp before it, two words at once: fewer loads, which are what bounds this.
static inline __attribute__((always_inline)) bool runtime_memo_follow_pairs(const struct runtime_memo_frame *frame,
                                                                            uintptr_t *pc, const size_t count,
                                                                            const bool is_known)
{
    os_word_pair words[8], differs = {0, 0};
    for (size_t i = 1; i <= count; i++) {
        if (!is_known && !runtime_memo_is_of_kind(frame + i, RUNTIME_MEMO_PAIR))
            return false;
        os_word_pair now;
        os_load_pair((uintptr_t)&frame[i].fp, &words[i - 1]);
        os_load_pair(runtime_memo_ra_address(frame + i) - sizeof(uintptr_t), &now);
        differs |= words[i - 1] ^ now;
    }
    if (differs[0] | differs[1])
        return false;
    for (size_t i = 0; i < count; i += 2) {
        os_word_pair keys = {arch_native_key(words[i][1]), arch_native_key(words[i + 1][1])};
        *(os_word_pair *)(pc + i) = keys - 1;
    }
    return true;
}

// From the memo's innermost frame, as far as frames are known to be of one kind (run_end).
static inline __attribute__((always_inline)) const struct runtime_memo_frame *
runtime_memo_follow_run(const struct runtime_memo *memo, const struct runtime_memo_frame *frame,
                        const struct runtime_memo_frame *end, uintptr_t *pc)
{
    const struct runtime_memo_frame *run_end = &memo->frames[memo->run_end];
    if (run_end < end)
        end = run_end;
    if (memo->run_kind == RUNTIME_MEMO_PAIR)
        for (; end - frame >= 8 && runtime_memo_follow_pairs(frame, pc, 8, true); pc += 8)
            frame += 8;
    else
        for (; end - frame >= 4 && runtime_memo_follow_plain(frame, pc, 4, true); pc += 4)
            frame += 4;
    return frame;
}

// As runtime_memo_follow.
static inline __attribute__((always_inline)) const struct runtime_memo_frame *
runtime_memo_follow_inline(const struct runtime_memo_frame *frame, const struct runtime_memo_frame *end, uintptr_t *pc)
{
    for (;;) {
        for (; end - frame >= 4 && runtime_memo_follow_plain(frame, pc, 4, false); pc += 4)
            frame += 4;
        for (; end - frame >= 8 && runtime_memo_follow_pairs(frame, pc, 8, false); pc += 8)
            frame += 8;
        if (end - frame >= 4 && runtime_memo_follow_pairs(frame, pc, 4, false)) {
            frame += 4;
            pc += 4;
        }
        if (frame == end || !runtime_memo_holds(frame + 1))
            return frame;
        *pc++ = arch_native_key((++frame)->ra) - 1;
    }
}

#endif
