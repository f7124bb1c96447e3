// SPDX-License-Identifier: Apache-2.0
// Names of the folder's files, and lines of its indexes.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libqut/arch/arch.h"
#include "qutc/shelf/inside.h"

void shelf_shard(const struct arch *arch, const uint8_t *identity, char path[SHELF_PATH_MAX])
{
    char first[3];
    qut_hex(identity, 1, first);
    snprintf(path, SHELF_PATH_MAX, "qut/v1/%s/%s", arch->name, first);
}

void shelf_file_name(const char *rest, char name[SHELF_PATH_MAX])
{
    snprintf(name, SHELF_PATH_MAX, "%s.qut.zst", rest);
}

void shelf_index_head(const char *shard, char head[SHELF_PATH_MAX])
{
    snprintf(head, SHELF_PATH_MAX, "qut-index 1 %s\n", shard);
}

void shelf_entry_print(const struct shelf_entry *entry, char line[SHELF_LINE_MAX])
{
    char packed[2 * SHELF_HASH_BYTES + 1], source[2 * SHELF_HASH_BYTES + 1];
    qut_hex(entry->packed_hash, SHELF_HASH_BYTES, packed);
    qut_hex(entry->source_hash, SHELF_HASH_BYTES, source);
    snprintf(line, SHELF_LINE_MAX, "%s %s %" PRIu64 " %" PRIu64 " %s %" PRIu64, entry->rest, packed,
             entry->packed_bytes, entry->table_bytes, source, entry->source_bytes);
}

static int digit_value(uint8_t digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// Hex digits up to the byte that ends them: 2 * least to 2 * most of them.
static size_t read_hex(struct base_cursor *c, size_t most, uint8_t *bytes, uint8_t end)
{
    size_t count = 0;
    for (;; count++) {
        uint8_t high = base_read_u8(c);
        if (c->failed || high == end)
            break;
        int upper = digit_value(high), lower = digit_value(base_read_u8(c));
        if (count == most || upper < 0 || lower < 0 || c->failed)
            return 0;
        bytes[count] = (uint8_t)(upper * 16 + lower);
    }
    return c->failed ? 0 : count;
}

// At most 15 digits, none of them in vain.
static bool read_number(struct base_cursor *c, uint64_t *number, uint8_t end)
{
    enum { DIGITS_MAX = 15 };
    *number = 0;
    for (unsigned digits = 0;; digits++) {
        uint8_t digit = base_read_u8(c);
        if (c->failed)
            return false;
        if (digit == end)
            return digits > 0;
        if (digit < '0' || digit > '9' || digits == DIGITS_MAX || (digits > 0 && *number == 0))
            return false;
        *number = *number * 10 + (digit - '0');
    }
}

int shelf_entry_read(struct base_cursor *lines, struct shelf_entry *entry, struct base_error *error)
{
    uint8_t rest[QUT_IDENTITY_MAX];
    size_t at = base_cursor_offset(lines), rest_size = read_hex(lines, QUT_IDENTITY_MAX - 1, rest, ' ');
    qut_hex(rest, rest_size, entry->rest);
    bool is_line = rest_size > 0 && read_hex(lines, SHELF_HASH_BYTES, entry->packed_hash, ' ') == SHELF_HASH_BYTES &&
                   read_number(lines, &entry->packed_bytes, ' ') && read_number(lines, &entry->table_bytes, ' ') &&
                   read_hex(lines, SHELF_HASH_BYTES, entry->source_hash, ' ') == SHELF_HASH_BYTES &&
                   read_number(lines, &entry->source_bytes, '\n');
    return is_line ? 0 : base_fail(error, BASE_ERR_MALFORMED, "index", at, "a line that no index has");
}

int shelf_index_begin(struct base_bytes index, const char *shard, struct base_cursor *lines, struct base_error *error)
{
    char head[SHELF_PATH_MAX];
    shelf_index_head(shard, head);
    size_t head_bytes = strlen(head);
    *lines = base_cursor(index);
    struct base_bytes its_head = base_read_bytes(lines, head_bytes);
    return its_head.size == head_bytes && memcmp(its_head.data, head, head_bytes) == 0
               ? 0
               : base_fail(error, BASE_ERR_MALFORMED, "index", 0, "it is no index of %s", shard);
}

int shelf_index_find(struct base_bytes index, const char *shard, const char *rest, struct shelf_entry *entry,
                     bool *found, struct base_error *error)
{
    struct base_cursor lines;
    *found = false;
    if (shelf_index_begin(index, shard, &lines, error) != 0)
        return -1;
    while (base_cursor_left(&lines) > 0) {
        struct shelf_entry one;
        if (shelf_entry_read(&lines, &one, error) != 0)
            return -1;
        if (strcmp(one.rest, rest) == 0) {
            *entry = one;
            *found = true;
        }
    }
    return 0;
}
