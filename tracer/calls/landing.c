// SPDX-License-Identifier: Apache-2.0
// Landing pads: code that exceptions lead to, by the tables that FDEs name. gcc puts a nop before one at the start of a
// cold part, since a table cannot say "at the very start": libstdc++ has such a part, whose first row is that of a
// function.
#include "base/encoded_pointer_inline.h"
#include "tracer/calls/inside.h"

static unsigned pointer_bytes(uint8_t encoding)
{
    switch (encoding & PE_FORMAT_MASK) {
    case PE_UDATA2:
    case PE_SDATA2: return 2;
    case PE_UDATA4:
    case PE_SDATA4: return 4;
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8: return 8;
    default: return 0;
    }
}

// What stands between an FDE's range and its program: a length, and the pointer.
static bool find_table(const struct calls_work *work, const struct cfi_fde *fde, uint64_t *vaddr)
{
    const struct cfi_cie *cie = &work->records.cies.items[fde->cie];
    struct base_bytes section = work->frames->bytes;
    unsigned size = cie->lsda_encoding == PE_OMIT ? 0 : pointer_bytes(cie->lsda_encoding);
    size_t program_at = fde->program ? (size_t)(fde->program - section.data) : 0;
    if (size == 0 || program_at > section.size || program_at < size + 1u || fde->program[-(int)size - 1] != size)
        return false;
    struct base_cursor c = base_cursor((struct base_bytes){fde->program - size, size});
    const struct base_pointer_bases bases = {.start_vaddr = work->frames->vaddr + program_at - size,
                                             .text_vaddr = work->frames->text_base_vaddr,
                                             .data_vaddr = work->frames->data_base_vaddr,
                                             .is_64 = true};
    return base_read_encoded(&c, cie->lsda_encoding, 8, &bases, vaddr) && *vaddr && !c.failed;
}

static void mark_pad(struct calls_work *work, uint64_t vaddr)
{
    calls_mark(&work->targets, vaddr);
    struct calls_region *region = calls_region_at(work, vaddr);
    if (region && vaddr - region->start <= 1)
        region->is_entry = false;
}

static void mark_table(struct calls_work *work, uint64_t vaddr, uint64_t start)
{
    struct base_cursor c = base_cursor(input_image_at(work->image, vaddr));
    const struct base_pointer_bases bases = {.start_vaddr = vaddr, .is_64 = true};
    uint8_t encoding = base_read_u8(&c);
    if (encoding != PE_OMIT && !base_read_encoded(&c, encoding, 8, &bases, &start))
        return;
    if (base_read_u8(&c) != PE_OMIT)
        base_read_uleb(&c); // where types are
    encoding = base_read_u8(&c);
    uint64_t size = base_read_uleb(&c);
    struct base_cursor sites = base_cursor(base_read_bytes(&c, size));
    while (!c.failed && !sites.failed && base_cursor_left(&sites)) {
        uint64_t from, length, pad;
        if (!base_read_encoded(&sites, encoding, 8, &bases, &from) ||
            !base_read_encoded(&sites, encoding, 8, &bases, &length) ||
            !base_read_encoded(&sites, encoding, 8, &bases, &pad))
            return;
        base_read_uleb(&sites); // what is done there
        if (pad && !sites.failed)
            mark_pad(work, start + pad);
    }
}

void calls_mark_landing_pads(struct calls_work *work)
{
    uint64_t vaddr;
    for (size_t i = 0; i < work->records.fde_count; i++)
        if (find_table(work, &work->records.fdes[i], &vaddr))
            mark_table(work, vaddr, work->text_start + work->records.fdes[i].start_rel);
}
