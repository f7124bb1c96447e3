// SPDX-License-Identifier: Apache-2.0
// Code of a virtual machine that says itself how its frames are left (libqut/hotspot): where it is, is read once, by
// our thread, when the machine has started.
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/hotspot/machine.h"
#include "libqut/modules/jit_registry.h"
#include "libqut/modules/machine_code.h"
#include "libqut/modules/registry.h"
#include "libqut/runtime/link_cache.h"

enum {
    READ_EVERY_MS = 20, // while it starts: reading takes a thousand system calls, half a millisecond
    READ_SELDOM_MS = 5000,
    HOPS_MAX = 8, // from a pc to where its block begins, where it is asked for often: a quarter of a MiB of code
    // cfa = fp + 2 words; ra = *(cfa - word); fp = *fp
    CALL_STUB_CFA = 2 * sizeof(uintptr_t) | RUNTIME_LINK_FP | RUNTIME_LINK_CHAIN,
};

struct machine_code {
    struct modules_retired retired;
    struct hotspot_code {
        struct modules_machine machine;
        struct hotspot_machine hotspot;
    } code;
};
static_assert(offsetof(struct machine_code, retired) == 0, "freed by its node");
static_assert(offsetof(struct hotspot_code, machine) == 0, "found by it");

static _Atomic(struct machine_code *) current; // NULL: none, or not ready
static _Atomic uint32_t is_there;              // a machine that was not read yet
static _Atomic uint32_t wanted;
static uint64_t structs, types, due_ns; // under work, as the next
static unsigned pause_ms;

// ---- walks

// How much of it is there from an address on.
static uint64_t bytes_at(const struct hotspot_space *space, uint64_t address)
{
    uint64_t end = os_load((uintptr_t)space->end_at);
    return address >= space->start && address < end ? end - address : 0;
}

// Heaps, their segment maps, and what says how far these reach, are never given back while the machine's library is
// loaded, and it stays until the process ends: no system call is needed.
static size_t read_direct(void *context, uint64_t address, void *bytes, size_t size)
{
    const struct hotspot_machine *machine = context;
    for (unsigned i = 0; i < machine->heap_count; i++) {
        const struct hotspot_heap *heap = &machine->heaps[i];
        uint64_t left = address == heap->code.end_at ? sizeof(uint64_t) : bytes_at(&heap->code, address);
        if (left == 0)
            left = bytes_at(&heap->segment_map, address);
        if (left == 0)
            continue;
        size_t count = size < left ? size : (size_t)left;
        memcpy(bytes, (const void *)(uintptr_t)address, count);
        return count;
    }
    return 0;
}

bool modules_machine_made(uintptr_t pc, struct runtime_code *code)
{
    const struct machine_code *known = atomic_load_explicit(&current, memory_order_seq_cst);
    if (!known || !hotspot_heap_at(&known->code.hotspot, pc))
        return false;
    *code = (struct runtime_code){
        .state = RUNTIME_CODE_OF_MACHINE,
        .frame_flags = QUT_FRAME_JIT | QUT_FRAME_MANAGED,
        .has_entries = hotspot_is_interpreter(&known->code.hotspot, pc),
        .machine = &known->code.machine,
    };
    return true;
}

bool modules_machine_is_known(void)
{
    return atomic_load_explicit(&current, memory_order_seq_cst) != NULL || modules_art_is_known();
}

bool modules_machine_find(uintptr_t pc, struct runtime_code *code)
{
    bool is_known = atomic_load_explicit(&current, memory_order_relaxed) != NULL;
    if (!is_known && atomic_load_explicit(&is_there, memory_order_relaxed) &&
        atomic_exchange_explicit(&wanted, 1, memory_order_acq_rel) == 0)
        modules_registry_ring();
    return modules_machine_made(pc, code) || modules_art_find(pc, code);
}

bool modules_machine_rule(const void *machine, uintptr_t pc, enum arch_pc_kind kind, struct qut_rule *rule,
                          struct arch_interpreted *interpreted)
{
    const struct modules_machine *known = machine;
    if (known->kind == MODULES_MACHINE_ART)
        return modules_art_rule(known, pc, kind, rule);
    const struct hotspot_machine *hotspot = &((const struct hotspot_code *)known)->hotspot;
    const struct elf_art_memory memory = {
        .read = read_direct, .context = (void *)(uintptr_t)hotspot, .arch = &arch_native_arch};
    return hotspot_frame_rule(hotspot, &memory, pc, kind, rule, interpreted);
}

enum modules_machine_told modules_machine_link(uintptr_t ra, struct runtime_link *link)
{
    const struct machine_code *known = atomic_load_explicit(&current, memory_order_seq_cst);
    if (!known || !hotspot_heap_at(&known->code.hotspot, ra - 1))
        return MODULES_MACHINE_NOT;
    const struct hotspot_machine *hotspot = &known->code.hotspot;
    const struct elf_art_memory memory = {
        .read = read_direct, .context = (void *)(uintptr_t)hotspot, .arch = &arch_native_arch};
    int32_t word = (int32_t)sizeof(uintptr_t);
    link->step = (struct runtime_link_step){.ra_offset_bytes = (int16_t)-word, .fp_offset_bytes = (int16_t)(-2 * word)};
    if (ra == hotspot->call_stub_return) {
        link->cfa = CALL_STUB_CFA;
        return MODULES_MACHINE_LINK;
    }
    int32_t frame_bytes = hotspot_frame_bytes(hotspot, &memory, ra);
    if (frame_bytes < 2 * word || frame_bytes > UINT16_MAX)
        return MODULES_MACHINE_NO_LINK;
    link->cfa = (uint16_t)frame_bytes;
    return MODULES_MACHINE_LINK;
}

// A rule that a link can say: by sp, with the return address next to the cfa.
static bool pack_plain(const struct qut_rule *rule, struct runtime_link *link)
{
    const int32_t word = (int32_t)sizeof(uintptr_t);
    const struct qut_reg_rule *fp = &rule->tracked[ARCH_NATIVE_FP_SLOT];
    if (rule->kind != QUT_RULE_FRAME || rule->cfa.how != QUT_CFA_REG || rule->cfa.reg != arch_native_arch.sp_reg ||
        rule->sp.how != QUT_REG_SAME || rule->cfa.offset_bytes < word || rule->cfa.offset_bytes > UINT16_MAX ||
        rule->ra.how != QUT_REG_AT_CFA || rule->ra.offset_bytes != -word ||
        (fp->how != QUT_REG_SAME && (fp->how != QUT_REG_AT_CFA || fp->offset_bytes < -rule->cfa.offset_bytes)))
        return false;
    link->cfa = (uint16_t)rule->cfa.offset_bytes;
    link->step.ra_offset_bytes = (int16_t)-word;
    link->step.fp_offset_bytes = fp->how == QUT_REG_SAME ? 0 : (int16_t)fp->offset_bytes;
    return true;
}

enum modules_machine_told modules_machine_interrupted_link(uintptr_t pc, struct runtime_link *link, bool *is_body_only)
{
    const struct machine_code *known = atomic_load_explicit(&current, memory_order_seq_cst);
    if (!known || !hotspot_heap_at(&known->code.hotspot, pc))
        return MODULES_MACHINE_NOT;
    const struct hotspot_machine *hotspot = &known->code.hotspot;
    const struct elf_art_memory memory = {
        .read = read_direct, .context = (void *)(uintptr_t)hotspot, .arch = &arch_native_arch};
    struct qut_rule rule;
    struct arch_interpreted interpreted;
    if (hotspot_is_interpreter(hotspot, pc) ||
        !hotspot_frame_rule(hotspot, &memory, pc, ARCH_PC_EXACT, &rule, &interpreted) || !pack_plain(&rule, link))
        return MODULES_MACHINE_NO_LINK;
    *is_body_only = rule.flags & QUT_RULE_BODY_ONLY;
    return MODULES_MACHINE_LINK;
}

// hotspot_frame_bytes with an answer to compare with, in few instructions: a walk goes on with the size that it
// expects, so what is read here of one frame is on its way together with that of others. What lies in a committed part
// of a heap or of its map stays readable, as above.
static inline bool is_frame_of(const struct hotspot_machine *hotspot, uintptr_t ra, uint32_t frame_bytes)
{
    const struct hotspot_blob_layout *layout = &hotspot->blob;
    const struct hotspot_heap *heap = hotspot_heap_at(hotspot, ra - 1);
    if (!heap || hotspot_is_interpreter(hotspot, ra - 1))
        return false;
    const uint64_t at = ra - 1 - heap->code.start, end = os_load((uintptr_t)heap->code.end_at) - heap->code.start;
    const uint8_t *map = (const uint8_t *)(uintptr_t)heap->segment_map.start;
    uint64_t segment = at >> heap->segment_shift;
    if (at >= end || segment >= os_load((uintptr_t)heap->segment_map.end_at) - heap->segment_map.start)
        return false;
    unsigned hops = 0;
    for (unsigned back; (back = map[segment]) != 0; segment -= back)
        if (back == HOTSPOT_SEGMENT_FREE || back > segment || ++hops > HOPS_MAX)
            return false;
    const uint64_t block = segment << heap->segment_shift;
    const uint8_t *head = (const uint8_t *)(uintptr_t)heap->code.start + block;
    if (end - block < HOTSPOT_HEAD_BYTES || !head[layout->used])
        return false;
    uint32_t frame_words;
    uint64_t code_begin;
    int32_t code_offset;
    memcpy(&frame_words, head + layout->frame_size, sizeof frame_words);
    if (layout->code_begin_is_pointer) {
        memcpy(&code_begin, head + layout->code_begin, sizeof code_begin);
        code_begin -= heap->code.start;
    } else {
        memcpy(&code_offset, head + layout->code_begin, sizeof code_offset);
        code_begin = block + layout->blob + (uint64_t)(int64_t)code_offset;
    }
    return frame_words * sizeof(uintptr_t) == frame_bytes && code_begin > block && at >= code_begin;
}

bool modules_machine_holds(uintptr_t ra, uintptr_t link_cfa)
{
    const struct machine_code *known = atomic_load_explicit(&current, memory_order_seq_cst);
    if (!known || link_cfa > UINT16_MAX)
        return false;
    if (link_cfa & RUNTIME_LINK_FP || ra == known->code.hotspot.call_stub_return)
        return ra == known->code.hotspot.call_stub_return && link_cfa == CALL_STUB_CFA;
    return is_frame_of(&known->code.hotspot, ra, (uint32_t)link_cfa);
}

bool modules_machine_holds_by_fp(uintptr_t ra)
{
    return modules_machine_holds(ra, CALL_STUB_CFA);
}

// ---- our thread

static void free_code(struct modules_retired *retired)
{
    struct machine_code *code = (struct machine_code *)retired;
    hotspot_machine_free(&code->code.hotspot);
    free(code);
}

// Under lock.
static void replace(struct machine_code *code)
{
    struct machine_code *old = atomic_exchange_explicit(&current, code, memory_order_seq_cst);
    modules_made_has_changed();
    if (old)
        modules_registry_push_retired(&old->retired);
}

void modules_machine_drop(void)
{
    replace(NULL);
    structs = types = due_ns = pause_ms = 0;
    atomic_store_explicit(&is_there, 0, memory_order_relaxed);
    atomic_store_explicit(&wanted, 0, memory_order_relaxed);
}

void modules_machine_take_records(void)
{
    const struct modules_registry *registry = &modules_registry;
    uint64_t now_structs = 0, now_types = 0;
    for (size_t i = 0; i < registry->record_count && !now_structs; i++) {
        now_structs = registry->records[i]->hotspot_structs;
        now_types = registry->records[i]->hotspot_types;
    }
    if (now_structs == structs)
        return;
    os_lock(&modules_registry.lock);
    modules_machine_drop();
    os_unlock(&modules_registry.lock);
    structs = now_structs;
    types = now_types;
    atomic_store_explicit(&wanted, structs != 0, memory_order_relaxed);
    atomic_store_explicit(&is_there, structs != 0, memory_order_relaxed);
}

bool modules_machine_step(int *wait_ms)
{
    *wait_ms = -1;
    if (!atomic_load_explicit(&wanted, memory_order_acquire) || !structs)
        return false;
    uint64_t now_ns = os_now_ns();
    if (now_ns < due_ns) {
        *wait_ms = (int)((due_ns - now_ns + 999999u) / 1000000u);
        return false;
    }
    atomic_store_explicit(&wanted, 0, memory_order_relaxed);
    struct machine_code *code = calloc(1, sizeof *code);
    enum hotspot_fault fault =
        code ? hotspot_machine_read(&modules_jit_own_memory, structs, types, &code->code.hotspot) : HOTSPOT_NO_MEMORY;
    if (fault == HOTSPOT_FINE) {
        code->retired.free = free_code;
        os_lock(&modules_registry.lock);
        replace(code);
        os_unlock(&modules_registry.lock);
    } else {
        free(code);
    }
    // Tables that say nothing of use may not be whole: the loader lists a library before it has put addresses into its
    // data, and on a busy machine that takes it long. So they are looked at again, ever more seldom.
    bool is_settled = fault == HOTSPOT_FINE || fault == HOTSPOT_OTHER_ARCH;
    bool is_odd = !is_settled && fault != HOTSPOT_STARTING && fault != HOTSPOT_NO_MEMORY;
    atomic_store_explicit(&is_there, !is_settled, memory_order_relaxed);
    pause_ms = is_odd && pause_ms ? pause_ms + pause_ms / 4 : READ_EVERY_MS;
    pause_ms = pause_ms < READ_SELDOM_MS ? pause_ms : READ_SELDOM_MS;
    due_ns = os_now_ns() + pause_ms * UINT64_C(1000000);
    return true;
}
