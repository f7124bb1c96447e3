// SPDX-License-Identifier: Apache-2.0
// Names of code that Android's virtual machine runs: bytecode in dex files, compiled code in OAT files.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/dex_writer.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/names/by_hand.h"

static const struct dex_method methods[] = {{.name = "hot", .units = 12}, {.name = "run", .units = 30}};
static const struct dex_class classes[] = {{"Lcom/example/Snap;", methods, 2}};
static const struct dex_class others[] = {{"LOther;", methods, 2}};

static char *directory;
static struct trace trace;

static void set_up(void)
{
    directory = build_directory();
    trace = by_hand_trace();
}

static void tear_down(void)
{
    by_hand_free(&trace);
    build_remove(directory);
}

static struct names *names_now(void)
{
    const struct names_options options = {.debug_root = directory};
    struct names *names = names_of(&trace, &options, NULL);
    ck_assert(names != NULL);
    return names;
}

static void add_methods(uint32_t module, const struct dex_truth *truth, uint64_t offset)
{
    for (size_t i = 0; i < truth->count; i++)
        by_hand_node(&trace, module, offset + truth->code[i].start + 2, QUT_TRACE_CLASS_DEX);
}

static void expect_methods(const struct names *names, uint32_t first, const struct dex_truth *truth)
{
    for (uint32_t i = 0; i < truth->count; i++) {
        const struct name *name = names_at(names, first + i, 0);
        ck_assert_str_eq(name->function, truth->code[i].name);
        ck_assert(name->is_known && name->mangled == NULL);
    }
}

START_TEST(vdex)
{
    const struct dex_spec spec = {39, classes, 1};
    struct dex_truth truth = {0};
    struct build_buffer file = dex_vdex(21, &spec, 1, &truth);
    char *path = build_file(directory, "base.vdex", file.data, file.size);
    uint32_t module = by_hand_module(&trace, path, NULL, QUT_TRACE_MODULE_FILE);
    add_methods(module, &truth, 0);
    by_hand_node(&trace, module, 1, QUT_TRACE_CLASS_DEX);
    by_hand_node(&trace, module, truth.code[0].start, QUT_TRACE_CLASS_CODE); // no virtual address
    struct names *names = names_now();
    expect_methods(names, 1, &truth);
    ck_assert_str_eq(names_at(names, 3, 0)->function, "base.vdex+0x1");
    ck_assert(!names_at(names, 3, 0)->is_known);
    ck_assert(!names_at(names, 4, 0)->is_known);
    const struct names_missing *missing;
    ck_assert_uint_eq(names_missing(names, &missing), 1);
    ck_assert_uint_eq(missing->node_count, 2);
    names_free(names);
    dex_truth_free(&truth);
    free(file.data);
    free(path);
}
END_TEST

// Each dex file of an archive has offsets of its own.
START_TEST(archive)
{
    const struct dex_spec specs[] = {{39, classes, 1}, {39, others, 1}};
    struct dex_truth truths[2] = {{0}};
    struct build_buffer files[2] = {{0}};
    struct build_member members[2] = {{.name = "classes.dex"}, {.name = "classes2.dex"}};
    for (size_t i = 0; i < 2; i++) {
        uint64_t offset;
        dex_add(&files[i], &specs[i], 1, 0, &offset, &truths[i]);
        members[i].data = files[i].data;
        members[i].size = files[i].size;
    }
    struct build_buffer zip = build_zip(members, 2, "");
    char *path = build_file(directory, "base.apk", zip.data, zip.size);
    uint32_t module = by_hand_module(&trace, path, NULL, QUT_TRACE_MODULE_FILE);
    uint64_t offsets[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        const uint8_t *found = memmem(zip.data, zip.size, files[i].data, files[i].size);
        ck_assert(found != NULL);
        offsets[i] = (uint64_t)(found - zip.data);
        add_methods(module, &truths[i], offsets[i]);
    }
    by_hand_node(&trace, module, zip.size - 1, QUT_TRACE_CLASS_DEX);
    struct names *names = names_now();
    expect_methods(names, 1, &truths[0]);
    expect_methods(names, 3, &truths[1]);
    ck_assert(!names_at(names, 5, 0)->is_known);
    ck_assert_uint_eq(names_id_count(names), 5);
    names_free(names);
    for (size_t i = 0; i < 2; i++) {
        dex_truth_free(&truths[i]);
        free(files[i].data);
    }
    free(zip.data);
    free(path);
}
END_TEST

START_TEST(absent)
{
    uint32_t module = by_hand_module(&trace, "/does/not/exist.vdex", NULL, QUT_TRACE_MODULE_FILE);
    for (uint64_t i = 0; i < 100; i++)
        by_hand_node(&trace, module, i, QUT_TRACE_CLASS_DEX);
    struct names *names = names_now();
    const struct names_missing *missing;
    ck_assert_uint_eq(names_missing(names, &missing), 1);
    ck_assert_uint_eq(missing->node_count, 100);
    ck_assert_msg(strstr(missing->why, "No such file") != NULL, "%s", missing->why);
    names_free(names);
}
END_TEST

// A line of a stack that is known to be right: "  #01 pc 00000000000018d4  launch (deep+20)".
struct line {
    uint32_t node;
    char function[512]; // "": it has none
};

static size_t read_stack(const char *folder, struct line *lines, size_t most)
{
    char path[1024], text[2048], module_name[512];
    struct {
        char name[512], path[1024];
        uint32_t index;
    } modules[8];
    size_t count = 0, module_count = 0;
    snprintf(path, sizeof path, "%s/output.txt", folder);
    FILE *file = fopen(path, "re");
    ck_assert(file != NULL);
    while (count < most && fgets(text, sizeof text, file)) {
        unsigned long long pc;
        int used = 0;
        if (sscanf(text, " #%*d pc %llx %511s%n", &pc, module_name, &used) != 2)
            continue;
        size_t at = 0;
        while (at < module_count && strcmp(modules[at].name, module_name) != 0)
            at++;
        bool is_dex = strstr(module_name, ".vdex") != NULL;
        if (at == module_count) {
            ck_assert_uint_lt(module_count, 8);
            snprintf(modules[at].name, sizeof modules[at].name, "%s", module_name);
            snprintf(modules[at].path, sizeof modules[at].path, "/%s", module_name);
            // Without the file's build-id: AOSP's layout does not tell it.
            modules[at].index =
                by_hand_module(&trace, strdup(modules[at].path), NULL, is_dex ? QUT_TRACE_MODULE_FILE : 0);
            module_count++;
        }
        lines[count] = (struct line){
            by_hand_node(&trace, modules[at].index, pc, is_dex ? QUT_TRACE_CLASS_DEX : QUT_TRACE_CLASS_CODE), ""};
        char *open = strstr(text + used, " ("), *end = strrchr(text, ')');
        if (open && end) {
            *end = '\0';
            snprintf(lines[count].function, sizeof lines[count].function, "%s", open + 2);
            char *plus = strrchr(lines[count].function, '+');
            if (plus && !is_dex)
                *plus = '\0';
        }
        count++;
    }
    fclose(file);
    return count;
}

// Stacks of a real virtual machine, of its files that the corpus has as they are (libart is packed there).
START_TEST(real_stacks)
{
    static const char *const folders[] = {"art11/x86_64_int", "art11/x86_64_aot", "art11/arm64_aot"};
    char *folder = corpus_path(folders[_i]);
    if (!folder)
        return;
    struct line lines[128];
    size_t count = read_stack(folder, lines, 128), named = 0;
    const struct names_options options = {.system_root = folder, .debug_root = directory};
    struct names *names = names_of(&trace, &options, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct name *name = names_at(names, lines[i].node, 0);
        if (strstr(name->module, "libart"))
            continue;
        ck_assert_msg(name->is_known == (*lines[i].function != '\0'), "%zu: %s", i, name->function);
        if (name->is_known)
            ck_assert_str_eq(name->function, lines[i].function);
        named += name->is_known;
    }
    ck_assert_uint_gt(named, 15);
    names_free(names);
    for (size_t i = 0; i < trace.module_count; i++)
        free((void *)(uintptr_t)trace.modules[i].path);
    free(folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("names of managed code");
    TCase *tests = tcase_create("names of managed code");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, vdex);
    tcase_add_test(tests, archive);
    tcase_add_test(tests, absent);
    tcase_add_loop_test(tests, real_stacks, 0, 3);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
