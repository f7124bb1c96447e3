// SPDX-License-Identifier: Apache-2.0
// Dex files in what Android keeps them in: .vdex files of all versions, archives, OAT files, memory; and real ones.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/dex_writer.h"
#include "tests/support/run_suite.h"
#include "tracer/dex/source.h"

static const struct dex_method snap[] = {
    {.name = "hot", .units = 12}, {.name = "nativeOne"}, {.name = "osr", .units = 3000, .is_virtual = true}};
static const struct dex_class one[] = {{"Lcom/example/Snap;", snap, 3}};
static const struct dex_method other[] = {{.name = "run", .units = 7, .is_virtual = true}};
static const struct dex_class two[] = {{"LA$B;", other, 1}};

static char *directory;

static void set_up(void)
{
    directory = build_directory();
}

static void tear_down(void)
{
    build_remove(directory);
}

static int open_bytes(struct dex_source *source, const struct build_buffer *file, uint64_t offset,
                      struct base_error *error)
{
    char *path = build_file(directory, "file", file->data, file->size);
    *error = (struct base_error){0};
    int result = dex_source_open(source, path, offset, error);
    free(path);
    return result;
}

// base: where the truth's offsets count from, in the source's bytes.
static void expect_truth(const struct dex_source *source, const struct dex_truth *truth, int64_t base)
{
    ck_assert_uint_eq(dex_index_count(source->index), truth->count);
    for (size_t i = 0; i < truth->count; i++) {
        const uint64_t places[] = {truth->code[i].start, truth->code[i].start + 2, truth->code[i].end - 2};
        struct dex_found found;
        for (size_t k = 0; k < 3; k++) {
            ck_assert(dex_index_find(source->index, places[k] - (uint64_t)base, &found));
            char *name = dex_found_name(&found);
            ck_assert_str_eq(name, truth->code[i].name);
            free(name);
        }
        ck_assert(!dex_index_find(source->index, truth->code[i].end - (uint64_t)base, &found));
    }
}

static void expect_refused(const struct build_buffer *file, uint64_t offset, enum base_reason reason,
                           const char *detail)
{
    struct dex_source source;
    struct base_error error;
    ck_assert_int_eq(open_bytes(&source, file, offset, &error), -1);
    ck_assert_msg(error.reason == reason && strstr(error.detail, detail), "%s: %s", base_reason_name(error.reason),
                  error.detail);
}

START_TEST(vdex_versions)
{
    const struct {
        unsigned vdex, dex;
    } versions[] = {{6, 37}, {10, 38}, {19, 38}, {19, 0}, {21, 39}, {21, 0}, {27, 39}, {27, 41}, {27, 0}};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        const struct dex_spec specs[] = {{versions[i].dex, one, 1}, {versions[i].dex, two, 1}};
        struct dex_truth truth = {0};
        struct dex_source source;
        struct base_error error;
        struct build_buffer file = dex_vdex(versions[i].vdex, specs, 2, &truth);
        ck_assert_msg(open_bytes(&source, &file, 0, &error) == 0, "vdex %u: %s", versions[i].vdex, error.detail);
        ck_assert_uint_eq(truth.count, 3);
        expect_truth(&source, &truth, 0);
        dex_source_close(&source);
        uint8_t *copy = malloc(file.size);
        memcpy(copy, file.data, file.size);
        ck_assert_int_eq(dex_source_open_memory(&source, copy, file.size, &error), 0);
        expect_truth(&source, &truth, 0);
        dex_source_close(&source);
        dex_truth_free(&truth);
        free(file.data);
    }
}
END_TEST

START_TEST(vdex_without_dex)
{
    const unsigned versions[] = {6, 10, 19, 21, 27};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct build_buffer file = dex_vdex(versions[i], NULL, 0, NULL);
        struct dex_source source;
        struct base_error error;
        ck_assert_msg(open_bytes(&source, &file, 0, &error) == 0, "vdex %u: %s", versions[i], error.detail);
        ck_assert_uint_eq(dex_index_count(source.index), 0);
        dex_source_close(&source);
        free(file.data);
    }
}
END_TEST

START_TEST(vdex_refusals)
{
    const struct dex_spec specs[] = {{39, one, 1}, {39, two, 1}};
    const unsigned unknown[] = {5, 11, 20, 22, 26, 28};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct build_buffer file = dex_vdex(unknown[i], specs, 2, NULL);
        expect_refused(&file, 0, BASE_ERR_UNSUPPORTED, "version");
        free(file.data);
    }
    const unsigned known[] = {6, 19, 21, 27};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct build_buffer file = dex_vdex(known[i], specs, 2, NULL);
        size_t whole = file.size;
        for (file.size = 4; file.size < whole - 120; file.size += 3) { // behind the dex files is nothing of interest
            struct dex_source source;
            struct base_error error;
            uint8_t *copy = malloc(file.size);
            memcpy(copy, file.data, file.size);
            if (dex_source_open_memory(&source, copy, file.size, &error) == 0)
                ck_abort_msg("vdex %u, %zu bytes of %zu", known[i], file.size, whole);
        }
        free(file.data);
    }
    struct build_buffer file = dex_vdex(10, specs, 2, NULL);
    const uint32_t count = 3;
    memcpy(file.data + 8, &count, 4); // one more than there are
    expect_refused(&file, 0, BASE_ERR_UNSUPPORTED, "neither dex");
    free(file.data);
}
END_TEST

START_TEST(archive)
{
    const struct dex_spec specs[] = {{39, one, 1}, {39, two, 1}};
    struct build_buffer dex[2] = {{0}, {0}};
    struct dex_truth truth[2] = {{0}, {0}};
    struct base_error error;
    for (size_t i = 0; i < 2; i++) {
        uint64_t offset;
        dex_add(&dex[i], &specs[i], 1, 0, &offset, &truth[i]);
    }
    const struct build_member members[] = {{"AndroidManifest.xml", "manifest", 8, 0},
                                           {"classes.dex", dex[0].data, dex[0].size, 0},
                                           {"classes2.dex", dex[1].data, dex[1].size, 0},
                                           {"packed.dex", dex[1].data, dex[1].size, 8},
                                           {"assets/dex.bin", dex[0].data, dex[0].size, 0}};
    struct build_buffer zip = build_zip(members, 5, "comment");
    uint64_t places[5];
    const uint8_t *from = zip.data;
    for (size_t i = 0; i < 5; i++) {
        const uint8_t *at = memmem(from, (size_t)(zip.data + zip.size - from), members[i].data, members[i].size);
        places[i] = at ? (uint64_t)(at - zip.data) : 0;
        from = at ? at + 1 : from;
    }
    for (size_t i = 0; i < 2; i++) {
        struct dex_source source;
        const uint64_t inside[] = {places[i + 1], places[i + 1] + dex[i].size - 1};
        for (size_t k = 0; k < 2; k++) {
            ck_assert_msg(open_bytes(&source, &zip, inside[k], &error) == 0, "%s", error.detail);
            ck_assert_str_eq(source.entry, members[i + 1].name);
            ck_assert_uint_eq(source.offset_bytes, places[i + 1]);
            expect_truth(&source, &truth[i], 0);
            dex_source_close(&source);
        }
    }
    expect_refused(&zip, places[2] - 1, BASE_ERR_UNSUPPORTED, "no stored dex file"); // in front of it
    expect_refused(&zip, places[0], BASE_ERR_UNSUPPORTED, "no stored dex file");
    expect_refused(&zip, places[3] + 200, BASE_ERR_UNSUPPORTED, "no stored dex file"); // its method says: compressed
    expect_refused(&zip, places[4] + 200, BASE_ERR_UNSUPPORTED, "no stored dex file"); // by its name no dex file
    expect_refused(&zip, zip.size + 5, BASE_ERR_UNSUPPORTED, "no stored dex file");
    zip.size -= 40;
    expect_refused(&zip, places[1], BASE_ERR_MALFORMED, "no end record");
    for (size_t i = 0; i < 2; i++) {
        dex_truth_free(&truth[i]);
        free(dex[i].data);
    }
    free(zip.data);
}
END_TEST

// Two dex files between whatever else an OAT file of Android 7 has.
START_TEST(oat)
{
    const struct dex_spec spec = {37, one, 1}, spec2 = {35, two, 1};
    struct build_buffer file = {0};
    struct dex_truth truth = {0};
    struct dex_source source;
    struct base_error error;
    uint64_t offset;
    build_add(&file, "\177ELF\2\1\1", 8);
    build_add(&file, "dex\n035\0 but no header of one", 28);
    build_add(&file, NULL, 256);
    dex_add(&file, &spec, 1, 0, &offset, &truth);
    build_add(&file, "something else ", 16);
    dex_add(&file, &spec2, 1, 0, &offset, &truth);
    ck_assert_msg(open_bytes(&source, &file, 0, &error) == 0, "%s", error.detail);
    expect_truth(&source, &truth, 0);
    dex_source_close(&source);
    dex_truth_free(&truth);
    free(file.data);
}
END_TEST

START_TEST(other_files)
{
    struct build_buffer file = {0};
    build_add(&file, "#!/bin/sh\n", 10);
    expect_refused(&file, 0, BASE_ERR_UNSUPPORTED, "neither dex");
    file.size = 0;
    expect_refused(&file, 0, BASE_ERR_UNSUPPORTED, "neither dex");
    free(file.data);
    struct dex_source source;
    struct base_error error = {0};
    ck_assert_int_eq(dex_source_open(&source, "/nonexistent/file", 0, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
    error = (struct base_error){0};
    ck_assert_int_eq(dex_source_open(&source, "/dev/zero", 0, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
}
END_TEST

// A real compact dex file, of ART 11: the names its stacks have, at the dex pcs they have.
START_TEST(real_vdex)
{
    static const struct {
        uint64_t offset;
        const char *name;
    } expected[] = {{0x2ac, "Snap.<init>"}, {0x2fa, "Snap.hot"}, {0x360, "Snap.osr"},  {0x376, "Snap.rec"},
                    {0x3ce, "Snap.inst"},   {0x3fe, "Snap.op"},  {0x430, "Snap.virt"}, {0x2cc, "Snap.fromNative"}};
    char *path = corpus_path("art11/x86_64_int/boot-snap.vdex");
    if (!path)
        return;
    struct dex_source source;
    struct base_error error = {0};
    ck_assert_msg(dex_source_open(&source, path, 0, &error) == 0, "%s", error.detail);
    free(path);
    ck_assert_uint_eq(dex_index_count(source.index), 10);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct dex_found found;
        ck_assert(dex_index_find(source.index, expected[i].offset, &found));
        char *name = dex_found_name(&found);
        ck_assert_str_eq(name, expected[i].name);
        free(name);
    }
    dex_source_close(&source);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dex sources");
    TCase *tests = tcase_create("dex sources");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, vdex_versions);
    tcase_add_test(tests, vdex_without_dex);
    tcase_add_test(tests, vdex_refusals);
    tcase_add_test(tests, archive);
    tcase_add_test(tests, oat);
    tcase_add_test(tests, other_files);
    tcase_add_test(tests, real_vdex);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
