// SPDX-License-Identifier: Apache-2.0
// Objects of probes: what becomes of a sound one, and by what words the others are refused.
#include "tracer/probe/object.h"

#include <stdlib.h>
#include <string.h>

#include "bytecode/verify.h"
#include "tests/support/probe_object.h"
#include "tests/support/run_suite.h"
#include "tracer/probe/explain.h"
#include "tracer/probe/show.h"

static void refused(const struct probe_object_spec *spec, const char *wanted)
{
    struct probe_script script;
    struct probe_object_fault fault;
    struct build_buffer file = probe_object_write(spec);
    ck_assert_int_eq(probe_object_read(file.data, file.size, &script, &fault), -1);
    ck_assert_msg(strstr(fault.text, wanted) != NULL, "\"%s\" is not in \"%s\"", wanted, fault.text);
    ck_assert(!fault.is_no_memory);
    probe_script_free(&script);
    free(file.data);
}

START_TEST(a_sound_object_is_a_script)
{
    struct probe_object_spec spec;
    struct probe_script script;
    struct probe_object_fault fault;
    probe_object_sample(&spec);
    struct build_buffer file = probe_object_write(&spec);
    ck_assert(probe_object_is(file.data, file.size));
    ck_assert_msg(probe_object_read(file.data, file.size, &script, &fault) == 0, "%s", fault.text);
    char *shown = probe_explain(&script, NULL);
    ck_assert_str_eq(shown, "whenever \"lib*!f\" is entered:\n"
                            "    changes @map1\n"
                            "    says \"seven: %d\\n\", 8 bytes\n"
                            "    takes 13 instructions at most\n"
                            "every 1000 ms, in the tool:\n"
                            "    changes @map1\n"
                            "    says \"seven: %d\\n\", 8 bytes\n"
                            "    takes 13 instructions at most\n"
                            "@map0: lhist(), 88 bytes\n"
                            "@map1: count(), 4096 keys of 8 bytes at most, 131080 bytes\n"
                            "131168 bytes are shared with the program for them.\n");
    free(shown);
    ck_assert_uint_eq(qut_probe_parts(script.image).programs[0].fields, 0);
    probe_script_free(&script);
    free(file.data);
    ck_assert(!probe_object_is("entry:f { @ = count() }", 23));
}
END_TEST

START_TEST(a_program_claims_the_fields_that_it_reads)
{
    struct probe_object_spec spec = {.section = "return:f",
                                     .code = {{0x79, 0 | 1 << 4, 8 * QUT_PROBE_RETVAL, 0},
                                              {0xbf, 6 | 1 << 4, 0, 0},
                                              {0x79, 0 | 6 << 4, 8 * QUT_PROBE_TID, 0},
                                              {0x95, 0, 0, 0}}};
    struct probe_script script;
    struct probe_object_fault fault;
    spec.record.format[0] = 'x';
    struct build_buffer file = probe_object_write(&spec);
    ck_assert_msg(probe_object_read(file.data, file.size, &script, &fault) == 0, "%s", fault.text);
    ck_assert_uint_eq(qut_probe_parts(script.image).programs[0].fields, 1u << QUT_PROBE_RETVAL | 1u << QUT_PROBE_TID);
    probe_script_free(&script);
    free(file.data);
}
END_TEST

// A struct's members are shown as they stand in it; what a script puts down begins with the last one.
START_TEST(parts_are_shown_in_their_order)
{
    struct probe_object_spec spec;
    struct probe_script script;
    struct probe_object_fault fault;
    char *shown = NULL;
    size_t size;
    probe_object_sample(&spec);
    spec.record = (struct qut_probe_record_definition){{QUT_PROBE_NUMBER, QUT_PROBE_TEXT(16)}, "%d %s"};
    memcpy(spec.code, (struct qut_probe_instruction[]){{0xb7, 0, 0, 0}, {0x95, 0, 0, 0}, {0}, {0}}, 32);
    memset(spec.code + 2, 0, sizeof spec.code - 16);
    memset(spec.relocations, 0, sizeof spec.relocations);
    struct build_buffer file = probe_object_write(&spec);
    ck_assert_msg(probe_object_read(file.data, file.size, &script, &fault) == 0, "%s", fault.text);
    uint64_t words[3] = {7};
    memcpy(words + 1, "some text", 10);
    FILE *out = open_memstream(&shown, &size);
    probe_show_record(out, &script, 0, words, NULL);
    fclose(out);
    ck_assert_str_eq(shown, "7 some text");
    free(shown);
    probe_script_free(&script);
    free(file.data);
}
END_TEST

static struct probe_object_spec changed(unsigned at, struct qut_probe_instruction instruction)
{
    struct probe_object_spec spec;
    probe_object_sample(&spec);
    spec.code[at] = instruction;
    return spec;
}

START_TEST(instructions_are_refused_by_name)
{
    static const struct {
        unsigned at;
        struct qut_probe_instruction instruction;
        const char *said;
    } cases[] = {
        {13, {0x05, 0, -3, 0}, "called, instruction 13: jumps back"},
        {1, {0x7b, 10 | 2 << 4, -520, 0}, "called, instruction 1: outside of the stack"},
        {1, {0x7b, 1 | 2 << 4, 0, 0}, "called, instruction 1: an address where a number must be"},
        {1, {0x7b, 2 | 2 << 4, 0, 0}, "called, instruction 1: a number where an address must be"},
        {7, {0x85, 1 << 4, 0, 2}, "called, instruction 7: calls a function of its own"},
        {7, {0x85, 0, 0, 99}, "called, instruction 7: calls what it may not"},
        {0, {0xdb, 10, -8, 0}, "called, instruction 0: an instruction that is not allowed"},
        {14, {0xb7, 0, 0, 0}, "called, instruction 14: runs on behind its last instruction"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct probe_object_spec spec = changed(cases[i].at, cases[i].instruction);
        refused(&spec, cases[i].said);
        refused(&spec, "section \"entry:lib*!f, timer:1s\"");
    }
}
END_TEST

START_TEST(relocations_are_refused_by_name)
{
    static const struct {
        struct probe_object_relocation relocation;
        const char *said;
    } cases[] = {
        {{4, 1, PROBE_OBJECT_FUNCTION}, "instruction 4: the address of data"},
        {{4, 10, PROBE_OBJECT_MAP}, "instruction 4: a relocation that is not of a map's or a record's address"},
        {{3, 1, PROBE_OBJECT_MAP}, "instruction 3: a relocation that is not of"},
        {{7, 10, PROBE_OBJECT_FUNCTION}, "instruction 7: calls a function of its own or of others"},
        {{99, 1, PROBE_OBJECT_MAP}, "a relocation is of no instruction, or of no symbol"},
        {{4, 1, 99}, "a relocation is of no instruction, or of no symbol"},
        {{10, 1, PROBE_OBJECT_MAP + 1}, "instruction 12: an argument that is no constant, or out of range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct probe_object_spec spec;
        probe_object_sample(&spec);
        spec.relocations[i == 6 ? 1 : 0] = cases[i].relocation;
        refused(&spec, cases[i].said);
    }
    struct probe_object_spec spec = changed(4, (struct qut_probe_instruction){0x18, 1, 0, 8});
    refused(&spec, "instruction 4: an address within a map or a record");
    spec.code[4].immediate = 64;
    refused(&spec, "instruction 4: an address within a map or a record, or beyond them");
}
END_TEST

START_TEST(definitions_are_refused_by_name)
{
    struct probe_object_spec spec;
    probe_object_sample(&spec);
    spec.maps[1].shape = 8;
    refused(&spec, "map1: there is no such kind of map");
    probe_object_sample(&spec);
    spec.maps[1].parts[0] = 4u << 16 | 1;
    refused(&spec, "map1: part 1 is none");
    spec.maps[1].parts[0] = QUT_PROBE_TEXT(264);
    refused(&spec, "map1: part 1 is none");
    spec.maps[1].parts[0] = 0;
    spec.maps[1].parts[1] = QUT_PROBE_NUMBER;
    refused(&spec, "map1: part 2 is none");
    spec.maps[1].parts[0] = QUT_PROBE_TEXT(256);
    refused(&spec, "map1: its parts have 264 bytes, and at most 256 have room");
    probe_object_sample(&spec);
    spec.maps[0].steps = 5000;
    refused(&spec, "a map of no kind, or too large");
    probe_object_sample(&spec);
    memset(spec.record.format, 'x', sizeof spec.record.format);
    refused(&spec, "said: its format does not end");
    spec.record = (struct qut_probe_record_definition){{QUT_PROBE_NUMBER}, "%s"};
    refused(&spec, "said: %s stands for a text or frames, and part 1 is none");
    spec.record = (struct qut_probe_record_definition){{QUT_PROBE_NUMBER}, "%d %d"};
    refused(&spec, "said: 2 conversions for 1 parts");
    spec.record = (struct qut_probe_record_definition){{QUT_PROBE_NUMBER}, "%p"};
    refused(&spec, "said: conversion 1 is none of");
}
END_TEST

START_TEST(places_are_those_of_the_language)
{
    struct probe_object_spec spec;
    probe_object_sample(&spec);
    spec.section = "entrie:f";
    refused(&spec, "section \"entrie:f\", character 1: no probe begins so: did you mean \"entry\"?");
    spec.section = "entry:f, return";
    refused(&spec, "character 10: it needs \":\" and functions");
    spec.section = "entry:f { }";
    refused(&spec, "character 9: expected the end of the section's name, not {");
    spec.section = "alloc";
    refused(&spec, "in an object entry and return have to say it");
    spec.section = ".text";
    refused(&spec, "it has no program");
}
END_TEST

START_TEST(other_files_are_refused)
{
    struct probe_object_spec spec;
    probe_object_sample(&spec);
    spec.machine = EM_X86_64;
    refused(&spec, "its machine is another one");
    spec.machine = 0;
    spec.type = ET_DYN;
    refused(&spec, "it was linked");
}
END_TEST

// Cut anywhere it is refused; with any byte changed it is refused, or taken by the verifier.
START_TEST(damage_is_refused_or_proven_harmless)
{
    static struct bytecode_workspace workspace;
    struct probe_object_spec spec;
    struct probe_script script;
    struct probe_object_fault fault;
    struct bytecode_fault verified;
    probe_object_sample(&spec);
    struct build_buffer file = probe_object_write(&spec);
    for (size_t size = 0; size < file.size; size++) {
        uint8_t *cut = malloc(size + 1);
        memcpy(cut, file.data, size);
        ck_assert_int_eq(probe_object_read(cut, size, &script, &fault), -1);
        ck_assert_msg(strncmp(fault.text, "cut off: ", 9) == 0, "%zu: %s", size, fault.text);
        probe_script_free(&script);
        free(cut);
    }
    unsigned taken = 0;
    for (size_t at = 0; at < file.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            file.data[at] ^= (uint8_t)(1u << bit);
            if (probe_object_read(file.data, file.size, &script, &fault) == 0) {
                taken++;
                ck_assert(bytecode_verify(script.image, script.image_bytes, &workspace, &verified));
            } else {
                ck_assert(fault.text[0] && !fault.is_no_memory);
            }
            probe_script_free(&script);
            file.data[at] ^= (uint8_t)(1u << bit);
        }
    ck_assert_uint_gt(taken, 0); // the paddings at least
    free(file.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("object");
    TCase *tests = tcase_create("object");
    tcase_add_test(tests, a_sound_object_is_a_script);
    tcase_add_test(tests, a_program_claims_the_fields_that_it_reads);
    tcase_add_test(tests, parts_are_shown_in_their_order);
    tcase_add_test(tests, instructions_are_refused_by_name);
    tcase_add_test(tests, relocations_are_refused_by_name);
    tcase_add_test(tests, definitions_are_refused_by_name);
    tcase_add_test(tests, places_are_those_of_the_language);
    tcase_add_test(tests, other_files_are_refused);
    tcase_add_test(tests, damage_is_refused_or_proven_harmless);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
