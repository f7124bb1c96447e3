// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/oracle/modules.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/qutc.h"
#include "tests/support/qemu_plugin.h"

enum { LINE_BYTES_MAX = 4400, SEGMENTS_MAX = 16, PAGE = 4096 };

// An executable segment.
struct segment {
    uint64_t offset_bytes, vaddr, size_bytes;
};

struct head {
    uint64_t entry_vaddr;
    struct segment segments[SEGMENTS_MAX];
    unsigned count;
};

// The oracle reads the program headers itself: it does not judge by what it judges.
static bool read_head(const char *path, struct head *head)
{
    union {
        Elf64_Ehdr w64;
        Elf32_Ehdr w32;
    } header;
    bool ok = false;
    *head = (struct head){0};
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    if (fread(&header, 1, sizeof header, file) == sizeof header && memcmp(&header, ELFMAG, SELFMAG) == 0) {
        bool is_64 = header.w64.e_ident[EI_CLASS] == ELFCLASS64;
        unsigned count = is_64 ? header.w64.e_phnum : header.w32.e_phnum;
        head->entry_vaddr = is_64 ? header.w64.e_entry : header.w32.e_entry;
        ok = fseek(file, (long)(is_64 ? header.w64.e_phoff : header.w32.e_phoff), SEEK_SET) == 0;
        for (unsigned i = 0; ok && i < count && head->count < SEGMENTS_MAX; i++) {
            Elf64_Phdr p = {0};
            Elf32_Phdr p32;
            if (is_64) {
                ok = fread(&p, sizeof p, 1, file) == 1;
            } else if ((ok = fread(&p32, sizeof p32, 1, file) == 1)) {
                p.p_type = p32.p_type, p.p_flags = p32.p_flags, p.p_offset = p32.p_offset;
                p.p_vaddr = p32.p_vaddr, p.p_filesz = p32.p_filesz;
            }
            if (ok && p.p_type == PT_LOAD && (p.p_flags & PF_X))
                head->segments[head->count++] = (struct segment){p.p_offset, p.p_vaddr, p.p_filesz};
        }
    }
    fclose(file);
    return ok;
}

static void compile(struct oracle_file *file)
{
    struct input_image_options options = {0};
    struct qutc_compile_options compile_options = {.fill = CODE_FILL_ALL, .check = true}; // what follows code is judged, too
    struct input_image *image = NULL;
    struct base_error error = {0};
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct qutc_compile_stats stats;
    if (input_image_open(file->path, file->path, 0, 0, &options, &image, &error) == 0 &&
        qutc_compile(image, &compile_options, &bytes, &size, &stats, &error) == 0)
        file->has_table = runtime_table_attach(&file->table, bytes, size, NULL) == QUT_TABLE_OK;
    if (!file->has_table)
        base_error_text(&error, file->reason, sizeof file->reason);
    if (image)
        input_image_close(image);
}

static const struct oracle_file *file_of(struct oracle_modules *modules, const char *path, const struct head *head)
{
    for (struct oracle_file *file = modules->files; file; file = file->next)
        if (strcmp(file->path, path) == 0)
            return file;
    struct oracle_file *file = calloc(1, sizeof *file);
    if (!file || !(file->path = strdup(path)))
        abort();
    file->entry_vaddr = head->entry_vaddr;
    compile(file);
    file->next = modules->files;
    modules->files = file;
    return file;
}

static void add_segment(struct oracle_modules *modules, const char *path, const struct head *head,
                        const struct segment *segment, uint64_t start, uint64_t end, uint64_t offset_bytes)
{
    uint64_t first = segment->offset_bytes & ~(uint64_t)(PAGE - 1);
    if (first < offset_bytes || first - offset_bytes >= end - start)
        return;
    uint64_t at = start + (first - offset_bytes);
    if (!(page_get_flags(at) & QEMU_PAGE_EXEC))
        return;
    uint64_t bias = at - (segment->vaddr & ~(uint64_t)(PAGE - 1));
    uint64_t last = bias + segment->vaddr + segment->size_bytes;
    if (modules->count == modules->capacity) {
        modules->capacity = modules->capacity ? 2 * modules->capacity : 64;
        modules->items = realloc(modules->items, modules->capacity * sizeof *modules->items);
        if (!modules->items)
            abort();
    }
    modules->items[modules->count++] = (struct oracle_module){
        .start = bias + segment->vaddr,
        .end = last < end ? last : end,
        .load_bias = bias,
        .file = file_of(modules, path, head),
    };
}

// Code is not executable in the emulator's own mappings, and neighbours there may be joined: the file's headers and the
// emulator's page flags say what is code.
static void refresh(struct oracle_modules *modules)
{
    char line[LINE_BYTES_MAX], path[4096];
    struct head head;
    FILE *maps = fopen("/proc/self/maps", "r");
    modules->count = 0;
    modules->last = NULL;
    modules->stale = false;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end, offset_bytes;
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095[^\n]", &start, &end, &offset_bytes, path) != 4 ||
            path[0] != '/' || start < guest_base || end - guest_base > modules->guest->word_mask ||
            !page_get_flags(start - guest_base) || !read_head(path, &head))
            continue;
        for (unsigned i = 0; i < head.count; i++)
            add_segment(modules, path, &head, &head.segments[i], start - guest_base, end - guest_base, offset_bytes);
    }
    if (maps)
        fclose(maps);
}

void modules_open(struct oracle_modules *modules, struct guest *guest)
{
    *modules = (struct oracle_modules){.guest = guest, .stale = true};
}

const struct oracle_module *modules_find(struct oracle_modules *modules, uint64_t address)
{
    if (modules->stale)
        refresh(modules);
    if (modules->last && address - modules->last->start < modules->last->end - modules->last->start)
        return modules->last;
    for (size_t i = 0; i < modules->count; i++) {
        const struct oracle_module *module = &modules->items[i];
        if (address - module->start < module->end - module->start)
            return modules->last = module;
    }
    return NULL;
}
