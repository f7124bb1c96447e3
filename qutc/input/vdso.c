// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "qutc/input/inputs_list.h"

enum { VDSO_MAX_BYTES = 1 << 20 };

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// The kernel maps the whole file; its headers, which are the last of it, say how long it is.
static uint64_t size_from_headers(const uint8_t *base)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(uintptr_t)base;
    uint64_t end = later(sizeof *header, header->e_phoff + (uint64_t)header->e_phnum * sizeof(ElfW(Phdr)));
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)(uintptr_t)(base + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++)
        end = later(end, segments[i].p_offset + segments[i].p_filesz);
    return later(end, header->e_shoff + (uint64_t)header->e_shnum * sizeof(ElfW(Shdr)));
}

bool input_is_own_vdso(struct base_bytes elf)
{
    const uint8_t *base = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    return base && memcmp(base, ELFMAG, SELFMAG) == 0 && elf.size >= sizeof(ElfW(Ehdr)) &&
           elf.size <= size_from_headers(base) && memcmp(base, elf.data, elf.size) == 0;
}

int input_inputs_add_vdso(struct input_inputs *inputs, struct base_error *error)
{
    const uint8_t *base = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (!base || memcmp(base, ELFMAG, SELFMAG) != 0)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "this kernel offers no vdso");
    uint64_t size = size_from_headers(base);
    if (size > VDSO_MAX_BYTES)
        return base_fail(error, BASE_ERR_LIMIT, "", 0, "a vdso of 0x%jx bytes", (uintmax_t)size);
    uint8_t *copy = malloc((size_t)size);
    if (!copy)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "a vdso of 0x%jx bytes", (uintmax_t)size);
    memcpy(copy, base, (size_t)size);
    return input_inputs_add_memory(inputs, copy, (size_t)size, "[vdso]", error);
}
