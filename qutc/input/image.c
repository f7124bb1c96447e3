// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/image.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qutc/input/identity.h"
#include "qutc/input/image_store.h"
#include "qutc/input/inputs.h"

static const uint64_t unpack_default_bytes = 1ULL << 30;

static struct input_image *create(const char *name, const struct input_image_options *options)
{
    struct input_image *image = calloc(1, sizeof *image);
    if (!image)
        return NULL;
    image->name = strdup(name);
    image->store = calloc(1, sizeof *image->store);
    if (!image->name || !image->store) {
        input_image_close(image);
        return NULL;
    }
    uint64_t bound = options ? options->unpack_max_bytes : 0;
    bound = bound ? bound : unpack_default_bytes;
    image->store->way = options && options->read_files ? INPUT_FILE_READ : INPUT_FILE_MAPPED;
    image->store->unpacker.left_bytes = bound < SIZE_MAX / 4 ? bound : SIZE_MAX / 4;
    return image;
}

// The small symbol table that distributions and ART leave in stripped files: an ELF file of its own, in xz.
static void add_debugdata(struct input_image *image)
{
    struct input_image_store *store = image->store;
    static const char name[] = ".gnu_debugdata";
    const struct input_elf_section *section = input_elf_find(&store->elf, name);
    struct base_bytes bytes;
    struct base_error damage = {0};
    if (!section)
        return;
    if (input_elf_section_bytes(&store->elf, section, &bytes, &damage) == 0) {
        if (bytes.size == 0)
            return;
        if (input_unpack_xz(&store->unpacker, bytes, name, &bytes, &damage) == 0 &&
            input_elf_read(&store->debugdata_elf, bytes, &damage) == 0) {
            if (store->debugdata_elf.arch != image->arch)
                base_fail(&damage, BASE_ERR_MALFORMED, name, 0, "holds an ELF file of another machine");
            else if (store->debugdata_elf.damage.reason)
                damage = store->debugdata_elf.damage;
        }
    }
    if (damage.reason)
        input_image_note_damage(image, &damage);
    if (store->debugdata_elf.arch == image->arch)
        input_image_add_frames(image, &store->debugdata_elf, INPUT_FROM_GNU_DEBUGDATA);
}

static int analyse(struct input_image *image, const char *path, const struct input_image_options *options,
                   struct base_error *error)
{
    struct input_image_store *store = image->store;
    if (options && options->as_mapped && store->elf.segment_count) {
        store->elf.section_count = 0;
        store->elf.damage = (struct base_error){0};
    }
    image->arch = store->elf.arch;
    image->is_64 = store->elf.is_64;
    image->size_bytes = store->elf.bytes.size;
    if (store->elf.damage.reason)
        input_image_note_damage(image, &store->elf.damage);
    image->identity_kind = input_identify(&store->elf, image->identity, &image->identity_size);
    if (options && options->identity_only)
        return 0;
    if (input_image_map(image, error) || input_image_find_exec(image, error) || input_image_find_code(image, error))
        return -1;
    input_image_find_plt(image);
    input_image_find_oat(image);
    input_image_add_frames(image, &store->elf, INPUT_FROM_FILE);
    add_debugdata(image);
    if (options && options->debug_root && input_image_find_debug_file(image, path, options->debug_root))
        input_image_add_frames(image, &store->debug_elf, INPUT_FROM_DEBUG_FILE);
    // Not damage: a table that was made now would be another one than tomorrow's, under the same name.
    if (input_image_check_memory(image, error))
        return -1;
    image->unpacked_bytes = store->unpacker.used_bytes;
    image->unpack_time_ns = store->unpacker.time_ns;
    image->xz_time_ns = store->unpacker.xz_time_ns;
    // Without any frame section it is the damage that must be heard, not a bare "no unwind information". An OAT file
    // has the headers of its methods.
    if (image->frame_count == 0 && image->damage_count && !image->oat.present) {
        if (error && error->reason == BASE_OK)
            *error = image->damage;
        return -1;
    }
    return 0;
}

int input_image_open(const char *path, const char *name, uint64_t offset_bytes, uint64_t size_bytes,
                     const struct input_image_options *options, struct input_image **image, struct base_error *error)
{
    struct input_image *opened = create(name ? name : path, options);
    *image = NULL;
    if (!opened)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "image");
    const char *own_path = offset_bytes || size_bytes ? NULL : path;
    struct input_image_store *store = opened->store;
    if (input_file_map_open(&store->file, path, offset_bytes, size_bytes, store->way, error) ||
        input_elf_read_file(&store->elf, &store->file, error) || analyse(opened, own_path, options, error)) {
        input_image_close(opened);
        return -1;
    }
    *image = opened;
    return 0;
}

int input_image_open_memory(struct base_bytes elf, const char *name, const struct input_image_options *options,
                            struct input_image **image, struct base_error *error)
{
    struct input_image *opened = create(name ? name : "[memory]", options);
    *image = NULL;
    if (opened)
        opened->store->copy = malloc(elf.size + 1);
    if (!opened || !opened->store->copy) {
        input_image_close(opened);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "%zu bytes", elf.size);
    }
    struct input_image_store *store = opened->store;
    if (elf.size)
        memcpy(store->copy, elf.data, elf.size);
    const struct base_bytes copy = {store->copy, elf.size};
    bool jit = options && options->jit;
    if ((jit ? input_elf_read_loaded : input_elf_read)(&store->elf, copy, error) ||
        analyse(opened, NULL, options, error)) {
        input_image_close(opened);
        return -1;
    }
    *image = opened;
    return 0;
}

void input_image_close(struct input_image *image)
{
    if (!image)
        return;
    struct input_image_store *store = image->store;
    if (store) {
        input_elf_free(&store->elf);
        input_elf_free(&store->debugdata_elf);
        input_elf_free(&store->debug_elf);
        input_unpack_free(&store->unpacker);
        input_file_map_close(&store->file);
        input_file_map_close(&store->debug_file);
        free(store->mapped);
        free(store->copy);
        free(store);
    }
    free(image->name);
    free(image);
}

struct base_bytes input_image_elf(const struct input_image *image)
{
    input_elf_need_all(&image->store->elf);
    return image->store->elf.bytes;
}

// A file that was cut off before it was opened. Section headers may be missing for other reasons, mapped bytes not.
static bool has_its_segments(const struct input_elf *elf)
{
    for (size_t i = 0; i < elf->segment_count; i++)
        if (elf->segments[i].type == PT_LOAD &&
            input_elf_segment_extent(elf, &elf->segments[i]).size < elf->segments[i].file_bytes)
            return false;
    return true;
}

// A group that may write is the owner's choice where the owner is who asks.
static bool map_owner(const struct input_file_map *map, uint32_t *user_id)
{
    *user_id = (uint32_t)map->opened.st_uid;
    bool is_ours = *user_id != 0 && *user_id == (uint32_t)geteuid();
    return !map->is_claimed && !(map->opened.st_mode & (is_ours ? S_IWOTH : S_IWGRP | S_IWOTH));
}

bool input_image_owner(const struct input_image *image, uint32_t *user_id)
{
    const struct input_image_store *store = image->store;
    uint32_t other_id;
    *user_id = 0;
    if (store->copy)
        return input_is_own_vdso(store->elf.bytes); // the kernel's
    if (!map_owner(&store->file, user_id))
        return false;
    // What a debug file says is in the table too.
    return !store->debug_file.base ||
           (map_owner(&store->debug_file, &other_id) && (other_id == 0 || other_id == *user_id));
}

bool input_image_is_whole(const struct input_image *image)
{
    if (image->store->file.present && !has_its_segments(&image->store->elf))
        return false;
    return input_file_map_is_whole(&image->store->file) && input_file_map_is_whole(&image->store->debug_file);
}
