// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/table_store.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/qut_table_name_inline.h"
#include "libqut/os/file.h"
#include "libqut/os/os.h"

static const size_t table_max_bytes = UINT32_MAX; // the header's file_size

// Attaches pages that *out takes over; frees them where they hold no table of that architecture.
static int attach(void *pages, size_t size, const struct arch *arch, struct runtime_stored_table *out)
{
    *out = (struct runtime_stored_table){.bytes = pages, .size = size};
    if (runtime_table_attach(&out->table, pages, size, NULL) == QUT_TABLE_OK && out->table.header->arch == arch->id)
        return 0;
    runtime_stored_table_free(out);
    return -1;
}

int runtime_table_store_read(const char *directory, const struct arch *arch, enum qut_table_flag kind,
                             const uint8_t *identity, uint32_t identity_size, struct runtime_stored_table *out)
{
    *out = (struct runtime_stored_table){0};
    if (identity_size == 0)
        return -1;
    identity_size = identity_size < QUT_IDENTITY_MAX ? identity_size : QUT_IDENTITY_MAX;
    char name[QUT_TABLE_NAME_MAX];
    char path[PATH_MAX];
    qut_table_name(arch->name, identity, identity_size, name);
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (length < 0 || length >= (int)sizeof path)
        return -1;
    void *pages;
    size_t size;
    if (os_read_own_file(path, table_max_bytes, &pages, &size) != 0 || attach(pages, size, arch, out) != 0)
        return -1;
    const struct qut_table_header *header = out->table.header;
    if ((header->flags & kind) && header->identity_size == identity_size &&
        memcmp(header->identity, identity, identity_size) == 0)
        return 0;
    runtime_stored_table_free(out);
    return -1;
}

int runtime_stored_table_adopt(void *bytes, size_t size, const struct arch *arch, struct runtime_stored_table *out)
{
    *out = (struct runtime_stored_table){0};
    void *pages = bytes && size ? os_pages(size, false) : NULL;
    if (pages)
        memcpy(pages, bytes, size);
    free(bytes);
    return pages ? attach(pages, size, arch, out) : -1;
}

void runtime_stored_table_free(struct runtime_stored_table *stored)
{
    if (stored->bytes)
        os_free_pages(stored->bytes, stored->size);
    *stored = (struct runtime_stored_table){0};
}
