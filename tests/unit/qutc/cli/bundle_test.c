// SPDX-License-Identifier: Apache-2.0
// Bundles: round trip, and every way in which one can lie.
#include "qutc/bundle.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "formats/qut_table_check.h"
#include "qutc/qutc.h"
#include "qutc/table_file.h"
#include "tests/support/run_suite.h"

enum { TABLES = 3 };
static const char *const names[TABLES] = {"a.qut", "libb.so-0123.qut", "z"};

static uint8_t *tables[TABLES];
static size_t table_sizes[TABLES];
static uint8_t *good; // the bundle, aligned
static size_t good_size;

static struct qut_bundle_header *header_of(uint8_t *bytes)
{
    return (void *)bytes;
}

static struct qut_bundle_entry *entries_of(uint8_t *bytes)
{
    return (void *)(bytes + sizeof(struct qut_bundle_header));
}

static size_t directory_bytes(uint8_t *bytes)
{
    return sizeof(struct qut_bundle_header) + header_of(bytes)->entry_count * sizeof(struct qut_bundle_entry) +
           header_of(bytes)->names_bytes;
}

static void sign(uint8_t *bytes)
{
    header_of(bytes)->checksum = qut_table_checksum(bytes + 24, directory_bytes(bytes) - 24);
}

static uint8_t *copy_of(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = qutc_alloc_aligned(size);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    return copy;
}

static void compile_own_program(bool small, uint8_t **table, size_t *size)
{
    struct input_image *image;
    struct base_error error = {0};
    uint8_t *compiled;
    const struct qutc_compile_options options = {.small = small};
    ck_assert_int_eq(input_image_open("/proc/self/exe", "self", 0, 0, NULL, &image, &error), 0);
    ck_assert_int_eq(qutc_compile(image, &options, &compiled, size, NULL, &error), 0);
    *table = copy_of(compiled, *size);
    free(compiled);
    input_image_close(image);
}

static void set_up(void)
{
    struct base_error error = {0};
    uint8_t *bytes;
    compile_own_program(false, &tables[0], &table_sizes[0]);
    compile_own_program(true, &tables[1], &table_sizes[1]);
    tables[2] = tables[0];
    table_sizes[2] = table_sizes[0];
    struct qutc_bundle_item items[TABLES];
    for (int i = 0; i < TABLES; i++) // not in order
        items[TABLES - 1 - i] = (struct qutc_bundle_item){names[i], tables[i], table_sizes[i]};
    ck_assert_int_eq(qutc_bundle_pack(items, TABLES, &bytes, &good_size, &error), 0);
    good = copy_of(bytes, good_size);
    free(bytes);
}

static void tear_down(void)
{
    free(tables[0]);
    free(tables[1]);
    free(good);
}

START_TEST(round_trip)
{
    struct qutc_bundle bundle;
    struct base_error error = {0};
    ck_assert_int_eq(qutc_bundle_open(&bundle, good, good_size, &error), 0);
    ck_assert_uint_eq(bundle.entry_count, TABLES);
    for (uint32_t i = 0; i < TABLES; i++) {
        char name[QUT_BUNDLE_NAME_MAX_BYTES + 1];
        uint8_t *table;
        size_t size;
        qutc_bundle_name(&bundle, i, name);
        ck_assert_str_eq(name, names[i]);
        ck_assert_int_eq(qutc_bundle_unpack(&bundle, i, &table, &size, &error), 0);
        ck_assert_uint_eq(size, table_sizes[i]);
        ck_assert_mem_eq(table, tables[i], size);
        free(table);
    }
}
END_TEST

START_TEST(an_empty_bundle_is_one)
{
    struct qutc_bundle bundle;
    struct base_error error = {0};
    uint8_t *bytes;
    size_t size;
    ck_assert_int_eq(qutc_bundle_pack(NULL, 0, &bytes, &size, &error), 0);
    ck_assert_uint_eq(size, sizeof(struct qut_bundle_header));
    ck_assert_int_eq(qutc_bundle_open(&bundle, bytes, size, &error), 0);
    ck_assert_uint_eq(bundle.entry_count, 0);
    free(bytes);
}
END_TEST

START_TEST(names_that_no_bundle_may_have)
{
    char long_name[QUT_BUNDLE_NAME_MAX_BYTES + 2];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const char *const bad[] = {"", ".", "..", ".hidden", "a/b", "/a", "a\nb", "a\x7f", long_name};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct qutc_bundle_item item = {bad[i], tables[0], table_sizes[0]};
        struct base_error error = {0};
        uint8_t *bytes;
        size_t size;
        ck_assert_int_eq(qutc_bundle_pack(&item, 1, &bytes, &size, &error), -1);
        ck_assert_int_eq(error.reason, BASE_ERR_MALFORMED);
    }
    struct qutc_bundle_item twins[2] = {{"x", tables[0], table_sizes[0]}, {"x", tables[1], table_sizes[1]}};
    struct base_error error = {0};
    uint8_t *bytes;
    size_t size;
    ck_assert_int_eq(qutc_bundle_pack(twins, 2, &bytes, &size, &error), -1);
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    for (size_t size = 0; size < good_size; size += size < 600 ? 1 : 997) {
        uint8_t *copy = copy_of(good, size);
        struct qutc_bundle bundle;
        struct base_error error = {0};
        ck_assert_int_eq(qutc_bundle_open(&bundle, copy, size, &error), -1);
        ck_assert_int_eq(error.reason, BASE_ERR_TABLE);
        free(copy);
    }
}
END_TEST

// Lies in a directory whose checksum is right.
static void lie_magic(uint8_t *b)
{
    b[0] = 'q';
}
static void lie_version(uint8_t *b)
{
    header_of(b)->version = 2;
}
static void lie_file_size(uint8_t *b)
{
    header_of(b)->file_size++;
}
static void lie_zero(uint8_t *b)
{
    header_of(b)->zero[27] = 1;
}
static void lie_arch(uint8_t *b)
{
    entries_of(b)[1].arch = QUT_ARCH_END;
}
static void lie_identity(uint8_t *b)
{
    entries_of(b)[1].identity_size = 33;
}
static void lie_entry_zero(uint8_t *b)
{
    entries_of(b)[1].zero2[0] = 1;
}
static void lie_name_offset(uint8_t *b)
{
    entries_of(b)[1].name_offset = 0;
}
static void lie_name_bytes(uint8_t *b)
{
    entries_of(b)[2].name_bytes = UINT32_MAX;
}
static void lie_frame_offset(uint8_t *b)
{
    entries_of(b)[1].frame_offset = entries_of(b)[0].frame_offset;
}
static void lie_frame_in_header(uint8_t *b)
{
    entries_of(b)[0].frame_offset = 0;
}
static void lie_packed_bytes(uint8_t *b)
{
    entries_of(b)[2].packed_bytes = UINT64_MAX;
}
static void lie_packed_less(uint8_t *b)
{
    entries_of(b)[2].packed_bytes--;
}
static void lie_unpacked_huge(uint8_t *b)
{
    entries_of(b)[0].unpacked_bytes = (uint64_t)QUT_BUNDLE_TABLE_MAX_BYTES + 1;
}
static void lie_unpacked_tiny(uint8_t *b)
{
    entries_of(b)[0].unpacked_bytes = 3;
}
static char *names_of(uint8_t *b)
{
    return (char *)(entries_of(b) + header_of(b)->entry_count);
}
static void lie_hidden_name(uint8_t *b)
{
    names_of(b)[0] = '.';
}
static void lie_path_name(uint8_t *b)
{
    names_of(b)[1] = '/';
}
static void lie_nul_name(uint8_t *b)
{
    names_of(b)[1] = '\0';
}
static void lie_order(uint8_t *b)
{
    names_of(b)[0] = 'y';
}

static const struct {
    void (*tell)(uint8_t *bytes);
    const char *reason;
} lies[] = {
    {lie_magic, "not a bundle"},
    {lie_version, "made by a newer QUT: unpack it with that one, or make its tables again with qutc compile"},
    {lie_file_size, "not as long as its header says"},
    {lie_zero, "header field out of range"},
    {lie_arch, "entry field out of range"},
    {lie_identity, "entry field out of range"},
    {lie_entry_zero, "entry field out of range"},
    {lie_name_offset, "names do not follow each other"},
    {lie_name_bytes, "names do not follow each other"},
    {lie_frame_offset, "frames do not follow each other"},
    {lie_frame_in_header, "frames do not follow each other"},
    {lie_packed_bytes, "frames do not follow each other"},
    {lie_packed_less, "bytes that belong to no entry"},
    {lie_unpacked_huge, "impossible size of a table"},
    {lie_unpacked_tiny, "impossible size of a table"},
    {lie_hidden_name, "not a file's name"},
    {lie_path_name, "not a file's name"},
    {lie_nul_name, "not a file's name"},
    {lie_order, "names are not ascending"},
};

START_TEST(lies_of_the_directory)
{
    uint8_t *copy = copy_of(good, good_size);
    struct qutc_bundle bundle;
    struct base_error error = {0};
    lies[_i].tell(copy);
    sign(copy);
    ck_assert_int_eq(qutc_bundle_open(&bundle, copy, good_size, &error), -1);
    ck_assert_str_eq(error.detail, lies[_i].reason);
    free(copy);
}
END_TEST

// Sizes beyond the file: nothing may be summed before they are bounded.
START_TEST(huge_counts)
{
    for (int i = 0; i < 2; i++) {
        uint8_t *copy = copy_of(good, good_size);
        struct qutc_bundle bundle;
        struct base_error error = {0};
        if (i)
            header_of(copy)->entry_count = UINT32_MAX;
        else
            header_of(copy)->names_bytes = UINT32_MAX;
        ck_assert_int_eq(qutc_bundle_open(&bundle, copy, good_size, &error), -1);
        ck_assert_str_eq(error.detail, "directory out of place");
        free(copy);
    }
}
END_TEST

// One entry with a frame of our choice.
static int unpack_frame(const void *frame, size_t frame_size, uint64_t claimed_bytes, struct base_error *error)
{
    size_t names_start = sizeof(struct qut_bundle_header) + sizeof(struct qut_bundle_entry);
    size_t size = names_start + 1 + frame_size;
    uint8_t *bytes = qutc_alloc_aligned(size);
    memcpy(bytes, good, names_start);
    *header_of(bytes) = (struct qut_bundle_header){
        .version = QUT_BUNDLE_VERSION, .entry_count = 1, .file_size = size, .names_bytes = 1};
    memcpy(bytes, QUT_BUNDLE_MAGIC, 8);
    struct qut_bundle_entry *entry = entries_of(bytes);
    entry->name_bytes = 1;
    entry->frame_offset = names_start + 1;
    entry->packed_bytes = frame_size;
    entry->unpacked_bytes = claimed_bytes;
    bytes[names_start] = 'n';
    memcpy(bytes + names_start + 1, frame, frame_size);
    sign(bytes);
    struct qutc_bundle bundle;
    ck_assert_int_eq(qutc_bundle_open(&bundle, bytes, size, error), 0);
    uint8_t *table;
    size_t table_size;
    int result = qutc_bundle_unpack(&bundle, 0, &table, &table_size, error);
    free(table);
    free(bytes);
    return result;
}

static void expect_frame(const void *frame, size_t frame_size, uint64_t claimed_bytes, const char *reason)
{
    struct base_error error = {0};
    ck_assert_int_eq(unpack_frame(frame, frame_size, claimed_bytes, &error), reason ? -1 : 0);
    if (reason)
        ck_assert_msg(strstr(error.detail, reason), "%s, wanted %s", error.detail, reason);
}

START_TEST(lies_of_frames)
{
    size_t bound = ZSTD_compressBound(table_sizes[0]);
    uint8_t *frame = malloc(2 * bound);
    size_t size = ZSTD_compress(frame, bound, tables[0], table_sizes[0], 1);
    expect_frame(frame, size, table_sizes[0], NULL);
    expect_frame(frame, size, table_sizes[0] + 1, "another size");
    expect_frame(frame, size, QUT_BUNDLE_TABLE_MAX_BYTES, "another size");
    expect_frame(frame, size - 1, table_sizes[0], "not one whole zstd frame");
    memcpy(frame + size, frame, size);
    expect_frame(frame, 2 * size, table_sizes[0], "not one whole zstd frame");
    expect_frame("", 0, table_sizes[0], "not one whole zstd frame");
    expect_frame("text that is no frame", 21, table_sizes[0], "not one whole zstd frame");
    // Sound frames with other contents.
    uint8_t *other = copy_of(tables[0], table_sizes[0]);
    other[table_sizes[0] / 2] ^= 1;
    size = ZSTD_compress(frame, bound, other, table_sizes[0], 1);
    expect_frame(frame, size, table_sizes[0], "checksum mismatch");
    size = ZSTD_compress(frame, bound, tables[1], table_sizes[1], 1);
    expect_frame(frame, size, table_sizes[1], "not the table its entry describes");
    free(other);
    free(frame);
}
END_TEST

// What a frame claims to hold, and does not: memory stays bounded, the answer is an error.
START_TEST(a_frame_that_holds_less_than_it_claims)
{
    // Magic; descriptor: single segment, 4 bytes of content size; 1 GiB; one last run-length block of 65536 zeros.
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 0x03, 0x00, 0x08, 0x00};
    expect_frame(frame, sizeof frame, QUT_BUNDLE_TABLE_MAX_BYTES, "");
}
END_TEST

// Any bytes: no crash, and what comes out is a table that was put in, or nothing.
START_TEST(random_damage)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (int round = 0; round < 3000; round++) {
        uint8_t *copy = copy_of(good, good_size);
        size_t span = round % 2 ? directory_bytes(copy) : good_size;
        for (int i = 0; i <= round % 4; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            copy[(size_t)(state >> 20) % span] ^= (uint8_t)(1u << (state >> 61));
        }
        if (directory_bytes(copy) <= good_size)
            sign(copy);
        struct qutc_bundle bundle;
        struct base_error error = {0};
        if (qutc_bundle_open(&bundle, copy, good_size, &error) == 0) {
            for (uint32_t i = 0; i < bundle.entry_count; i++) {
                uint8_t *table;
                size_t size;
                if (qutc_bundle_unpack(&bundle, i, &table, &size, &error) != 0)
                    continue;
                ck_assert_uint_eq(size, table_sizes[i]);
                ck_assert_mem_eq(table, tables[i], size);
                free(table);
            }
        }
        free(copy);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bundle");
    TCase *tests = tcase_create("bundle");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 100);
    tcase_add_unchecked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, round_trip);
    tcase_add_test(tests, an_empty_bundle_is_one);
    tcase_add_test(tests, names_that_no_bundle_may_have);
    tcase_add_test(tests, every_truncation_is_refused);
    tcase_add_loop_test(tests, lies_of_the_directory, 0, (int)(sizeof lies / sizeof *lies));
    tcase_add_test(tests, huge_counts);
    tcase_add_test(tests, lies_of_frames);
    tcase_add_test(tests, a_frame_that_holds_less_than_it_claims);
    tcase_add_test(tests, random_damage);
    return run_suite(suite);
}
