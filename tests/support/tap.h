// SPDX-License-Identifier: Apache-2.0
// A test harness for targets where there is nothing but libc. One program:
//
//   TEST(returns_zero_for_zero)
//   {
//       CHECK(f(0) == 0, "f(0) = %d", f(0));
//   }
//
//   int main(void)
//   {
//       RUN(returns_zero_for_zero);
//       return tap_finish();
//   }
//
// A test goes on after a failed CHECK; it fails if any of its checks did. The last line printed is
// `N passed, M failed, K skipped`, which ./check adds up.
#ifndef TESTS_SUPPORT_TAP_H
#define TESTS_SUPPORT_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static struct {
    int passed, failed, skipped;
    int failed_checks; // of the running test
    bool skipping;     // the running test called SKIP
} tap;

#define TEST(name) static void name(void)
#define RUN(name)  tap_run(#name, name)

// The text after the condition is a format and its arguments; it should show the values that the condition compares.
#define CHECK(condition, ...) tap_check((condition), __FILE__, __LINE__, #condition, __VA_ARGS__)

// Ends the running test as skipped; the text says what is missing.
#define SKIP(...)                                                                                                      \
    do {                                                                                                               \
        tap_skip(__VA_ARGS__);                                                                                         \
        return;                                                                                                        \
    } while (0)

__attribute__((format(printf, 5, 6), unused)) static bool tap_check(bool holds, const char *file, int line,
                                                                    const char *condition, const char *format, ...)
{
    if (holds)
        return true;
    tap.failed_checks++;
    printf("%s:%d: not so: %s: ", file, line, condition);
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    return false;
}

__attribute__((format(printf, 1, 2), unused)) static void tap_skip(const char *format, ...)
{
    tap.skipping = true;
    printf("SKIP: ");
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

static void tap_run(const char *name, void (*test)(void))
{
    tap.failed_checks = 0;
    tap.skipping = false;
    test();
    if (tap.failed_checks) {
        tap.failed++;
        printf("FAIL %s\n", name);
    } else if (tap.skipping) {
        tap.skipped++;
    } else {
        tap.passed++;
        printf("ok   %s\n", name);
    }
    fflush(stdout); // a crash in the next test must not swallow this one
}

static int tap_finish(void)
{
    printf("%d passed, %d failed, %d skipped\n", tap.passed, tap.failed, tap.skipped);
    return tap.failed > 0;
}

#endif
