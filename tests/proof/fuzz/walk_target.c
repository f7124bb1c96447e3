// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/fuzz/walk_target.h"

#include "tests/proof/fuzz/fuzz.h"

enum { THREADS_MAX = 8, FRAMES_MAX = 64 };

static void ask_of(struct qut_target *target, uint64_t address)
{
    struct qut_module_info module;
    uint8_t bytes[64];
    size_t size;
    uint64_t start, dex_size;
    if (qut_target_module(target, address, &module)) {
        fuzz_require(module.path && module.file_path && module.soname);
        fuzz_require(!module.build_id_size || module.build_id);
    }
    fuzz_require(qut_target_read(target, address, bytes, sizeof bytes) <= sizeof bytes);
    qut_target_jit_symbols(target, address, &size);
    qut_target_dex_at(target, address, &start, &dex_size);
}

// Nothing moves: what is known by then is what was found out before.
static void walk_again(struct qut_target *target, size_t thread, const struct qut_frame *frames, size_t count,
                       const struct qut_end *end)
{
    struct qut_frame again[FRAMES_MAX];
    struct qut_end end_again;
    fuzz_require(qut_target_walk(target, thread, again, FRAMES_MAX, &end_again) == count &&
                 end_again.reason == end->reason);
    for (size_t i = 0; i < count; i++)
        fuzz_require(again[i].pc == frames[i].pc && again[i].sp == frames[i].sp);
}

void fuzz_walk_target(struct qut_target *target)
{
    size_t count = qut_target_thread_count(target);
    fuzz_require(count > 0 && qut_target_arch(target)[0]);
    for (size_t i = 0; i < count && i < THREADS_MAX; i++) {
        struct qut_thread_info info;
        struct qut_frame frames[FRAMES_MAX];
        struct qut_end end;
        qut_target_thread(target, i, &info);
        fuzz_require(memchr(info.name, 0, sizeof info.name) && info.tid == qut_target_tid(target, i, NULL));
        size_t walked = qut_target_walk(target, i, frames, FRAMES_MAX, &end);
        fuzz_require(walked <= FRAMES_MAX);
        walk_again(target, i, frames, walked, &end);
        for (size_t j = 0; j < walked; j++)
            ask_of(target, frames[j].pc);
        if (walked)
            ask_of(target, frames[0].sp);
    }
    qut_target_close(target);
}
