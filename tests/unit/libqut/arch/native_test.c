// SPDX-License-Identifier: Apache-2.0
// The data of the architecture this runs on, against what the C library's headers say and the kernel does.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libqut/walk/walk_local.h"
#include "native_case.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/arch/native/native_call.h"

static const struct arch *const native = &arch_native_arch;

static uint64_t plain(uint64_t pc)
{
    return native->has_thumb ? pc & ~(uint64_t)1 : pc;
}

// ---- data against data

TEST(the_native_copy_equals_the_folders)
{
    const struct arch *arch = arch_by_id(native->id);
    if (!CHECK(arch != NULL, "no architecture has id %d", (int)native->id))
        return;
    CHECK(strcmp(native->name, arch->name) == 0, "%s, %s", native->name, arch->name);
#define SAME(field) CHECK(native->field == arch->field, "%llx, %llx", (long long)native->field, (long long)arch->field)
#define SAME_POINTER(field)                                                                                            \
    CHECK(native->field == arch->field, "%p, %p", (const void *)native->field, (const void *)arch->field)
    SAME(id);
    SAME(elf_machine);
    SAME(word_bytes);
    SAME(pc_shift);
    SAME(register_count);
    SAME(vector_bytes_reg);
    SAME(sp_reg);
    SAME(ra_reg);
    SAME(ra_in_register);
    SAME(tracked_count);
    for (int slot = 0; slot < QUT_TRACKED_MAX; slot++)
        SAME(tracked[slot]);
    SAME_POINTER(register_names);
    SAME(guess);
    SAME(has_thumb);
    SAME(has_signed_ra);
    SAME(has_tagged_pointers);
    SAME(result_reg);
    SAME_POINTER(core_registers);
    SAME_POINTER(ucontext_registers);
    SAME_POINTER(trampolines);
    SAME(trampoline_count);
    SAME(vsyscall);
    CHECK(native->word_bytes == sizeof(void *), "%u", native->word_bytes);
}

static void check_layout(const struct arch_register_layout *layout, const uint16_t *offsets, size_t count, unsigned pc)
{
    CHECK(count == native->register_count, "%zu offsets, %u registers", count, native->register_count);
    CHECK(layout->word_bytes == sizeof(uintptr_t), "%u", layout->word_bytes);
    CHECK(layout->pc_offset == pc, "%u, %u", layout->pc_offset, pc);
    for (unsigned reg = 0; reg < ARCH_REGISTERS_MAX; reg++) {
        unsigned expected = reg < count ? offsets[reg] : ARCH_NOT_KEPT;
        CHECK(layout->reg_offset[reg] == expected, "register %u: %u, %u", reg, layout->reg_offset[reg], expected);
    }
}

TEST(ptrace_registers_lie_where_the_headers_say)
{
    check_layout(native->core_registers, native_core_offsets, sizeof native_core_offsets / sizeof *native_core_offsets,
                 NATIVE_CORE_PC);
    CHECK(native->core_registers->size_bytes == NATIVE_CORE_BYTES, "%u, %d", native->core_registers->size_bytes,
          NATIVE_CORE_BYTES);
}

TEST(ucontext_registers_lie_where_the_headers_say)
{
    check_layout(native->ucontext_registers, native_ucontext_offsets,
                 sizeof native_ucontext_offsets / sizeof *native_ucontext_offsets, NATIVE_UCONTEXT_PC);
    CHECK(native->ucontext_registers->size_bytes <= sizeof(ucontext_t), "%u", native->ucontext_registers->size_bytes);
}

// ---- signals

// What a handler saw, checked after it returned.
static struct {
    int calls;
    bool has_context;
    struct arch_frame_regs context;   // by the ucontext_t it was given
    const char *trampoline;           // that it returns to; NULL: none is known with these bytes
    struct arch_frame_regs recovered; // found by that trampoline
    uint8_t code[16];                 // the bytes it returns to
} seen;

static void *page;
static size_t page_bytes;

static const void *at(uintptr_t address, int offset)
{
    return (const void *)(address + (uintptr_t)offset);
}

// The handler returns to `pc` with `sp`.
static void find_trampoline(uintptr_t pc, uintptr_t sp)
{
    memcpy(seen.code, (const void *)pc, 8); // each ends at least 8 bytes before its page does
    for (unsigned i = 0; i < native->trampoline_count; i++) {
        const struct arch_trampoline *t = &native->trampolines[i];
        if (memcmp((const void *)pc, t->code, t->code_bytes) != 0)
            continue;
        seen.trampoline = t->name;
        arch_registers_from_block(t->layout, at(sp, t->entries[0].registers_offset), &seen.recovered);
        return;
    }
}

// Whatever the handler, its own caller's frame begins where sp will be when it has returned.
#define LOOK_AROUND()                                                                                                  \
    find_trampoline((uintptr_t)plain(arch_native_strip((uintptr_t)__builtin_return_address(0))),                       \
                    (uintptr_t)__builtin_dwarf_cfa())

static void let_it_go_on(void)
{
    seen.calls++;
    // Else the store would fault for ever.
    if (seen.calls > 1 || mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0)
        _exit(99);
}

static void on_fault_with_context(int number, siginfo_t *info, void *ucontext)
{
    (void)number, (void)info;
    arch_registers_from_block(native->ucontext_registers, ucontext, &seen.context);
    seen.has_context = true;
    LOOK_AROUND();
    let_it_go_on();
}

static void on_fault(int number)
{
    (void)number;
    LOOK_AROUND();
    let_it_go_on();
}

static void set_handler(bool with_context)
{
    struct sigaction action = {0};
    if (with_context) {
        action.sa_sigaction = on_fault_with_context;
        action.sa_flags = SA_SIGINFO;
    } else {
        action.sa_handler = on_fault;
    }
    sigaction(SIGSEGV, &action, NULL);
}

// As the C library does, but without a trampoline of its own.
static bool set_handler_without_restorer(bool with_context)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned char mask[8];
    } action = {0};
    union {
        void (*plain)(int);
        void (*with_context)(int, siginfo_t *, void *);
    } handler;
    if (with_context)
        handler.with_context = on_fault_with_context;
    else
        handler.plain = on_fault;
    action.handler = handler.plain;
    action.flags = with_context ? SA_SIGINFO : 0;
    return syscall(SYS_rt_sigaction, SIGSEGV, &action, NULL, sizeof action.mask) == 0;
}

static struct native_call fault(void)
{
    struct native_call call = {.arguments = {1, 2, 3}};
    for (int slot = 0; slot < QUT_TRACKED_MAX; slot++)
        call.tracked[slot] = (uintptr_t)0x1234560 + (uintptr_t)slot;
    call.tracked[1] = (uintptr_t)page;
    memset(&seen, 0, sizeof seen);
    mprotect(page, page_bytes, PROT_NONE);
    native_call(native_store, &call);
    return call;
}

static void check_interrupted(const char *source, const struct arch_frame_regs *regs, const struct native_call *call)
{
    uint64_t pc = plain((uintptr_t)native_store);
    CHECK(plain(regs->pc) == pc, "%s: %llx, not %llx", source, (long long)regs->pc, (long long)pc);
    uint64_t sp = regs->reg[native->sp_reg];
    CHECK(sp == call->sp - NATIVE_CALL_PUSH_BYTES, "%s: sp is %llx, was %llx at the call", source, (long long)sp,
          (long long)call->sp);
    for (int slot = 0; slot < native->tracked_count; slot++) {
        unsigned reg = native->tracked[slot];
        CHECK(regs->reg[reg] == call->tracked[slot], "%s: %s is %llx, not %llx", source, native->register_names[reg],
              (long long)regs->reg[reg], (long long)call->tracked[slot]);
    }
    if (native->ra_in_register)
        CHECK(plain(regs->reg[native->ra_reg]) == call->return_address, "%s: ra is %llx, not %llx", source,
              (long long)regs->reg[native->ra_reg], (long long)call->return_address);
}

static void check_seen(const struct native_call *call, bool with_context)
{
    CHECK(seen.calls == 1, "%d calls of the handler", seen.calls);
    CHECK(seen.has_context == with_context, "%d", seen.has_context);
    if (with_context)
        check_interrupted("ucontext", &seen.context, call);
    if (!CHECK(seen.trampoline != NULL, "%02x %02x %02x %02x %02x %02x %02x %02x is not known", seen.code[0],
               seen.code[1], seen.code[2], seen.code[3], seen.code[4], seen.code[5], seen.code[6], seen.code[7]))
        return;
    printf("# returns to: %s\n", seen.trampoline);
    check_interrupted(seen.trampoline, &seen.recovered, call);
    for (unsigned reg = 0; with_context && reg < native->register_count; reg++)
        if (seen.context.valid >> reg & 1)
            CHECK(seen.recovered.reg[reg] == seen.context.reg[reg], "%s: %llx, %llx", native->register_names[reg],
                  (long long)seen.recovered.reg[reg], (long long)seen.context.reg[reg]);
}

TEST(a_handler_with_context_returns_to_a_known_trampoline)
{
    set_handler(true);
    struct native_call call = fault();
    check_seen(&call, true);
}

TEST(a_plain_handler_returns_to_a_known_trampoline)
{
    set_handler(false);
    struct native_call call = fault();
    check_seen(&call, false);
}

TEST(a_handler_with_context_returns_to_the_kernels_trampoline)
{
    if (!NATIVE_KERNEL_RETURNS_CONTEXT || !set_handler_without_restorer(true))
        SKIP("%s: no other trampoline than the C library's, or none that works", native->name);
    struct native_call call = fault();
    check_seen(&call, true);
}

TEST(a_plain_handler_returns_to_the_kernels_trampoline)
{
    if (!NATIVE_KERNEL_RETURNS_PLAIN || !set_handler_without_restorer(false))
        SKIP("%s: no other trampoline than the C library's, or none that works", native->name);
    struct native_call call = fault();
    check_seen(&call, false);
}

// ---- signatures

int main(void);

TEST(stripping_keeps_plain_addresses)
{
    int local;
    uint64_t addresses[] = {0, 1, 0x1000, (uintptr_t)main, (uintptr_t)memcpy, (uintptr_t)&local, 0x7ffffffc};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        CHECK(arch_native_strip(addresses[i]) == addresses[i], "%llx became %llx", (long long)addresses[i],
              (long long)arch_native_strip(addresses[i]));
}

TEST(stripping_removes_signatures)
{
    uint64_t address = (uintptr_t)main, sealed = native_sign(address);
    if (sealed == address)
        SKIP("%s: no signed addresses here", native->name);
    CHECK(native->has_signed_ra, "%s", native->name);
    CHECK(arch_native_strip(sealed) == address, "%llx became %llx, was %llx", (long long)sealed,
          (long long)arch_native_strip(sealed), (long long)address);
}

// Where the kernel does not say that vectors are on, nothing may try to read their size.
TEST(the_size_of_vectors_is_read_where_they_are_on)
{
    errno = 4711;
    bool is_on = os_vectors_are_on();
    CHECK(errno == 4711, "errno is %d", errno);
    CHECK(!is_on || native->vector_bytes_reg, "%s", native->name);
    uint64_t bytes = walk_local_vector_bytes();
    CHECK(is_on == (bytes != 0), "%llu bytes", (unsigned long long)bytes);
    CHECK((bytes & (bytes - 1)) == 0, "%llu bytes", (unsigned long long)bytes);
    if (!is_on)
        SKIP("%s: no vectors here, or nobody says so", native->name);
}

int main(void)
{
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    page = mmap(NULL, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    RUN(the_native_copy_equals_the_folders);
    RUN(ptrace_registers_lie_where_the_headers_say);
    RUN(ucontext_registers_lie_where_the_headers_say);
    RUN(a_handler_with_context_returns_to_a_known_trampoline);
    RUN(a_plain_handler_returns_to_a_known_trampoline);
    RUN(a_handler_with_context_returns_to_the_kernels_trampoline);
    RUN(a_plain_handler_returns_to_the_kernels_trampoline);
    RUN(stripping_keeps_plain_addresses);
    RUN(stripping_removes_signatures);
    RUN(the_size_of_vectors_is_read_where_they_are_on);
    return tap_finish();
}
