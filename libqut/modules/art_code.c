// SPDX-License-Identifier: Apache-2.0
// Code of ART's JIT without debug info (libqut/art/jit_code.h): where its caches are, by the names of mappings, which
// our thread reads when walks meet code that is not known.
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/art/jit_methods.h"
#include "libqut/art/traced.h"
#include "libqut/modules/art_memo.h"
#include "libqut/modules/jit_registry.h"
#include "libqut/modules/machine_code.h"
#include "libqut/modules/own_memory.h"
#include "libqut/os/second_pointer.h"

enum { SCRATCHES = 64 };

struct art_code {
    struct modules_retired retired;
    size_t count;
    struct modules_art_cache {
        struct modules_machine machine;
        struct art_jit_cache cache;
        uintptr_t made_at; // of its number of pieces of code; 0: not known
    } items[MODULES_ART_CACHES_MAX];
};
static_assert(offsetof(struct art_code, retired) == 0, "freed by its node");
static_assert(offsetof(struct modules_art_cache, machine) == 0, "found by it");

static _Atomic(struct art_code *) current; // NULL: none

// ---- walks

bool modules_art_is_known(void)
{
    return atomic_load_explicit(&current, memory_order_seq_cst) != NULL;
}

bool modules_art_find(uintptr_t pc, struct runtime_code *code)
{
    const struct art_code *known = atomic_load_explicit(&current, memory_order_seq_cst);
    for (size_t i = 0; known && i < known->count; i++) {
        if (!art_jit_cache_has(&known->items[i].cache, pc))
            continue;
        *code = (struct runtime_code){
            .state = RUNTIME_CODE_OF_MACHINE,
            .frame_flags = QUT_FRAME_JIT | QUT_FRAME_MANAGED,
            .is_called_by_all = true,
            .machine = &known->items[i].machine,
        };
        return true;
    }
    return false;
}

uintptr_t modules_art_made_at(uintptr_t pc)
{
    const struct art_code *known = atomic_load_explicit(&current, memory_order_seq_cst);
    // A walk keeps one number.
    for (size_t i = 0; known && i < known->count; i++)
        if (known->items[i].made_at)
            return art_jit_cache_has(&known->items[i].cache, pc) ? known->items[i].made_at : 0;
    return 0;
}

// A walk takes one where it does not know a frame yet, or was interrupted in it, and gives it back at once. Where all
// are taken, by so many threads at the same time, or by those that were there before a fork, the walk ends there.
static struct scratch {
    _Atomic uint32_t is_taken;
    struct art_jit_scratch scratch;
} scratches[SCRATCHES];

static __attribute__((noinline)) bool find_frame(const struct art_jit_cache *cache, uintptr_t pc,
                                                 enum arch_pc_kind kind, struct art_jit_frame *frame)
{
    const struct elf_art_memory *memory = &modules_jit_own_memory;
    struct art_jit_method method;
    struct scratch *taken = scratches, *end = scratches + SCRATCHES;
    while (taken < end && atomic_exchange_explicit(&taken->is_taken, 1, memory_order_acquire) != 0)
        taken++;
    if (taken == end)
        return false;
    bool is_found = art_jit_method_at(cache, memory, &taken->scratch, arch_lookup_pc(pc, kind), &method) &&
                    art_jit_frame_at(memory, &taken->scratch, &method, pc, kind, frame);
    atomic_store_explicit(&taken->is_taken, 0, memory_order_release);
    if (is_found && kind == ARCH_PC_RETURN)
        modules_art_remember(pc, &method, frame);
    return is_found;
}

bool modules_art_rule(const struct modules_machine *machine, uintptr_t pc, enum arch_pc_kind kind,
                      struct qut_rule *rule)
{
    const struct modules_art_cache *item = (const struct modules_art_cache *)machine;
    struct art_jit_frame frame;
    bool is_known = kind == ARCH_PC_RETURN && modules_art_recall(pc, &frame);
    if (!is_known && !find_frame(&item->cache, pc, kind, &frame))
        return false;
    art_jit_set_rule(&arch_native_arch, &frame, rule);
    return true;
}

bool modules_art_true_return(uint64_t sp, uint64_t *pc)
{
    return art_traced_layout(&arch_native_arch) && art_true_return(&modules_own_memory, os_second_pointer(), sp, pc);
}

// ---- our thread

static void free_code(struct modules_retired *retired)
{
    free(retired);
}

static enum modules_art_line kind_of(const struct os_map_line *line)
{
    if (!line->is_readable || !art_jit_knows(&arch_native_arch))
        return MODULES_ART_NONE;
    if (art_jit_is_cache_name(line->path, line->path_bytes))
        return MODULES_ART_NAMED;
    return line->inode == 0 && line->path_bytes == 0 ? MODULES_ART_NAMELESS : MODULES_ART_NONE;
}

void modules_art_see(struct modules_art_reading *reading, const struct os_map_line *line)
{
    enum modules_art_line kind = kind_of(line);
    bool goes_on = kind == reading->last && line->start == reading->last_end;
    bool follows_data = goes_on && reading->last_is_data;
    reading->last = kind;
    reading->last_end = line->end;
    reading->last_is_data = !line->is_executable;
    if (kind == MODULES_ART_NONE)
        return;
    // The data of a cache lies before its code.
    if (!line->is_executable) {
        if (!follows_data)
            reading->data_start = line->start;
        return;
    }
    struct art_jit_cache *last = reading->count ? &reading->items[reading->count - 1] : NULL;
    if (last && goes_on && last->code_end == line->start)
        last->code_end = line->end;
    else if (follows_data && reading->count < MODULES_ART_CACHES_MAX &&
             (kind == MODULES_ART_NAMED || art_jit_is_space(&modules_jit_own_memory, line->start)))
        reading->items[reading->count++] = (struct art_jit_cache){reading->data_start, line->start, line->end};
}

static uintptr_t find_made_at(const struct art_jit_cache *cache)
{
    const struct modules_registry *registry = &modules_registry;
    uint64_t made_at = 0;
    for (size_t i = 0; i < registry->record_count && !made_at; i++)
        made_at = art_jit_made_at(&modules_jit_own_memory, cache, registry->records[i]->art_instance);
    return (uintptr_t)made_at;
}

static bool is_same(const struct art_code *known, const struct modules_art_reading *reading)
{
    size_t count = known ? known->count : 0;
    bool same = count == reading->count;
    for (size_t i = 0; same && i < count; i++)
        same = memcmp(&known->items[i].cache, &reading->items[i], sizeof reading->items[i]) == 0 &&
               known->items[i].made_at == find_made_at(&reading->items[i]);
    return same;
}

// Under lock.
static void replace(struct art_code *code)
{
    struct art_code *old = atomic_exchange_explicit(&current, code, memory_order_seq_cst);
    modules_made_has_changed();
    if (old)
        modules_registry_push_retired(&old->retired);
}

void modules_art_take(const struct modules_art_reading *reading)
{
    if (is_same(atomic_load_explicit(&current, memory_order_relaxed), reading))
        return;
    struct art_code *code = reading->count ? calloc(1, sizeof *code) : NULL;
    if (reading->count && !code)
        return;
    if (code)
        code->retired.free = free_code;
    for (size_t i = 0; i < reading->count; i++)
        code->items[code->count++] = (struct modules_art_cache){
            .machine = {MODULES_MACHINE_ART}, .cache = reading->items[i], .made_at = find_made_at(&reading->items[i])};
    os_lock(&modules_registry.lock);
    replace(code);
    os_unlock(&modules_registry.lock);
}

void modules_art_drop(void)
{
    replace(NULL);
}
