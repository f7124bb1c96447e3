// SPDX-License-Identifier: Apache-2.0
// The table of an image: from the cache, or compiled from its file, or from what is mapped of it.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/os.h"
#include "libqut/target/opened_target.h"

// What a hostile image may claim to occupy.
#define IMAGE_BYTES_MAX ((uint64_t)1 << 30)

// Pages that are not touched cost nothing.
void *target_rebuild(struct qut_target *target, const struct elf_head *head, uint64_t load_bias, size_t *size,
                     bool *incomplete)
{
    uint64_t end = 0;
    for (unsigned i = 0; i < head->load_count; i++) {
        const struct elf_segment *load = &head->loads[i];
        if (load->offset > IMAGE_BYTES_MAX || load->file_size > IMAGE_BYTES_MAX - load->offset)
            return NULL;
        if (load->offset + load->file_size > end)
            end = load->offset + load->file_size;
    }
    uint8_t *bytes = end ? os_pages((size_t)end, false) : NULL;
    if (!bytes)
        return NULL;
    for (unsigned i = 0; i < head->load_count; i++) {
        const struct elf_segment *load = &head->loads[i];
        uint64_t address = load_bias + load->vaddr;
        if (target->arch->word_bytes == 4)
            address &= UINT32_MAX;
        // Pages that cannot be read stay zero, those behind them are read all the same.
        for (uint64_t done = 0; done < load->file_size;) {
            size_t got = target->kind->read(target, address + done, bytes + load->offset + done,
                                            (size_t)(load->file_size - done));
            done += got;
            if (done >= load->file_size)
                break;
            *incomplete = true;
            const struct target_map *map = target_maps_find(&target->maps, address + done);
            uint64_t page_left = 4096 - ((address + done) & 4095);
            uint64_t skip = map && map->end - (address + done) > page_left && got ? page_left : 0;
            if (!skip)
                skip = map ? map->end - (address + done) : page_left;
            done += skip;
        }
    }
    *size = (size_t)end;
    return bytes;
}

// What a table of the image is found by, in the cache or at another image. NULL: nothing.
static const uint8_t *table_identity(const struct target_image *image, uint32_t *size, enum qut_table_flag *kind)
{
    *size = image->has_oat_identity ? ART_OAT_IDENTITY_BYTES : image->build_id_size;
    *kind = image->has_oat_identity ? QUT_TABLE_OAT_IDENTITY : QUT_TABLE_BUILD_ID;
    return image->has_oat_identity ? image->oat_identity : image->build_id_size ? image->build_id : NULL;
}

static int compile(struct qut_target *target, struct target_image *image, struct runtime_stored_table *stored)
{
    struct qut_compile_request request = {
        .path = image->file_path ? image->file_path : "",
        .offset_bytes = image->file_path ? image->file_offset : 0,
    };
    enum qut_table_flag kind;
    request.build_id = table_identity(image, &request.build_id_size, &kind);
    request.flags = QUT_COMPILE_OF_ANOTHER | (kind == QUT_TABLE_OAT_IDENTITY ? QUT_COMPILE_OAT_IDENTITY : 0u);
    if (!target->compile) {
        snprintf(image->reason, sizeof image->reason, "not in the cache of tables, and no compiler was given");
        return -1;
    }
    void *memory = NULL, *table = NULL;
    bool incomplete = false;
    if (!image->file_path) {
        memory = target_rebuild(target, image->head, image->load_bias, &request.memory_size, &incomplete);
        request.memory = memory;
        if (!memory) {
            snprintf(image->reason, sizeof image->reason, "its mapped image is too large, or empty");
            return -1;
        }
    }
    size_t table_size = 0;
    char reason[TARGET_REASON_BYTES - 72] = "";
    int result = target->compile(target->compile_context, &request, &table, &table_size, reason, sizeof reason);
    if (memory)
        os_free_pages(memory, request.memory_size);
    if (result != 0) {
        snprintf(image->reason, sizeof image->reason, "%s%s%s", reason,
                 image->file_is_another ? "; the file at its path is another one" : "",
                 incomplete ? "; not all of its memory is there" : "");
        return -1;
    }
    if (runtime_stored_table_adopt(table, table_size, target->arch, stored) != 0) {
        snprintf(image->reason, sizeof image->reason, "what the compiler made is no sound table for %s",
                 target->arch->name);
        return -1;
    }
    return 0;
}

// node maps a part of itself once for each of its virtual machines: eight images, and one table to read and check.
static bool share(struct qut_target *target, struct target_image *image)
{
    enum qut_table_flag kind, other_kind;
    uint32_t size, other_size;
    const uint8_t *identity = table_identity(image, &size, &kind);
    for (size_t i = 0; identity && i < target->image_count; i++) {
        const struct target_image *other = target->images[i];
        const uint8_t *other_identity = table_identity(other, &other_size, &other_kind);
        if (other->table_state == TARGET_TABLE_READY && other_kind == kind && other_size == size &&
            memcmp(other_identity, identity, size) == 0) {
            image->stored = other->stored;
            image->shares_table = true;
            return true;
        }
    }
    return false;
}

void target_make_table(struct qut_target *target, struct target_image *image)
{
    if (image->table_state != TARGET_TABLE_UNTRIED)
        return;
    image->table_state = TARGET_TABLE_NONE;
    if (!image->is_elf) {
        snprintf(image->reason, sizeof image->reason, "no ELF image");
        return;
    }
    if (image->head->machine != target->arch->elf_machine) {
        snprintf(image->reason, sizeof image->reason, "for another machine (ELF machine %u)", image->head->machine);
        return;
    }
    if (share(target, image)) {
        image->table_state = TARGET_TABLE_READY;
        return;
    }
    enum qut_table_flag kind;
    uint32_t size;
    const uint8_t *identity = table_identity(image, &size, &kind);
    if (target->cache_directory && identity &&
        runtime_table_store_read(target->cache_directory, target->arch, kind, identity, size, &image->stored) == 0) {
        image->table_state = TARGET_TABLE_READY;
        return;
    }
    if (compile(target, image, &image->stored) == 0)
        image->table_state = TARGET_TABLE_READY;
}
