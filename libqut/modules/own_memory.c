// SPDX-License-Identifier: Apache-2.0
#include "libqut/modules/own_memory.h"

#include "libqut/arch/native.h"
#include "libqut/os/os.h"

static size_t read_own(void *context, uint64_t address, void *bytes, size_t size)
{
    (void)context;
    return address > UINTPTR_MAX ? 0 : os_read_self((uintptr_t)address, bytes, size);
}

static void read_own_pieces(void *context, struct elf_art_piece *pieces, size_t count)
{
    enum { PARTS_MAX = 32 }; // on a handler's stack
    struct os_part parts[PARTS_MAX];
    for (size_t first = 0, end; first < count; first = end) {
        uint8_t *bytes = pieces[first].bytes;
        size_t size = 0;
        for (end = first; end < count && end - first < PARTS_MAX && pieces[end].bytes == bytes + size; end++) {
            parts[end - first] = (struct os_part){(uintptr_t)pieces[end].address, pieces[end].size};
            size += pieces[end].size;
        }
        bool is_whole = os_read_parts(parts, (unsigned)(end - first), bytes) == size;
        for (size_t i = first; i < end; i++)
            pieces[i].got =
                is_whole ? pieces[i].size : read_own(context, pieces[i].address, pieces[i].bytes, pieces[i].size);
    }
}

const struct elf_art_memory modules_own_memory = {
    .read = read_own, .read_pieces = read_own_pieces, .arch = &arch_native_arch};
