// SPDX-License-Identifier: Apache-2.0
// Moves whoever is in code that changes to where the same instruction is as well.
//
// A pc right behind the last byte is moved too: if it is behind a system call that begins anew, the kernel sets it back
// by that instruction, which lies among the bytes.
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/process.h"
#include "libqut/target/live.h"
#include "tracer/patch/inside.h"

enum { REGISTERS_BYTES_MAX = 1024 };

static int by_start(const void *a, const void *b)
{
    const struct patch_place *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

void patch_sort_places(struct patch_work *work)
{
    qsort(work->places, work->place_count, sizeof *work->places, by_start);
}

static struct patch_site *site_at(const struct patch_work *work, uint64_t pc)
{
    size_t low = 0, high = work->place_count;
    if (high == 0 || pc < work->places[0].start || pc >= work->places[high - 1].end)
        return NULL;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (work->places[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low < work->place_count && work->places[low].start <= pc ? work->places[low].site : NULL;
}

struct moving {
    struct patch_work *work;
    void (*stuck)(struct patch_work *work, struct patch_site *site);
};

static bool is_in_stub(const struct patch_work *work, uint64_t pc)
{
    return pc >= work->process->stub.start && pc < work->process->stub.end;
}

// Where a pc goes on; 0: where it is.
static uint64_t new_pc(const struct moving *moving, uint64_t pc)
{
    struct patch_work *work = moving->work;
    struct patch_site *site = site_at(work, pc);
    uint64_t to = site ? work->move(site, pc) : 0;
    if (site && to == 0)
        moving->stuck(work, site);
    // A thunk may lead out of another one, which is taken out as well.
    struct patch_site *next = to ? site_at(work, to) : NULL;
    const uint64_t further = next && next != site ? work->move(next, to) : 0;
    if (further != 0)
        to = further;
    work->figures->in_thunks += is_in_stub(work, pc);
    return to;
}

static void move_handler(void *context, uint64_t pc, uint64_t kept_at)
{
    const struct moving *moving = context;
    struct patch_process *process = moving->work->process;
    uint64_t to = new_pc(moving, pc);
    if (to == 0)
        return;
    if (patch_write(process, kept_at, &to, process->target->arch->word_bytes, NULL) == 0)
        moving->work->figures->moved_handlers++;
    else
        moving->stuck(moving->work, site_at(moving->work, pc));
}

static bool set_pc(const struct arch_register_layout *layout, pid_t tid, uint64_t pc)
{
    uint8_t block[REGISTERS_BYTES_MAX];
    size_t size = sizeof block;
    if (os_trace_registers(tid, NT_PRSTATUS, block, &size) != 0 || size != layout->size_bytes)
        return false;
    memcpy(block + layout->pc_offset, &pc, layout->word_bytes);
    return os_trace_set_registers(tid, NT_PRSTATUS, block, size) == 0;
}

static void move_thread(const struct moving *moving, struct qut_target_thread *thread)
{
    unsigned before = moving->work->figures->in_thunks;
    struct patch_work *work = moving->work;
    struct qut_target *target = work->process->target;
    if (thread->state == TARGET_REGISTERS_UNREAD)
        thread->state = target->kind->registers(target, thread) ? TARGET_REGISTERS_READ : TARGET_REGISTERS_NONE;
    if (thread->state == TARGET_REGISTERS_NONE)
        return; // has ended
    uint64_t to = new_pc(moving, thread->regs.pc);
    if (to != 0) {
        if (thread->stopped && set_pc(target->arch->core_registers, thread->info.tid, to)) {
            work->figures->moved_threads++;
            thread->regs.pc = to;
        } else {
            moving->stuck(work, site_at(work, thread->regs.pc));
        }
    }
    if (!patch_each_handler(work->process, thread->regs.reg[target->arch->sp_reg], move_handler, (void *)moving,
                            &work->figures->in_thunks))
        work->figures->deep_stacks++;
    pid_t *inner = work->figures->in_thunks != before ? BASE_ADD(&work->process->inner) : NULL;
    if (inner)
        *inner = thread->info.tid;
}

void patch_move_all(struct patch_work *work, void (*stuck)(struct patch_work *work, struct patch_site *site))
{
    struct moving moving = {work, stuck};
    const struct qut_target *target = work->process->target;
    work->process->inner.count = 0;
    for (size_t i = 0; i < target->thread_count; i++)
        move_thread(&moving, &target->threads[i]);
}
