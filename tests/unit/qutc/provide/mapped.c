// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/qutc/provide/mapped.h"

#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>

struct base_bytes mapped_image(struct base_bytes file, int rest)
{
    struct base_bytes image = {0};
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)(uintptr_t)file.data, file.size);
    uint8_t *bytes = malloc(file.size + 1);
    size_t count = 0, end = 0;
    GElf_Phdr segment;
    if (elf && bytes && elf_getphdrnum(elf, &count) == 0) {
        memset(bytes, rest == MAPPED_CUT ? 0 : rest, file.size);
        for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &segment); i++) {
            if (segment.p_type != PT_LOAD)
                continue;
            memcpy(bytes + segment.p_offset, file.data + segment.p_offset, segment.p_filesz);
            size_t segment_end = segment.p_offset + segment.p_filesz;
            end = end > segment_end ? end : segment_end;
        }
        image = (struct base_bytes){bytes, rest == MAPPED_CUT ? end : file.size};
    } else {
        free(bytes);
    }
    elf_end(elf);
    return image;
}
