// SPDX-License-Identifier: Apache-2.0
// Names of compiled methods, of a real OAT file and dex files of our own that claim to be its; spoiled ones, too.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/input/oat.h"
#include "tests/support/dex_writer.h"
#include "tests/support/run_suite.h"
#include "tracer/dex/oat_methods.h"

enum { CHECKSUM_AT = 8 };

static const struct dex_method methods[] = {
    {.name = "<init>", .units = 4}, {.name = "first", .units = 12}, {.name = "stub"}, {.name = "last", .units = 3}};
static const struct dex_class classes[] = {{"Lcom/example/Own;", methods, 4}};
static const struct dex_spec spec = {39, classes, 1};

// False: it is not here.
static bool read_corpus(struct build_buffer *bytes)
{
    char *path = corpus_path("oat/art11_own/app_x86_64_none.odex");
    if (!path)
        return false;
    FILE *file = fopen(path, "rb");
    uint8_t buffer[4096];
    ck_assert_ptr_nonnull(file);
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, file)) > 0;)
        build_add(bytes, buffer, got);
    fclose(file);
    free(path);
    return true;
}

static struct build_buffer make_dex(uint32_t checksum)
{
    struct build_buffer dex = {0};
    uint64_t offset;
    dex_add(&dex, &spec, 1, 0, &offset, NULL);
    memcpy(dex.data + CHECKSUM_AT, &checksum, sizeof checksum);
    return dex;
}

START_TEST(by_tables)
{
    struct build_buffer bytes = {0};
    struct base_error error = {0};
    struct input_oat_methods tables;
    if (!read_corpus(&bytes))
        return;
    struct input_image *image = build_open_bytes(&bytes, &error);
    ck_assert_ptr_nonnull(image);
    ck_assert_int_eq(input_oat_find_methods(image, &tables, &error), 0);
    ck_assert_uint_eq(tables.dexes.count, 1);
    struct build_buffer dex = make_dex(tables.dexes.items[0].checksum);
    struct dex_oat *oat = dex_oat_make(image, (struct base_bytes){dex.data, dex.size}, &error);
    ck_assert_msg(oat != NULL, "%s", error.detail);
    // The class has more compiled methods than our dex file declares: those have no names.
    ck_assert_uint_eq(dex_oat_count(oat), 4);
    struct symbol symbol;
    for (size_t i = 0; i < 4; i++) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "com.example.Own.%s", methods[tables.items[i].number].name);
        ck_assert(dex_oat_find(oat, tables.items[i].vaddr, &symbol));
        ck_assert_msg(symbol.name_length == strlen(wanted) && strcmp(symbol.name, wanted) == 0, "%s, wanted %s",
                      symbol.name, wanted);
        ck_assert_uint_eq(symbol.start_vaddr, tables.items[i].vaddr);
        ck_assert(dex_oat_find(oat, symbol.end_vaddr - 1, &symbol));
    }
    ck_assert(!dex_oat_find(oat, image->oat.code.start - 1, &symbol));
    dex_oat_free(oat);
    // Another dex file than it was compiled from.
    dex.data[CHECKSUM_AT] ^= 1;
    oat = dex_oat_make(image, (struct base_bytes){dex.data, dex.size}, &error);
    ck_assert_uint_eq(dex_oat_count(oat), 0);
    dex_oat_free(oat);
    // No file beside it, and none where it says.
    oat = dex_oat_open(image, "/nowhere/oat/x86_64/app.odex", "/nowhere", &error);
    ck_assert_uint_eq(dex_oat_count(oat), 0);
    dex_oat_free(oat);
    input_oat_methods_free(&tables);
    input_image_close(image);
    free(dex.data);
    free(bytes.data);
}
END_TEST

START_TEST(spoiled)
{
    enum { ROUNDS = 3000, CHANGES = 6 };
    struct build_buffer bytes = {0};
    struct base_error error = {0};
    struct input_oat_methods tables;
    uint32_t random = 1;
    if (!read_corpus(&bytes))
        return;
    struct input_image *sound = build_open_bytes(&bytes, &error);
    ck_assert_int_eq(input_oat_find_methods(sound, &tables, &error), 0);
    const uint64_t table_at = 0x1000, table_bytes = 0x1000; // its OAT header and tables
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct build_buffer dex = make_dex(tables.dexes.items[0].checksum), file = {0};
        build_add(&file, bytes.data, bytes.size);
        for (unsigned i = 0; i < CHANGES; i++) {
            random = random * 1664525u + 1013904223u;
            struct build_buffer *to = i & 1 ? &dex : &file;
            uint64_t from = i & 1 ? 0x20 : table_at, size = i & 1 ? to->size - 0x20 : table_bytes;
            to->data[from + (random >> 4) % size] = round & 2 ? 0xff : (uint8_t)(random >> 24);
        }
        struct input_image *image = build_open_bytes(&file, &error);
        size_t dex_bytes = round & 1 ? dex.size : (random >> 3) % dex.size;
        struct dex_oat *oat = image ? dex_oat_make(image, (struct base_bytes){dex.data, dex_bytes}, &error) : NULL;
        if (oat)
            ck_assert_uint_le(dex_oat_count(oat), 4);
        dex_oat_free(oat);
        input_image_close(image);
        free(file.data);
        free(dex.data);
    }
    input_oat_methods_free(&tables);
    input_image_close(sound);
    free(bytes.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oat_methods");
    TCase *tcase = tcase_create("oat_methods");
    tcase_add_test(tcase, by_tables);
    tcase_add_test(tcase, spoiled);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
