// SPDX-License-Identifier: Apache-2.0
// Names as compilers make them, and as no compiler would.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/run_suite.h"
#include "tracer/symbols/demangle.h"

static void expect(const char *name, const char *wanted)
{
    char *text = symbols_demangle(name);
    ck_assert_str_eq(text, wanted);
    free(text);
}

START_TEST(cplusplus)
{
    expect("_ZN3FooC1Ei", "Foo::Foo(int)");
    expect("_ZNK9bluetooth6packet8IteratorILb1EEdeEv", "bluetooth::packet::Iterator<true>::operator*() const");
    expect("_ZN7testing4Test3RunEv", "testing::Test::Run()");
    expect("_ZN12_GLOBAL__N_16hiddenEv", "(anonymous namespace)::hidden()");
    expect("_Z3maxIiET_S0_S0_", "int max<int>(int, int)");
    // Android's linker
    expect("__dl__ZL24debuggerd_signal_handleriP7siginfoPv", "__dl_debuggerd_signal_handler(int, siginfo*, void*)");
}
END_TEST

START_TEST(rust)
{
    expect("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt");
    expect("_ZN58_$LT$alloc..string..String$u20$as$u20$core..fmt..Write$GT$9write_str17h0123456789abcdefE",
           "<alloc::string::String as core::fmt::Write>::write_str");
    expect("_RNvC6_123foo3bar", "123foo::bar");
    expect("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
    expect("_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>");
    expect("_RNvC0_3bar", "::bar"); // a part without letters, which libiberty tells as NULL: sanitizers see it copied
}
END_TEST

START_TEST(others)
{
    static const char *const plain[] = {"",        "main",    "_",           "_start",       "_Z",
                                        "_Zonk",   "_R",      "__libc_init", "__dl_syscall", "java.lang.Thread.run",
                                        "_ZN3Foo", "\xff\xfe"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        expect(plain[i], plain[i]);
}
END_TEST

static double seconds_of(const char *name)
{
    struct timespec start, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    expect(name, name);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    return (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
}

// f(A<int, int>, A<A<int, int>, A<int, int> >, ...): each argument is twice as long as the one before.
START_TEST(doubling)
{
    char name[1024] = "_Z1f1AIiiE";
    for (int i = 0; i < 30; i++) {
        char digit = (char)(i < 10 ? '0' + i : 'A' + i - 10);
        char part[32];
        snprintf(part, sizeof part, "S_IS%c_S%c_E", digit, digit);
        strcat(name, part);
    }
    ck_assert(seconds_of(name) < 1);
}
END_TEST

START_TEST(deep_and_long)
{
    static char name[3 * SYMBOLS_MANGLED_MAX];
    // void f(int ***...): nested as deep as it is long
    memset(name, 'P', sizeof name - 1);
    memcpy(name, "_Z1f", 4);
    name[SYMBOLS_MANGLED_MAX - 1] = 'i';
    name[SYMBOLS_MANGLED_MAX] = '\0';
    ck_assert(seconds_of(name) < 1);
    memset(name, 'P', sizeof name - 1);
    memcpy(name, "_Z1f", 4);
    ck_assert(seconds_of(name) < 1);
    // tuples of tuples of ... in Rust
    memset(name, 'T', sizeof name - 1);
    memcpy(name, "_RINvC1a1b", 10);
    name[SYMBOLS_MANGLED_MAX] = '\0';
    ck_assert(seconds_of(name) < 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("demangle");
    TCase *tests = tcase_create("demangle");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, cplusplus);
    tcase_add_test(tests, rust);
    tcase_add_test(tests, others);
    tcase_add_test(tests, doubling);
    tcase_add_test(tests, deep_and_long);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
