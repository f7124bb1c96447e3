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

bool modules_jit_find(uintptr_t pc, const void **found, struct runtime_code *code)
{
    const struct modules_jit_index *index = atomic_load_explicit(&modules_jit_current, memory_order_seq_cst);
    const struct modules_jit_interval *item = index ? find(index, pc) : NULL;
    if (!item)
        return false;
    if (item->is_ready) {
        *code = item->code->code;
        *found = item;
        return true;
    }
    *code = (struct runtime_code){.state = RUNTIME_CODE_PENDING, .frame_flags = QUT_FRAME_JIT};
    if (item->is_early)
        modules_jit_want(MODULES_JIT_WANT);
    return true;
}

static bool item_holds(const struct modules_jit_interval *item, uintptr_t pc, struct runtime_thread *thread,
                       struct modules_jit_asked *asked)
{
    const struct modules_jit_source *source = item->source;
    if (source->descriptor.layout != ART_JIT_GDB)
        return modules_jit_list_holds(source, pc, asked);
    if (asked->held == item) // recursion
        return true;
    bool is_outermost = thread && atomic_load_explicit(&thread->walking, memory_order_relaxed) == 1;
    asked->held = item; // if it does
    return is_outermost ? modules_jit_expected_holds(thread, source, item->code, asked)
                        : modules_jit_code_holds(source, item->code);
}

bool modules_jit_confirm(uintptr_t pc, const void *found, struct runtime_thread *thread,
                         struct modules_jit_asked *asked)
{
    if (item_holds(found, pc, thread, asked))
        return true;
    asked->held = NULL;
    modules_jit_want(MODULES_JIT_WANT | MODULES_JIT_DOUBT);
    return false;
}

uint32_t modules_jit_list_of(const void *found)
{
    const struct modules_jit_source *source = ((const struct modules_jit_interval *)found)->source;
    return source->descriptor.layout != ART_JIT_GDB ? source->number : 0;
}

bool modules_jit_list_still_holds(uint32_t list, uintptr_t pc, struct modules_jit_asked *asked)
{
    const struct modules_jit_index *index = atomic_load_explicit(&modules_jit_current, memory_order_seq_cst);
    for (size_t i = 0; index && i < index->source_count; i++)
        if (index->sources[i].number == list)
            return modules_jit_list_holds(&index->sources[i], pc, asked);
    return false;
}

static bool is_stale(const struct modules_jit_source *source, const struct modules_jit_asked *asked)
{
    bool is_asked = asked && asked->source_number == source->number && source->descriptor.layout != ART_JIT_GDB;
    return is_asked ? asked->newer != 0 : modules_jit_source_is_stale(source);
}

static bool any_is_stale(const struct modules_jit_index *index, const struct modules_jit_asked *asked)
{
    for (size_t i = 0; i < index->source_count; i++)
        if (is_stale(&index->sources[i], asked))
            return true;
    return false;
}

bool modules_jit_confirm_nothing(uintptr_t pc, const struct modules_jit_asked *asked)
{
    const struct modules_jit_index *index = atomic_load_explicit(&modules_jit_current, memory_order_seq_cst);
    if (!index)
        return true;
    if (any_is_stale(index, asked)) {
        modules_jit_want(MODULES_JIT_WANT);
        return false;
    }
    return !find(index, pc);
}

bool modules_jit_is_stale(void)
{
    const struct modules_jit_index *index = atomic_load_explicit(&modules_jit_current, memory_order_seq_cst);
    return index && any_is_stale(index, NULL);
}
