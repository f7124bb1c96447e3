// SPDX-License-Identifier: Apache-2.0
// Separate debug files, where distributions put what they strip: by build-id first, since nothing else proves that the
// two belong together, then by .gnu_debuglink's name and CRC.
#include <errno.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "formats/qut_checksum_inline.h"
#include "qutc/input/identity.h"
#include "qutc/input/image_store.h"

struct search {
    struct input_image *image;
    struct base_bytes build_id;
    const char *link; // .gnu_debuglink's name, or NULL
    uint32_t link_crc;
};

static void drop(struct input_image_store *store)
{
    input_elf_free(&store->debug_elf);
    input_file_map_close(&store->debug_file);
}

static int check_match(const struct search *search, const char *path, bool by_link, struct base_error *error)
{
    const struct input_image_store *store = search->image->store;
    if (store->debug_elf.arch != search->image->arch)
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "debug file %s is for %s", path,
                         store->debug_elf.arch->name);
    struct base_bytes other = input_build_id(&store->debug_elf);
    bool both = other.size && search->build_id.size;
    if (both && (other.size != search->build_id.size || memcmp(other.data, search->build_id.data, other.size) != 0))
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "debug file %s has another build-id", path);
    if (by_link)
        input_elf_need_all(&store->debug_elf);
    if (by_link && !qut_checksum_agrees(search->link_crc,
                                        lzma_crc32(store->debug_file.bytes.data, store->debug_file.bytes.size, 0)))
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "debug file %s has another CRC", path);
    return 0;
}

// A file that is absent is no damage; one that is there but not ours is.
static bool try_file(const struct search *search, const char *path, bool by_link)
{
    struct input_image_store *store = search->image->store;
    struct base_error error = {0};
    if (access(path, F_OK) != 0)
        return false;
    if (input_file_map_open(&store->debug_file, path, 0, 0, store->way, &error) == 0) {
        bool itself = store->debug_file.device == store->file.device && store->debug_file.inode == store->file.inode;
        if (!itself && input_elf_read_file(&store->debug_elf, &store->debug_file, &error) == 0 &&
            check_match(search, path, by_link, &error) == 0)
            return true;
    }
    drop(store);
    if (error.reason)
        input_image_note_damage(search->image, &error);
    return false;
}

static bool by_build_id(const struct search *search, const char *debug_root)
{
    char path[PATH_MAX];
    return input_debug_path(debug_root, search->build_id, path) && try_file(search, path, false);
}

static bool try_joined(const struct search *search, const char *root, const char *directory, const char *middle)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s/%s%s", root, directory, middle, search->link);
    return length > 0 && length < (int)sizeof path && try_file(search, path, true);
}

static bool by_link(const struct search *search, const char *image_path, const char *debug_root)
{
    char directory[PATH_MAX];
    if (!realpath(image_path, directory)) {
        struct base_error why = {0};
        base_fail_errno(&why, errno);
        input_image_note_no_memory(search->image, &why);
        return false;
    }
    char *slash = strrchr(directory, '/');
    if (slash)
        *slash = 0;
    return try_joined(search, "", directory, "") || try_joined(search, "", directory, ".debug/") ||
           try_joined(search, debug_root, directory, "");
}

static void read_link(struct search *search)
{
    const struct input_elf *elf = &search->image->store->elf;
    const struct input_elf_section *section = input_elf_find(elf, ".gnu_debuglink");
    struct base_bytes bytes;
    if (!section || input_elf_section_bytes(elf, section, &bytes, NULL))
        return;
    struct base_cursor cursor = base_cursor(bytes);
    const char *link = base_read_string(&cursor);
    base_cursor_seek(&cursor, (base_cursor_offset(&cursor) + 3) & ~(uint64_t)3);
    search->link_crc = base_read_u32(&cursor);
    // A name with a directory in it would let the file choose what we read.
    if (!cursor.failed && link && *link && !strchr(link, '/'))
        search->link = link;
}

bool input_image_find_debug_file(struct input_image *image, const char *path, const char *debug_root)
{
    struct search search = {.image = image, .build_id = input_build_id(&image->store->elf)};
    if (by_build_id(&search, debug_root))
        return true;
    read_link(&search);
    return path && search.link && by_link(&search, path, debug_root);
}
