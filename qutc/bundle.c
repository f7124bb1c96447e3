// SPDX-License-Identifier: Apache-2.0
#include "qutc/bundle.h"

#include <stdlib.h>
#include <string.h>

#include "base/codec.h"
#include "base/vector.h"
#include "formats/qut_checksum_inline.h"
#include "formats/qut_table.h"
#include "formats/qut_table_check.h"
#include "qutc/table_file.h"

// Measured on the 1467 tables of one system: level 19 packs them to 39 %, 12 to 42 % in a sixth of the time. A shared
// dictionary would give 38 %, all tables in one frame 33 %, but then none could be taken out alone.
enum { COMPRESSION_LEVEL = 19 };

static bool name_is_sound(const char *name, size_t size)
{
    if (size == 0 || size > QUT_BUNDLE_NAME_MAX_BYTES || name[0] == '.')
        return false;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f || name[i] == '/')
            return false;
    return true;
}

static int compare_names(const char *left, size_t left_size, const char *right, size_t right_size)
{
    size_t common = left_size < right_size ? left_size : right_size;
    int order = memcmp(left, right, common);
    return order ? order : (left_size > right_size) - (left_size < right_size);
}

static int by_name(const void *left, const void *right)
{
    const struct qutc_bundle_item *a = left, *b = right;
    return compare_names(a->name, strlen(a->name), b->name, strlen(b->name));
}

static uint64_t directory_checksum(const uint8_t *bytes, uint64_t directory_bytes)
{
    const struct qut_bundle_header *header = (const void *)bytes;
    const uint8_t *summed = (const uint8_t *)(&header->checksum + 1);
    return qut_table_checksum(summed, (size_t)(directory_bytes - (uint64_t)(summed - bytes)));
}

struct packer {
    BASE_VECTOR(uint8_t);
};

static int reserve(struct packer *p, size_t more, struct base_error *error)
{
    return BASE_RESERVE(p, more) ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "%zu bytes", p->count + more);
}

static int check_items(const struct qutc_bundle_item *items, size_t count, size_t *names_bytes,
                       struct base_error *error)
{
    *names_bytes = 0;
    if (count > QUT_BUNDLE_ENTRIES_MAX)
        return base_fail(error, BASE_ERR_LIMIT, "", 0, "%zu tables", count);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(items[i].name);
        if (!name_is_sound(items[i].name, size))
            return base_fail(error, BASE_ERR_MALFORMED, "", 0, "not a name for a table in a bundle: %s", items[i].name);
        if (i && strcmp(items[i - 1].name, items[i].name) == 0)
            return base_fail(error, BASE_ERR_MALFORMED, "", 0, "two tables with the name %s", items[i].name);
        if (items[i].size > QUT_BUNDLE_TABLE_MAX_BYTES)
            return base_fail(error, BASE_ERR_LIMIT, "", 0, "%s has %zu bytes", items[i].name, items[i].size);
        *names_bytes += size;
    }
    return 0;
}

static struct qut_bundle_entry describe(const struct qutc_bundle_item *item)
{
    const struct qut_table_header *table = (const void *)item->table;
    struct qut_bundle_entry entry = {.identity_size = table->identity_size,
                                     .arch = table->arch,
                                     .row_count = table->row_count,
                                     .text_bytes = table->text_size,
                                     .checksum = table->checksum,
                                     .name_bytes = (uint32_t)strlen(item->name),
                                     .unpacked_bytes = item->size};
    memcpy(entry.identity, table->identity, sizeof entry.identity);
    return entry;
}

static int pack_frame(struct packer *p, const struct qutc_bundle_item *item, struct qut_bundle_entry *entry,
                      struct base_error *error)
{
    size_t room = base_zstd_bound(item->size), packed;
    if (reserve(p, room, error) != 0 || base_zstd_pack((struct base_bytes){item->table, item->size}, COMPRESSION_LEVEL,
                                                       p->items + p->count, room, &packed, error) != 0)
        return -1;
    entry->frame_offset = p->count;
    entry->packed_bytes = packed;
    p->count += packed;
    return 0;
}

static int pack_all(struct packer *p, const struct qutc_bundle_item *items, size_t count, size_t names_bytes,
                    struct qut_bundle_entry *entries, struct base_error *error)
{
    size_t names_start = sizeof(struct qut_bundle_header) + count * sizeof *entries;
    size_t directory_bytes = names_start + names_bytes;
    if (reserve(p, directory_bytes, error) != 0)
        return -1;
    p->count = directory_bytes;
    uint32_t name_offset = 0;
    for (size_t i = 0; i < count; i++) {
        entries[i] = describe(&items[i]);
        entries[i].name_offset = name_offset;
        memcpy(p->items + names_start + name_offset, items[i].name, entries[i].name_bytes);
        name_offset += entries[i].name_bytes;
        if (pack_frame(p, &items[i], &entries[i], error) != 0)
            return -1;
    }
    struct qut_bundle_header header = {.version = QUT_BUNDLE_VERSION,
                                       .entry_count = (uint32_t)count,
                                       .file_size = p->count,
                                       .names_bytes = name_offset};
    memcpy(header.magic, QUT_BUNDLE_MAGIC, sizeof header.magic);
    memcpy(p->items, &header, sizeof header);
    memcpy(p->items + sizeof header, entries, count * sizeof *entries);
    header.checksum = directory_checksum(p->items, directory_bytes);
    memcpy(p->items, &header, sizeof header);
    return 0;
}

int qutc_bundle_pack(struct qutc_bundle_item *items, size_t count, uint8_t **bytes, size_t *size,
                     struct base_error *error)
{
    size_t names_bytes;
    *bytes = NULL;
    *size = 0;
    if (count)
        qsort(items, count, sizeof *items, by_name);
    if (check_items(items, count, &names_bytes, error) != 0)
        return -1;
    struct packer packer = {0};
    struct qut_bundle_entry *entries = calloc(count + 1, sizeof *entries);
    int result = entries ? pack_all(&packer, items, count, names_bytes, entries, error)
                         : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "list of tables");
    free(entries);
    if (result != 0) {
        base_vector_free(&packer.vector);
        return -1;
    }
    *bytes = packer.items;
    *size = packer.count;
    return 0;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

static int refuse(struct base_error *error, uint64_t offset, const char *why)
{
    return base_fail(error, BASE_ERR_TABLE, "bundle", offset, "%s", why);
}

static int check_header(const struct qut_bundle_header *header, size_t size, struct base_error *error)
{
    if (size < sizeof *header)
        return refuse(error, size, "too short for a bundle");
    if (memcmp(header->magic, QUT_BUNDLE_MAGIC, sizeof header->magic) != 0)
        return refuse(error, 0, "not a bundle");
    if (header->version != QUT_BUNDLE_VERSION)
        return refuse(error, offsetof(struct qut_bundle_header, version),
                      header->version < QUT_BUNDLE_VERSION
                          ? "made by an older QUT: unpack it with that one, or make its tables again with qutc compile"
                          : "made by a newer QUT: unpack it with that one, or make its tables again with qutc compile");
    if (header->file_size != size)
        return refuse(error, offsetof(struct qut_bundle_header, file_size), "not as long as its header says");
    uint64_t directory_bytes =
        sizeof *header + header->entry_count * (uint64_t)sizeof(struct qut_bundle_entry) + header->names_bytes;
    if (header->entry_count > QUT_BUNDLE_ENTRIES_MAX || directory_bytes > size)
        return refuse(error, offsetof(struct qut_bundle_header, entry_count), "directory out of place");
    if (!qut_checksum_agrees(header->checksum, directory_checksum((const uint8_t *)header, directory_bytes)))
        return refuse(error, offsetof(struct qut_bundle_header, checksum), "checksum mismatch");
    if (!is_zero(header->zero, sizeof header->zero))
        return refuse(error, offsetof(struct qut_bundle_header, zero), "header field out of range");
    return 0;
}

static int check_entries(const struct qutc_bundle *bundle, const struct qut_bundle_header *header,
                         struct base_error *error)
{
    uint64_t name_offset = 0;
    uint64_t frame_offset = (uint64_t)((const uint8_t *)bundle->names - bundle->bytes) + header->names_bytes;
    for (uint32_t i = 0; i < bundle->entry_count; i++) {
        const struct qut_bundle_entry *entry = &bundle->entries[i], *last = i ? entry - 1 : NULL;
        uint64_t at = (uint64_t)((const uint8_t *)entry - bundle->bytes);
        if (entry->arch == QUT_ARCH_NONE || entry->arch >= QUT_ARCH_END ||
            entry->identity_size > sizeof entry->identity || entry->zero || !is_zero(entry->zero2, sizeof entry->zero2))
            return refuse(error, at, "entry field out of range");
        if (entry->name_offset != name_offset || entry->name_bytes > header->names_bytes - name_offset)
            return refuse(error, at, "names do not follow each other");
        const char *name = bundle->names + name_offset;
        if (!name_is_sound(name, entry->name_bytes))
            return refuse(error, at, "not a file's name");
        if (last && compare_names(bundle->names + last->name_offset, last->name_bytes, name, entry->name_bytes) >= 0)
            return refuse(error, at, "names are not ascending");
        if (entry->frame_offset != frame_offset || entry->packed_bytes > header->file_size - frame_offset)
            return refuse(error, at, "frames do not follow each other");
        if (entry->unpacked_bytes < sizeof(struct qut_table_header) ||
            entry->unpacked_bytes > QUT_BUNDLE_TABLE_MAX_BYTES)
            return refuse(error, at, "impossible size of a table");
        name_offset += entry->name_bytes;
        frame_offset += entry->packed_bytes;
    }
    if (name_offset != header->names_bytes || frame_offset != header->file_size)
        return refuse(error, sizeof *header, "bytes that belong to no entry");
    return 0;
}

int qutc_bundle_open(struct qutc_bundle *bundle, const void *bytes, size_t size, struct base_error *error)
{
    *bundle = (struct qutc_bundle){0};
    const struct qut_bundle_header *header = bytes;
    if (check_header(header, size, error) != 0)
        return -1;
    const struct qut_bundle_entry *entries = (const void *)(header + 1);
    struct qutc_bundle opened = {.bytes = bytes,
                                 .entries = entries,
                                 .names = (const char *)(entries + header->entry_count),
                                 .entry_count = header->entry_count};
    if (check_entries(&opened, header, error) != 0)
        return -1;
    *bundle = opened;
    return 0;
}

void qutc_bundle_name(const struct qutc_bundle *bundle, uint32_t index, char name[QUT_BUNDLE_NAME_MAX_BYTES + 1])
{
    const struct qut_bundle_entry *entry = &bundle->entries[index];
    memcpy(name, bundle->names + entry->name_offset, entry->name_bytes);
    name[entry->name_bytes] = '\0';
}

static bool is_described_by(const struct qut_bundle_entry *entry, const struct qut_table_header *table)
{
    return entry->arch == table->arch && entry->identity_size == table->identity_size &&
           memcmp(entry->identity, table->identity, sizeof entry->identity) == 0 &&
           entry->row_count == table->row_count && entry->text_bytes == table->text_size &&
           entry->checksum == table->checksum;
}

static struct base_bytes frame_of(const struct qutc_bundle *bundle, const struct qut_bundle_entry *entry)
{
    return (struct base_bytes){bundle->bytes + entry->frame_offset, (size_t)entry->packed_bytes};
}

static int unpack_into(const struct qutc_bundle *bundle, const struct qut_bundle_entry *entry, uint8_t *table,
                       struct base_error *error)
{
    size_t size = (size_t)entry->unpacked_bytes;
    struct qut_table attached;
    if (base_unzstd(frame_of(bundle, entry), table, size, "bundle", error) != 0)
        return -1;
    if (qutc_table_attach(&attached, table, size, error) != 0)
        return -1;
    if (!is_described_by(entry, attached.header))
        return refuse(error, entry->frame_offset, "not the table its entry describes");
    return 0;
}

int qutc_bundle_unpack(const struct qutc_bundle *bundle, uint32_t index, uint8_t **table, size_t *size,
                       struct base_error *error)
{
    const struct qut_bundle_entry *entry = &bundle->entries[index];
    *table = NULL;
    *size = 0;
    // Before memory of the size that the entry claims is asked for; and exactly one frame, as long as the entry says.
    if (base_zstd_check(frame_of(bundle, entry), entry->unpacked_bytes, "bundle", error) != 0)
        return -1;
    *table = qutc_alloc_aligned((size_t)entry->unpacked_bytes);
    if (!*table)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "%ju bytes", (uintmax_t)entry->unpacked_bytes);
    if (unpack_into(bundle, entry, *table, error) == 0) {
        *size = (size_t)entry->unpacked_bytes;
        return 0;
    }
    free(*table);
    *table = NULL;
    return -1;
}
