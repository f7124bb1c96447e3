// SPDX-License-Identifier: Apache-2.0
// What a walk through code made at run time takes of the stack: as little as was promised, in each layout, whether the
// code is confirmed or found to be another.
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/runtime/tiers.h"
#include "tests/support/discipline.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/modules/jit/player.h"

enum { LAYOUTS = 3, PROMISE_BYTES = 1024, PAINTED_BYTES = 16 << 10, STACK_BYTES = 64 << 10, PAINT = 0xa7, CALLS = 2 };
enum { SLOWLY, FAST, UNREGISTERED, WAYS };
static const char *const way_names[WAYS] = {"slowly", "", "unregistered"};

static struct owner owner;
static uintptr_t pcs[64];
static size_t count, used;
static struct qut_end end;
static struct qut_cursor cursor;

static void call_backtrace(const void *context)
{
    count = qut_backtrace_context(context, pcs, 64, &end);
}

static void call_cursor(const void *context)
{
    qut_cursor_context(&cursor, context);
    for (count = 1; qut_cursor_next(&cursor);)
        count++;
}

static uintptr_t probed_address;

__attribute__((noinline)) static void probe(const void *context)
{
    (void)context;
    probed_address = (uintptr_t)__builtin_frame_address(0);
}

typedef void measured(const void *context);
static measured *volatile chosen;
static measured *const volatile probe_call = probe;

__attribute__((noinline)) static void measure(const void *context)
{
    probe_call(context);
    volatile unsigned char *low = (volatile unsigned char *)probed_address - PAINTED_BYTES;
    for (size_t i = 0; i < PAINTED_BYTES - 256; i++)
        low[i] = PAINT;
    chosen(context);
    size_t at = 0;
    while (at < PAINTED_BYTES && low[at] == PAINT)
        at++;
    used = PAINTED_BYTES - at;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    measure(context);
}

static void callee(void)
{
    raise(SIGUSR1);
}

static volatile int after_call;

static void measure_each(const char *name, const char *when, size_t least_count)
{
    static measured *const calls[CALLS] = {call_backtrace, call_cursor};
    for (unsigned i = 0; i < CALLS; i++) {
        for (unsigned way = 0; way < WAYS; way++) {
            atomic_store_explicit(&runtime_tiers, way == SLOWLY ? 0 : RUNTIME_TIERS_ALL, memory_order_relaxed);
            if (way == UNREGISTERED)
                qut_thread_unregister();
            chosen = calls[i];
            code_of(0)(callee);
            after_call++;
            CHECK(used < PROMISE_BYTES, "%s, %s, %s uses %zu", name, when, i ? "cursor" : "backtrace", used);
            CHECK(count >= least_count, "%s, %s: only %zu frames", name, when, count);
            printf("# %-10s %-10s %-10s %-12s %4zu bytes of stack, %zu frames\n", name, when,
                   i ? "cursor" : "backtrace", way_names[way], used, count);
            qut_thread_register();
        }
    }
}

static void in_one_layout(void)
{
    static const char *const names[LAYOUTS] = {"GDB", "Android1", "Android2"};
    static uint8_t symfile[CODE_SYMFILE_BYTES_MAX];
    const char *name = names[owner.layout];
    struct code_method method = code_emit(0, 3), other = code_emit(1, 3);
    struct jit_entry *entry = owner_add(&owner, symfile, code_symfile(&method, 1, symfile));
    static uint8_t other_symfile[CODE_SYMFILE_BYTES_MAX];
    qut_refresh();
    measure_each(name, "known", 6);
    struct jit_entry *newer = owner_add(&owner, other_symfile, code_symfile(&other, 1, other_symfile));
    measure_each(name, "one newer", 3);
    qut_refresh();
    owner_remove(&owner, entry);
    measure_each(name, "removed", 3);
    qut_refresh();
    measure_each(name, "unknown", 3);
    owner_remove(&owner, newer);
}

int main(void)
{
    struct qut_options options = {.size = sizeof options, .compile = player_compile, .flags = QUT_START_NO_THREAD};
    if (!discipline_has_compiler()) {
        puts("SKIP: no qutc for the program's own table\n0 passed, 0 failed, 1 skipped");
        return 77;
    }
    if (!code_start() || qut_start(&options) != 0)
        return 1;
    static char stack[STACK_BYTES];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternate, NULL);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        owner_load(&owner, (enum art_jit_layout)layout);
        qut_refresh();
        if (!owner.descriptor)
            return 1;
        tap_run("the stack of walks", in_one_layout);
        owner_unload(&owner);
    }
    qut_stop();
    return tap_finish();
}
