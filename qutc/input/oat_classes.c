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

struct class_place {
    uint32_t offset; // of OatClass
    uint32_t dex, class_index;
};

// What it is of is told to `methods`, where it begins to `starts`; one of them is NULL.
struct tables {
    const struct input_image *image;
    struct base_bytes data;
    uint32_t version;
    uint64_t left_elements; // of class_offsets: as many as the data has room for
    BASE_VECTOR(struct class_place) classes;
    struct input_oat_starts *starts;
    struct input_oat_methods *methods;
};

static struct base_cursor at(const struct tables *t, uint64_t offset)
{
    struct base_cursor c = base_cursor(t->data);
    base_cursor_seek(&c, offset);
    return c;
}

// Names are paths, or a marker of where the dex file came from: printable.
static bool read_name(struct base_cursor *c, struct base_bytes *read)
{
    uint32_t size = base_read_u32(c);
    if (size == 0 || size > NAME_BYTES_MAX)
        return false;
    struct base_bytes name = base_read_bytes(c, size);
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] < 0x20 || name.data[i] == 0x7f)
            return false;
    *read = name;
    return name.size > 0;
}

static int add_class(struct tables *t, struct class_place class, struct base_error *error)
{
    struct class_place *place = BASE_ADD(&t->classes);
    if (!place)
        return base_fail(error, BASE_ERR_NO_MEMORY, "oatdata", class.offset, "%zu classes", t->classes.count);
    *place = class;
    return 0;
}

// The array ends where the first OatClass begins that one of its own elements names.
static int read_class_offsets(struct tables *t, uint32_t dex, uint64_t offset, uint64_t count, struct base_error *error)
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
        if (add_class(t, (struct class_place){class_offset, dex, (uint32_t)i}, error) != 0)
            return -1;
    }
    return 0;
}

// 6.0: the array follows, with as many elements as the dex file has classes, which lies in the same data.
static int read_inline_class_offsets(struct tables *t, uint32_t number, struct base_cursor *c, uint32_t dex_offset,
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
    return c->failed ? 0 : read_class_offsets(t, number, offset, count, error);
}

// The next OatDexFile begins behind one to twelve offsets that do not concern us: where a name follows.
static bool find_next(struct base_cursor *c)
{
    for (unsigned i = 0; i <= FURTHER_OFFSETS_MAX; i++) {
        struct base_cursor probe = *c;
        struct base_bytes name;
        if (read_name(&probe, &name) && probe.at[-1] != 0)
            return true;
        base_cursor_skip(c, 4);
    }
    return false;
}

static bool is_dex_magic(const struct base_cursor *c)
{
    return base_cursor_left(c) >= 8 && (memcmp(c->at, "dex\n", 4) == 0 || memcmp(c->at, "cdex", 4) == 0);
}

static int add_dex(struct tables *t, struct input_oat_dex dex, struct base_error *error)
{
    struct input_oat_dex *place = t->methods ? BASE_ADD(&t->methods->dexes) : NULL;
    if (place)
        *place = dex;
    return place || !t->methods ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "oatdata", 0, "a list of dex files");
}

static int read_dex_files(struct tables *t, uint64_t offset, uint32_t count, struct base_error *error)
{
    enum { MAGIC = 8, SHA1 = 20 };
    struct base_cursor c = at(t, offset);
    for (uint32_t i = 0; i < count && !c.failed; i++) {
        if (i && t->version > 64 && !find_next(&c))
            return 0;
        struct base_bytes name;
        if (!read_name(&c, &name))
            return 0;
        bool has_magic = is_dex_magic(&c);
        base_cursor_skip(&c, has_magic ? MAGIC : 0);
        uint32_t checksum = base_read_u32(&c);
        base_cursor_skip(&c, has_magic ? SHA1 : 0);
        uint32_t dex_offset = base_read_u32(&c);
        if (add_dex(t, (struct input_oat_dex){name, checksum, dex_offset}, error) != 0)
            return -1;
        if (t->version == 64) {
            if (read_inline_class_offsets(t, i, &c, dex_offset, error) != 0)
                return -1;
            continue;
        }
        uint32_t class_offsets = base_read_u32(&c);
        if (!c.failed && class_offsets % 4 == 0 && read_class_offsets(t, i, class_offsets, CLASSES_MAX, error) != 0)
            return -1;
    }
    return 0;
}

static int add_code(struct tables *t, const struct class_place *class, uint32_t number, uint32_t code_offset,
                    struct base_error *error)
{
    uint64_t vaddr = t->image->oat.data.start + code_offset;
    if (code_offset == 0)
        return 0;
    if (!t->methods)
        return input_oat_add_start(t->image, t->starts, vaddr, 0, error);
    vaddr -= t->image->arch->has_thumb ? vaddr & 1 : 0;
    struct input_oat_method *method = BASE_ADD(t->methods);
    if (!method)
        return base_fail(error, BASE_ERR_NO_MEMORY, "oatdata", 0, "%zu methods", t->methods->count);
    *method = (struct input_oat_method){vaddr, class->dex, class->class_index, number};
    return 0;
}

// The number of the next method that the bitmap has, from *number on. NULL: all of them.
static bool next_method(const struct base_bytes *bitmap, uint32_t *number)
{
    while (bitmap && *number / 8 < bitmap->size && !(bitmap->data[*number / 8] >> (*number % 8) & 1))
        ++*number;
    return !bitmap || *number / 8 < bitmap->size;
}

static int read_class(struct tables *t, const struct class_place *class, uint64_t limit, struct base_error *error)
{
    enum { ALL = 0, SOME = 1 };
    struct base_cursor c = at(t, class->offset);
    struct base_bytes bitmap = {0};
    uint32_t number = 0;
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
        bitmap = base_read_bytes(&c, bitmap_bytes);
        count = METHODS_MAX;
    }
    for (uint64_t i = 0; i < count && !c.failed && base_cursor_offset(&c) + 4 <= limit; i++, number++)
        if (!next_method(type == SOME ? &bitmap : NULL, &number))
            break;
        else if (add_code(t, class, number, base_read_u32(&c), error) != 0)
            return -1;
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct class_place *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

// Each OatClass ends where the next begins at the latest, so that the work is linear whatever the tables say.
static int read_classes(struct tables *t, struct base_error *error)
{
    if (t->classes.count == 0)
        return 0;
    qsort(t->classes.items, t->classes.count, sizeof *t->classes.items, by_offset);
    for (size_t i = 0; i < t->classes.count; i++) {
        const struct class_place *class = &t->classes.items[i];
        if (i && class->offset == class[-1].offset)
            continue;
        size_t next = i + 1;
        while (next < t->classes.count && t->classes.items[next].offset == class->offset)
            next++;
        // One that several classes have says of none whose methods they are.
        if (t->methods && next > i + 1)
            continue;
        uint64_t limit = next < t->classes.count ? t->classes.items[next].offset : t->data.size;
        if (read_class(t, class, limit, error) != 0)
            return -1;
    }
    return 0;
}

static int read_tables(struct tables *t, struct base_error *error)
{
    enum { DEX_COUNT_AT = 20, DEX_FILES_AT = 24, OLD_STRINGS_AT = 72, OLD_STRINGS_BYTES_AT = 68 };
    t->data = input_oat_data(t->image);
    t->version = t->image->oat.version;
    if (t->version < 64 || t->image->oat.code.end == 0)
        return 0;
    struct base_cursor c = at(t, DEX_COUNT_AT);
    uint32_t dex_count = base_read_u32(&c);
    uint64_t offset = base_read_u32(&c);
    if (t->version < 131) { // before 8.1 they followed the header's strings
        c = at(t, OLD_STRINGS_BYTES_AT);
        offset = (uint64_t)OLD_STRINGS_AT + base_read_u32(&c);
    }
    t->left_elements = t->data.size / 4;
    int result = 0;
    if (!c.failed && dex_count <= DEX_FILES_MAX)
        result = read_dex_files(t, offset, dex_count, error);
    if (result == 0)
        result = read_classes(t, error);
    base_vector_free(&t->classes.vector);
    return result;
}

int input_oat_add_classes(const struct input_image *image, struct input_oat_starts *starts, struct base_error *error)
{
    struct tables tables = {.image = image, .starts = starts};
    return read_tables(&tables, error);
}

int input_oat_find_methods(const struct input_image *image, struct input_oat_methods *methods, struct base_error *error)
{
    *methods = (struct input_oat_methods){0};
    if (!image->oat.present)
        return 0;
    struct tables tables = {.image = image, .methods = methods};
    int result = read_tables(&tables, error);
    if (result != 0)
        input_oat_methods_free(methods);
    return result;
}

void input_oat_methods_free(struct input_oat_methods *methods)
{
    base_vector_free(&methods->vector);
    base_vector_free(&methods->dexes.vector);
    *methods = (struct input_oat_methods){0};
}
