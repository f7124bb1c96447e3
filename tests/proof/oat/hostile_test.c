// SPDX-License-Identifier: Apache-2.0
// Spoiled OAT files: whatever a header or a table says, no row that is called exact may contradict the code.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "libqut/runtime/table.h"
#include "qutc/qutc.h"
#include "tests/support/oat_samples.h"
#include "tests/support/run_suite.h"

static const uint32_t versions[] = {64, 131, 170, 230, 265};
enum { VERSIONS = sizeof versions / sizeof *versions };

// The true table, and the file.
struct original {
    struct oat_spec spec;
    struct build_buffer file;
    uint8_t *bytes;
    struct qut_table table;
};

static bool compile(const uint8_t *data, size_t size, bool as_mapped, uint8_t **bytes, struct qut_table *table)
{
    struct input_image *image;
    struct input_image_options options = {.as_mapped = as_mapped};
    struct base_error error = {0};
    size_t table_bytes;
    uint64_t fault;
    if (input_image_open_memory((struct base_bytes){data, size}, "oat", &options, &image, &error) != 0) {
        ck_assert_int_ne(error.reason, BASE_OK);
        return false;
    }
    bool good = qutc_compile(image, NULL, bytes, &table_bytes, NULL, &error) == 0;
    ck_assert(good || error.reason != BASE_OK);
    if (good)
        ck_assert_int_eq(runtime_table_attach(table, *bytes, table_bytes, &fault), 0);
    input_image_close(image);
    return good;
}

static void begin(struct original *original, unsigned arch, uint32_t version)
{
    oat_spec_init(&original->spec, arch_by_id(arch), version);
    original->file = oat_write(&original->spec);
    ck_assert(compile(original->file.data, original->file.size, false, &original->bytes, &original->table));
}

static void finish(struct original *original)
{
    free(original->file.data);
    free(original->bytes);
}

// Exact rows are those of the true table, or none.
static void check_rows(const struct original *original, const struct qut_table *table, size_t spoiled_at)
{
    uint64_t step = UINT64_C(1) << original->spec.arch->pc_shift;
    for (uint64_t pc = original->spec.text_vaddr; pc < original->spec.text_end; pc += step) {
        struct qut_rule rule, truth;
        runtime_table_rule(table, pc, &rule);
        runtime_table_rule(&original->table, pc, &truth);
        if (rule.kind != QUT_RULE_FRAME || (rule.flags & QUT_RULE_BODY_ONLY) || truth.kind != QUT_RULE_FRAME)
            continue;
        ck_assert_msg(memcmp(&rule, &truth, sizeof rule) == 0 || (truth.flags & QUT_RULE_BODY_ONLY),
                      "%s, OAT %03u, spoiled at %zu: %#llx: cfa+%d, not %d", original->spec.arch->name,
                      (unsigned)original->spec.version, spoiled_at, (unsigned long long)pc, rule.cfa.offset_bytes,
                      truth.cfa.offset_bytes);
    }
}

static void try_spoiled(const struct original *original, const uint8_t *data, size_t size, size_t spoiled_at)
{
    struct qut_table table;
    uint8_t *bytes;
    if (!compile(data, size, spoiled_at & 1, &bytes, &table))
        return;
    check_rows(original, &table, spoiled_at);
    free(bytes);
}

static void for_each(void (*check)(struct original *))
{
    for (unsigned arch = QUT_ARCH_X86_64; arch < QUT_ARCH_END; arch++)
        for (unsigned v = 0; v < VERSIONS; v++) {
            struct original original;
            begin(&original, arch, versions[v]);
            check(&original);
            finish(&original);
        }
}

// The copy is as small as it says, so that a sanitizer sees a read past it.
static void cut_everywhere(struct original *original)
{
    for (size_t size = 0; size < original->file.size; size++) {
        uint8_t *copy = malloc(size + 1);
        memcpy(copy, original->file.data, size);
        try_spoiled(original, copy, size, size);
        free(copy);
    }
}

START_TEST(truncated_at_each_byte)
{
    for_each(cut_everywhere);
}
END_TEST

// Bytes of the OAT header, its tables, CodeInfos and the methods' headers, not of the code.
static bool is_code(const struct original *original, size_t at)
{
    for (unsigned i = 0; i < original->spec.method_count; i++) {
        const struct oat_method *m = &original->spec.methods[i];
        size_t start = original->spec.text_offset + (size_t)(m->vaddr - original->spec.text_vaddr);
        if (at >= start && at < start + m->code_bytes)
            return true;
    }
    return false;
}

static void spoil_everywhere(struct original *original)
{
    static const uint8_t values[] = {0x00, 0xff};
    size_t end = original->spec.text_offset + (size_t)(original->spec.text_end - original->spec.text_vaddr);
    for (size_t at = original->spec.data_offset; at < end; at++) {
        uint8_t kept = original->file.data[at];
        if (is_code(original, at))
            continue;
        for (unsigned i = 0; i < sizeof values + 8; i++) {
            original->file.data[at] = i < 8 ? (uint8_t)(kept ^ 1u << i) : values[i - 8];
            try_spoiled(original, original->file.data, original->file.size, at);
        }
        original->file.data[at] = kept;
    }
}

START_TEST(each_byte_of_headers_and_tables)
{
    for_each(spoil_everywhere);
}
END_TEST

// Absurd counts and sizes in each word.
static void spoil_words(struct original *original)
{
    static const uint32_t values[] = {0x7fffffff, 0xffffffff, 0x10000};
    uint8_t *data = original->file.data + original->spec.data_offset;
    for (size_t at = 8; at + 4 <= original->spec.data_bytes; at++) {
        uint8_t kept[4];
        memcpy(kept, data + at, 4);
        for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
            memcpy(data + at, &values[i], 4);
            try_spoiled(original, original->file.data, original->file.size, at);
        }
        memcpy(data + at, kept, 4);
    }
}

START_TEST(absurd_numbers)
{
    for_each(spoil_words);
}
END_TEST

// Random code behind true headers: every architecture's reader meets every byte.
START_TEST(random_code)
{
    uint32_t random = 1;
    for (unsigned arch = QUT_ARCH_X86_64; arch < QUT_ARCH_END; arch++) {
        struct original original;
        begin(&original, arch, 183);
        for (unsigned round = 0; round < 1000; round++) {
            struct qut_table table;
            uint8_t *bytes;
            for (size_t at = 0; at < original.file.size; at++)
                if (at >= original.spec.text_offset && is_code(&original, at)) {
                    random = random * 1664525 + 1013904223;
                    original.file.data[at] = (uint8_t)(random >> 24);
                }
            if (compile(original.file.data, original.file.size, false, &bytes, &table))
                free(bytes);
        }
        finish(&original);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oat_hostile");
    TCase *tcase = tcase_create("oat_hostile");
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, truncated_at_each_byte);
    tcase_add_test(tcase, each_byte_of_headers_and_tables);
    tcase_add_test(tcase, absurd_numbers);
    tcase_add_test(tcase, random_code);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
