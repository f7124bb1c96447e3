// SPDX-License-Identifier: Apache-2.0
// Calls that began before their functions were put in get their exits told as well: their return addresses are
// exchanged as the enter stub would have done it.
#include <stdlib.h>

#include "formats/qut_calls.h"
#include "libqut/target/live.h"
#include "tracer/patch/inside.h"

enum { FRAMES_MAX = 1024 };

struct range {
    uint64_t start, end;
    const struct patch_site *site;
};

struct search {
    struct patch_process *process;
    struct patch_running *running;
    struct range *functions; // ascending
    size_t function_count;
    struct qut_frame frames[FRAMES_MAX];
    bool no_memory;
};

static int by_start(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static bool list_functions(struct search *search)
{
    const struct patch_process *process = search->process;
    search->functions = calloc(process->installed.count + 1, sizeof *search->functions);
    if (!search->functions)
        return false;
    for (size_t i = 0; i < process->installed.count; i++) {
        const struct patch_site *site = &process->installed.items[i].site;
        if (site->thunk < site->thunk_end && site->function < site->function_end)
            search->functions[search->function_count++] = (struct range){site->function, site->function_end, site};
    }
    qsort(search->functions, search->function_count, sizeof *search->functions, by_start);
    return true;
}

static const struct patch_site *function_at(const struct search *search, uint64_t pc)
{
    size_t low = 0, high = search->function_count;
    if (high == 0 || pc < search->functions[0].start)
        return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (search->functions[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low < search->function_count && search->functions[low].start <= pc ? search->functions[low].site : NULL;
}

// Most threads sleep in code that nobody asked for: they are not walked.
static bool is_of_interest(const struct search *search, const struct qut_target_thread *thread)
{
    struct patch_process *process = search->process;
    const struct arch *arch = process->target->arch;
    unsigned word = arch->word_bytes;
    bool is_whole = true;
    if (function_at(search, thread->regs.pc))
        return true;
    uint64_t sp = (thread->regs.reg[arch->sp_reg] + word - 1) & ~(uint64_t)(word - 1);
    size_t size = patch_read_stack(process, sp, &is_whole);
    for (size_t at = 0; at + word <= size; at += word)
        if (function_at(search, patch_word_at(process->stack + at, word) - 1))
            return true;
    return !is_whole;
}

static bool has_shadow(struct patch_process *process, uint64_t slot)
{
    uint8_t granule = QUT_CALLS_GRANULE_UNKNOWN;
    return process->target->kind->read(
               process->target, process->stub.granules_address + (slot >> QUT_CALLS_GRANULE_LOG2), &granule, 1) == 1 &&
           granule == QUT_CALLS_GRANULE_MAPPED;
}

static void note_missing(struct search *search, uint64_t slot)
{
    const struct target_map *map = target_maps_find(&search->process->target->maps, slot);
    const uint64_t granule = (uint64_t)1 << QUT_CALLS_GRANULE_LOG2;
    struct patch_stack *missing = search->running->missing;
    size_t last = search->running->missing_count;
    uint64_t begin = slot & ~(granule - 1);
    if (!map || (last && missing[last - 1].begin <= slot && slot < missing[last - 1].end))
        return;
    missing = realloc(missing, (last + 1) * sizeof *missing);
    search->no_memory |= !missing;
    if (!missing)
        return;
    missing[last] = (struct patch_stack){begin > map->start ? begin : map->start,
                                         begin + granule < map->end ? begin + granule : map->end};
    search->running->missing = missing;
    search->running->missing_count++;
}

static bool add_call(struct search *search, const struct patch_running_call *call)
{
    struct patch_running *running = search->running;
    if (running->count % 64 == 0) {
        struct patch_running_call *calls = realloc(running->calls, (running->count + 64) * sizeof *calls);
        search->no_memory |= !calls;
        if (!calls)
            return false;
        running->calls = calls;
    }
    running->calls[running->count++] = *call;
    return true;
}

// The slot last: it is what leads to the others.
static bool exchange(struct patch_process *process, uint64_t slot, uint64_t true_return, uint32_t id)
{
    const struct patch_stub *stub = &process->stub;
    const uint64_t exit_word = qut_calls_exit_word(slot, id);
    return patch_write(process, slot - stub->words_distance, &exit_word, sizeof exit_word, NULL) == 0 &&
           patch_write(process, slot - stub->shadow_distance, &true_return, sizeof true_return, NULL) == 0 &&
           patch_write(process, slot, &stub->exit_return, sizeof stub->exit_return, NULL) == 0;
}

static void take_frame(struct search *search, pid_t tid, const struct qut_frame *frame, const struct qut_frame *caller)
{
    struct patch_process *process = search->process;
    const struct patch_site *site = function_at(search, frame->lookup_pc);
    uint64_t slot = caller->sp - process->target->arch->word_bytes, word = 0;
    // Who stands before the jump has not entered yet.
    if (!site || (frame->flags & QUT_FRAME_INTERRUPTED && frame->pc <= site->address) ||
        caller->flags & QUT_FRAME_INTERRUPTED)
        return;
    if (process->target->kind->read(process->target, slot, &word, sizeof word) != sizeof word || word != caller->pc ||
        word == process->stub.exit_return || slot % ((uint64_t)1 << QUT_CALLS_SLOT_LOG2) != 0 ||
        slot >> QUT_CALLS_X86_64_SHADOW_LOG2 != 1)
        return;
    if (!has_shadow(process, slot))
        note_missing(search, slot);
    else if (add_call(search, &(struct patch_running_call){tid, site->id, slot}) &&
             !exchange(process, slot, word, site->id))
        search->running->count--;
}

static void take_thread(struct search *search, size_t index)
{
    struct qut_target *target = search->process->target;
    struct qut_target_thread *thread = &target->threads[index];
    struct qut_end end;
    if (thread->state == TARGET_REGISTERS_UNREAD)
        thread->state = target->kind->registers(target, thread) ? TARGET_REGISTERS_READ : TARGET_REGISTERS_NONE;
    if (thread->state == TARGET_REGISTERS_NONE || !is_of_interest(search, thread))
        return;
    search->running->walks++;
    size_t count = qut_target_walk(target, index, search->frames, FRAMES_MAX, &end);
    // Outermost first: an event of an outer call closes those further in.
    for (size_t i = count; i-- > 1;)
        take_frame(search, thread->info.tid, &search->frames[i - 1], &search->frames[i]);
}

// Before the stop, and before this thread goes first: that takes long, where the cache does not have them.
static int make_tables(struct patch_process *process, struct base_error *error)
{
    struct qut_target *target = process->target;
    struct qut_target_error why;
    target->cache_directory = process->cache_directory;
    target->compile = process->compile;
    target->compile_context = process->compile_context;
    if (target_live_refresh_maps(target, &why) != 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "%s", why.text);
    for (size_t i = 0; i < target->range_count; i++) {
        struct target_image *image = target->ranges[i].image;
        if (image->table_state == TARGET_TABLE_NONE)
            image->table_state = TARGET_TABLE_UNTRIED; // by a stop that needed none
        if (image->is_elf)
            target_make_table(target, image);
    }
    return 0;
}

// Other stops do without.
static void end_tables(struct patch_process *process)
{
    process->target->cache_directory = NULL;
    process->target->compile = NULL;
    process->target->compile_context = NULL;
}

int patch_take_running(struct patch_process *process, struct patch_running *running, struct patch_figures *figures,
                       struct base_error *error)
{
    struct search *search = calloc(1, sizeof *search);
    *running = (struct patch_running){0};
    *figures = (struct patch_figures){0};
    if (!search)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    search->process = process;
    search->running = running;
    int result = 0;
    if (process->stub.exit_return == 0 || process->stub.granules_address == 0)
        result = base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "%d: there is no stub for calls that are running",
                           (int)process->pid);
    else if (!list_functions(search))
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    if (result == 0)
        result = make_tables(process, error);
    if (result == 0)
        result = patch_stop(process, figures, error);
    if (result == 0) {
        for (size_t i = 0; i < process->target->thread_count; i++)
            take_thread(search, i);
        patch_resume(process, figures);
        // What was exchanged stays so: its exits come without an entry.
        if (search->no_memory)
            result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    }
    end_tables(process);
    free(search->functions);
    free(search);
    return result;
}

void patch_free_running(struct patch_running *running)
{
    free(running->calls);
    free(running->missing);
    *running = (struct patch_running){0};
}
