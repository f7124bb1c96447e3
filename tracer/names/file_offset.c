// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/file_offset.h"

#include <elf.h>
#include <stdlib.h>

#include "qutc/input/elf_file.h"
#include "tracer/names/locate.h"

static uint64_t offset_in(const struct input_elf *elf, uint64_t vaddr)
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct input_elf_segment *segment = &elf->segments[i];
        if (segment->type == PT_LOAD && vaddr >= segment->vaddr && vaddr - segment->vaddr < segment->file_bytes)
            return segment->offset_bytes + (vaddr - segment->vaddr);
    }
    return vaddr;
}

uint64_t names_file_offset(const struct names_options *options, const struct trace_module *module, uint64_t vaddr)
{
    struct base_error error = {0};
    struct input_file_map map;
    struct input_elf elf;
    const char *entry;
    uint64_t offset = vaddr;
    bool is_file = !(module->flags & (QUT_TRACE_MODULE_FILE | QUT_TRACE_MODULE_VDSO | QUT_TRACE_MODULE_JIT));
    char *path = is_file ? names_locate_path(options, module->path, &entry) : NULL;
    if (!path || *entry || input_file_map_open(&map, path, 0, 0, INPUT_FILE_MAPPED, &error) != 0) {
        free(path);
        return offset;
    }
    if (input_elf_read(&elf, map.bytes, &error) == 0) {
        offset = offset_in(&elf, vaddr);
        input_elf_free(&elf);
    }
    input_file_map_close(&map);
    free(path);
    return offset;
}
