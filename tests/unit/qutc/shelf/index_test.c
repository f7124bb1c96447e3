// SPDX-License-Identifier: Apache-2.0
// Indexes of tables for servers: what is written is read, what is read would be written so, and nothing else is.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/shelf/inside.h"
#include "tests/support/run_suite.h"

static const char shard[] = "qut/v1/x86_64/9f";

static struct shelf_entry entry_of(unsigned number, size_t rest_bytes)
{
    struct shelf_entry entry = {
        .packed_bytes = 7 * number, .table_bytes = 1000u + number, .source_bytes = number ? 1ull << 40 : 0};
    uint8_t rest[QUT_IDENTITY_MAX];
    memset(rest, (int)number, sizeof rest);
    qut_hex(rest, rest_bytes, entry.rest);
    memset(entry.packed_hash, (int)(number + 1), sizeof entry.packed_hash);
    memset(entry.source_hash, (int)(number + 2), sizeof entry.source_hash);
    return entry;
}

enum { ENTRIES = 6 };
static const size_t rest_bytes[ENTRIES] = {1, 2, 7, 19, 30, 31};

static size_t write_index(char *text)
{
    shelf_index_head(shard, text);
    for (unsigned i = 0; i < ENTRIES; i++) {
        struct shelf_entry entry = entry_of(i, rest_bytes[i]);
        shelf_entry_print(&entry, text + strlen(text));
        strcat(text, "\n");
    }
    return strlen(text);
}

START_TEST(what_is_written_is_read)
{
    char text[ENTRIES * SHELF_LINE_MAX + SHELF_PATH_MAX];
    struct base_bytes index = {(const uint8_t *)text, write_index(text)};
    for (unsigned i = 0; i < ENTRIES; i++) {
        struct shelf_entry wanted = entry_of(i, rest_bytes[i]), entry;
        bool found;
        ck_assert_int_eq(shelf_index_find(index, shard, wanted.rest, &entry, &found, NULL), 0);
        ck_assert(found);
        ck_assert_str_eq(entry.rest, wanted.rest);
        ck_assert_mem_eq(entry.packed_hash, wanted.packed_hash, SHELF_HASH_BYTES);
        ck_assert_mem_eq(entry.source_hash, wanted.source_hash, SHELF_HASH_BYTES);
        ck_assert(entry.packed_bytes == wanted.packed_bytes && entry.table_bytes == wanted.table_bytes &&
                  entry.source_bytes == wanted.source_bytes);
    }
    struct shelf_entry entry;
    bool found;
    ck_assert_int_eq(shelf_index_find(index, shard, "77", &entry, &found, NULL), 0);
    ck_assert(!found);
}
END_TEST

START_TEST(other_folders_and_halves_are_refused)
{
    char text[ENTRIES * SHELF_LINE_MAX + SHELF_PATH_MAX];
    size_t size = write_index(text);
    struct base_bytes index = {(const uint8_t *)text, size};
    struct shelf_entry entry;
    bool found;
    struct base_error error = {0};
    ck_assert_int_eq(shelf_index_find(index, "qut/v1/x86_64/9e", "00", &entry, &found, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_MALFORMED);
    size_t whole = 0;
    for (index.size = 0; index.size < size; index.size++)
        whole += shelf_index_find(index, shard, "00", &entry, &found, NULL) == 0;
    ck_assert_uint_eq(whole, ENTRIES); // an index that ends behind its first line, or another
}
END_TEST

// Each byte as others, and some at random: what still reads as a line is one, byte for byte.
static void expect_exact(const uint8_t *text, size_t size, size_t *accepted)
{
    struct base_cursor lines;
    struct shelf_entry entry;
    if (shelf_index_begin((struct base_bytes){text, size}, shard, &lines, NULL) != 0)
        return;
    while (base_cursor_left(&lines) > 0) {
        char line[SHELF_LINE_MAX];
        const uint8_t *from = lines.at;
        if (shelf_entry_read(&lines, &entry, NULL) != 0)
            return;
        shelf_entry_print(&entry, line);
        size_t length = strlen(line);
        if ((size_t)(lines.at - from) != length + 1 || memcmp(from, line, length) != 0)
            ck_abort_msg("%.*s is no line", (int)(lines.at - from), (const char *)from);
        ++*accepted;
    }
}

START_TEST(changed_bytes_are_no_other_spelling)
{
    static const char values[] = "09afgA/:` \n\t-+x\x7f\xff";
    char written[ENTRIES * SHELF_LINE_MAX + SHELF_PATH_MAX];
    size_t size = write_index(written), accepted = 0;
    uint8_t *text = malloc(size); // so that a read past its end is seen
    ck_assert_ptr_nonnull(text);
    for (size_t at = 0; at < size; at++) {
        memcpy(text, written, size);
        for (const char *value = values; *value; value++) {
            text[at] = (uint8_t)*value;
            expect_exact(text, size, &accepted);
        }
    }
    unsigned seed = 1;
    for (unsigned round = 0; round < 10000; round++) {
        memcpy(text, written, size);
        for (unsigned change = 0; change < 3; change++) {
            seed = seed * 1103515245u + 12345u;
            size_t at = (seed >> 8) % size;
            seed = seed * 1103515245u + 12345u;
            text[at] = (uint8_t)(" 0a\n"[(seed >> 16) & 3] + (int)(seed >> 28 & 1));
        }
        expect_exact(text, size, &accepted);
    }
    free(text);
    ck_assert_uint_gt(accepted, 5000);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("index");
    tcase_add_test(cases, what_is_written_is_read);
    tcase_add_test(cases, other_folders_and_halves_are_refused);
    tcase_add_test(cases, changed_bytes_are_no_other_spelling);
    Suite *suite = suite_create("shelf");
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
