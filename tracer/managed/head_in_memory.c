// SPDX-License-Identifier: Apache-2.0
#include "tracer/managed/dex_at.h"

struct memory_image {
    struct qut_target *target;
    uint64_t start;
};

static size_t read_memory(void *context, uint64_t position, void *bytes, size_t size)
{
    const struct memory_image *image = context;
    return qut_target_read(image->target, image->start + position, bytes, size);
}

bool managed_head_in_memory(struct qut_target *target, uint64_t start, struct elf_head *head)
{
    struct memory_image memory = {target, start};
    return elf_head_read(head, read_memory, &memory);
}
