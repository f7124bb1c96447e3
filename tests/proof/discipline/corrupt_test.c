// SPDX-License-Identifier: Apache-2.0
// The local walker on contexts that no program could be in: whatever pc, stack pointer and stack, no walk faults, and
// each ends with a reason. QUT_CORRUPT_WALKS says how many; the number of a walk decides all of it.
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/tiers.h"
#include "libqut/walk/walk_local.h"
#include "tests/support/discipline.h"
#include "tests/support/tap.h"

enum { WALKS_DEFAULT = 100000, TEXTS_MAX = 32, ISLAND_BYTES = 16 << 10, MAX = 40, CANARY = 0x5a, WAYS = 2 };

static struct text {
    uintptr_t start, size;
} texts[TEXTS_MAX];
static unsigned text_count;
static char *island; // readable pages between two that are not
static uint64_t random_state;
static volatile uint64_t seed;
static unsigned long walks, reasons[QUT_END_REASON_COUNT], frames, errno_changed, overrun, no_reason, differing,
    first_differing;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(0x9e3779b97f4a7c15) >> 8 ^ random_state << 40;
}

static uintptr_t below(uintptr_t limit)
{
    return (uintptr_t)(next_random() >> 5) % limit;
}

static int add_text(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X && text_count < TEXTS_MAX)
            texts[text_count++] =
                (struct text){info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, info->dlpi_phdr[i].p_memsz};
    return 0;
}

static uintptr_t random_pc(void)
{
    const struct text *text = &texts[below(text_count)];
    return text->start + below(text->size);
}

static uintptr_t random_pointer(uintptr_t here)
{
    switch (below(14)) {
    case 0: return 0;
    case 1: return (uintptr_t)0 - below(64);
    case 2: return (uintptr_t)next_random();
    case 3: return ((uintptr_t)1 << (sizeof(uintptr_t) * 8 - 1)) + below(1 << 20); // the kernel's half
    case 4: return (uintptr_t)island + ISLAND_BYTES - below(24);                   // the last words that are there
    case 5: return (uintptr_t)island - below(24);
    case 6: return (uintptr_t)island + below(ISLAND_BYTES);
    case 7: return here - below(256 << 10); // stack that was perhaps never used
    case 8: return here - below(16 << 20);  // and more than there is
    case 9: return here + below(64 << 10);
    case 10: return here + below(1 << 10);
    case 11: return here + below(128) * sizeof(uintptr_t);
    default: return (uintptr_t)island + below(ISLAND_BYTES / sizeof(uintptr_t)) * sizeof(uintptr_t);
    }
}

static uintptr_t random_word(uintptr_t here)
{
    switch (below(6)) {
    case 0: return (uintptr_t)next_random();
    case 1: return below(4096);
    case 2: return random_pointer(here);
    default: return random_pc();
    }
}

static void put(void *ucontext, unsigned offset, uintptr_t value)
{
    memcpy((char *)ucontext + offset, &value, sizeof value);
}

static void corrupt(void *ucontext, uintptr_t here)
{
    const struct arch_register_layout *layout = arch_native_arch.ucontext_registers;
    unsigned kind = (unsigned)below(4);
    if (kind == 0) { // one register of a real context
        unsigned reg = (unsigned)below(arch_native_arch.register_count);
        unsigned offset =
            below(4) && layout->reg_offset[reg] != ARCH_NOT_KEPT ? layout->reg_offset[reg] : layout->pc_offset;
        put(ucontext, offset, offset == layout->pc_offset ? random_word(here) : random_pointer(here));
        return;
    }
    for (unsigned reg = 0; reg < arch_native_arch.register_count; reg++)
        if (layout->reg_offset[reg] != ARCH_NOT_KEPT)
            put(ucontext, layout->reg_offset[reg], kind == 1 ? (uintptr_t)next_random() : random_word(here));
    if (kind != 1) {
        put(ucontext, layout->reg_offset[arch_native_arch.sp_reg], random_pointer(here));
        if (below(2))
            put(ucontext, layout->reg_offset[arch_native_arch.tracked[0]], random_pointer(here));
    }
    uintptr_t next_to_0 = (uintptr_t)below(4) - 2;
    uintptr_t no_code = below(4) ? random_word(here) : next_to_0;
    put(ucontext, layout->pc_offset, below(16) ? random_pc() : no_code);
}

// What a walk reads, noted.
struct noting {
    struct walk_local local; // first: the operations are given its address
    uint64_t lowest;
};

static bool read_noting(void *context, uint64_t address, uint64_t *value)
{
    struct noting *noting = context;
    bool is_constant = address - (uintptr_t)island < ISLAND_BYTES;
    // What libqut keeps of the thread changes with each walk: the number of walks was seen to be read as a pc.
    if (address + sizeof *value - (uintptr_t)runtime_thread_self() < sizeof *runtime_thread_self() + sizeof *value)
        noting->lowest = 0;
    if (address < noting->lowest && !is_constant)
        noting->lowest = address;
    return walk_local_ops.read(context, address, value);
}

// Whether the walk looks at what walks themselves write, each something else: what lies below `here` (not only by sp, a
// frame pointer can lead there and back), and what is kept of the thread.
static bool reads_own(const void *context, uintptr_t here)
{
    struct runtime_walk_ops ops = walk_local_ops;
    struct noting noting = {.lowest = UINT64_MAX};
    struct arch_frame_regs regs;
    struct runtime_walk walk;
    struct runtime_thread *thread = runtime_thread_self();
    ops.read = read_noting;
    arch_registers_from_block(arch_native_arch.ucontext_registers, context, &regs);
    regs.pc = ops.strip(&noting, regs.pc);
    walk_local_begin(&noting.local, thread, modules_enter(thread), (uintptr_t)regs.reg[arch_native_arch.sp_reg],
                     (uintptr_t)&noting);
    runtime_walk_begin(&arch_native_arch, &walk, &regs, ARCH_PC_EXACT);
    for (unsigned i = 0; i < MAX && runtime_walk_step(&arch_native_arch, &ops, &noting, &walk); i++) {
    }
    modules_leave(thread);
    return noting.lowest < here;
}

static void walk_once(const void *real, uintptr_t here)
{
    static _Thread_local ucontext_t context;
    static const uint32_t tiers[WAYS] = {RUNTIME_TIERS_ALL, 0};
    memcpy(&context, real, arch_native_arch.ucontext_registers->size_bytes);
    corrupt(&context, here);
    uintptr_t pcs[WAYS][MAX + 1];
    struct qut_end ends[WAYS];
    size_t counts[WAYS];
    for (unsigned way = 0; way < WAYS; way++) {
        struct qut_end *end = &ends[way];
        pcs[way][MAX] = CANARY;
        *end = (struct qut_end){.reason = ~0u};
        bool kept;
        atomic_store_explicit(&runtime_tiers, tiers[way], memory_order_relaxed);
        counts[way] = discipline_walk(&context, pcs[way], MAX, end, &kept);
        errno_changed += !kept;
        overrun += pcs[way][MAX] != CANARY || counts[way] > MAX;
        if (end->reason == QUT_END_NOT || end->reason >= QUT_END_NOT_STARTED || counts[way] == 0)
            no_reason++;
    }
    if (ends[0].reason < QUT_END_REASON_COUNT)
        reasons[ends[0].reason]++;
    frames += counts[0];
    bool same = counts[0] == counts[1] && memcmp(pcs[0], pcs[1], counts[0] * sizeof **pcs) == 0 &&
                memcmp(&ends[0], &ends[1], sizeof *ends) == 0;
    if (!same && !reads_own(&context, here) && !differing++)
        first_differing = (unsigned long)seed;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    for (unsigned long i = 0; i < walks; i++) {
        seed = i;
        random_state = (i + 1) * UINT64_C(0xd1342543de82ef95) | 1;
        next_random();
        if (i % 64 == 0)
            for (size_t at = 0; at < ISLAND_BYTES / sizeof(uintptr_t); at++)
                ((uintptr_t *)(void *)island)[at] = i % 128 ? random_pc() + below(5) : random_word(here);
        walk_once(context, here);
    }
}

static void on_fault(int number)
{
    char text[64];
    int length = snprintf(text, sizeof text, "signal %d in walk %" PRIu64 "\n", number, (uint64_t)seed);
    ssize_t written = write(2, text, (size_t)length);
    (void)written;
    _exit(1);
}

static void prepare(void)
{
    static char alternate[64 << 10];
    const char *count = getenv("QUT_CORRUPT_WALKS");
    walks = count ? strtoul(count, NULL, 0) : WALKS_DEFAULT;
    if (text_count == 0)
        dl_iterate_phdr(add_text, NULL);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!island) {
        island = mmap(NULL, ISLAND_BYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        island += page;
        mprotect(island, ISLAND_BYTES, PROT_READ | PROT_WRITE);
    }
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    struct sigaction fault = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSEGV, &fault, NULL);
    sigaction(SIGBUS, &fault, NULL);
    memset(reasons, 0, sizeof reasons);
    frames = errno_changed = overrun = no_reason = differing = 0;
}

static void *raise_there(void *argument)
{
    if (argument)
        qut_thread_register();
    raise(SIGUSR1);
    return NULL;
}

static void finish(const char *who)
{
    printf("# %s: %lu walks, %lu frames:", who, walks, frames);
    for (unsigned reason = 0; reason < QUT_END_REASON_COUNT; reason++)
        if (reasons[reason])
            printf(" %s %lu;", qut_end_reason_name(reason), reasons[reason]);
    struct runtime_tier_counts tiers = {0};
    runtime_tier_counts(&tiers);
    printf(" remembered %lu\n", (unsigned long)tiers.remembered);
    CHECK(errno_changed == 0 && overrun == 0 && no_reason == 0, "errno changed %lu, overrun %lu, without a reason %lu",
          errno_changed, overrun, no_reason);
    CHECK(differing == 0, "with shortcuts %lu walks went another way; the first: %lu", differing, first_differing);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
}

TEST(corrupt_contexts_of_the_first_thread)
{
    prepare();
    raise(SIGUSR1);
    finish("first thread");
}

TEST(corrupt_contexts_of_another_registered_thread)
{
    prepare();
    pthread_t thread;
    pthread_create(&thread, NULL, raise_there, "");
    pthread_join(thread, NULL);
    finish("registered thread");
}

TEST(corrupt_contexts_of_an_unregistered_thread)
{
    prepare();
    walks /= 4;
    pthread_t thread;
    pthread_create(&thread, NULL, raise_there, NULL);
    pthread_join(thread, NULL);
    finish("unregistered thread");
}

// A library that is gone has no code: what lies at its addresses now may be anything.
static uintptr_t gone_pc;

static void on_gone(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    static ucontext_t copy;
    memcpy(&copy, context, arch_native_arch.ucontext_registers->size_bytes);
    put(&copy, arch_native_arch.ucontext_registers->pc_offset, gone_pc);
    uintptr_t pcs[8];
    struct qut_end end;
    bool kept;
    size_t count = discipline_walk(&copy, pcs, 8, &end, &kept);
    CHECK((count == 1 && end.reason == QUT_END_NO_MODULE) || end.reason == QUT_END_TABLE_PENDING ||
              end.guessed_frame <= 1,
          "%zu frames, the first in a library that was unloaded, end %s", count, qut_end_reason_name(end.reason));
}

TEST(code_that_was_unloaded_has_no_rules)
{
    if (!discipline_has_compiler())
        SKIP("no QUT_TEST_QUTC: no tables");
    void *library = dlopen("libresolv.so.2", RTLD_NOW);
    void *symbol = library ? dlsym(library, "ns_sprintrr") : NULL;
    if (!symbol)
        SKIP("no libresolv");
    gone_pc = (uintptr_t)symbol + 8;
    // Once before: what the walker watches may notice the first time and not the second.
    qut_refresh();
    dlclose(library);
    qut_refresh();
    library = dlopen("libresolv.so.2", RTLD_NOW);
    symbol = library ? dlsym(library, "ns_sprintrr") : NULL;
    gone_pc = (uintptr_t)symbol + 8;
    qut_refresh();
    if (library)
        dlclose(library);
    struct sigaction action = {.sa_sigaction = on_gone, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

int main(void)
{
    if (!discipline_start())
        return 1;
    RUN(corrupt_contexts_of_the_first_thread);
    RUN(corrupt_contexts_of_another_registered_thread);
    RUN(corrupt_contexts_of_an_unregistered_thread);
    RUN(code_that_was_unloaded_has_no_rules);
    return tap_finish();
}
