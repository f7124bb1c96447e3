// SPDX-License-Identifier: Apache-2.0
#include "tracer/dex/oat_methods.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/cfi/oat_header.h"
#include "qutc/cfi/oat_rows.h"
#include "qutc/input/file_map.h"
#include "qutc/input/oat.h"
#include "tracer/dex/source.h"

enum { CHECKSUM_AT = 8 };

struct code {
    uint64_t start, end;
    uint32_t dex, class_index, number;
    bool is_native;
    char *name; // NULL: no such method is declared, or its dex file could not be had
};

struct dex_oat {
    BASE_VECTOR(struct code); // ascending, one at a start
};

static int by_method(const void *a, const void *b)
{
    const struct code *x = *(struct code *const *)a, *y = *(struct code *const *)b;
    if (x->dex != y->dex)
        return x->dex < y->dex ? -1 : 1;
    if (x->class_index != y->class_index)
        return x->class_index < y->class_index ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

// Of one start the same order in any build.
static int by_start(const void *a, const void *b)
{
    const struct code *x = a, *y = b;
    return x->start != y->start ? (x->start < y->start ? -1 : 1) : by_method(&x, &y);
}

// ---- what is where

// A header has to confirm that code begins there; it says how long it is.
static int add_code(struct dex_oat *oat, const struct cfi_oat_view *view, const struct input_oat_method *from,
                    struct base_error *error)
{
    struct cfi_oat_method method;
    uint64_t code_offset = from->vaddr - view->code_vaddr;
    if (code_offset >= view->code.size || cfi_oat_read_header(view, code_offset, &method) == CFI_OAT_NO_HEADER ||
        !method.code_bytes)
        return 0;
    struct code *code = BASE_ADD(oat);
    if (!code)
        return base_fail(error, BASE_ERR_NO_MEMORY, "oatdata", 0, "%zu methods", oat->count);
    *code = (struct code){.start = from->vaddr,
                          .end = from->vaddr + method.code_bytes,
                          .dex = from->dex,
                          .class_index = from->class_index,
                          .number = from->number};
    return 0;
}

// ---- what it is called

static bool is_vdex(struct base_bytes file)
{
    return file.size >= 4 && memcmp(file.data, "vdex", 4) == 0;
}

struct naming {
    const struct dex *dex;
    struct code **codes; // by method
    size_t count;
    uint32_t dex_number;
};

static int name_method(void *context, const struct dex_code *declared, struct base_error *error)
{
    struct naming *naming = context;
    struct code key = {.dex = naming->dex_number, .class_index = declared->class_index, .number = declared->number};
    struct code *wanted = &key, **found;
    found = bsearch(&wanted, naming->codes, naming->count, sizeof(struct code *), by_method);
    if (!found)
        return 0;
    errno = 0;
    char *name = dex_method_name(naming->dex, declared->method);
    if (!name && errno == ENOMEM)
        return base_fail(error, BASE_ERR_NO_MEMORY, "dex", 0, "a name");
    free((*found)->name);
    (*found)->name = name;
    (*found)->is_native = declared->flags & DEX_FLAG_NATIVE;
    return 0;
}

// As zip archives have it.
static uint32_t crc32_of(struct base_bytes bytes)
{
    uint32_t table[256], crc = UINT32_MAX;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (unsigned bit = 0; bit < 8; bit++)
            table[i] = (table[i] >> 1) ^ (table[i] & 1 ? 0xedb88320u : 0);
    }
    for (size_t i = 0; i < bytes.size; i++)
        crc = (crc >> 8) ^ table[(crc ^ bytes.data[i]) & 0xff];
    return ~crc;
}

// A .vdex file notes the same checksums as its OAT file, and the OAT file where each dex file is in there. A dex file
// by itself has its own, in its header, or is told by that of the archive's entry that it was.
static bool is_meant(struct base_bytes file, const struct dex_list *list, size_t index, uint32_t file_crc32,
                     const struct input_oat_dex *dex)
{
    uint32_t checksum;
    if (is_vdex(file))
        return list->items[index] == dex->offset && dex_list_vdex_checksum(file, index, &checksum) &&
               checksum == dex->checksum;
    memcpy(&checksum, file.data + list->items[index] + CHECKSUM_AT, sizeof checksum);
    return checksum == dex->checksum || (list->count == 1 && file_crc32 == dex->checksum);
}

// What an OAT file's code is named by.
struct naming_oat {
    struct dex_oat *oat;
    const struct input_oat_methods *tables;
    struct code **codes; // by method
    bool *is_named;      // of each dex file
};

// By the dex files in there, each for the entry of the tables that means it.
static int name_by_bytes(const struct naming_oat *naming, struct base_bytes file, struct base_error *error)
{
    uint64_t budget_bytes = file.size;
    struct dex_list list;
    if ((is_vdex(file) ? dex_list_vdex(&list, file, error) : dex_list_at(&list, file, 0, error)) != 0)
        return -1;
    const uint32_t file_crc32 = is_vdex(file) ? 0 : crc32_of(file);
    int result = 0;
    for (size_t d = 0; result == 0 && d < naming->tables->dexes.count; d++) {
        struct dex dex;
        size_t i = 0;
        while (i < list.count && !is_meant(file, &list, i, file_crc32, &naming->tables->dexes.items[d]))
            i++;
        if (naming->is_named[d] || i == list.count || dex_read(file, list.items[i], &dex, NULL) != 0)
            continue;
        struct naming one = {
            .dex = &dex, .codes = naming->codes, .count = naming->oat->count, .dex_number = (uint32_t)d};
        naming->is_named[d] = true;
        result = dex_each_declared(&dex, &budget_bytes, name_method, &one, error);
    }
    dex_list_free(&list);
    return result;
}

// "/system/framework/core.jar", "base.apk!classes2.dex" beside the directories that the OAT file is in; before 9 with
// another mark. *entry: the name in the archive. NULL without memory.
static char *archive_of(const struct input_oat_dex *dex, const char *oat_path, const char *root, const char **entry)
{
    struct base_bytes location = dex->location;
    const char *text = (const char *)location.data, *mark = memchr(text, '!', location.size);
    if (!mark)
        mark = memchr(text, ':', location.size);
    int length = (int)(mark ? mark - text : (ptrdiff_t)location.size), above = 0;
    const char *end = strrchr(oat_path, '/');
    // The file's own name, its architecture's, "oat".
    for (int i = 0; end && i < 2 && text[0] != '/'; i++)
        end = memrchr(oat_path, '/', (size_t)(end - oat_path));
    above = end && text[0] != '/' ? (int)(end - oat_path + 1) : 0;
    char *path = NULL;
    size_t left = mark ? location.size - (size_t)length - 1 : 0;
    if (asprintf(&path, "%.*s%s%.*s%c%.*s", above, oat_path, text[0] == '/' ? root : "", length, text, 0, (int)left,
                 mark ? mark + 1 : "") < 0)
        return NULL;
    *entry = left ? path + strlen(path) + 1 : "classes.dex";
    return path;
}

// The dex files that are only in the archives that the code was compiled from. What cannot be had stays without names.
static int name_by_archives(const struct naming_oat *naming, const char *oat_path, const char *root,
                            struct base_error *error)
{
    for (size_t d = 0; d < naming->tables->dexes.count; d++) {
        const char *entry;
        struct dex_source source;
        struct base_error why = {0};
        if (naming->is_named[d])
            continue;
        char *path = archive_of(&naming->tables->dexes.items[d], oat_path, root, &entry);
        if (!path)
            return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "a path");
        int result = dex_source_open_entry(&source, path, entry, &why);
        free(path);
        if (result == 0) {
            result = name_by_bytes(naming, source.bytes, &why);
            dex_source_close(&source);
        }
        if (result == 0 || why.reason != BASE_ERR_NO_MEMORY)
            continue;
        *error = why;
        return -1;
    }
    return 0;
}

static int name_by_vdex(const struct naming_oat *naming, const char *oat_path, struct base_error *error)
{
    const char *dot = strrchr(oat_path, '.'), *slash = strrchr(oat_path, '/');
    struct input_file_map map;
    struct base_error why = {0};
    char *vdex = NULL;
    if (!dot || (slash && dot < slash))
        return 0;
    if (asprintf(&vdex, "%.*s.vdex", (int)(dot - oat_path), oat_path) < 0)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "a path");
    int result = input_file_map_open(&map, vdex, 0, 0, INPUT_FILE_READ, &why);
    free(vdex);
    if (result == 0) {
        if (map.bytes.size <= DEX_SOURCE_BYTES_MAX && input_file_map_need(&map, 0, map.bytes.size) &&
            is_vdex(map.bytes))
            result = name_by_bytes(naming, map.bytes, &why);
        input_file_map_close(&map);
    }
    if (result == 0 || why.reason != BASE_ERR_NO_MEMORY)
        return 0;
    *error = why;
    return -1;
}

// ---- both

// Several methods may have the same code. Native ones' is a stub that all with the same arguments have: it is called as
// ART's symbols call it.
static bool mark_shared(struct code *code)
{
    char *marked = NULL;
    if (code->is_native)
        marked = strdup("art_jni_trampoline");
    else if (asprintf(&marked, "%s [DEDUPED]", code->name) < 0)
        marked = NULL;
    free(code->name);
    code->name = marked;
    return marked != NULL;
}

// What has no name is none: a class's offsets end where its methods do, which its dex file tells. Of several methods
// with the same code one stays. None reaches over the next one's start.
static int settle(struct dex_oat *oat, struct base_error *error)
{
    size_t count = 0, of_one = 0;
    bool has_memory = true;
    if (oat->count)
        qsort(oat->items, oat->count, sizeof *oat->items, by_start);
    for (size_t i = 0; i < oat->count; i++) {
        struct code *code = &oat->items[i], *before = count ? &oat->items[count - 1] : NULL;
        if (!code->name)
            continue;
        if (!before || before->start != code->start) {
            if (before && before->end > code->start)
                before->end = code->start;
            oat->items[count++] = *code;
            of_one = 1;
            continue;
        }
        free(code->name);
        if (++of_one == 2)
            has_memory &= mark_shared(before);
    }
    oat->count = count;
    return has_memory ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "oatdata", 0, "names of methods");
}

static int read_codes(struct dex_oat *oat, const struct input_image *image, const struct input_oat_methods *tables,
                      struct base_error *error)
{
    struct cfi_oat_view view;
    if (!cfi_oat_view_of(image, &view))
        return base_fail(error, BASE_ERR_UNSUPPORTED, "oatdata", 0, "no OAT file whose headers are known");
    for (size_t i = 0; i < tables->count; i++)
        if (add_code(oat, &view, &tables->items[i], error) != 0)
            return -1;
    return 0;
}

static int name_codes(struct dex_oat *oat, const struct input_oat_methods *tables, const struct base_bytes *dex_files,
                      const char *path, const char *root, struct base_error *error)
{
    struct naming_oat naming = {.oat = oat,
                                .tables = tables,
                                .codes = malloc((oat->count + 1) * sizeof(struct code *)),
                                .is_named = calloc(tables->dexes.count + 1, sizeof *naming.is_named)};
    int result = naming.codes && naming.is_named
                     ? 0
                     : base_fail(error, BASE_ERR_NO_MEMORY, "oatdata", 0, "%zu methods", oat->count);
    for (size_t i = 0; result == 0 && i < oat->count; i++)
        naming.codes[i] = &oat->items[i];
    if (result == 0 && oat->count)
        qsort(naming.codes, oat->count, sizeof(struct code *), by_method);
    if (result == 0 && dex_files)
        result = name_by_bytes(&naming, *dex_files, error);
    if (result == 0 && !dex_files)
        result = name_by_vdex(&naming, path, error);
    if (result == 0 && !dex_files)
        result = name_by_archives(&naming, path, root, error);
    free(naming.codes);
    free(naming.is_named);
    return result;
}

static struct dex_oat *make(const struct input_image *image, const struct base_bytes *dex_files, const char *path,
                            const char *root, struct base_error *error)
{
    struct dex_oat *oat = calloc(1, sizeof *oat);
    struct input_oat_methods tables;
    if (!oat) {
        base_fail(error, BASE_ERR_NO_MEMORY, "oatdata", 0, "methods");
        return NULL;
    }
    int result = input_oat_find_methods(image, &tables, error);
    if (result == 0) {
        result = read_codes(oat, image, &tables, error);
        if (result == 0)
            result = name_codes(oat, &tables, dex_files, path, root, error);
        if (result == 0)
            result = settle(oat, error);
        input_oat_methods_free(&tables);
    }
    if (result == 0)
        return oat;
    dex_oat_free(oat);
    return NULL;
}

struct dex_oat *dex_oat_make(const struct input_image *image, struct base_bytes dex_files, struct base_error *error)
{
    return make(image, &dex_files, NULL, NULL, error);
}

struct dex_oat *dex_oat_open(const struct input_image *image, const char *path, const char *root,
                             struct base_error *error)
{
    return make(image, NULL, path, root ? root : "", error);
}

void dex_oat_free(struct dex_oat *oat)
{
    if (!oat)
        return;
    for (size_t i = 0; i < oat->count; i++)
        free(oat->items[i].name);
    base_vector_free(&oat->vector);
    free(oat);
}

size_t dex_oat_count(const struct dex_oat *oat)
{
    return oat->count;
}

bool dex_oat_find(const struct dex_oat *oat, uint64_t vaddr, struct symbol *symbol)
{
    size_t low = 0, high = oat->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (oat->items[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    const struct code *code = low ? &oat->items[low - 1] : NULL;
    if (!code || vaddr >= code->end || !code->name)
        return false;
    *symbol = (struct symbol){.name = code->name,
                              .name_length = strlen(code->name),
                              .start_vaddr = code->start,
                              .end_vaddr = code->end,
                              .has_size = true};
    return true;
}
