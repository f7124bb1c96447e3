// SPDX-License-Identifier: Apache-2.0
// A traced child runs through a signal handler and its trampoline, instruction by instruction: what ptrace gives is
// where the layout says, and wherever in the trampoline the child stands, the interrupted registers are found.
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libqut/arch/native.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/arch/native/native_call.h"

enum { STEPS_MAX = 100000, CANNOT_TRACE = 77 };

static const struct arch *const native = &arch_native_arch;
static struct native_call call; // as the child fills it
static void *page;
static size_t page_bytes;

static uint64_t plain(uint64_t pc)
{
    return native->has_thumb ? pc & ~(uint64_t)1 : pc;
}

static void on_fault(int number)
{
    (void)number;
    mprotect(page, page_bytes, PROT_READ | PROT_WRITE);
}

static void on_fault_with_context(int number, siginfo_t *info, void *ucontext)
{
    (void)info, (void)ucontext;
    on_fault(number);
}

static _Noreturn void child(bool with_context)
{
    struct sigaction action = {0};
    if (with_context) {
        action.sa_sigaction = on_fault_with_context;
        action.sa_flags = SA_SIGINFO;
    } else {
        action.sa_handler = on_fault;
    }
    sigaction(SIGSEGV, &action, NULL);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(CANNOT_TRACE);
    native_call(native_store, &call);
    _exit(0);
}

static bool read_registers(pid_t pid, struct arch_frame_regs *regs)
{
    uint8_t block[512];
    struct iovec vec = {block, sizeof block};
    if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &vec) != 0 ||
        vec.iov_len != native->core_registers->size_bytes)
        return false;
    arch_registers_from_block(native->core_registers, block, regs);
    return true;
}

static uintptr_t peek(pid_t pid, uint64_t address)
{
    errno = 0;
    return (uintptr_t)ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)address, NULL);
}

// The child stands at regs->pc, in code that is mapped here as well.
static const struct arch_trampoline *trampoline_at(const struct arch_frame_regs *regs, unsigned *entry)
{
    for (unsigned i = 0; i < native->trampoline_count; i++) {
        const struct arch_trampoline *t = &native->trampolines[i];
        for (unsigned e = 0; e < t->entry_count; e++) {
            uintptr_t start = (uintptr_t)plain(regs->pc) - t->entries[e].code_offset;
            if (memcmp((const void *)start, t->code, t->code_bytes) != 0)
                continue;
            *entry = e;
            return t;
        }
    }
    return NULL;
}

static void check_entry(pid_t pid, const struct arch_frame_regs *regs, const struct arch_trampoline *t, unsigned entry,
                        const struct arch_frame_regs *fault)
{
    uint64_t base = regs->reg[native->sp_reg] + (uint64_t)(int64_t)t->entries[entry].registers_offset;
    uint64_t pc = peek(pid, base + t->layout->pc_offset);
    CHECK(pc == fault->pc, "%s, entry %u: pc %llx, not %llx", t->name, entry, (long long)pc, (long long)fault->pc);
    for (unsigned reg = 0; reg < native->register_count; reg++) {
        if (t->layout->reg_offset[reg] == ARCH_NOT_KEPT)
            continue;
        uint64_t value = peek(pid, base + t->layout->reg_offset[reg]);
        CHECK(value == fault->reg[reg], "%s, entry %u: %s is %llx, not %llx", t->name, entry,
              native->register_names[reg], (long long)value, (long long)fault->reg[reg]);
    }
}

// From the fault on. Returns how many different entries of a trampoline the child stood at; *of: how many it has.
static unsigned step_through(pid_t pid, unsigned *of)
{
    struct arch_frame_regs fault, regs;
    if (!CHECK(read_registers(pid, &fault), "no registers: %s", strerror(errno)))
        return 0;
    CHECK(plain(fault.pc) == plain((uintptr_t)native_store), "pc is %llx", (long long)fault.pc);
    for (int slot = 0; slot < native->tracked_count; slot++)
        CHECK(fault.reg[native->tracked[slot]] == call.tracked[slot], "%s is %llx",
              native->register_names[native->tracked[slot]], (long long)fault.reg[native->tracked[slot]]);

    unsigned entries = 0;
    int status, deliver = SIGSEGV;
    for (int step = 0; step < STEPS_MAX; step++) {
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(intptr_t)deliver) != 0 || waitpid(pid, &status, 0) != pid ||
            !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
            return entries;
        deliver = 0;
        if (!CHECK(read_registers(pid, &regs), "no registers"))
            return entries;
        unsigned entry;
        const struct arch_trampoline *t = trampoline_at(&regs, &entry);
        if (t) {
            CHECK(entry == entries, "%s: entry %u comes as number %u", t->name, entry, entries);
            check_entry(pid, &regs, t, entry, &fault);
            *of = t->entry_count;
            entries++;
        } else if (entries > 0) {
            return entries;
        }
    }
    return entries;
}

static void trace(bool with_context)
{
    for (int slot = 0; slot < QUT_TRACKED_MAX; slot++)
        call.tracked[slot] = (uintptr_t)0x1234560 + (uintptr_t)slot;
    call.tracked[1] = (uintptr_t)page;
    errno = 0;
    ptrace(PTRACE_PEEKDATA, 0, NULL, NULL);
    if (errno == ENOSYS)
        SKIP("ptrace: qemu-user has none");
    pid_t pid = fork();
    if (pid == 0)
        child(with_context);
    int status;
    if (waitpid(pid, &status, 0) != pid || (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_TRACE))
        SKIP("ptrace: not permitted");
    if (!CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSEGV, "status %x", status))
        return;
    unsigned of = 0, entries = step_through(pid, &of);
    CHECK(entries > 0 && entries == of, "stood at %u of %u instructions of a trampoline", entries, of);
    ptrace(PTRACE_CONT, pid, NULL, NULL);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}

TEST(each_instruction_behind_a_handler_with_context)
{
    trace(true);
}

TEST(each_instruction_behind_a_plain_handler)
{
    trace(false);
}

int main(void)
{
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    page = mmap(NULL, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    RUN(each_instruction_behind_a_handler_with_context);
    RUN(each_instruction_behind_a_plain_handler);
    return tap_finish();
}
