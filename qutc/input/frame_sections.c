// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "qutc/input/image_store.h"

// .debug_frame comes before .eh_frame: where a file has both for the same code, the first is the more complete one
// (hand-written assembly and Android's interpreters describe themselves only there). .ARM.exidx comes last: it holds
// for call sites only.
static unsigned rank(const struct input_frame_section *frame)
{
    static const unsigned debug_ranks[] = {
        [INPUT_FROM_FILE] = 0, [INPUT_FROM_DEBUG_FILE] = 1, [INPUT_FROM_GNU_DEBUGDATA] = 2};
    static const unsigned eh_ranks[] = {
        [INPUT_FROM_FILE] = 3, [INPUT_FROM_GNU_DEBUGDATA] = 4, [INPUT_FROM_DEBUG_FILE] = 5};
    switch (frame->kind) {
    case INPUT_FRAME_DEBUG: return debug_ranks[frame->from];
    case INPUT_FRAME_EH: return eh_ranks[frame->from];
    default: return 6;
    }
}

static void count_bytes(struct input_image *image, const struct input_frame_section *frame)
{
    if (frame->from == INPUT_FROM_DEBUG_FILE)
        return;
    switch (frame->kind) {
    case INPUT_FRAME_EH: image->eh_frame_bytes += frame->bytes.size; break;
    case INPUT_FRAME_DEBUG: image->debug_frame_bytes += frame->bytes.size; break;
    case INPUT_FRAME_EXIDX: image->exidx_bytes += frame->bytes.size; break;
    }
}

static void note_too_many(struct input_image *image, const char *name)
{
    struct base_error damage = {0};
    base_fail(&damage, BASE_ERR_LIMIT, name, 0, "more than %d frame sections", INPUT_FRAME_SECTIONS_MAX);
    input_image_note_damage(image, &damage);
}

static void add_frame(struct input_image *image, const struct input_frame_section *frame)
{
    if (image->frame_count == INPUT_FRAME_SECTIONS_MAX) {
        note_too_many(image, frame->name);
        return;
    }
    unsigned at = image->frame_count++;
    for (; at > 0 && rank(&image->frame[at - 1]) > rank(frame); at--)
        image->frame[at] = image->frame[at - 1];
    image->frame[at] = *frame;
    count_bytes(image, frame);
}

static void set_bases(const struct input_elf *elf, struct input_frame_section *frame)
{
    const struct input_elf_section *text = input_elf_find(elf, ".text");
    const struct input_elf_section *got = NULL;
    // Assemblers count from the linker's _GLOBAL_OFFSET_TABLE_.
    if (elf->arch->counts_from_got_plt)
        got = input_elf_find(elf, ".got.plt");
    if (!got)
        got = input_elf_find(elf, ".got");
    frame->text_base_vaddr = text ? text->vaddr : 0;
    frame->data_base_vaddr = got ? got->vaddr : 0;
}

static bool classify(const struct input_elf *elf, const struct input_elf_section *section, enum input_frame_kind *kind)
{
    if (strcmp(section->name, ".eh_frame") == 0)
        *kind = INPUT_FRAME_EH;
    else if (strcmp(section->name, ".debug_frame") == 0 || strcmp(section->name, ".zdebug_frame") == 0)
        *kind = INPUT_FRAME_DEBUG;
    else if (elf->arch->has_exidx && (section->type == SHT_ARM_EXIDX || strcmp(section->name, ".ARM.exidx") == 0))
        *kind = INPUT_FRAME_EXIDX;
    else
        return false;
    return true;
}

static const char *kind_name(enum input_frame_kind kind)
{
    static const char *const names[] = {
        [INPUT_FRAME_EH] = ".eh_frame", [INPUT_FRAME_DEBUG] = ".debug_frame", [INPUT_FRAME_EXIDX] = ".ARM.exidx"};
    return names[kind];
}

static void add_section(struct input_image *image, const struct input_elf *elf, const struct input_elf_section *section,
                        enum input_frame_kind kind, enum input_provenance from)
{
    struct input_frame_section frame = {.kind = kind, .from = from, .name = kind_name(kind), .vaddr = section->vaddr};
    struct base_error damage = {0};
    if (input_unpack_section(&image->store->unpacker, elf, section, &frame.bytes, &damage)) {
        input_image_note_damage(image, &damage);
        return;
    }
    if (frame.bytes.size == 0)
        return;
    set_bases(elf, &frame);
    add_frame(image, &frame);
}

static bool has_frame(const struct input_image *image, enum input_frame_kind kind, enum input_provenance from)
{
    for (unsigned i = 0; i < image->frame_count; i++)
        if (image->frame[i].kind == kind && image->frame[i].from == from)
            return true;
    return false;
}

static void add_eh_frame_by_segment(struct input_image *image, const struct input_elf_segment *segment)
{
    struct input_frame_section frame = {.kind = INPUT_FRAME_EH, .from = INPUT_FROM_FILE, .name = ".eh_frame"};
    struct base_error damage = {0};
    if (input_find_eh_frame(image, segment, &frame.bytes, &frame.vaddr, &damage)) {
        input_image_note_damage(image, &damage);
        return;
    }
    set_bases(&image->store->elf, &frame);
    add_frame(image, &frame);
}

static void add_exidx_by_segment(struct input_image *image, const struct input_elf_segment *segment)
{
    struct input_frame_section frame = {.kind = INPUT_FRAME_EXIDX,
                                        .from = INPUT_FROM_FILE,
                                        .name = ".ARM.exidx",
                                        .bytes = input_elf_segment_bytes(&image->store->elf, segment),
                                        .vaddr = segment->vaddr};
    struct base_error damage = {0};
    if (frame.bytes.size < segment->file_bytes) {
        base_fail(&damage, BASE_ERR_TRUNCATED, frame.name, frame.bytes.size, "past the end of the file");
        input_image_note_damage(image, &damage);
    }
    if (frame.bytes.size)
        add_frame(image, &frame);
}

// In a debug file the segments still speak of bytes that stayed behind in the file it was split from.
static bool stayed_behind(const struct input_elf *elf, const char *name)
{
    const struct input_elf_section *section = input_elf_find(elf, name);
    return section && section->type == SHT_NOBITS;
}

// What the loader finds without section headers.
static void add_by_segments(struct input_image *image)
{
    const struct input_elf *elf = &image->store->elf;
    bool want_eh_frame = !stayed_behind(elf, ".eh_frame");
    bool want_exidx = elf->arch->has_exidx && !stayed_behind(elf, ".ARM.exidx");
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct input_elf_segment *segment = &elf->segments[i];
        if (segment->file_bytes == 0)
            continue;
        if (segment->type == PT_GNU_EH_FRAME && want_eh_frame) {
            if (!image->eh_frame_hdr_bytes)
                image->eh_frame_hdr_bytes = input_elf_segment_extent(elf, segment).size;
            if (!has_frame(image, INPUT_FRAME_EH, INPUT_FROM_FILE))
                add_eh_frame_by_segment(image, segment);
        } else if (segment->type == PT_ARM_EXIDX && want_exidx) {
            if (!has_frame(image, INPUT_FRAME_EXIDX, INPUT_FROM_FILE))
                add_exidx_by_segment(image, segment);
        }
    }
}

static uint64_t stored_bytes(const struct input_elf *elf, const char *name)
{
    const struct input_elf_section *section = input_elf_find(elf, name);
    struct base_bytes bytes;
    return section && !input_elf_section_bytes(elf, section, &bytes, NULL) ? bytes.size : 0;
}

void input_image_add_frames(struct input_image *image, const struct input_elf *elf, enum input_provenance from)
{
    enum input_frame_kind kind;
    unsigned tried = 0;
    for (size_t i = 0; i < elf->section_count; i++) {
        if (!classify(elf, &elf->sections[i], &kind) || (kind == INPUT_FRAME_EXIDX && from != INPUT_FROM_FILE))
            continue;
        // Thousands of sections could name the same bytes, to be unpacked each time; real files have one of a kind.
        if (tried++ == INPUT_FRAME_SECTIONS_MAX) {
            note_too_many(image, elf->sections[i].name);
            break;
        }
        add_section(image, elf, &elf->sections[i], kind, from);
    }
    if (from != INPUT_FROM_FILE)
        return;
    image->eh_frame_hdr_bytes = stored_bytes(elf, ".eh_frame_hdr");
    image->extab_bytes = stored_bytes(elf, ".ARM.extab");
    add_by_segments(image);
}
