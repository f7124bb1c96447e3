// SPDX-License-Identifier: Apache-2.0
// What libqut asks of the kernel and of libc.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libqut/os/os.h"
#include "tests/support/tap.h"

// ---- memory

typedef size_t (*read_function)(uintptr_t address, void *bytes, size_t size);

static void check_reads(read_function read_own, const char *way)
{
    enum { PAGES = 80 }; // more than one system call copies
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *out = malloc(PAGES * page);
    if (!CHECK(pages != MAP_FAILED && out, "%s", strerror(errno)))
        return;
    for (size_t i = 0; i < PAGES * page; i++)
        pages[i] = (uint8_t)(i * 7 + i / 256);
    uintptr_t at = (uintptr_t)pages;

    size_t got = read_own(at + 3, out, 8);
    CHECK(got == 8 && memcmp(out, pages + 3, 8) == 0, "%s: %zu bytes", way, got);
    got = read_own(at + 5, out, PAGES * page - 5);
    CHECK(got == PAGES * page - 5 && memcmp(out, pages + 5, got) == 0, "%s: %zu bytes of many pages", way, got);
    CHECK(read_own(at, out, 0) == 0, "%s: nothing", way);

    munmap(pages + 77 * page, page);
    got = read_own(at + 77 * page - 3, out, 8);
    CHECK(got == 3 && memcmp(out, pages + 77 * page - 3, 3) == 0, "%s: %zu bytes before a hole", way, got);
    got = read_own(at + 1, out, 79 * page);
    CHECK(got == 77 * page - 1 && memcmp(out, pages + 1, got) == 0, "%s: %zu bytes of pages before a hole", way, got);
    mprotect(pages + 76 * page, page, PROT_NONE);
    got = read_own(at + 76 * page - 8, out, 16);
    CHECK(got == 8, "%s: %zu bytes before a page without access", way, got);
    CHECK(read_own(at + 76 * page, out, 8) == 0, "%s: a page without access", way);

    const uintptr_t bad[] = {0, 8, UINTPTR_MAX, UINTPTR_MAX - 7, UINTPTR_MAX / 2 + 1, UINTPTR_MAX - 3 * page};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        errno = 4711;
        got = read_own(bad[i], out, 32);
        CHECK(got == 0, "%s: %zu bytes at 0x%zx", way, got, (size_t)bad[i]);
        CHECK(errno == 4711, "%s: errno is %d", way, errno);
    }
    munmap(pages, PAGES * page);
    free(out);
}

TEST(own_memory_is_read_without_faults)
{
    check_reads(os_read_self, "as found out");
    check_reads(os_copy_self, "many pages at once");
    os_set_read_by_memfd(true);
    check_reads(os_read_self, "through a memfd");
    check_reads(os_copy_self, "many pages through a memfd");
    os_set_read_by_memfd(false);
}

static void check_parts(const char *which)
{
    static const char text[] = "0123456789";
    const struct os_part parts[] = {{(uintptr_t)text + 7, 3}, {(uintptr_t)text, 2}, {16, 8}, {(uintptr_t)text, 1}};
    char bytes[16] = "";
    errno = 42;
    CHECK(os_read_parts(parts, 2, bytes) == 5 && memcmp(bytes, "78901", 5) == 0, "%s: %.5s", which, bytes);
    CHECK(os_read_parts(parts, 4, bytes) == 5, "%s: what is behind a part that cannot be read was read", which);
    CHECK(os_read_parts(parts + 2, 2, bytes) == 0, "%s: the first cannot be read", which);
    CHECK(errno == 42, "%s: errno %d", which, errno);
}

TEST(parts_are_read_side_by_side)
{
    check_parts("as found out");
    os_set_read_by_memfd(true);
    check_parts("through a memfd");
    os_set_read_by_memfd(false);
}

TEST(a_word_is_compared)
{
    static uint32_t word = 7;
    errno = 42;
    CHECK(os_is_word((uintptr_t)&word, 7) && !os_is_word((uintptr_t)&word, 8), "by its value");
    CHECK(!os_is_word(16, 0) && !os_is_word(0, 0), "nothing is there");
    CHECK(errno == 42, "errno %d", errno);
}

TEST(pages_are_zeroed_and_writable)
{
    uint8_t *pages = os_pages(10000, true);
    if (!CHECK(pages != NULL, "%s", strerror(errno)))
        return;
    size_t sum = 0;
    for (size_t i = 0; i < 10000; i++)
        sum += pages[i];
    CHECK(sum == 0, "%zu", sum);
    memset(pages, 1, 10000);
    os_free_pages(pages, 10000);
    os_free_pages(NULL, 1);
}

// ---- threads

static void check_stack(const char *which)
{
    uintptr_t limit = 0, high = 0, here = (uintptr_t)__builtin_frame_address(0);
    if (!CHECK(os_stack_bounds(&limit, &high), "%s", which))
        return;
    CHECK(limit < here && here < high, "%s: 0x%zx in [0x%zx, 0x%zx)", which, (size_t)here, (size_t)limit, (size_t)high);
    uint8_t byte;
    for (uintptr_t at = here; at < high; at += 4096)
        if (!CHECK(os_read_self(at, &byte, 1) == 1, "%s: 0x%zx", which, (size_t)at))
            return;
    CHECK(os_read_self(high - 1, &byte, 1) == 1, "%s: its last byte", which);
}

static struct {
    sigset_t blocked;
    char name[16];
} seen;

static void look_around(void *context)
{
    check_stack("a thread");
    pthread_sigmask(SIG_BLOCK, NULL, &seen.blocked);
    prctl(PR_GET_NAME, seen.name, 0, 0, 0);
    *(int *)context = 1;
}

TEST(stacks_have_bounds)
{
    check_stack("the first thread");
}

TEST(a_thread_runs_without_signals)
{
    struct os_thread *thread;
    int ran = 0;
    sigset_t before, after;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    int result = os_thread_start(&thread, look_around, &ran);
    if (!CHECK(result == 0, "%d", result))
        return;
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    os_thread_join(thread);
    CHECK(ran == 1, "%d", ran);
    CHECK(sigismember(&seen.blocked, SIGPROF) && sigismember(&seen.blocked, SIGTERM), "signals can hit it");
    CHECK(strcmp(seen.name, "qut") == 0, "%s", seen.name);
    CHECK(sigismember(&before, SIGPROF) == sigismember(&after, SIGPROF), "ours are as they were");
}

static struct {
    bool on_it;
    uintptr_t low, high;
    int errno_after;
} handled;

static void on_signal(int number)
{
    (void)number;
    errno = 4712;
    handled.on_it = os_alternate_stack(&handled.low, &handled.high);
    handled.errno_after = errno;
}

TEST(the_alternate_stack_is_known_while_in_use)
{
    uintptr_t low, high;
    static uint8_t memory[1 << 16];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory}, old;
    sigaltstack(&stack, &old);
    CHECK(!os_alternate_stack(&low, &high), "it is not in use");
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    CHECK(handled.on_it && handled.low == (uintptr_t)memory && handled.high == handled.low + sizeof memory,
          "%d [0x%zx, 0x%zx)", handled.on_it, (size_t)handled.low, (size_t)handled.high);
    CHECK(handled.errno_after == 4712, "errno is %d", handled.errno_after);
    sigaltstack(&old, NULL);
}

// ---- waiting

static _Atomic uint32_t word;

static void wake_later(void *context)
{
    (void)context;
    _Atomic uint32_t never = 0;
    os_wait(&never, 0, 20);
    atomic_store_explicit(&word, 1, memory_order_release);
    os_wake(&word);
}

TEST(waiting_ends_by_wake_change_or_time)
{
    uint64_t start_ns = os_now_ns();
    os_wait(&word, 1, -1); // it is 0
    os_wait(&word, 0, 30);
    uint64_t waited_ns = os_now_ns() - start_ns;
    CHECK(waited_ns >= 29000000u, "%llu ns", (unsigned long long)waited_ns);
    struct os_thread *thread;
    if (!CHECK(os_thread_start(&thread, wake_later, NULL) == 0, "%s", strerror(errno)))
        return;
    while (atomic_load_explicit(&word, memory_order_acquire) == 0)
        os_wait(&word, 0, -1);
    os_thread_join(thread);
}

enum { LOCKERS = 4, ROUNDS = 20000 };
static _Atomic uint32_t lock;
static long counted;

static void count(void *context)
{
    (void)context;
    for (int i = 0; i < ROUNDS; i++) {
        os_lock(&lock);
        counted++;
        os_unlock(&lock);
    }
}

TEST(a_lock_is_held_by_one)
{
    struct os_thread *threads[LOCKERS];
    for (int i = 0; i < LOCKERS; i++)
        if (os_thread_start(&threads[i], count, NULL) != 0)
            abort();
    for (int i = 0; i < LOCKERS; i++)
        os_thread_join(threads[i]);
    CHECK(counted == (long)LOCKERS * ROUNDS, "%ld", counted);
    CHECK(lock == 0, "%u", (unsigned)lock);
}

// ---- fences: two threads store each to its own word and then load the other's. Not both may load nothing.

static _Atomic uint32_t mine, theirs, turn, their_view;

static void store_then_load(void *context)
{
    int rounds = *(int *)context;
    for (int i = 1; i <= rounds; i++) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != (uint32_t)i) {
        }
        atomic_store_explicit(&theirs, (uint32_t)i, memory_order_relaxed);
        os_fence_light();
        uint32_t view = atomic_load_explicit(&mine, memory_order_relaxed);
        atomic_store_explicit(&their_view, view == (uint32_t)i ? 2 : 1, memory_order_release);
    }
}

TEST(a_heavy_and_a_light_fence_make_one)
{
    bool has_heavy = os_fences_init();
    printf("# %s\n", has_heavy ? "membarrier" : "no membarrier: the light fence is a full one");
    CHECK(has_heavy == !os_light_fence_is_full, "%d", has_heavy);
    int rounds = has_heavy ? 3000 : 300;
    struct os_thread *thread;
    if (os_thread_start(&thread, store_then_load, &rounds) != 0)
        abort();
    int bad = 0;
    for (int i = 1; i <= rounds; i++) {
        atomic_store_explicit(&their_view, 0, memory_order_relaxed);
        atomic_store_explicit(&turn, (uint32_t)i, memory_order_release);
        atomic_store_explicit(&mine, (uint32_t)i, memory_order_relaxed);
        os_fence_heavy();
        bool saw = atomic_load_explicit(&theirs, memory_order_relaxed) == (uint32_t)i;
        while (atomic_load_explicit(&their_view, memory_order_acquire) == 0) {
        }
        bad += !saw && their_view != 2;
    }
    os_thread_join(thread);
    CHECK(bad == 0, "%d of %d", bad, rounds);
}

// ---- what libc calls

static _Atomic int ends;

static void at_end(void *value)
{
    ends += *(int *)value;
}

static void end_with_value(void *context)
{
    os_at_thread_end(at_end, context);
}

static void end_without_value(void *context)
{
    os_at_thread_end(at_end, context);
    os_at_thread_end(at_end, NULL);
}

TEST(the_end_of_a_thread_is_told)
{
    struct os_thread *thread;
    int value = 5;
    if (os_thread_start(&thread, end_with_value, &value) != 0)
        abort();
    os_thread_join(thread);
    CHECK(ends == 5, "%d", ends);
    if (os_thread_start(&thread, end_without_value, &value) != 0)
        abort();
    os_thread_join(thread);
    CHECK(ends == 5, "%d", ends);
}

// ---- the loader

struct listing {
    int count, programs;
    bool has_us;
};

static int list(void *context, const struct os_module *module)
{
    struct listing *listing = context;
    listing->count++;
    listing->programs += module->is_program;
    if (module->is_program)
        listing->has_us = os_confirm_module((uintptr_t)list, module->map_start, module->link_map);
    return 0;
}

TEST(modules_are_listed)
{
    struct listing listing = {0};
    struct os_generation generation;
    int result = os_each_module(list, &listing, &generation);
    CHECK(result == 0 && listing.count >= 1 && listing.programs == 1, "%d: %d modules, %d programs", result,
          listing.count, listing.programs);
    CHECK(listing.has_us, "the program is confirmed");
#ifdef __GLIBC__
    CHECK(!os_confirm_module((uintptr_t)list, 1, 1), "another is not");
    CHECK(generation.is_known, "the loader has a generation");
    CHECK(os_is_generation(&generation), "it stays where nothing is loaded");
#else
    CHECK(!os_is_generation(&generation), "nobody tells changes here");
#endif
}

// Android's linker, read as a file.
TEST(the_linker_counts)
{
    const char *shared = getenv("QUT_SHARED");
    char path[512];
    uint64_t vaddrs[2];
    CHECK(!os_linker_counters("/proc/self/exe", vaddrs), "this program does not");
    CHECK(!os_linker_counters("/does/not/exist", vaddrs), "nor what is not there");
    snprintf(path, sizeof path, "%s/corpus/native/android14/linker64", shared ? shared : "");
    if (sizeof(uintptr_t) != 8 || access(path, R_OK) != 0)
        SKIP("no linker of Android for this word size");
    CHECK(os_linker_counters(path, vaddrs) && vaddrs[0] == 0x16e488 && vaddrs[1] == 0x16e490, "0x%llx 0x%llx",
          (unsigned long long)vaddrs[0], (unsigned long long)vaddrs[1]);
    snprintf(path, sizeof path, "%s/corpus/native/android8.1/linker64", shared);
    CHECK(!os_linker_counters(path, vaddrs), "that of 8.1 does not");
}

TEST(mappings_are_found)
{
    static struct os_mapping mapping;
    int result = os_mapping_at((uintptr_t)list, &mapping);
    CHECK(result == 0 && mapping.is_file && mapping.is_there, "%d: \"%s\" %d", result, mapping.path, mapping.is_there);
    CHECK(strstr(mapping.path, "os_test") != NULL, "%s", mapping.path);
    CHECK(mapping.start <= (uintptr_t)list, "0x%zx", (size_t)mapping.start);
    int local;
    result = os_mapping_at((uintptr_t)&local, &mapping);
    CHECK(result == 0 && !mapping.is_file && !mapping.is_there, "%d: \"%s\"", result, mapping.path);
    CHECK(os_mapping_at(0, &mapping) == -ENOENT, "%s", mapping.path);
}

static void nothing(void *context)
{
    (void)context;
}

// Not under qemu-i386 7.2, where the smallest program that creates a thread hangs in pthread_create.
static bool threads_work(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct os_thread *thread;
        if (os_thread_start(&thread, nothing, NULL) == 0)
            os_thread_join(thread);
        _exit(0);
    }
    int status = -1;
    _Atomic uint32_t never = 0;
    for (int i = 0; i < 500 && waitpid(child, &status, WNOHANG) == 0; i++)
        os_wait(&never, 0, 10);
    if (status == 0)
        return true;
    kill(child, SIGKILL); // it answers to no other signal
    waitpid(child, &status, 0);
    return false;
}

TEST(threads)
{
    SKIP("a program with a thread hangs here");
}

int main(void)
{
    bool with_threads = threads_work();
    RUN(own_memory_is_read_without_faults);
    RUN(parts_are_read_side_by_side);
    RUN(a_word_is_compared);
    RUN(pages_are_zeroed_and_writable);
    RUN(stacks_have_bounds);
    RUN(the_alternate_stack_is_known_while_in_use);
    if (with_threads) {
        RUN(a_thread_runs_without_signals);
        RUN(waiting_ends_by_wake_change_or_time);
        RUN(a_lock_is_held_by_one);
        RUN(a_heavy_and_a_light_fence_make_one);
        RUN(the_end_of_a_thread_is_told);
    } else {
        RUN(threads);
    }
    RUN(modules_are_listed);
    RUN(the_linker_counts);
    RUN(mappings_are_found);
    return tap_finish();
}
