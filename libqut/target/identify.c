// SPDX-License-Identifier: Apache-2.0
// Which ELF image a mapping belongs to. The headers are read from the file, if it is the one that is mapped, else from
// memory. An image does not need to begin where its file begins (libraries inside APKs), and its mappings do not need
// to be neighbours.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/file.h"
#include "libqut/target/opened_target.h"

enum {
    MAPPINGS_BEFORE_MAX = 64, // of one image, before an executable one: fillers between them count too
    SAME_IMAGE_SEARCH_MAX = 64,
};

struct place {
    struct qut_target *target;
    int fd;        // or memory:
    uint64_t base; // offset of the image in the file; address of its first byte (or load bias) in memory
};

static size_t read_from_file(void *context, uint64_t position, void *bytes, size_t size)
{
    const struct place *place = context;
    return position > UINT64_MAX - place->base ? 0 : os_read_at(place->fd, place->base + position, bytes, size);
}

static size_t read_from_memory(void *context, uint64_t position, void *bytes, size_t size)
{
    const struct place *place = context;
    return place->target->kind->read(place->target, place->base + position, bytes, size);
}

static bool is_same_head(const struct elf_head *a, const struct elf_head *b)
{
    bool same =
        a->is_64 == b->is_64 && a->machine == b->machine && a->entry == b->entry && a->load_count == b->load_count;
    for (unsigned i = 0; same && i < a->load_count; i++)
        same = a->loads[i].offset == b->loads[i].offset && a->loads[i].vaddr == b->loads[i].vaddr &&
               a->loads[i].file_size == b->loads[i].file_size && a->loads[i].memory_size == b->loads[i].memory_size;
    return same;
}

struct target_image *target_intern_image(struct qut_target *target, const struct target_image *wanted)
{
    size_t oldest = target->image_count > SAME_IMAGE_SEARCH_MAX ? target->image_count - SAME_IMAGE_SEARCH_MAX : 0;
    for (size_t i = target->image_count; i-- > oldest;) {
        struct target_image *image = target->images[i];
        if (image->is_elf == wanted->is_elf && image->load_bias == wanted->load_bias &&
            image->file_offset == wanted->file_offset && image->inode == wanted->inode &&
            image->device == wanted->device && image->deleted == wanted->deleted &&
            image->build_id_size == wanted->build_id_size &&
            memcmp(image->build_id, wanted->build_id, wanted->build_id_size) == 0 &&
            image->has_oat_identity == wanted->has_oat_identity &&
            (!wanted->has_oat_identity ||
             memcmp(image->oat_identity, wanted->oat_identity, sizeof wanted->oat_identity) == 0) &&
            (wanted->is_elf || image->start == wanted->start) && strcmp(image->path, wanted->path) == 0)
            return image;
    }
    if (target->image_count == target->image_capacity) {
        size_t capacity = target->image_capacity ? 2 * target->image_capacity : 64;
        struct target_image **images = realloc(target->images, capacity * sizeof *images);
        if (!images)
            return NULL;
        target->images = images;
        target->image_capacity = capacity;
    }
    struct target_image *image = malloc(sizeof *image);
    if (!image)
        return NULL;
    *image = *wanted;
    image->path = strdup(wanted->path);
    image->file_path = wanted->file_path ? strdup(wanted->file_path) : NULL;
    image->head = NULL;
    if (wanted->head && (image->head = malloc(sizeof *image->head)))
        *image->head = *wanted->head;
    if (!image->path || (wanted->file_path && !image->file_path) || (wanted->head && !image->head)) {
        free(image->path);
        free(image->file_path);
        free(image->head);
        free(image);
        return NULL;
    }
    return target->images[target->image_count++] = image;
}

// Mappings that stand between those of an image, and belong to none.
static bool is_filler(const struct target_map *map)
{
    return !map->path[0] || (!map->readable && !map->executable) || strcmp(map->path, "[page size compat]") == 0;
}

// From a mapping backwards to those that can belong to the same image.
struct way_back {
    const struct target_maps *maps;
    size_t of, at;
    unsigned steps; // of the whole way: a process may have 65,530 mappings, which all touch
};

// False: there is none further back.
static bool step_back(struct way_back *way)
{
    const struct target_map *items = way->maps->items, *map = &items[way->of];
    for (size_t at = way->at; at-- > 0 && way->steps++ < MAPPINGS_BEFORE_MAX;) {
        const struct target_map *before = &items[at];
        if (strcmp(before->path, map->path) == 0 && before->inode == map->inode && before->device == map->device) {
            way->at = at;
            if (map->path[0])
                return before->offset <= map->offset;
            // Without a name, mappings belong together where they touch.
            return before->end == items[at + 1].start;
        }
        if (!map->path[0] || !is_filler(before))
            return false;
    }
    return false;
}

// The n-th file that could be what is mapped.
struct opened {
    int fd;
    unsigned number;
};

struct attempt {
    struct target_image image; // paths are not owned
    struct elf_head head;
};

// The offset of items[index] from the first byte of an image that begins at items[first]. Without a file there are no
// offsets: it is as far as in memory.
static uint64_t offset_in_image(const struct target_maps *maps, size_t first, size_t index, uint64_t image_offset)
{
    const struct target_map *map = &maps->items[index];
    return map->path[0] && map->path[0] != '[' ? map->offset - image_offset : map->start - maps->items[first].start;
}

static bool set_bias(struct attempt *attempt, const struct target_map *map, uint64_t offset)
{
    uint64_t vaddr;
    if (!elf_mapped_vaddr(&attempt->head, offset, map->end - map->start, map->executable, &vaddr))
        return false;
    attempt->image.load_bias = map->start - vaddr;
    return true;
}

// What is in memory at the image's start, if its start is mapped there and can be read.
static bool head_in_memory(struct qut_target *target, uint64_t address, struct elf_head *head,
                           struct target_image *image)
{
    struct place place = {.target = target, .fd = -1, .base = address};
    uint64_t vaddr;
    if (!elf_head_read(head, read_from_memory, &place) || !elf_mapped_vaddr(head, 0, 1, false, &vaddr))
        return false;
    place.base = address - vaddr;
    image->build_id_size = elf_build_id(head, read_from_memory, &place, true, image->build_id);
    return true;
}

// Compares the file with the memory of the image's start, where that is mapped at `start`. False: another file.
static bool is_mapped_file(struct qut_target *target, uint64_t start, const struct attempt *attempt)
{
    struct elf_head mapped;
    struct target_image seen = {0};
    if (!head_in_memory(target, start, &mapped, &seen))
        return true; // nothing speaks against it
    if (seen.build_id_size)
        return seen.build_id_size == attempt->image.build_id_size &&
               memcmp(seen.build_id, attempt->image.build_id, seen.build_id_size) == 0;
    return is_same_head(&mapped, &attempt->head);
}

// An image at `image_offset` in an open file that items[index] is mapped from. *first is the mapping of its start,
// which need not be there (NULL). What is found there does not depend on items[index]: it is asked once, for each of
// the files that are tried.
static bool try_offset(struct qut_target *target, const struct target_maps *maps, const struct opened *file,
                       struct target_map *first, size_t index, uint64_t image_offset, struct attempt *attempt)
{
    const struct target_map *map = &maps->items[index];
    struct place place = {.fd = file->fd, .base = image_offset};
    if (first && first->begins_no_image >> file->number & 1)
        return false;
    if (!elf_head_read(&attempt->head, read_from_file, &place)) {
        if (first)
            first->begins_no_image |= (uint8_t)(1u << file->number);
        return false;
    }
    if (!set_bias(attempt, map, map->offset - image_offset))
        return false;
    attempt->image.file_offset = image_offset;
    attempt->image.build_id_size = elf_build_id(&attempt->head, read_from_file, &place, false, attempt->image.build_id);
    if (first && first->readable && !is_mapped_file(target, first->start, attempt)) {
        attempt->image.file_is_another = true;
        return false;
    }
    return true;
}

static bool try_file(struct qut_target *target, const struct target_maps *maps, const struct opened *file, size_t index,
                     struct attempt *attempt)
{
    struct way_back way = {.maps = maps, .of = index, .at = index};
    // From this mapping backwards to one where an image begins.
    do {
        struct target_map *first = &maps->items[way.at];
        if (try_offset(target, maps, file, first, index, first->offset, attempt))
            return true;
        if (attempt->image.file_is_another)
            return false;
    } while (step_back(&way));
    // The start of the file need not be mapped.
    return try_offset(target, maps, file, NULL, index, 0, attempt);
}

static bool try_memory(struct qut_target *target, const struct target_maps *maps, size_t index, struct attempt *attempt)
{
    const struct target_map *map = &maps->items[index];
    struct way_back way = {.maps = maps, .of = index, .at = index};
    do {
        struct target_map *start = &maps->items[way.at];
        if (!start->readable || start->begins_no_image >> TARGET_MAP_IN_MEMORY & 1)
            continue;
        if (!head_in_memory(target, start->start, &attempt->head, &attempt->image)) {
            start->begins_no_image |= 1u << TARGET_MAP_IN_MEMORY;
            continue;
        }
        attempt->image.file_offset = start->offset;
        return set_bias(attempt, map, offset_in_image(maps, way.at, index, start->offset));
    } while (step_back(&way));
    return false;
}

int target_identify(struct qut_target *target, size_t map_index)
{
    const struct target_maps *maps = &target->maps;
    struct target_map *map = &maps->items[map_index];
    struct attempt attempt = {0};
    char path[PATH_MAX];
    bool found = false, another = false;
    attempt.image.path = (char *)map->path;
    attempt.image.device = map->device;
    attempt.image.inode = map->inode;
    attempt.image.deleted = map->deleted;
    for (unsigned n = 0; !found && map->path[0] && target->kind->file(target, map, n, path); n++) {
        int fd = os_open_file(path, NULL);
        if (fd < 0)
            continue;
        attempt.image.file_is_another = false;
        const struct opened file = {fd, n};
        found = try_file(target, maps, &file, map_index, &attempt);
        if (found && !target_identify_oat(target, &attempt.head, fd, &attempt.image)) {
            attempt.image.file_is_another = true;
            found = false;
        }
        another |= attempt.image.file_is_another;
        if (found) {
            attempt.image.file_path = path;
            struct place place = {.fd = fd, .base = attempt.image.file_offset};
            if (attempt.image.file_offset)
                attempt.image.soname = elf_soname(&attempt.head, read_from_file, &place);
        }
        os_close_file(fd);
    }
    if (!found) {
        attempt.image.build_id_size = 0;
        attempt.image.has_oat_identity = false;
        found = try_memory(target, maps, map_index, &attempt) &&
                target_identify_oat(target, &attempt.head, -1, &attempt.image);
    }
    attempt.image.file_is_another = another;
    if (!found)
        return 0;

    const struct elf_head *head = &attempt.head;
    uint64_t entry = attempt.image.load_bias + head->entry;
    if (head->entry && (head->has_interpreter || entry == target->program_entry ||
                        (target->linker_base && attempt.image.load_bias == target->linker_base)))
        attempt.image.entry = entry;
    attempt.image.is_elf = true;
    attempt.image.start = map->start;
    attempt.image.head = &attempt.head;
    size_t before = target->image_count;
    map->image = target_intern_image(target, &attempt.image);
    if (target->image_count == before)
        free(attempt.image.soname);
    return map->image ? 0 : -1;
}
