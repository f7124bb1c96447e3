// SPDX-License-Identifier: Apache-2.0
// Functions in samples that a program's own threads take (libqut/python). This program plays the interpreter: it keeps
// its frames as CPython does, calls itself by way of native code, and knows which functions it is in.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <qut/qut.h>

#include "libqut/host/host.h"
#include "libqut/modules/own_memory.h"
#include "libqut/python/inside.h"
#include "tests/support/discipline.h"
#include "tests/support/feed_view.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/cpython/fake_cpython.h"

enum { FRAMES_MAX = 512, FUNCTIONS = 5, IN_ONE = 2, DEEP = 20, SHIM_BYTES = 96, LINE = 8, STACK_BYTES = 1 << 17 };

static struct fake_cpython fake;
static struct python_known *played;
static struct python_room room;
static uint64_t codes[FUNCTIONS];
static uintptr_t evaluator_low, evaluator_high; // return addresses into it
static uint32_t kinds;                          // how samples are taken
static volatile int sink;

// ---- the interpreter

static void word_at(uint64_t address, uint64_t word)
{
    memcpy((void *)(uintptr_t)address, &word, sizeof word);
}

static uint64_t code_of(const char *name)
{
    static const uint8_t table[] = {0xdf, 0, 0}; // eight units, one line further down
    uint64_t code = fake_code(&fake, name, "/played.py");
    uint64_t lines = 0;
    memcpy(&lines, fake.bytes + (code + fake.runtime.layout.code_lines - FAKE_BASE), sizeof lines);
    fake_put(&fake, lines + fake.runtime.layout.object_size, sizeof table);
    fake_put_bytes(&fake, lines + fake.runtime.layout.bytes_data, table, sizeof table);
    return code;
}

static void set_version(uint64_t code, uint32_t version)
{
    fake_put_bytes(&fake, code + fake.runtime.layout.code_version, &version, sizeof version);
}

// What was made so far, where it can be read.
static bool put_in_place(void)
{
    static void *place;
    if (!place) {
        place = mmap((void *)(uintptr_t)FAKE_BASE, FAKE_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (place != (void *)(uintptr_t)FAKE_BASE) {
            place = NULL;
            return false;
        }
    }
    memcpy(place, fake.bytes, FAKE_BYTES);
    return true;
}

static bool play(unsigned minor)
{
    static const char *const names[FUNCTIONS] = {"zero", "one", "two", "three", "four"};
    fake_begin(&fake, minor);
    uint64_t tid = (uint64_t)syscall(SYS_gettid);
    fake_put(&fake, fake.state + fake.runtime.layout.thread_native_id, tid);
    for (int i = 0; i < FUNCTIONS; i++) {
        codes[i] = code_of(names[i]);
        set_version(codes[i], (uint32_t)i + 100);
    }
    if (!put_in_place())
        return false;
    played = calloc(1, sizeof *played + sizeof *played->threads);
    played->runtime = fake.runtime;
    played->runtime.threads = played->threads;
    played->runtime.evaluator_start = evaluator_low;
    played->runtime.evaluator_end = evaluator_high;
    played->look_again_ns = played->look_each_ns = UINT64_MAX;
    cpython_list_threads(&played->runtime, &modules_own_memory);
    CHECK(played->runtime.thread_count == 1 && functions_table_prepare(&python_functions) && python_lines_prepare() &&
              functions_rooms_prepare(&python_rooms),
          "%zu threads", played->runtime.thread_count);
    played->threads[0].tid = (int32_t)tid; // there is no descriptor of ours
    return true;
}

static void take(void)
{
    struct qut_event event = {.kind = QUT_SAMPLE_OTHER};
    if (kinds)
        raise(SIGUSR1);
    else
        qut_trace_sample(NULL, &event);
    sink++;
}

static void on_signal(int number, siginfo_t *info, void *ucontext)
{
    struct qut_event event = {.kind = QUT_SAMPLE_OTHER};
    (void)number, (void)info;
    qut_trace_sample(ucontext, &event);
}

__attribute__((noinline)) static void native(int depth, uint64_t previous);

// Runs two functions: the outer one is `depth` in the list, the inner one the next.
__attribute__((noinline)) static void evaluate(int depth, uint64_t previous)
{
    const struct cpython_layout *layout = &fake.runtime.layout;
    _Alignas(8) volatile uint8_t shim[SHIM_BYTES] = {0}, frames[IN_ONE][SHIM_BYTES] = {{0}};
    uint64_t outside = (uint64_t)(uintptr_t)shim;
    shim[layout->frame_owner] = CPYTHON_OWNED_BY_STACK;
    word_at(outside + layout->frame_previous, previous);
    for (int i = 0; i < IN_ONE; i++) {
        uint64_t frame = (uint64_t)(uintptr_t)frames[i], code = codes[(depth + i) % FUNCTIONS];
        word_at(frame + layout->frame_code, code);
        word_at(frame + layout->frame_previous, outside);
        word_at(frame + layout->frame_instruction, code + layout->code_instructions + 4);
        outside = frame;
    }
    word_at(fake.state + layout->thread_frame, outside);
    native(depth - 1, outside);
    word_at(fake.state + layout->thread_frame, previous);
    sink++;
}

__attribute__((noinline)) static void native(int depth, uint64_t previous)
{
    uintptr_t from = (uintptr_t)__builtin_return_address(0);
    if (previous && (!evaluator_low || from < evaluator_low))
        evaluator_low = from - 1;
    if (previous && from >= evaluator_high)
        evaluator_high = from + 1;
    if (depth > 0)
        evaluate(depth, previous);
    else
        take();
    sink++;
}

// ---- what was stored

static bool is_evaluator(uintptr_t pc)
{
    return pc >= evaluator_low && pc < evaluator_high;
}

static const char *name_of(const struct view *view, uintptr_t pc)
{
    for (uint32_t i = 0; i < view->header->module_count; i++)
        if ((view->modules[i].flags & QUT_TRACE_MODULE_LINES) &&
            pc - view->modules[i].start < view->modules[i].code_bytes)
            return view_string(view, view->modules[i].path);
    return "";
}

static size_t last_stack(struct view *view, struct view_frame *frames)
{
    return view_stack(view, view_last_node(view_self(view), 0), frames, FRAMES_MAX);
}

// Behind each evaluator the two functions that it runs.
static void check_stack(int depth)
{
    static struct view_frame frames[FRAMES_MAX];
    struct view view;
    qut_refresh();
    if (!CHECK(view_open(&view), "no trace"))
        return;
    size_t count = last_stack(&view, frames);
    int evaluator = 0, functions = 0;
    for (size_t i = 0; i < count; i++) {
        functions += frames[i].class == QUT_TRACE_CLASS_DEX;
        if (!is_evaluator(frames[i].pc))
            continue;
        evaluator++;
        for (int k = IN_ONE - 1; k >= 0; k--) {
            static const char *const texts[FUNCTIONS] = {"zero\n/played.py", "one\n/played.py", "two\n/played.py",
                                                         "three\n/played.py", "four\n/played.py"};
            const struct view_frame *frame = &frames[++i];
            const char *wanted = texts[(evaluator + k) % FUNCTIONS], *name = name_of(&view, frame->pc);
            CHECK(i < count && frame->class == QUT_TRACE_CLASS_DEX && strcmp(name, wanted) == 0 &&
                      (frame->pc & ((1u << CPYTHON_LINE_BITS) - 1)) == LINE,
                  "evaluator %d of %d: %lx, \"%s\" and not \"%s\"", evaluator, depth, (unsigned long)frame->pc, name,
                  wanted);
            functions++;
        }
    }
    CHECK(evaluator == depth && functions == depth * IN_ONE, "%d evaluators, %d functions of %d", evaluator, functions,
          depth);
    view_close(&view);
}

static bool begin(void)
{
    static bool is_started;
    if (sizeof(void *) != 8)
        tap_skip("CPython's layouts are those of 64 bits");
    else if (!discipline_has_compiler())
        tap_skip("no compiler for tables");
    else if (!CHECK(is_started || discipline_start(), "qut_start"))
        return false;
    else if (!play(13))
        tap_skip("no room at a fixed address");
    is_started = !tap.skipping;
    if (tap.skipping)
        return false;
    struct qut_trace_options trace = {.size = sizeof trace};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    CHECK(qut_trace_open(&trace) == 0, "no trace");
    native(2, 0); // where calls return to is known now
    played->runtime.evaluator_start = evaluator_low;
    played->runtime.evaluator_end = evaluator_high;
    atomic_store(&python_known, played);
    return true;
}

static void end(void)
{
    atomic_store(&python_known, NULL);
    qut_trace_close();
    free(played);
}

TEST(functions_stand_behind_their_evaluators)
{
    if (!begin())
        return;
    for (kinds = 0; kinds < 2; kinds++)
        for (int depth = 1; depth <= DEEP; depth += 3)
            for (int again = 0; again < 4; again++) { // looked up, remembered
                native(depth, 0);
                check_stack(depth);
            }
    end();
}

static void *beside(void *unused)
{
    (void)unused;
    native(3, 0);
    return NULL;
}

// Threads that the list does not have get none: the state is another thread's.
TEST(other_threads_have_none_of_them)
{
    static struct view_frame frames[FRAMES_MAX];
    struct view view;
    pthread_t thread;
    if (!begin())
        return;
    kinds = 0;
    uint64_t before = python_sums().uncertain;
    pthread_create(&thread, NULL, beside, NULL);
    pthread_join(thread, NULL);
    CHECK(python_sums().uncertain == before + 1, "not counted");
    if (CHECK(view_open(&view), "no trace")) {
        size_t count = last_stack(&view, frames);
        for (size_t i = 0; i < count; i++)
            CHECK(frames[i].class != QUT_TRACE_CLASS_DEX, "frame %zu", i);
        view_close(&view);
    }
    end();
}

// ---- what need not be what it should be

// How many functions a sample has, with that word as the innermost frame.
static int functions_with(uint64_t innermost, int *named)
{
    static struct view_frame frames[FRAMES_MAX];
    struct view view;
    int functions = 0;
    word_at(fake.state + fake.runtime.layout.thread_frame, innermost);
    take();
    qut_refresh();
    *named = 0;
    if (!CHECK(view_open(&view), "no trace"))
        return -1;
    size_t count = last_stack(&view, frames);
    CHECK(count > 1, "%zu frames", count);
    for (size_t i = 0; i < count; i++) {
        functions += frames[i].class == QUT_TRACE_CLASS_DEX;
        *named += frames[i].class == QUT_TRACE_CLASS_DEX && strncmp(name_of(&view, frames[i].pc), "[unknown", 8) != 0;
    }
    view_close(&view);
    return functions;
}

TEST(frames_that_lead_nowhere)
{
    int named;
    if (!begin())
        return;
    kinds = 0;
    const struct cpython_layout *layout = &fake.runtime.layout;
    static const uint64_t nowhere[] = {1, 8, 0x1000, FAKE_BASE + FAKE_BYTES - 8, UINT64_C(1) << 60, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++)
        CHECK(functions_with(nowhere[i], &named) == 0, "%lx", (unsigned long)nowhere[i]);
    // A frame that is its own caller.
    uint64_t frame = fake_frame(&fake, codes[0], 0, CPYTHON_OWNED_BY_THREAD, false);
    fake_put(&fake, frame + layout->frame_previous, frame);
    put_in_place();
    CHECK(functions_with(frame, &named) == 0, "a cycle");
    // Code objects that are none, were freed, or lead to no text.
    _Alignas(8) volatile uint8_t own[SHIM_BYTES] = {0};
    uint64_t shim = (uint64_t)(uintptr_t)own;
    own[layout->frame_owner] = CPYTHON_OWNED_BY_STACK;
    for (int what = 0; what < 5; what++) {
        uint64_t code = code_of("spoiled");
        set_version(code, 1000 + (uint32_t)what);
        fake_put(&fake, code, what == 0 ? 0 : 1);
        fake_put(&fake, code + layout->object_type, what == 1 ? 12345 : fake.runtime.code_type);
        if (what == 2)
            fake_put(&fake, code + layout->code_qualified, 0x5000);
        frame = fake_frame(&fake, what == 3 ? UINT64_C(0x7000) : code, shim, CPYTHON_OWNED_BY_THREAD, false);
        put_in_place();
        int functions = functions_with(frame, &named);
        CHECK(functions == 1 && named == (what == 4), "%d: %d, %d named", what, functions, named);
    }
    // The frames of another stack.
    frame = fake_frame(&fake, codes[0], fake_frame(&fake, 0, 0, CPYTHON_OWNED_BY_STACK, false), CPYTHON_OWNED_BY_THREAD,
                       false);
    put_in_place();
    CHECK(functions_with(frame, &named) == 0, "not of this stack");
    end();
}

// ---- which function is which

static uint32_t number_of(uint64_t address)
{
    struct cpython_code code;
    put_in_place();
    return cpython_read_code(&played->runtime, &modules_own_memory, address, &code)
               ? python_function_of(played, &room, &code, 1)
               : PYTHON_NONE;
}

TEST(a_function_in_place_of_another_one_is_not_that)
{
    for (unsigned minor = 8; minor <= 13; minor++) {
        if (sizeof(void *) != 8 || !play(minor))
            SKIP("no room for memory of CPython's");
        const struct cpython_layout *layout = &fake.runtime.layout;
        uint64_t code = code_of("first");
        if (layout->code_version)
            set_version(code, 500 + minor);
        uint32_t first = number_of(code);
        CHECK(first != PYTHON_NONE && number_of(code) == first, "3.%u: %u", minor, first);
        // At the same addresses.
        uint64_t name = 0;
        memcpy(&name, fake.bytes + (code + layout->code_qualified - FAKE_BASE), sizeof name);
        fake_put_bytes(&fake, name + layout->text_ascii_data, "other", 5);
        if (layout->code_version)
            set_version(code, 600 + minor);
        uint32_t second = number_of(code);
        CHECK(second != PYTHON_NONE && second != first && number_of(code) == second, "3.%u: %u, %u", minor, first,
              second);
        free(played);
    }
}

// ---- how much stack

static size_t stack_used(uint8_t *stack)
{
    memset(stack, 0xa5, STACK_BYTES);
    native(3, 0);
    size_t unused = 0;
    while (unused < STACK_BYTES && stack[unused] == 0xa5)
        unused++;
    return STACK_BYTES - unused;
}

TEST(handlers_need_little_more_stack)
{
    enum { MORE_MAX = 2048 };
    if (!begin())
        return;
    uint8_t *stack = malloc(STACK_BYTES);
    stack_t alternate = {.ss_sp = stack, .ss_size = STACK_BYTES}, none = {.ss_flags = SS_DISABLE};
    sigaltstack(&alternate, NULL);
    kinds = 1;
    size_t with = stack_used(stack);
    atomic_store(&python_known, NULL);
    size_t without = stack_used(stack);
    sigaltstack(&none, NULL);
    free(stack);
    printf("# %zu bytes of stack, %zu with functions\n", without, with);
#ifndef OS_SANITIZED
    CHECK(with < without + MORE_MAX, "%zu, %zu", with, without);
#endif
    end();
}

int main(void)
{
    RUN(functions_stand_behind_their_evaluators);
    RUN(other_threads_have_none_of_them);
    RUN(frames_that_lead_nowhere);
    RUN(a_function_in_place_of_another_one_is_not_that);
    RUN(handlers_need_little_more_stack);
    return tap_finish();
}
