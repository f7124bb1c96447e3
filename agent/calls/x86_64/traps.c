// SPDX-License-Identifier: Apache-2.0
// Traced functions with room for a single byte: int3, and a handler that sends whoever meets it to the thunk. From
// there on all is as with a jump. The kernel ends a process that meets int3 while SIGTRAP is blocked or ignored, so the
// agent keeps both from it (agent/hide.h).
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/calls/calls.h"
#include "agent/calls/inside.h"

enum { TABLES_MAX = 512, KERNELS_TRAP = 0x80 /* SI_KERNEL */ };

static struct table {
    const struct qut_calls_trap *rows;
    uint64_t count;
} tables[TABLES_MAX];
static _Atomic uint32_t table_count; // release: what is below is whole
static _Atomic uint32_t their_pid;

int calls_traps_add(uint64_t begin, uint64_t end)
{
    const uint32_t count = atomic_load_explicit(&table_count, memory_order_relaxed);
    if (begin >= end || begin % sizeof(uint64_t) != 0 || (end - begin) % sizeof(struct qut_calls_trap) != 0)
        return -EINVAL;
    if (count == TABLES_MAX)
        return -ENOSPC;
    tables[count] =
        (struct table){(const struct qut_calls_trap *)(uintptr_t)begin, (end - begin) / sizeof(struct qut_calls_trap)};
    atomic_store_explicit(&their_pid, (uint32_t)getpid(), memory_order_relaxed);
    atomic_store_explicit(&table_count, count + 1, memory_order_release);
    return 0;
}

bool calls_traps_are_in(void)
{
    return atomic_load_explicit(&table_count, memory_order_acquire) != 0;
}

bool calls_traps_are_ours(void)
{
    return calls_traps_are_in() && atomic_load_explicit(&their_pid, memory_order_relaxed) == (uint32_t)getpid();
}

// Its thunk; 0: it is none of ours.
static uint64_t find_thunk(uint64_t address)
{
    const uint32_t count = atomic_load_explicit(&table_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        const struct qut_calls_trap *rows = tables[i].rows;
        uint64_t low = 0, high = tables[i].count;
        while (low < high) {
            const uint64_t middle = low + (high - low) / 2;
            if (rows[middle].address < address)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < tables[i].count && rows[low].address == address && rows[low].thunk != 0)
            return rows[low].thunk;
    }
    return 0;
}

bool calls_traps_take(const siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;
    greg_t *pc = &interrupted->uc_mcontext.gregs[REG_RIP];
    if (info->si_signo != SIGTRAP || info->si_code != KERNELS_TRAP)
        return false;
    const uint64_t thunk = find_thunk((uint64_t)*pc - 1);
    if (thunk == 0)
        return false;
    calls_trap_go(pc, thunk);
    return true;
}

// Writes past the protection of its pages, as the tracer does.
static bool put_back(int fd, const struct table *table)
{
    for (uint64_t i = 0; i < table->count; i++) {
        const struct qut_calls_trap *row = &table->rows[i];
        if (row->thunk != 0 && *(const volatile uint8_t *)(uintptr_t)row->address == QUT_CALLS_TRAP_BYTE &&
            pwrite(fd, &row->original, 1, (off_t)row->address) != 1)
            return false;
    }
    return true;
}

void calls_traps_leave_child(void)
{
    uint32_t count = atomic_load_explicit(&table_count, memory_order_acquire);
    if (count == 0)
        return;
    const int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && count > 0 && put_back(fd, &tables[count - 1]))
        count--;
    if (fd >= 0)
        close(fd);
    atomic_store_explicit(&their_pid, (uint32_t)getpid(), memory_order_relaxed);
    atomic_store_explicit(&table_count, count, memory_order_release);
}

void calls_traps_stay_in_child(void)
{
    atomic_store_explicit(&their_pid, (uint32_t)getpid(), memory_order_relaxed);
}
