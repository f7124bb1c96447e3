// SPDX-License-Identifier: Apache-2.0
// Scripts: what they become does what they say, and what is wrong with others is said where it is.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytecode/run.h"
#include "tests/support/run_suite.h"
#include "tracer/probe/script.h"

// ---- a host that writes down what it is asked for

enum { CALLS_MAX = 16 };

struct host {
    struct bytecode_host host;
    const struct probe_script *script;
    uint32_t count;
    struct call {
        uint32_t helper;
        uint64_t number, value, words[64]; // the last one of a key first, as in memory
    } calls[CALLS_MAX];
};

static const char memory[64] = "a text of some words";

static uint64_t answer(struct bytecode_host *base, uint32_t helper, uint64_t a, uint64_t b, uint64_t c)
{
    struct host *host = (struct host *)(void *)base;
    const struct qut_probe_image image = qut_probe_parts(host->script->image);
    if (helper == QUT_PROBE_PATH) { // descriptor 3 is open
        memset((char *)(uintptr_t)a, 0, (size_t)(b + 7) / 8 * 8);
        return c == 3 ? (uint64_t)snprintf((char *)(uintptr_t)a, (size_t)b, "/a/path") : 0;
    }
    if (helper == QUT_PROBE_READ || helper == QUT_PROBE_STRING) {
        char *to = (char *)(uintptr_t)a;
        memset(to, 0, (size_t)(b + 7) / 8 * 8);
        if (c < 1000 || c >= 1000 + sizeof memory) // where the memory is
            return 0;
        const size_t most = (size_t)b - (helper == QUT_PROBE_STRING);
        for (size_t i = 0; i < most && c - 1000 + i < sizeof memory; i++) {
            to[i] = memory[c - 1000 + i];
            if (helper == QUT_PROBE_STRING && !to[i])
                return i;
        }
        return helper == QUT_PROBE_STRING ? most : 1;
    }
    ck_assert_uint_lt(host->count, CALLS_MAX);
    struct call *call = &host->calls[host->count++];
    *call = (struct call){.helper = helper, .number = a, .value = helper == QUT_PROBE_AGGREGATE ? c : 0};
    const uint32_t words = helper == QUT_PROBE_EMIT                                      ? image.records[a].words
                           : helper == QUT_PROBE_AGGREGATE || helper == QUT_PROBE_LOOKUP ? image.maps[a].key_words
                                                                                         : 0;
    if (words)
        memcpy(call->words, (const void *)(uintptr_t)b, words * sizeof *call->words);
    return helper == QUT_PROBE_LOOKUP ? 42 : helper == QUT_PROBE_STACK ? 4200 + a : 0;
}

static void compile(struct probe_script *script, const char *text)
{
    struct probe_diagnostic why;
    ck_assert_msg(probe_compile(text, strlen(text), script, &why) == 0, "%s: %s", text, why.text);
}

static void run(struct host *host, const struct probe_script *script, uint32_t program)
{
    const struct qut_probe_image image = qut_probe_parts(script->image);
    const uint64_t fields[QUT_PROBE_FIELD_END] = {3, 1007, 1000, (uint64_t)-5, 4, 5, 1002, 2000000, 77, 11, 12, 111, 13};
    *host = (struct host){.host = {answer}, .script = script};
    ck_assert_uint_eq(bytecode_run(image.instructions + image.programs[program].first_instruction, fields, &host->host),
                      0);
}

// ---- values: arg0 is 3, arg1 1007, arg2 the memory, arg3 -5, arg4 4, arg5 5

static const struct {
    const char *text;
    int64_t value;
} values[] = {
    {"arg0", 3},
    {"arg0 + arg1 * 2", 2017},
    {"(arg0 + arg1) * 2", 2020},
    {"arg0 - arg4 - arg5", -6},
    {"2 + 3 * 4 - 1", 13},
    {"arg3 / 2", -2},
    {"arg3 % 3", -2},
    {"arg3 >> 1", -3},
    {"1 << arg0", 8},
    {"arg0 | 4 ^ 6 & 3", 7},
    {"-arg3", 5},
    {"~arg0", -4},
    {"!arg0", 0},
    {"!!arg0", 1},
    {"!0", 1},
    {"arg3 < 0", 1},
    {"arg3 > arg0", 0},
    {"arg0 == 3 && arg4 == 4", 1},
    {"arg0 == 3 && arg4 == 5", 0},
    {"arg0 == 4 && arg4 == 4", 0},
    {"arg0 == 4 || arg4 == 4", 1},
    {"arg0 == 4 || arg4 == 5", 0},
    {"!(arg0 == 4 || arg4 == 5) && (arg0 || 0)", 1},
    {"(arg0 == 3) + (arg4 == 4) * 2", 3},
    {"arg0 > 2 ? arg4 : arg5", 4},
    {"arg0 > 3 ? arg4 : arg0 == 3 ? 10 : 20", 10},
    {"0x7fffffffffffffff", INT64_MAX},
    {"arg0 == 0x123456789a", 0},
    {"0x123456789a + arg0", 0x123456789d},
    {"10ms", 10000000},
    {"u8(arg2)", 'a'},
    {"u16(1000 + 2)", 't' | 'e' << 8},
    {"u64(arg2) - u64(arg2 + 0)", 0},
    {"u32(7)", 0},
    {"s8(arg2 + arg0)", 'e'},
    {"str(arg2) == \"a text of some words\"", 1},
    {"str(arg2) == \"a text of some word\"", 0},
    {"str(arg2) == \"a text of some words!\"", 0},
    {"str(arg2, 7) == \"a text\"", 1},
    {"str(arg2) != \"a text\"", 1},
    {"\"text of some words\" == str(arg2 + 2)", 1},
    {"str(7) == \"\"", 1},
    {"@v[arg0] + 1", 43},
    {"arg0 + @v[arg4] + arg5", 50},
    {"tid + pid * 100", 1211},
    {"errno + random * 1000", 13111},
    {"path(arg0) == \"/a/path\"", 1},
    {"path(arg0, 3) == \"/a\"", 1},
    {"path(arg4) == \"\"", 1},
};

static void check_value(size_t at)
{
    char text[256];
    struct probe_script script;
    struct host host;
    snprintf(text, sizeof text, "entry:f { @ = sum(%s) } entry:g { @v[tid] = pid }", values[at].text);
    compile(&script, text);
    run(&host, &script, 0);
    const struct call *last = &host.calls[host.count - 1];
    ck_assert_uint_eq(last->helper, QUT_PROBE_AGGREGATE);
    ck_assert_msg((int64_t)last->value == values[at].value, "%s is %lld", values[at].text, (long long)last->value);
    probe_script_free(&script);
    // The same as a condition.
    snprintf(text, sizeof text,
             "entry:f /(%s)/ { if (%s) { @ = count() } else { @e = count() } } entry:g { @v[tid] = pid }",
             values[at].text, values[at].text);
    compile(&script, text);
    run(&host, &script, 0);
    uint32_t counts = 0;
    for (uint32_t i = 0; i < host.count; i++)
        counts += host.calls[i].helper == QUT_PROBE_AGGREGATE;
    ck_assert_uint_eq(counts, values[at].value != 0);
    probe_script_free(&script);
}

START_TEST(values_are_right)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        check_value(i);
}
END_TEST

START_TEST(keys_and_records_hold_what_is_said)
{
    struct probe_script script;
    struct host host;
    compile(&script, "return:libx*!f { @a[str(retval, 16), tid, duration > 1ms] = lhist(retval, -10, 95, 10);\n"
                     " printf(\"%-5d|%s\\n\", time, str(retval)); @t = pid; }");
    run(&host, &script, 0);
    ck_assert_uint_eq(host.count, 3);
    ck_assert_uint_eq(host.calls[0].words[0], 1);
    ck_assert_uint_eq(host.calls[0].words[1], 11);
    ck_assert_str_eq((const char *)&host.calls[0].words[2], "text of some wo");
    ck_assert_uint_eq(host.calls[0].value, 1002);
    ck_assert_uint_eq(host.calls[1].helper, QUT_PROBE_EMIT);
    ck_assert_str_eq((const char *)&host.calls[1].words[0], "text of some words");
    ck_assert_uint_eq(host.calls[1].words[8], 77);
    ck_assert_uint_eq(host.calls[2].value, 12);
    const struct qut_probe_image image = qut_probe_parts(script.image);
    ck_assert_uint_eq(image.header->map_count, 2);
    ck_assert_uint_eq(image.maps[0].key_words, 4);
    ck_assert_int_eq(image.maps[0].low, -10);
    ck_assert_uint_eq(image.maps[0].steps, 11);
    ck_assert_uint_eq(image.maps[1].kind, QUT_PROBE_VALUE);
    ck_assert_uint_eq(image.programs[0].fields, 1u << QUT_PROBE_RETVAL | 1u << QUT_PROBE_TID | 1u << QUT_PROBE_PID |
                                                    1u << QUT_PROBE_DURATION | 1u << QUT_PROBE_TIME);
    ck_assert_str_eq(script.records.items[0].format, "%-5d|%s\n");
    ck_assert_uint_eq(script.records.items[0].words.count, 2);
    ck_assert_str_eq(script.maps.items[0].name, "a");
    ck_assert_uint_eq(script.maps.items[0].key.items[0].type, PROBE_TEXT);
    probe_script_free(&script);
}
END_TEST

START_TEST(stacks_are_keys_and_values)
{
    struct probe_script script;
    struct host host;
    compile(&script, "entry:g { @last[tid] = stack(3) } entry:f /stack(2) != @last[tid]/"
                     " { @[arg0, stack(), tid] = count(); printf(\"%s %s\", stack(1), @last[0]) }");
    ck_assert_int_eq(script.maps.items[1].key.items[1].type, PROBE_STACK);
    ck_assert_int_eq(script.maps.items[0].value, PROBE_STACK);
    run(&host, &script, 0);
    ck_assert_uint_eq(host.count, 2);
    ck_assert_uint_eq(host.calls[0].helper, QUT_PROBE_STACK);
    ck_assert_uint_eq(host.calls[0].number, 3);
    ck_assert_uint_eq(host.calls[1].value, 4203);
    run(&host, &script, 1);
    ck_assert_uint_eq(host.count, 7);
    ck_assert_uint_eq(host.calls[0].number, 2);
    ck_assert_uint_eq(host.calls[2].number, QUT_PROBE_STACK_FRAMES_MAX);
    ck_assert_uint_eq(host.calls[3].words[0], 11); // the last part comes first
    ck_assert_uint_eq(host.calls[3].words[1], 4200 + QUT_PROBE_STACK_FRAMES_MAX);
    ck_assert_uint_eq(host.calls[3].words[2], 3);
    ck_assert_uint_eq(host.calls[4].number, 1);
    ck_assert_uint_eq(host.calls[6].helper, QUT_PROBE_EMIT);
    ck_assert_uint_eq(host.calls[6].words[0], 42);
    ck_assert_uint_eq(host.calls[6].words[1], 4201);
    probe_script_free(&script);
}
END_TEST

START_TEST(clauses_have_places)
{
    struct probe_script script;
    compile(&script, "// what is asked\n"
                     "entry:a, return:lib*!b, entry:\"A::f(int, char)\" /tid == pid/ { @[tid] = count(); }\n"
                     "BEGIN { printf(\"%%\") } timer:250ms { print(@); /* all */ clear(@); } end { }");
    ck_assert_uint_eq(script.places.count, 6);
    const struct probe_place *places = script.places.items;
    ck_assert_uint_eq(places[0].program, 0);
    ck_assert_uint_eq(places[1].program, 1);
    ck_assert_uint_eq(places[2].program, 0);
    ck_assert_str_eq(places[1].pattern, "lib*!b");
    ck_assert_str_eq(places[2].pattern, "A::f(int, char)");
    ck_assert_int_eq(places[3].kind, QUT_PROBE_BEGIN);
    ck_assert_uint_eq(places[4].period_ns, 250000000);
    ck_assert_int_eq(places[5].kind, QUT_PROBE_END);
    struct host host;
    run(&host, &script, 3);
    ck_assert_uint_eq(host.count, 2);
    ck_assert_uint_eq(host.calls[0].helper, QUT_PROBE_PRINT);
    ck_assert_uint_eq(host.calls[1].helper, QUT_PROBE_CLEAR);
    probe_script_free(&script);
}
END_TEST

// ---- what is wrong: where the caret stands, and what is said

static const struct {
    const char *script, *said;
} mistakes[] = {
    {"", "x:1:1: expected a probe, as entry:NAME { @ = count() }, not the end\n\n^\n"},
    {"entri:f { }", "x:1:1: no probe begins so: did you mean \"entry\"?\nentri:f { }\n^~~~~\n"},
    {"aloc { }", "x:1:1: no probe begins so: did you mean \"alloc\"?\naloc { }\n^~~~\n"},
    {"entry:f, alloc { }",
     "x:1:10: it has a clause of its own, without other places\nentry:f, alloc { }\n         ^~~~~\n"},
    {"alloc, entry:f { }", "x:1:1: it has a clause of its own, without other places\nalloc, entry:f { }\n^~~~~\n"},
    {"alloc { @ = sum(held) }", "x:1:17: held is known in \"unlock\" only\nalloc { @ = sum(held) }\n"
                                "                ^~~~\n"},
    {"entry:f { @ = sum(address) }", "x:1:19: address is known in \"alloc\", \"free\", \"lock\", \"unlock\", "
                                     "\"throw\", \"catch\" only\nentry:f { @ = sum(address) }\n"
                                     "                  ^~~~~~~\n"},
    {"alloc { @ = sum(sise) }", "x:1:17: no value has this name: did you mean \"size\"?\nalloc { @ = sum(sise) }\n"
                                "                ^~~~\n"},
    {"entry:f { @__alloc_size = count() } alloc { }",
     "x:1:37: it is count() elsewhere: a map has one kind\nentry:f { @__alloc_size = count() } alloc { }\n"
     "                                    ^~~~~\n"},
    {"entry { }", "x:1:1: it needs \":\" and functions, as in entry:malloc\nentry { }\n^~~~~\n"},
    {"call:f { }",
     "x:1:1: it needs \"in\" and who calls, as in call:malloc in main; entry:malloc is called by anybody\n"
     "call:f { }\n^~~~\n"},
    {"entry:f, call:g in { }", "x:1:17: in which functions? [MODULE!]NAME, as in call:malloc in main\n"
                               "entry:f, call:g in { }\n                ^~\n"},
    {"entry:f in g { }", "x:1:1: calls out of one function: did you mean \"call\"?\nentry:f in g { }\n^~~~~\n"},
    {"call { }", "x:1:1: it needs \":\" and functions, as in call:malloc in main\ncall { }\n^~~~\n"},
    {"entry: { }", "x:1:7: which functions? [MODULE!]NAME, as in entry:libc.so*!malloc\nentry: { }\n      ^\n"},
    {"timer:5 { }", "x:1:7: expected a time with its unit, as 1s or 100ms, not 5\ntimer:5 { }\n      ^\n"},
    {"timer:5us { }", "x:1:7: a timer has 1ms at least\ntimer:5us { }\n      ^~~\n"},
    {"entry:f\n{ @a = sum(arg9) }",
     "x:2:12: no value has this name: did you mean \"arg0\"?\n{ @a = sum(arg9) }\n           ^~~~\n"},
    {"entry:f { @a = cont() }", "x:1:16: no value has this name: did you mean \"count\"?\nentry:f { @a = cont() }\n"
                                "               ^~~~\n"},
    {"entry:f { @a = 1 + cont() }", "x:1:20: no value has this name\nentry:f { @a = 1 + cont() }\n"
                                    "                   ^~~~\n"},
    {"entry:f { @a = 1 + count() }",
     "x:1:20: count stands alone behind \"=\": it is no value\nentry:f { @a = 1 + count() }\n"
     "                   ^~~~~\n"},
    {"entry:f { count() }",
     "x:1:11: count is put into a map, as in @a = count()\nentry:f { count() }\n          ^~~~~\n"},
    {"entry:f { @a++ }", "x:1:13: expected \"=\", as in @a = count(), or @a = sum(x), not +\nentry:f { @a++ }\n"
                         "            ^\n"},
    {"entry:f { else { } }", "x:1:11: there is no \"if\" before it\nentry:f { else { } }\n          ^~~~\n"},
    {"entry:f { @a = sum(retval) }",
     "x:1:20: retval is known in \"return\" only\nentry:f { @a = sum(retval) }\n                   ^~~~~~\n"},
    {"return:f { @a = sum(arg0) }",
     "x:1:21: arg0 is known in \"entry and offset\" only\nreturn:f { @a = sum(arg0) }\n                    ^~~~\n"},
    {"entry:f { @a = sum(duration) }", "x:1:20: duration is known in \"return and unwind\" only\n"
                                       "entry:f { @a = sum(duration) }\n                   ^~~~~~~~\n"},
    {"offset:f+4 in g { }", "x:1:12: this is a place within a function, whoever calls that\noffset:f+4 in g { }\n"
                            "           ^~\n"},
    {"end { printf(\"%d\", tid) }",
     "x:1:20: tid is known in \"entry and return\" only\nend { printf(\"%d\", tid) }\n                   ^~~\n"},
    {"entry:f { @a = sum(1) @b = count() }",
     "x:1:23: expected \";\", not @b\nentry:f { @a = sum(1) @b = count() }\n                      ^~\n"},
    {"entry:f { @a = count(); @a = sum(1) }",
     "x:1:25: it is count() elsewhere: a map has one kind\nentry:f { @a = count(); @a = sum(1) }\n"
     "                        ^~\n"},
    {"entry:f { @a[tid] = count(); @a = count() }",
     "x:1:30: it has another key elsewhere\nentry:f { @a[tid] = count(); @a = count() }\n"
     "                             ^~\n"},
    {"entry:f { @a[str(arg0)] = count(); @a[arg0] = count() }",
     "x:1:36: it has another key elsewhere\nentry:f { @a[str(arg0)] = count(); @a[arg0] = count() }\n"
     "                                   ^~\n"},
    {"entry:f { @a = sum(str(arg0)) }",
     "x:1:20: a text where a number must be\nentry:f { @a = sum(str(arg0)) }\n                   ^~~\n"},
    {"entry:f /arg0 == \"x\"/ { }",
     "x:1:10: texts are compared with texts, by == and != only\nentry:f /arg0 == \"x\"/ { }\n"
     "         ^~~~~~~~~~~\n"},
    {"entry:f { @a[\"x\"] = count() }",
     "x:1:14: a text in quotes is compared only\nentry:f { @a[\"x\"] = count() }\n             ^~~\n"},
    {"entry:f { printf(\"%s\", arg0) }",
     "x:1:18: %s stands for a text, and value 1 is a number\nentry:f { printf(\"%s\", arg0) }\n"
     "                 ^~~~\n"},
    {"entry:f { printf(\"%d %d\", arg0) }",
     "x:1:18: 2 conversions for 1 values\nentry:f { printf(\"%d %d\", arg0) }\n                 ^~~~~~~\n"},
    {"entry:f { printf(\"%q\", arg0) }", "x:1:18: conversion 1 is none of %d %u %x %X %c %s\n"
                                         "entry:f { printf(\"%q\", arg0) }\n                 ^~~~\n"},
    {"entry:f { prinf(\"\") }",
     "x:1:11: no statement begins so: did you mean \"printf\"?\nentry:f { prinf(\"\") }\n          ^~~~~\n"},
    {"entry:f { print(@a) }", "x:1:11: maps are printed and cleared in \"timer\", \"begin\", \"end\" only\n"
                              "entry:f { print(@a) }\n          ^~~~~\n"},
    {"entry:f { @hits = count() } end { print(@hit) }",
     "x:1:41: no probe above fills it: did you mean \"@hits\"?\n"
     "entry:f { @hits = count() } end { print(@hit) }\n                                        ^~~~\n"},
    {"timer:1s { @a = sum(u32(8)) }",
     "x:1:21: the program is looked at in \"entry\" and \"return\" only\ntimer:1s { @a = sum(u32(8)) }\n"
     "                    ^~~\n"},
    {"entry:f { @a = sum(1 + ) }", "x:1:24: expected a value, not )\nentry:f { @a = sum(1 + ) }\n"
                                   "                       ^\n"},
    {"entry:f { @a = sum(1", "x:1:21: expected \")\", not the end\nentry:f { @a = sum(1\n                    ^\n"},
    {"entry:f { @a = sum(5min) }",
     "x:1:21: no such unit: there are ns, us, ms, s\nentry:f { @a = sum(5min) }\n                    ^~~\n"},
    {"entry:f { @a = sum(0x) }", "x:1:20: no digits\nentry:f { @a = sum(0x) }\n                   ^~\n"},
    {"entry:f { @a = sum(stack()) }",
     "x:1:20: a stack where a number must be\nentry:f { @a = sum(stack()) }\n                   ^~~~~\n"},
    {"entry:f { @a = stack() + 1 }",
     "x:1:16: stacks are compared by == and != only\nentry:f { @a = stack() + 1 }\n               ^~~~~~~~~~~\n"},
    {"entry:f { @a[stack(128)] = count() }",
     "x:1:20: a stack has 1 to 127 frames\nentry:f { @a[stack(128)] = count() }\n                   ^~~\n"},
    {"entry:f { @a[stack(arg0)] = count() }", "x:1:20: how many frames a stack has must be a constant\n"
                                              "entry:f { @a[stack(arg0)] = count() }\n"
                                              "                   ^~~~\n"},
    {"end { @a[stack()] = count() }",
     "x:1:10: a stack is taken in \"entry\" and \"return\" only\nend { @a[stack()] = count() }\n         ^~~~~\n"},
    {"entry:f { @a = stack(); @a = 1 }",
     "x:1:25: its values are stacks elsewhere\nentry:f { @a = stack(); @a = 1 }\n                        ^~\n"},
    {"entry:f { @a[stack()] = count(); @a[tid] = count() }",
     "x:1:34: it has another key elsewhere\nentry:f { @a[stack()] = count(); @a[tid] = count() }\n"
     "                                 ^~\n"},
    {"entry:f { printf(\"%d\", stack()) }",
     "x:1:18: %d stands for a number, and value 1 is a stack\nentry:f { printf(\"%d\", stack()) }\n"
     "                 ^~~~\n"},
    {"entry:f { @a = sum($) }",
     "x:1:20: this character means nothing here\nentry:f { @a = sum($) }\n                   ^\n"},
    {"entry:f { printf(\"x) }", "x:1:18: this text does not end\nentry:f { printf(\"x) }\n                 ^\n"},
    {"entry:f { /* x", "x:1:11: this comment does not end\nentry:f { /* x\n          ^~\n"},
    {"entry:f { @a = lhist(arg0, 9, 1, 2) }",
     "x:1:26: a histogram goes from the lower to the higher, by steps of 1 or more\n"
     "entry:f { @a = lhist(arg0, 9, 1, 2) }\n                         ^~~~~~~~~\n"},
    {"entry:f { @a = lhist(arg0, 0, arg1, 2) }",
     "x:1:31: where the histogram ends must be a constant\nentry:f { @a = lhist(arg0, 0, arg1, 2) }\n"
     "                              ^~~~\n"},
    {"entry:f { @a[] = count() }",
     "x:1:11: there is nothing in its key: leave the brackets out\nentry:f { @a[] = count() }\n          ^~\n"},
    {"entry:f { @a[str(arg0, 256)] = sum(u8(arg1)); printf(\"%s%s%s\", str(arg0, 256), str(arg1, 248), str(arg2)) }",
     "x:1:96: there is no room left for this: a probe has 512 bytes\n"
     "entry:f { @a[str(arg0, 256)] = sum(u8(arg1)); printf(\"%s%s%s\", str(arg0, 256), str(arg1, 248), str(arg2)) }\n"
     "                                                                                               ^~~\n"},
    {"entry:f\t{ \"\xc3\xa4\" }",
     "x:1:11: expected a statement, not \"\xc3\xa4\"\nentry:f\t{ \"\xc3\xa4\" }\n       \t  ^~~\n"},
};

static void check_mistake(size_t at)
{
    struct probe_script script;
    struct probe_diagnostic why;
    const char *text = mistakes[at].script;
    ck_assert_int_eq(probe_compile(text, strlen(text), &script, &why), -1);
    char *shown = probe_diagnostic_show(&why, "x", text, strlen(text));
    ck_assert_str_eq(shown, mistakes[at].said);
    free(shown);
    probe_script_free(&script);
}

START_TEST(mistakes_are_pointed_at)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        check_mistake(i);
}
END_TEST

static char *repeated(const char *before, const char *part, size_t count, const char *behind)
{
    char *text = malloc(strlen(before) + count * strlen(part) + strlen(behind) + 1), *at = text;
    ck_assert_ptr_nonnull(text);
    at = stpcpy(at, before);
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, part);
    stpcpy(at, behind);
    return text;
}

static void check_refused(char *text, const char *said)
{
    struct probe_script script;
    struct probe_diagnostic why;
    ck_assert_int_eq(probe_compile(text, strlen(text), &script, &why), -1);
    ck_assert_msg(strstr(why.text, said), "%s", why.text);
    probe_script_free(&script);
    free(text);
}

START_TEST(limits_hold)
{
    check_refused(repeated("entry:f { @ = sum(", "(", 10000, ""), "too much lies in each other");
    check_refused(repeated("entry:f { @ = sum(", "-", 10000, "1)"), "too much lies in each other");
    check_refused(repeated("entry:f { ", "if (1) { ", 10000, ""), "too much lies in each other");
    check_refused(repeated("entry:f { if (1) { } ", "else if (1) { } ", 10000, "}"), "too much lies in each other");
    check_refused(repeated("entry:f { ", "@ = count(); ", 10000, "}"), "more than 1024 instructions");
    check_refused(repeated("", "entry:f { @ = count() } ", 33, ""), "more than 32 probes");
    check_refused(repeated("entry:f ", ", entry:f", 64, "{ }"), "more than 64 places");
    check_refused(repeated("entry:f { @[1", ",1", 8, "] = count() }"), "more than 8 values");
    check_refused(repeated("entry:f { ", "printf(\"\");", 65, "}"), "more than 64 printf");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compile");
    TCase *all = tcase_create("all");
    tcase_add_test(all, values_are_right);
    tcase_add_test(all, keys_and_records_hold_what_is_said);
    tcase_add_test(all, stacks_are_keys_and_values);
    tcase_add_test(all, clauses_have_places);
    tcase_add_test(all, mistakes_are_pointed_at);
    tcase_add_test(all, limits_hold);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
