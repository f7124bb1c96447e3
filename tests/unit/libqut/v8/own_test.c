// SPDX-License-Identifier: Apache-2.0
// A program that plays V8, and samples itself: made code with frames as V8's, heap objects that were made up.
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include <qut/qut.h>

#include "libqut/javascript/inside.h"
#include "tests/support/discipline.h"
#include "tests/support/feed_view.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/v8/fake_v8.h"

enum { FRAMES_MAX = 256, FUNCTIONS = 3, DEEP = 12 };

typedef void (*callee_fn)(int depth);
typedef void (*made_fn)(callee_fn callee, uint64_t context, uint64_t function, int64_t depth);

static struct javascript_known played;
static uint64_t functions[FUNCTIONS];
static made_fn made;
static int by_signal;
static volatile int sink;

static void on_signal(int signal_number, siginfo_t *info, void *ucontext)
{
    struct qut_event event = {.kind = QUT_SAMPLE_OTHER};
    (void)signal_number, (void)info;
    qut_trace_sample(ucontext, &event);
}

__attribute__((noinline)) static void native(int depth)
{
    struct qut_event event = {.kind = QUT_SAMPLE_OTHER};
    if (depth > 0)
        made(native, BASE + 64 + TAG, functions[depth % FUNCTIONS] + TAG, depth - 1);
    else if (by_signal)
        raise(SIGUSR1);
    else
        qut_trace_sample(NULL, &event);
    sink++;
}

// push %rbp; mov %rsp, %rbp; push %rsi (context); push %rdx (function); push, push, push; sub $8, %rsp; mov %rdi, %rax;
// mov %ecx, %edi; call *%rax; nop...; mov %rbp, %rsp; pop %rbp; ret
static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x56, 0x52, 0x6a, 0x02, 0x6a, 0x00,
                               0x6a, 0x00, 0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0xf8, 0x89,
                               0xcf, 0xff, 0xd0, 0x90, 0x90, 0x48, 0x89, 0xec, 0x5d, 0xc3};

static bool put_in_place(void)
{
    static void *place, *text_place;
    if (!place) {
        place = mmap((void *)(uintptr_t)BASE, BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        text_place = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (place != (void *)(uintptr_t)BASE || text_place == MAP_FAILED)
            return false;
        memcpy((uint8_t *)text_place + 64, code, sizeof code);
        uintptr_t address = (uintptr_t)text_place + 64;
        memcpy(&made, &address, sizeof made);
    }
    memcpy(place, bytes, BYTES);
    return true;
}

static bool start(void)
{
    static const char *const names[FUNCTIONS] = {"zero", "one", "two"};
    begin();
    room(128); // the context
    for (int i = 0; i < FUNCTIONS; i++) {
        make_function_called(names[i], 10 * i);
        functions[i] = function;
    }
    played.layout = layout;
    if (!put_in_place() || !functions_table_prepare(&javascript_functions) ||
        !functions_rooms_prepare(&javascript_rooms))
        return false;
    struct qut_trace_options trace = {.size = sizeof trace};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    return CHECK(qut_trace_open(&trace) == 0, "no trace");
}

static bool is_ready(void)
{
    static bool is_started;
    struct qut_options options = {
        .size = sizeof options, .compile = discipline_compile, .flags = QUT_START_FRAME_POINTERS};
    if (!discipline_has_compiler())
        tap_skip("no compiler for tables");
    else if (CHECK(is_started || (qut_start(&options) == 0 && qut_wait(120000) == 0), "qut_start"))
        is_started = true;
    if (tap.skipping || !is_started || !start())
        return false;
    // The mapping of made code becomes known.
    native(1);
    qut_refresh();
    atomic_store(&javascript_known, &played);
    return true;
}

static void end(void)
{
    atomic_store(&javascript_known, NULL);
    qut_trace_close();
}

static const char *name_of(const struct view *view, uintptr_t pc)
{
    for (uint32_t i = 0; i < view->header->module_count; i++)
        if ((view->modules[i].flags & QUT_TRACE_MODULE_LINES) &&
            pc - view->modules[i].start < view->modules[i].code_bytes)
            return view_string(view, view->modules[i].path);
    return "";
}

// How many functions the last stack has that are called as they should be; -1: one is not, or rests on a guess.
static int functions_seen(int depth)
{
    static const char *const texts[FUNCTIONS] = {"zero\n/a.js", "one\n/a.js", "two\n/a.js"};
    static struct view_frame frames[FRAMES_MAX];
    struct view view;
    int seen = 0;
    qut_refresh();
    if (!CHECK(view_open(&view), "no trace"))
        return -1;
    size_t count = view_stack(&view, view_last_node(view_self(&view), 0), frames, FRAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (frames[i].class != QUT_TRACE_CLASS_DEX)
            continue;
        const char *told = name_of(&view, frames[i].pc);
        seen = seen >= 0 && strcmp(told, texts[++seen % FUNCTIONS]) == 0 ? seen : -1;
        CHECK(seen >= 0, "frame %zu of depth %d is \"%s\"", i, depth, told);
        CHECK(i + 1 == count || !(frames[i + 1].bits & QUT_TRACE_NODE_GUESSED), "behind frame %zu is a guess", i);
    }
    view_close(&view);
    return seen;
}

TEST(made_code_becomes_its_functions)
{
    if (!is_ready())
        return;
    for (by_signal = 0; by_signal < 2; by_signal++)
        for (int depth = 1; depth <= DEEP; depth++)
            for (int again = 0; again < 3; again++) {
                native(depth);
                int seen = functions_seen(depth);
                CHECK(seen == depth, "%d of %d functions", seen, depth);
            }
    by_signal = 0;
    end();
}

// What lies there need not be what it was: then there is no function, and no other's name.
TEST(objects_that_are_none)
{
    if (!is_ready())
        return;
    static const uint64_t words[] = {0, 1, 8, UINT64_C(0x7000000000001), UINT64_MAX, BASE + BYTES - 7};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        uint64_t kept = functions[1];
        functions[1] = words[i] - TAG;
        native(1);
        CHECK(functions_seen(1) == 0, "%lx", (unsigned long)words[i]);
        functions[1] = kept;
        put(functions[1] + 24, words[i]); // its shared part
        put_in_place();
        native(1);
        CHECK(functions_seen(1) == 0, "leads to %lx", (unsigned long)words[i]);
        put(functions[1] + 24, shared + TAG); // that of another function
        put_in_place();
    }
    end();
}

TEST(objects_that_move)
{
    if (!is_ready())
        return;
    for (int round = 0; round < 5; round++) {
        uint64_t copy = room(64);
        memcpy(bytes + (copy - BASE), bytes + (functions[1] - BASE), 64);
        put(functions[1], copy); // the collector leaves the new address
        put_in_place();
        native(1);
        CHECK(functions_seen(1) == 1, "moved, not told yet: round %d", round);
        functions[1] = copy;
        native(1);
        CHECK(functions_seen(1) == 1, "moved: round %d", round);
    }
    end();
}

int main(void)
{
    RUN(made_code_becomes_its_functions);
    RUN(objects_that_are_none);
    RUN(objects_that_move);
    return tap_finish();
}
