// SPDX-License-Identifier: Apache-2.0
// What scripts will do, as people are told before.
#include <stdlib.h>
#include <string.h>

#include "bytecode/run.h"
#include "tests/support/run_suite.h"
#include "tracer/probe/explain.h"

static void explains(const char *text, const struct probe_counts *counts, const char *said)
{
    struct probe_script script;
    struct probe_diagnostic why;
    ck_assert_msg(probe_compile(text, strlen(text), &script, &why) == 0, "%s", why.text);
    char *shown = probe_explain(&script, counts);
    ck_assert_str_eq(shown, said);
    free(shown);
    probe_script_free(&script);
}

START_TEST(scripts_are_explained)
{
    explains(
        "entry:libc.so*!write /arg0 > 2/ { @sizes = hist(arg2) }"
        " return:a, entry:b, return:c { @slow[tid, str(u64(time))] = count(); printf(\"%d \\\"took\\\"\\n\", tid) }"
        " timer:1500ms { print(@slow); clear(@slow) } begin { @x[0] = @x[1] } end { printf(\"done\") }",
        NULL,
        "whenever \"libc.so*!write\" is entered:\n"
        "    looks at arg0, arg2\n"
        "    changes @sizes\n"
        "    takes 8 instructions at most\n"
        "whenever it has returned from \"a\", and\n"
        "whenever it has returned from \"c\":\n"
        "    looks at time, tid, the program's memory, 2 times at most\n"
        "    changes @slow\n"
        "    says \"%d \\\"took\\\"\\n\", 8 bytes\n"
        "    takes 27 instructions at most\n"
        "whenever \"b\" is entered:\n"
        "    looks at time, tid, the program's memory, 2 times at most\n"
        "    changes @slow\n"
        "    says \"%d \\\"took\\\"\\n\", 8 bytes\n"
        "    takes 27 instructions at most\n"
        "every 1500 ms, in the tool:\n"
        "    prints @slow\n"
        "    clears @slow\n"
        "    takes 7 instructions at most\n"
        "before the others, in the tool:\n"
        "    changes @x\n"
        "    looks up @x\n"
        "    takes 16 instructions at most\n"
        "after the others, in the tool:\n"
        "    says \"done\", 0 bytes\n"
        "    takes 5 instructions at most\n"
        "@sizes: hist(), 560 bytes\n"
        "@slow: count(), 4096 keys of 72 bytes at most, 393224 bytes\n"
        "@x: a value, 4096 keys of 8 bytes at most, 131080 bytes\n"
        "524864 bytes are shared with the program for them.\n");
}
END_TEST

// Counted by hand: 3 of the predicate with what is before it, 2 of `if`, 9 of each sum, 2 at the end; of the other
// branch there are only 4.
START_TEST(the_longest_way_counts)
{
    explains("entry:f, entry:g /arg0/ { if (arg1) { @a = count() } else { @b = sum(u8(arg2)); @c = sum(u8(arg3)) } }",
             (const struct probe_counts[]){{1, 0}, {20, 0}},
             "whenever the one function of \"f\" is entered, and\n"
             "whenever one of 20 functions of \"g\" is entered:\n"
             "    looks at arg0, arg1, arg2, arg3, the program's memory, 2 times at most\n"
             "    changes @a, @b, @c\n"
             "    takes 25 instructions at most\n"
             "@a: count(), 32 bytes\n"
             "@b: sum(), 32 bytes\n"
             "@c: sum(), 32 bytes\n"
             "96 bytes are shared with the program for them.\n");
    // One program for places that are called by the same.
    explains("call:f in m!g, call:h in m!g, return:f in main { @a = count() }",
             (const struct probe_counts[]){{2, 1}, {1, 1}, {3, 4}},
             "whenever one of 2 functions of \"f\" is called in the one function of \"m!g\", and\n"
             "whenever the one function of \"h\" is called in the one function of \"m!g\":\n"
             "    changes @a\n"
             "    takes 6 instructions at most\n"
             "whenever it has returned from one of 3 functions of \"f\" to one of 4 functions of \"main\":\n"
             "    changes @a\n"
             "    takes 6 instructions at most\n"
             "@a: count(), 32 bytes\n"
             "32 bytes are shared with the program for them.\n");
    explains("offset:m!f+0x1c { @a = count() }", (const struct probe_counts[]){{1, 0}},
             "whenever it comes to the place 0x1c bytes behind the entry of the one function of \"m!f\":\n"
             "    changes @a\n"
             "    takes 6 instructions at most\n"
             "@a: count(), 32 bytes\n"
             "32 bytes are shared with the program for them.\n");
    explains("line:m!f.c:12, line:\"src/g.c:3\" { @a = count() }", (const struct probe_counts[]){{1, 0}, {1, 0}},
             "whenever it comes to line 12 of f.c, in each function that has code of it, of \"m\", and\n"
             "whenever it comes to line 3 of src/g.c, in each function that has code of it:\n"
             "    changes @a\n"
             "    takes 6 instructions at most\n"
             "@a: count(), 32 bytes\n"
             "32 bytes are shared with the program for them.\n");
    // Where exceptions are thrown and caught is looked at for it.
    explains("unwind:m!f { @a = count() }", NULL,
             "whenever it was left, and has not returned, from \"m!f\":\n"
             "    changes @a\n"
             "    takes 6 instructions at most\n"
             "whenever \"libstdc++.so*!__cxa_*throw\" is entered, and\n"
             "whenever \"libstdc++.so*!_ZSt17rethrow_exception*\" is entered, and\n"
             "whenever \"libc++abi.so*!__cxa_*throw\" is entered, and\n"
             "whenever \"libc++abi.so*!_ZSt17rethrow_exception*\" is entered, and\n"
             "whenever \"libc++.so*!__cxa_*throw\" is entered, and\n"
             "whenever \"libc++.so*!_ZSt17rethrow_exception*\" is entered, and\n"
             "whenever \"m!__cxa_*throw\" is entered, and\n"
             "whenever \"m!_ZSt17rethrow_exception*\" is entered:\n"
             "    notes that calls further out may be left\n"
             "whenever \"libstdc++.so*!__cxa_begin_catch\" is entered, and\n"
             "whenever \"libc++abi.so*!__cxa_begin_catch\" is entered, and\n"
             "whenever \"libc++.so*!__cxa_begin_catch\" is entered, and\n"
             "whenever \"m!__cxa_begin_catch\" is entered:\n"
             "    finds out which calls were left\n"
             "@a: count(), 32 bytes\n"
             "32 bytes are shared with the program for them.\n");
    // A number of 64 bits is one instruction that has the room of two.
    explains("entry:f { @a = sum(0x123456789a) }", NULL,
             "whenever \"f\" is entered:\n"
             "    changes @a\n"
             "    takes 6 instructions at most\n"
             "@a: sum(), 32 bytes\n"
             "32 bytes are shared with the program for them.\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain");
    TCase *tests = tcase_create("explain");
    tcase_add_test(tests, scripts_are_explained);
    tcase_add_test(tests, the_longest_way_counts);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
