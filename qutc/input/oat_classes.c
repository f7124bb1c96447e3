// SPDX-License-Identifier: Apache-2.0
// The tables by which the runtime finds compiled code:
//
//   OatDexFile, one behind the other, not aligned: u32 size of a name, the name, [magic of the dex file, 8 bytes], u32
//       checksum, [its SHA-1, 20 bytes], u32 offset of the dex file, u32 offset of class_offsets; then offsets that
//       grew in number from release to release. Magic and SHA-1 came together, behind version 230. 6.0: class_offsets
//       follows the offset of the dex file.
//   class_offsets: u32 for each class of the dex file, the offset of its OatClass. How many there are is said in the
//       dex file, which is elsewhere since 8.0. But the first OatClass lies behind all class_offsets.
//   OatClass: u16 status, u16 type (0: all methods are compiled, 1: some, 2: none); since 12, but for type 2, u32 count
//       of methods; for type 1 a bitmap (before 12 with its u32 size); then u32 code offsets. Where no count is given
//       they reach up to the next OatClass, at most.
//
// All offsets count from oatdata. A header has to confirm whatever is found here.
#include <stdlib.h>

#include "base/vector.h"
#include "qutc/input/oat.h"

enum {
    DEX_FILES_MAX = 4096,
    NAME_BYTES_MAX = 4096,
    FURTHER_OFFSETS_MAX = 12, // in an OatDexFile, behind class_offsets
    FIXED_FIELDS_BYTES = 4 * 2,
    CLASSES_MAX = 1 << 20, // a dex file has fewer
    METHODS_MAX = 1 << 16, // so has a class
    DEX_CLASS_COUNT_AT = 96,
};

struct tables {
    const struct input_image *image;
    struct base_bytes data;
    uint32_t version;
    uint64_t left_elements;        // of class_offsets: as many as the data has room for
    BASE_VECTOR(uint32_t) classes; // offsets of OatClass
};

static struct base_cursor at(const struct tables *t, uint64_t offset)
{
    struct base_cursor c = base_cursor(t->data);
    base_cursor_seek(&c, offset);
    return c;
}

// Names are paths, or a marker of where the dex file came from: printable.
static bool read_name(struct base_cursor *c)
{
    uint32_t size = base_read_u32(c);
    if (size == 0 || size > NAME_BYTES_MAX)
        return false;
    struct base_bytes name = base_read_bytes(c, size);
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] < 0x20 || name.data[i] == 0x7f)
            return false;
    return name.size > 0;
}

static int add_class(struct tables *t, uint32_t offset, struct base_error *error)
{
    uint32_t *place = BASE_ADD(&t->classes);
    if (!place)
        return base_fail(error, BASE_ERR_NO_MEMORY, "oatdata", offset, "%zu classes", t->classes.count);
    *place = offset;
    return 0;
}

// The array ends where the first OatClass begins that one of its own elements names.
static int read_class_offsets(struct tables *t, uint64_t offset, uint64_t count, struct base_error *error)
{
    struct base_cursor c = at(t, offset);
    uint64_t end = t->data.size;
    for (uint64_t i = 0; i < count && t->left_elements && base_cursor_offset(&c) + 4 <= end; i++) {
        t->left_elements--;
        uint32_t class_offset = base_read_u32(&c);
        if (class_offset == 0 || class_offset % 4 || class_offset <= offset || class_offset >= t->data.size)
            continue;
        if (class_offset < end)
            end = class_offset;
        if (add_class(t, class_offset, error) != 0)
            return -1;
    }
    return 0;
}

// 6.0: the array follows, with as many elements as the dex file has classes, which lies in the same data.
static int read_inline_class_offsets(struct tables *t, struct base_cursor *c, uint32_t dex_offset,
                                     struct base_error *error)
{
    struct base_cursor dex = at(t, dex_offset);
    struct base_bytes magic = base_read_bytes(&dex, 4);
    if (magic.size == 0 || memcmp(magic.data, "dex\n", 4) != 0)
        return 0;
    base_cursor_skip(&dex, DEX_CLASS_COUNT_AT - 4);
    uint32_t count = base_read_u32(&dex);
    if (dex.failed || count > CLASSES_MAX)
        return 0;
    uint64_t offset = base_cursor_offset(c);
    base_cursor_skip(c, (uint64_t)count * 4);
    return c->failed ? 0 : read_class_offsets(t, offset, count, error);
}

// The next OatDexFile begins behind one to twelve offsets that do not concern us: where a name follows.
static bool find_next(struct base_cursor *c)
{
    for (unsigned i = 0; i <= FURTHER_OFFSETS_MAX; i++) {
        struct base_cursor probe = *c;
        if (read_name(&probe) && probe.at[-1] != 0)
            return true;
        base_cursor_skip(c, 4);
    }
    return false;
}

static bool is_dex_magic(const struct base_cursor *c)
{
    return base_cursor_left(c) >= 8 && (memcmp(c->at, "dex\n", 4) == 0 || memcmp(c->at, "cdex", 4) == 0);
}

static int read_dex_files(struct tables *t, uint64_t offset, uint32_t count, struct base_error *error)
{
    enum { MAGIC = 8, SHA1 = 20 };
    struct base_cursor c = at(t, offset);
    for (uint32_t i = 0; i < count && !c.failed; i++) {
        if (i && t->version > 64 && !find_next(&c))
            return 0;
        if (!read_name(&c))
            return 0;
        bool has_magic = is_dex_magic(&c);
        base_cursor_skip(&c, has_magic ? MAGIC + 4 + SHA1 : 4);
        uint32_t dex_offset = base_read_u32(&c);
        if (t->version == 64) {
            if (read_inline_class_offsets(t, &c, dex_offset, error) != 0)
                return -1;
            continue;
        }
        uint32_t class_offsets = base_read_u32(&c);
        if (!c.failed && class_offsets % 4 == 0 && read_class_offsets(t, class_offsets, CLASSES_MAX, error) != 0)
            return -1;
    }
    return 0;
}

static int add_code(struct tables *t, struct input_oat_starts *starts, uint32_t code_offset, struct base_error *error)
{
    if (code_offset == 0)
        return 0;
    return input_oat_add_start(t->image, starts, t->image->oat.data.start + code_offset, 0, error);
}

static int read_class(struct tables *t, uint32_t offset, uint64_t limit, struct input_oat_starts *starts,
                      struct base_error *error)
{
    enum { ALL = 0, SOME = 1 };
    struct base_cursor c = at(t, offset);
    base_cursor_skip(&c, 2);
    uint16_t type = base_read_u16(&c);
    if (type != ALL && type != SOME)
        return 0;
    bool says_count = t->version >= 192;
    uint64_t count = METHODS_MAX;
    if (says_count)
        count = base_read_u32(&c);
    if (count > METHODS_MAX)
        return 0;
    if (type == SOME) {
        uint32_t bitmap_bytes = says_count ? (uint32_t)((count + 31) / 32 * 4) : base_read_u32(&c);
        if (bitmap_bytes % 4 || bitmap_bytes > METHODS_MAX / 8 || base_cursor_offset(&c) + bitmap_bytes > limit)
            return 0;
        uint32_t compiled = 0;
        for (uint32_t i = 0; i < bitmap_bytes; i += 4)
            compiled += (uint32_t)__builtin_popcount(base_read_u32(&c));
        count = compiled;
    }
    for (uint64_t i = 0; i < count && !c.failed && base_cursor_offset(&c) + 4 <= limit; i++)
        if (add_code(t, starts, base_read_u32(&c), error) != 0)
            return -1;
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Each OatClass ends where the next begins at the latest, so that the work is linear whatever the tables say.
static int read_classes(struct tables *t, struct input_oat_starts *starts, struct base_error *error)
{
    if (t->classes.count == 0)
        return 0;
    qsort(t->classes.items, t->classes.count, sizeof *t->classes.items, by_offset);
    for (size_t i = 0; i < t->classes.count; i++) {
        if (i && t->classes.items[i] == t->classes.items[i - 1])
            continue;
        size_t next = i + 1;
        while (next < t->classes.count && t->classes.items[next] == t->classes.items[i])
            next++;
        uint64_t limit = next < t->classes.count ? t->classes.items[next] : t->data.size;
        if (read_class(t, t->classes.items[i], limit, starts, error) != 0)
            return -1;
    }
    return 0;
}

int input_oat_add_classes(const struct input_image *image, struct input_oat_starts *starts, struct base_error *error)
{
    enum { DEX_COUNT_AT = 20, DEX_FILES_AT = 24, OLD_STRINGS_AT = 72, OLD_STRINGS_BYTES_AT = 68 };
    struct tables t = {.image = image, .data = input_oat_data(image), .version = image->oat.version};
    if (t.version < 64 || image->oat.code.end == 0)
        return 0;
    struct base_cursor c = at(&t, DEX_COUNT_AT);
    uint32_t dex_count = base_read_u32(&c);
    uint64_t offset = base_read_u32(&c);
    if (t.version < 131) { // before 8.1 they followed the header's strings
        c = at(&t, OLD_STRINGS_BYTES_AT);
        offset = (uint64_t)OLD_STRINGS_AT + base_read_u32(&c);
    }
    t.left_elements = t.data.size / 4;
    int result = 0;
    if (!c.failed && dex_count <= DEX_FILES_MAX)
        result = read_dex_files(&t, offset, dex_count, error);
    if (result == 0)
        result = read_classes(&t, starts, error);
    base_vector_free(&t.classes.vector);
    return result;
}
