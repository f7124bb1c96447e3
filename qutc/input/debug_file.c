// SPDX-License-Identifier: Apache-2.0
// Separate debug files, where distributions put what they strip: by build-id first, since nothing else proves that the
// two belong together, then by .gnu_debuglink's name and CRC.
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "qutc/input/identity.h"
#include "qutc/input/image_store.h"

struct search {
    struct qutc_image *image;
    struct qutc_bytes build_id;
    const char *link; // .gnu_debuglink's name, or NULL
    uint32_t link_crc;
};

static void drop(struct qutc_image_store *store)
{
    qutc_elf_free(&store->debug_elf);
    qutc_file_map_close(&store->debug_file);
}

static int check_match(const struct search *search, const char *path, bool by_link, struct qutc_error *error)
{
    const struct qutc_image_store *store = search->image->store;
    if (store->debug_elf.arch != search->image->arch)
        return qutc_fail(error, QUTC_ERR_MALFORMED, "debug file", 0, "%s is for %s", path, store->debug_elf.arch->name);
    struct qutc_bytes other = qutc_build_id(&store->debug_elf);
    bool both = other.size && search->build_id.size;
    if (both && (other.size != search->build_id.size || memcmp(other.data, search->build_id.data, other.size) != 0))
        return qutc_fail(error, QUTC_ERR_MALFORMED, "debug file", 0, "%s has another build-id", path);
    if (by_link)
        qutc_elf_need_all(&store->debug_elf);
    if (by_link && lzma_crc32(store->debug_file.bytes.data, store->debug_file.bytes.size, 0) != search->link_crc)
        return qutc_fail(error, QUTC_ERR_MALFORMED, "debug file", 0, "%s has another CRC", path);
    return 0;
}

// A file that is absent is no damage; one that is there but not ours is.
static bool try_file(const struct search *search, const char *path, bool by_link)
{
    struct qutc_image_store *store = search->image->store;
    struct qutc_error error = {0};
    if (access(path, F_OK) != 0)
        return false;
    if (qutc_file_map_open(&store->debug_file, path, 0, 0, store->way, &error) == 0) {
        bool itself = store->debug_file.device == store->file.device && store->debug_file.inode == store->file.inode;
        if (!itself && qutc_elf_read_file(&store->debug_elf, &store->debug_file, &error) == 0 &&
            check_match(search, path, by_link, &error) == 0)
            return true;
    }
    drop(store);
    if (error.reason)
        qutc_image_note_damage(search->image, &error);
    return false;
}

static bool by_build_id(const struct search *search, const char *debug_root)
{
    char path[PATH_MAX];
    if (search->build_id.size < 2 || search->build_id.size > 64)
        return false;
    int length = snprintf(path, sizeof path, "%s/.build-id/%02x/", debug_root, search->build_id.data[0]);
    for (size_t i = 1; i < search->build_id.size && length > 0 && length < (int)sizeof path; i++)
        length += snprintf(path + length, sizeof path - (size_t)length, "%02x", search->build_id.data[i]);
    if (length < 0 || length >= (int)sizeof path)
        return false;
    length += snprintf(path + length, sizeof path - (size_t)length, ".debug");
    return length < (int)sizeof path && try_file(search, path, false);
}

static bool try_joined(const struct search *search, const char *root, const char *directory, const char *middle)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s/%s%s", root, directory, middle, search->link);
    return length > 0 && length < (int)sizeof path && try_file(search, path, true);
}

static bool by_link(const struct search *search, const char *image_path, const char *debug_root)
{
    char *directory = realpath(image_path, NULL);
    if (!directory)
        return false;
    char *slash = strrchr(directory, '/');
    if (slash)
        *slash = 0;
    bool found = try_joined(search, "", directory, "") || try_joined(search, "", directory, ".debug/") ||
                 try_joined(search, debug_root, directory, "");
    free(directory);
    return found;
}

static void read_link(struct search *search)
{
    const struct qutc_elf *elf = &search->image->store->elf;
    const struct qutc_elf_section *section = qutc_elf_find(elf, ".gnu_debuglink");
    struct qutc_bytes bytes;
    if (!section || qutc_elf_section_bytes(elf, section, &bytes, NULL))
        return;
    struct qutc_cursor cursor = qutc_cursor(bytes);
    const char *link = qutc_read_string(&cursor);
    qutc_cursor_seek(&cursor, (qutc_cursor_offset(&cursor) + 3) & ~(uint64_t)3);
    search->link_crc = qutc_read_u32(&cursor);
    // A name with a directory in it would let the file choose what we read.
    if (!cursor.failed && link && *link && !strchr(link, '/'))
        search->link = link;
}

bool qutc_image_find_debug_file(struct qutc_image *image, const char *path, const char *debug_root)
{
    struct search search = {.image = image, .build_id = qutc_build_id(&image->store->elf)};
    if (by_build_id(&search, debug_root))
        return true;
    read_link(&search);
    return path && search.link && by_link(&search, path, debug_root);
}
