// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/tiers.h"
#include "tests/proof/managed/managed.h"

static uintptr_t plain(uintptr_t pc)
{
    return pc & ~(uintptr_t)arch_native_arch.has_thumb;
}

size_t managed_form_count(void)
{
    return (size_t)(__stop_managed_forms - __start_managed_forms);
}

int managed_form_index(const char *name)
{
    for (size_t i = 0; i < managed_form_count(); i++)
        if (strcmp(__start_managed_forms[i].name, name) == 0)
            return (int)i;
    return -1;
}

const struct managed_spot *managed_spot_at(uintptr_t pc)
{
    for (const struct managed_spot *spot = __start_managed_spots; spot < __stop_managed_spots; spot++)
        if (plain(spot->trap) == plain(pc))
            return spot;
    return NULL;
}

// ---- what is on the stack

static void push_call(struct managed_chain *chain, uintptr_t return_address, bool is_interpreter)
{
    if (chain->depth == MANAGED_DEPTH_MAX)
        abort();
    chain->calls[chain->depth++] = (struct managed_call){
        .return_address = return_address,
        .dex_pc = chain->dex_pc,
        .frame_bytes = __start_managed_forms[chain->forms[chain->started_count - 1]].frame_bytes,
        .is_interpreter = is_interpreter,
    };
}

static managed_function *start_next(struct managed_chain *chain)
{
    if (chain->started_count == chain->form_count)
        return chain->leaf;
    return __start_managed_forms[chain->forms[chain->started_count++]].function;
}

managed_function *managed_next(struct managed_chain *chain, uintptr_t return_address, uintptr_t is_interpreter)
{
    push_call(chain, return_address, is_interpreter != 0);
    // Odd ones too: none of them is a code address. Now and then none is known.
    chain->dex_pc = chain->depth % 7 == 5 ? 0 : (uintptr_t)0x71000000 + chain->depth * 0x1001;
    chain->bytes = chain->depth % 3 * 64;
    return start_next(chain);
}

void managed_back(struct managed_chain *chain)
{
    chain->dex_pc = chain->calls[--chain->depth].dex_pc;
}

managed_function *managed_look_up(struct managed_chain *chain, uintptr_t return_address, uintptr_t is_interpreter)
{
    push_call(chain, return_address, is_interpreter != 0);
    return chain->leaf;
}

managed_function *managed_found(struct managed_chain *chain)
{
    chain->depth--;
    return start_next(chain);
}

size_t managed_truth(const struct managed_chain *chain, struct managed_frame *frames)
{
    size_t count = 0;
    for (size_t i = chain->depth; i-- > 0;) {
        const struct managed_call *call = &chain->calls[i];
        frames[count++] = (struct managed_frame){plain(call->return_address) - 1,
                                                 call->is_interpreter ? QUT_FRAME_INTERPRETER : 0, call->frame_bytes};
        if (call->is_interpreter && call->dex_pc)
            frames[count++] = (struct managed_frame){call->dex_pc, QUT_FRAME_DEX, 0};
    }
    memcpy(frames + count, chain->outer, chain->outer_count * sizeof *frames);
    return count + chain->outer_count;
}

// ---- the root

// Frame 0 is this function, 1 managed_run, wherever in it.
__attribute__((noinline)) static void note_outer(struct managed_chain *chain)
{
    static uintptr_t pcs[MANAGED_FRAMES_MAX];
    uint32_t tiers = atomic_exchange_explicit(&runtime_tiers, 0, memory_order_relaxed);
    size_t count = qut_backtrace(pcs, MANAGED_FRAMES_MAX, &chain->outer_end);
    atomic_store_explicit(&runtime_tiers, tiers, memory_order_relaxed);
    chain->outer_count = 0;
    for (size_t i = 1; i < count; i++)
        chain->outer[chain->outer_count++] = (struct managed_frame){pcs[i], 0, 0};
}

// The forms are called from here once more, and only the first walk tells where.
__attribute__((noinline)) static void note_root(struct managed_chain *chain)
{
    uintptr_t pcs[2];
    struct qut_end end;
    uintptr_t own = plain((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)));
    qut_backtrace(pcs, 2, &end);
    if (pcs[1] != own - 1)
        abort();
    chain->outer[0].pc = pcs[1];
}

__attribute__((noinline)) void managed_run(struct managed_chain *chain)
{
    note_outer(chain);
    chain->depth = 0;
    chain->started_count = 1;
    // One place of call for both, whatever the compiler knows of them.
    managed_function *volatile functions[2] = {note_root, __start_managed_forms[chain->forms[0]].function};
    for (volatile unsigned round = 0; round < 2; round++) {
        functions[round](chain);
        __asm__ volatile("" ::: "memory");
    }
}
