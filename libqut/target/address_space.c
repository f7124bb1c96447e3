// SPDX-License-Identifier: Apache-2.0
// What is where: mappings, the images they belong to, and the executable ranges that a walk looks pcs up in.
#include <stdlib.h>
#include <string.h>

#include "libqut/target/opened_target.h"

static bool is_same_map(const struct target_map *a, const struct target_map *b)
{
    return a->start == b->start && a->end == b->end && a->offset == b->offset && a->inode == b->inode &&
           a->device == b->device && a->executable == b->executable && a->deleted == b->deleted &&
           strcmp(a->path, b->path) == 0;
}

// Anonymous code comes and goes at one address: nothing tells the new from the old.
static bool can_be_another(const struct target_map *map)
{
    return map->inode == 0 && map->path[0] != '[';
}

static void keep_known(const struct target_maps *old, struct target_maps *new)
{
    size_t o = 0;
    for (size_t i = 0; i < new->count; i++) {
        while (o < old->count && old->items[o].start < new->items[i].start)
            o++;
        if (o < old->count && is_same_map(&old->items[o], &new->items[i]) && !can_be_another(&new->items[i]))
            new->items[i].image = old->items[o].image;
    }
}

// Whether a mapping that is not executable is a part of that image.
static bool belongs_to(const struct target_map *map, const struct target_image *image)
{
    uint64_t vaddr;
    return image && image->is_elf && map->path[0] && map->offset >= image->file_offset &&
           strcmp(map->path, image->path) == 0 && map->inode == image->inode && map->device == image->device &&
           elf_mapped_vaddr(image->head, map->offset - image->file_offset, map->end - map->start, map->executable,
                            &vaddr) &&
           map->start - vaddr == image->load_bias;
}

// Read-only and data mappings lie around the executable ones.
static void spread_images(struct target_maps *maps)
{
    struct target_image *image = NULL;
    for (size_t i = 0; i < maps->count; i++) {
        if (maps->items[i].image)
            image = maps->items[i].image;
        else if (belongs_to(&maps->items[i], image))
            maps->items[i].image = image;
    }
    image = NULL;
    for (size_t i = maps->count; i-- > 0;) {
        if (!maps->items[i].image && belongs_to(&maps->items[i], image))
            maps->items[i].image = image;
        image = maps->items[i].image ? maps->items[i].image : image;
        if (image && maps->items[i].image == image && maps->items[i].start < image->start)
            image->start = maps->items[i].start;
    }
}

struct target_image *target_image_of(struct qut_target *target, struct target_map *map)
{
    if (!map->image) {
        char path[4096];
        const struct target_image other = {
            .path = (char *)map->path,
            .device = map->device,
            .inode = map->inode,
            .file_offset = map->offset,
            .load_bias = map->start - map->offset,
            .deleted = map->deleted,
            .start = map->start,
            .file_path = map->path[0] && target->kind->file(target, map, 0, path) ? path : NULL,
        };
        map->image = target_intern_image(target, &other);
    }
    return map->image;
}

static int list_ranges(struct qut_target *target)
{
    size_t count = 0;
    for (size_t i = 0; i < target->maps.count; i++)
        count += target->maps.items[i].executable;
    struct target_code_range *ranges = calloc(count ? count : 1, sizeof *ranges);
    if (!ranges)
        return -1;
    count = 0;
    for (size_t i = 0; i < target->maps.count; i++) {
        struct target_map *map = &target->maps.items[i];
        if (!map->executable)
            continue;
        struct target_image *image = target_image_of(target, map);
        if (!image) {
            free(ranges);
            return -1;
        }
        if (count && ranges[count - 1].image == image && ranges[count - 1].end == map->start)
            ranges[count - 1].end = map->end;
        else
            ranges[count++] = (struct target_code_range){map->start, map->end, image};
    }
    free(target->ranges);
    target->ranges = ranges;
    target->range_count = count;
    target->last_range = 0;
    return 0;
}

int target_take_maps(struct qut_target *target, struct target_maps *maps)
{
    keep_known(&target->maps, maps);
    target_maps_free(&target->maps);
    target->maps = *maps;
    *maps = (struct target_maps){0};
    struct target_image *last = NULL;
    for (size_t i = 0; i < target->maps.count; i++) {
        struct target_map *map = &target->maps.items[i];
        // Pieces of an image need no second look at its file, whatever lies between them.
        if (map->executable && !map->image && belongs_to(map, last))
            map->image = last;
        else if (map->executable && !map->image && target_identify(target, i) != 0)
            return -1;
        last = map->image ? map->image : last;
    }
    spread_images(&target->maps);
    target_jit_new_maps(target);
    return list_ranges(target);
}

void target_free_images(struct qut_target *target)
{
    for (size_t i = 0; i < target->image_count; i++) {
        struct target_image *image = target->images[i];
        if (!image->shares_table)
            runtime_stored_table_free(&image->stored);
        free(image->path);
        free(image->file_path);
        free(image->soname);
        free(image->head);
        free(image);
    }
    free(target->images);
    free(target->ranges);
}
