// SPDX-License-Identifier: Apache-2.0
// capture.S: what it saves is its caller's frame, what it passes on is what it was given, and others can unwind
// through it. The C functions it goes on in are stubs here.
#include <string.h>

#include <qut/local.h>
#include <qut/trace.h>

#include "libqut/arch/native.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/arch/native/native_call.h"

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define FRAMES_OF_C_LIBRARY(frames, count) backtrace(frames, count)
#else
#define FRAMES_OF_C_LIBRARY(frames, count) 0
#endif

enum { RESULT = 4242, FRAME_COUNT = 16 };

static struct {
    int calls;
    struct arch_capture capture;
    uintptr_t arguments[3];
    uintptr_t capture_address;
    void *frames[FRAME_COUNT]; // by the C library's unwinder
    int frame_count;
} seen;

size_t walk_backtrace_captured(uintptr_t *pcs, size_t max, struct qut_end *end, const struct arch_capture *capture);
void walk_cursor_captured(struct qut_cursor *cursor, const struct arch_capture *capture);

int feed_trace_sample_captured(const void *ucontext, const struct qut_event *event, const struct arch_capture *capture);

static void note(const struct arch_capture *capture)
{
    // An instruction on aligned words of the stack fails where sp is not as the C calling convention wants it.
    volatile __attribute__((aligned(16))) char aligned[16] = {0};
    (void)aligned;
    seen.calls++;
    seen.capture_address = (uintptr_t)capture;
    if (capture)
        seen.capture = *capture;
    seen.frame_count = FRAMES_OF_C_LIBRARY(seen.frames, FRAME_COUNT);
}

__attribute__((noinline)) size_t walk_backtrace_captured(uintptr_t *pcs, size_t max, struct qut_end *end,
                                                         const struct arch_capture *capture)
{
    seen.arguments[0] = (uintptr_t)pcs;
    seen.arguments[1] = max;
    seen.arguments[2] = (uintptr_t)end;
    note(capture);
    return RESULT;
}

__attribute__((noinline)) void walk_cursor_captured(struct qut_cursor *cursor, const struct arch_capture *capture)
{
    seen.arguments[0] = (uintptr_t)cursor;
    note(capture);
}

__attribute__((noinline)) int feed_trace_sample_captured(const void *ucontext, const struct qut_event *event,
                                                         const struct arch_capture *capture)
{
    seen.arguments[0] = (uintptr_t)ucontext;
    seen.arguments[1] = (uintptr_t)event;
    note(capture);
    return RESULT;
}

static uintptr_t plain(uintptr_t pc)
{
    return arch_native_arch.has_thumb ? pc & ~(uintptr_t)1 : pc;
}

static struct native_call a_call(void)
{
    struct native_call call = {.arguments = {0x1110, 0x2220, 0x3330}};
    for (int slot = 0; slot < QUT_TRACKED_MAX; slot++)
        call.tracked[slot] = (uintptr_t)0x5678900 + (uintptr_t)slot;
    memset(&seen, 0, sizeof seen);
    return call;
}

static void check_capture(const struct native_call *call)
{
    const struct arch *arch = &arch_native_arch;
    CHECK(seen.calls == 1, "%d", seen.calls);
    CHECK(plain((uintptr_t)arch_native_strip(seen.capture.pc)) == call->return_address, "%lx, not %lx",
          (long)seen.capture.pc, (long)call->return_address);
    CHECK(seen.capture.sp == call->sp, "%lx, not %lx", (long)seen.capture.sp, (long)call->sp);
    for (int slot = 0; slot < arch->tracked_count; slot++)
        CHECK(seen.capture.tracked[slot] == call->tracked[slot], "%s: %lx, not %lx",
              arch->register_names[arch->tracked[slot]], (long)seen.capture.tracked[slot], (long)call->tracked[slot]);
    // All of the structure lies in capture.S's own frame.
    CHECK(seen.capture_address + sizeof seen.capture <= call->sp && call->sp - seen.capture_address < 128,
          "structure at %lx, sp at %lx", (long)seen.capture_address, (long)call->sp);
}

TEST(backtrace_captures_its_caller)
{
    struct native_call call = a_call();
    uintptr_t result = native_call((void (*)(void))qut_backtrace, &call);
    check_capture(&call);
    for (int i = 0; i < 3; i++)
        CHECK(seen.arguments[i] == call.arguments[i], "argument %d: %lx", i, (long)seen.arguments[i]);
    CHECK(result == RESULT, "%lu", (long)result);
}

TEST(cursor_captures_its_caller)
{
    struct native_call call = a_call();
    native_call((void (*)(void))qut_cursor_here, &call);
    check_capture(&call);
    CHECK(seen.arguments[0] == call.arguments[0], "%lx", (long)seen.arguments[0]);
}

// From a context it need not.
TEST(sample_captures_its_caller)
{
    for (int has_context = 0; has_context < 2; has_context++) {
        struct native_call call = a_call();
        if (!has_context)
            call.arguments[0] = 0;
        uintptr_t result = native_call((void (*)(void))qut_trace_sample, &call);
        CHECK(seen.calls == 1 && (has_context || seen.capture_address), "%d calls", seen.calls);
        if (seen.capture_address)
            check_capture(&call);
        for (int i = 0; i < 2; i++)
            CHECK(seen.arguments[i] == call.arguments[i], "argument %d: %lx", i, (long)seen.arguments[i]);
        CHECK(result == RESULT, "%lu", (long)result);
    }
}

TEST(the_thumb_bit_is_captured)
{
    if (!arch_native_arch.has_thumb)
        SKIP("%s has no Thumb code", arch_native_arch.name);
    struct native_call call = a_call();
    native_call((void (*)(void))qut_backtrace, &call);
    // The caller is compiled as native_call's neighbour in mode: bit 0 of a function's address is its mode.
    CHECK((seen.capture.pc & 1) == ((uintptr_t)native_call & 1), "%lx, caller %lx", (long)seen.capture.pc,
          (long)(uintptr_t)native_call);
}

TEST(others_unwind_through_it)
{
    static void (*const functions[])(void) = {(void (*)(void))qut_backtrace, (void (*)(void))qut_cursor_here,
                                              (void (*)(void))qut_trace_sample};
    for (int function = 0; function < 3; function++) {
        struct native_call call = a_call();
        native_call(functions[function], &call);
        if (seen.frame_count == 0)
            SKIP("the C library has no backtrace()");
        bool found = false;
        for (int i = 0; i < seen.frame_count; i++)
            found = found || plain((uintptr_t)seen.frames[i]) == call.return_address;
        CHECK(found, "function %d: none of %d frames is %lx", function, seen.frame_count, (long)call.return_address);
    }
}

int main(void)
{
    RUN(backtrace_captures_its_caller);
    RUN(cursor_captures_its_caller);
    RUN(sample_captures_its_caller);
    RUN(the_thumb_bit_is_captured);
    RUN(others_unwind_through_it);
    return tap_finish();
}
