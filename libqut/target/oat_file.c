// SPDX-License-Identifier: Apache-2.0
// OAT files without build-id: which one an image is, and whether a file is the one that is mapped.
#include <elf.h>
#include <string.h>

#include "libqut/art/oat_identity.h"
#include "libqut/os/file.h"
#include "libqut/target/opened_target.h"

struct view {
    struct qut_target *target;
    const struct target_image *image;
    const struct elf_head *head;
    const struct arch *arch; // the target's may not be known yet
    int fd;
};

static size_t read_file(void *context, uint64_t vaddr, void *bytes, size_t size)
{
    const struct view *view = context;
    for (unsigned i = 0; i < view->head->load_count; i++) {
        const struct elf_segment *load = &view->head->loads[i];
        uint64_t into = vaddr - load->vaddr, left = load->file_size - into;
        if (into < load->file_size)
            return os_read_at(view->fd, view->image->file_offset + load->offset + into, bytes,
                              left < size ? (size_t)left : size);
    }
    return 0;
}

static size_t read_memory(void *context, uint64_t address, void *bytes, size_t size)
{
    const struct view *view = context;
    return view->target->kind->read(view->target, address, bytes, size);
}

static bool identity_of(struct view *view, bool is_file, uint8_t identity[ART_OAT_IDENTITY_BYTES])
{
    const struct elf_head *head = view->head;
    const struct elf_art_memory memory = {
        .read = is_file ? read_file : read_memory, .context = view, .arch = view->arch};
    struct art_oat_segment segments[ELF_LOADS_MAX];
    struct art_oat_image image = {.memory = &memory,
                                  .load_bias = is_file ? 0 : view->image->load_bias,
                                  .segments = segments,
                                  .segment_count = head->load_count};
    uint64_t header;
    image.dynamic_address = image.load_bias + head->dynamic.vaddr;
    for (unsigned i = 0; i < head->load_count; i++)
        segments[i] =
            (struct art_oat_segment){head->loads[i].vaddr, head->loads[i].file_size, head->loads[i].flags & PF_W};
    return art_oat_identity(&image, identity, &header);
}

bool target_identify_oat(struct qut_target *target, const struct elf_head *head, int fd, struct target_image *image)
{
    struct view view = {target, image, head, arch_by_elf_machine(head->machine), fd};
    uint8_t in_memory[ART_OAT_IDENTITY_BYTES];
    image->has_oat_identity = false;
    if (image->build_id_size || head->dynamic.file_size == 0 || !view.arch)
        return true;
    bool is_oat = identity_of(&view, fd >= 0, image->oat_identity);
    // Where memory was not kept, nothing speaks against the file.
    if (is_oat && fd >= 0 && identity_of(&view, false, in_memory) &&
        memcmp(in_memory, image->oat_identity, sizeof in_memory) != 0)
        return false;
    image->has_oat_identity = is_oat;
    return true;
}
