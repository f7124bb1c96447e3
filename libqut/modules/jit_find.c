// SPDX-License-Identifier: Apache-2.0
// What walks ask.
#include "libqut/modules/jit_confirm.h"

_Atomic(const struct modules_jit_index *) modules_jit_current;

static const struct modules_jit_interval *find(const struct modules_jit_index *index, uintptr_t pc)
{
    const struct modules_jit_interval *first = index->items;
    for (size_t count = index->count; count > 1; count -= count / 2)
        first = first[count / 2].start <= pc ? first + count / 2 : first;
    return index->count && pc >= first->start && pc < first->end ? first : NULL;
}

// An interval that is not confirmed is marked by its lowest bit.
static const void *unconfirmed(const struct modules_jit_interval *item)
{
    return (const char *)item + 1;
}
static_assert(_Alignof(struct modules_jit_interval) > 1, "there is room for a mark");

bool modules_jit_find(uintptr_t pc, const void **found, struct runtime_code *code)
{
    const struct modules_jit_index *index = atomic_load_explicit(&modules_jit_current, memory_order_seq_cst);
    const struct modules_jit_interval *item = index ? find(index, pc) : NULL;
    if (!item)
        return false;
    if (item->is_ready) {
        *code = item->code->code;
        if (*found != item)
            *found = unconfirmed(item);
        return true;
    }
    *code = (struct runtime_code){.state = RUNTIME_CODE_PENDING, .frame_flags = QUT_FRAME_JIT};
    if (item->is_early)
        modules_jit_want(MODULES_JIT_WANT);
    return true;
}

bool modules_jit_confirm(uintptr_t pc, const void **found)
{
    if (!((uintptr_t)*found & 1))
        return true;
    const struct modules_jit_interval *item = (const void *)((const char *)*found - 1);
    if (!modules_jit_code_holds(item->source, item->code, pc)) {
        modules_jit_want(MODULES_JIT_WANT | MODULES_JIT_DOUBT);
        return false;
    }
    *found = item;
    return true;
}

static bool any_is_stale(const struct modules_jit_index *index)
{
    for (size_t i = 0; i < index->source_count; i++)
        if (modules_jit_source_is_stale(&index->sources[i]))
            return true;
    return false;
}

bool modules_jit_confirm_nothing(uintptr_t pc)
{
    const struct modules_jit_index *index = atomic_load_explicit(&modules_jit_current, memory_order_seq_cst);
    if (!index)
        return true;
    if (any_is_stale(index)) {
        modules_jit_want(MODULES_JIT_WANT);
        return false;
    }
    return !find(index, pc);
}

bool modules_jit_is_stale(void)
{
    const struct modules_jit_index *index = atomic_load_explicit(&modules_jit_current, memory_order_seq_cst);
    return index && any_is_stale(index);
}
