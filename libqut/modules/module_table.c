// SPDX-License-Identifier: Apache-2.0
// Where a module's table comes from.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/modules/registry.h"

enum { IMAGE_BYTES_MAX = 1 << 30 };

int modules_record_read_table(const struct modules_record *record, struct runtime_stored_table *stored)
{
    const struct modules_identity *identity = &record->identity;
    const char *directory = modules_registry.cache_directory;
    if (!directory)
        return -1;
    if (identity->has_oat_identity)
        return runtime_table_store_read(directory, &arch_native_arch, QUT_TABLE_OAT_IDENTITY, identity->oat_identity,
                                        sizeof identity->oat_identity, stored);
    return runtime_table_store_read(directory, &arch_native_arch, QUT_TABLE_BUILD_ID, identity->build_id,
                                    identity->build_id_size, stored);
}

// ---- what the compiler is given

static uint64_t image_size(const struct modules_identity *identity)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < identity->header_count; i++) {
        const ElfW(Phdr) *header = &identity->headers[i];
        uint64_t end = (uint64_t)header->p_offset + header->p_filesz;
        if (end < header->p_offset || end > IMAGE_BYTES_MAX)
            return 0;
        if (end > size)
            size = end;
    }
    return size;
}

// The file as far as it is mapped. What cannot be read stays zero.
static void *copy_image(const struct modules_identity *identity, size_t size)
{
    uint8_t *image = os_pages(size, false);
    for (uint32_t i = 0; image && i < identity->header_count; i++) {
        const ElfW(Phdr) *header = &identity->headers[i];
        os_copy_self((uintptr_t)(identity->load_bias + header->p_vaddr), image + header->p_offset,
                     (size_t)header->p_filesz);
    }
    return image;
}

// Where the ELF image begins in the file that is mapped: not at 0 in an archive.
static uint64_t image_offset(const struct modules_identity *identity, const struct os_mapping *mapping)
{
    for (uint32_t i = 0; i < identity->header_count; i++) {
        const ElfW(Phdr) *header = &identity->headers[i];
        uintptr_t start = (uintptr_t)(identity->load_bias + header->p_vaddr);
        if (identity->start < start || identity->start - start >= header->p_memsz)
            continue;
        uint64_t in_image = header->p_offset + (identity->start - start);
        uint64_t in_file = mapping->offset_bytes + (identity->start - mapping->start);
        return in_file >= in_image ? in_file - in_image : 0;
    }
    return 0;
}

int modules_record_compile_table(const struct modules_record *record, struct runtime_stored_table *stored, char *reason,
                                 size_t reason_size)
{
    const struct modules_identity *identity = &record->identity;
    struct os_mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping) {
        snprintf(reason, reason_size, "no memory");
        return -1;
    }
    bool is_mapped = os_mapping_at(identity->start, mapping) == 0;
    struct qut_compile_request request = {
        .path = is_mapped && mapping->is_file ? mapping->path
                : record->name[0] == '/'      ? record->name
                                              : "",
        .offset_bytes = is_mapped ? image_offset(identity, mapping) : 0,
        .build_id = identity->has_oat_identity ? identity->oat_identity : identity->build_id,
        .build_id_size = identity->has_oat_identity ? sizeof identity->oat_identity : identity->build_id_size,
        .flags = identity->has_oat_identity ? QUT_COMPILE_OAT_IDENTITY : 0,
    };
    size_t size = 0;
    void *image = NULL;
    // Where nothing tells whether the file is what was mapped, and no loader did so.
    bool is_file_unsure = identity->is_unlisted && !identity->has_oat_identity && identity->build_id_size == 0;
    if (!is_mapped || !mapping->is_there || is_file_unsure) {
        size = (size_t)image_size(identity);
        image = size ? copy_image(identity, size) : NULL;
        request.memory = image;
        request.memory_size = image ? size : 0;
    }
    void *bytes = NULL;
    size_t bytes_size = 0;
    int result =
        modules_registry.compile(modules_registry.compile_context, &request, &bytes, &bytes_size, reason, reason_size);
    if (result == 0) {
        result = runtime_stored_table_adopt(bytes, bytes_size, &arch_native_arch, stored);
        if (result != 0)
            snprintf(reason, reason_size, "the compiler's table is unsound");
    }
    if (image)
        os_free_pages(image, size);
    free(mapping);
    return result == 0 ? 0 : -1;
}
