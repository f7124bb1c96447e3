// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/identity.h"

#include <elf.h>
#include <stdio.h>

#include "formats/qut_table_name_inline.h"
#include "libqut/art/oat_identity.h"

// Bounds against files with thousands of large, overlapping notes; real ones have two or three, of under 100 bytes.
enum { NOTES_TRIED_MAX = 32, NOTES_BYTES_MAX = 1 << 20, DEBUG_ID_BYTES_MAX = 64 };

enum { OAT_SEGMENTS_MAX = 32 }; // as many as libqut looks at

static_assert((int)INPUT_IDENTITY_MAX == QUT_CONTENT_HASH_BYTES, "all kinds of identities fit");

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static struct base_bytes find_build_id(struct base_bytes notes, uint64_t alignment)
{
    if (notes.size > NOTES_BYTES_MAX)
        notes.size = NOTES_BYTES_MAX;
    struct base_cursor cursor = base_cursor(notes);
    uint64_t unit = alignment == 8 ? 8 : 4;
    while (base_cursor_left(&cursor) >= 12) {
        uint32_t name_size = base_read_u32(&cursor);
        uint32_t size = base_read_u32(&cursor);
        uint32_t type = base_read_u32(&cursor);
        struct base_bytes name = base_read_bytes(&cursor, name_size);
        uint64_t at = align_up(base_cursor_offset(&cursor), unit);
        base_cursor_seek(&cursor, at);
        struct base_bytes description = base_read_bytes(&cursor, size);
        if (cursor.failed)
            break;
        if (type == NT_GNU_BUILD_ID && name.size == 4 && memcmp(name.data, "GNU", 4) == 0 && size > 0)
            return description;
        at = align_up(base_cursor_offset(&cursor), unit);
        if (at > notes.size)
            break;
        base_cursor_seek(&cursor, at);
    }
    return (struct base_bytes){notes.data, 0};
}

struct base_bytes input_build_id(const struct input_elf *elf)
{
    struct base_bytes id = {elf->bytes.data, 0};
    struct base_bytes notes;
    unsigned tried = 0;
    for (size_t i = 0; i < elf->segment_count && !id.size; i++)
        if (elf->segments[i].type == PT_NOTE && tried++ < NOTES_TRIED_MAX)
            id = find_build_id(input_elf_segment_bytes(elf, &elf->segments[i]), elf->segments[i].alignment);
    for (size_t i = 0; i < elf->section_count && !id.size; i++)
        if (elf->sections[i].type == SHT_NOTE && tried++ < NOTES_TRIED_MAX &&
            !input_elf_section_bytes(elf, &elf->sections[i], &notes, NULL))
            id = find_build_id(notes, elf->sections[i].alignment);
    return id;
}

static void feed_piece(void *context, struct base_bytes bytes)
{
    qut_content_hash_add(context, bytes.data, bytes.size);
}

static void content_hash(const struct input_elf *elf, uint8_t identity[QUT_CONTENT_HASH_BYTES])
{
    struct qut_content_hash hash;
    qut_content_hash_begin(&hash);
    if (elf->source)
        input_file_map_each(elf->source, feed_piece, &hash);
    else
        feed_piece(&hash, elf->bytes);
    qut_content_hash_end(&hash, identity);
}

// A file's bytes by virtual address, as the loader would map them.
struct mapped {
    const struct input_elf *elf;
    const struct input_elf_segment *loads[OAT_SEGMENTS_MAX];
    unsigned load_count;
};

static size_t read_mapped(void *context, uint64_t vaddr, void *bytes, size_t size)
{
    const struct mapped *mapped = context;
    for (unsigned i = 0; i < mapped->load_count; i++) {
        const struct input_elf_segment *load = mapped->loads[i];
        struct base_bytes there = input_elf_segment_extent(mapped->elf, load);
        uint64_t into = vaddr - load->vaddr;
        if (into >= there.size)
            continue;
        size = size < there.size - into ? size : (size_t)(there.size - into);
        input_elf_need(mapped->elf, load->offset_bytes + into, size);
        memcpy(bytes, there.data + into, size);
        return size;
    }
    return 0;
}

static bool oat_identity(const struct input_elf *elf, uint8_t identity[ART_OAT_IDENTITY_BYTES])
{
    struct mapped mapped = {.elf = elf};
    struct art_oat_segment segments[OAT_SEGMENTS_MAX];
    const struct elf_art_memory memory = {.read = read_mapped, .context = &mapped, .arch = elf->arch};
    struct art_oat_image image = {.memory = &memory, .segments = segments};
    bool has_dynamic = false;
    uint64_t header_vaddr;
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct input_elf_segment *segment = &elf->segments[i];
        if (segment->type == PT_DYNAMIC) {
            image.dynamic_address = segment->vaddr;
            has_dynamic = true;
        } else if (segment->type == PT_LOAD && image.segment_count < OAT_SEGMENTS_MAX) {
            mapped.loads[mapped.load_count++] = segment;
            segments[image.segment_count++] =
                (struct art_oat_segment){segment->vaddr, segment->file_bytes, segment->flags & PF_W};
        }
    }
    return has_dynamic && art_oat_identity(&image, identity, &header_vaddr);
}

bool input_debug_path(const char *root, struct base_bytes build_id, char path[PATH_MAX])
{
    char hex[2 * DEBUG_ID_BYTES_MAX + 1];
    if (build_id.size < 2 || build_id.size > DEBUG_ID_BYTES_MAX)
        return false;
    qut_hex(build_id.data, build_id.size, hex);
    return snprintf(path, PATH_MAX, "%s/.build-id/%.2s/%s.debug", root, hex, hex + 2) < PATH_MAX;
}

enum input_identity_kind input_identify(const struct input_elf *elf, uint8_t identity[INPUT_IDENTITY_MAX],
                                        uint8_t *size)
{
    struct base_bytes id = input_build_id(elf);
    *size = INPUT_IDENTITY_MAX;
    if (id.size) {
        *size = (uint8_t)(id.size < INPUT_IDENTITY_MAX ? id.size : INPUT_IDENTITY_MAX);
        memcpy(identity, id.data, *size);
        return INPUT_BUILD_ID;
    }
    if (oat_identity(elf, identity))
        return INPUT_OAT_IDENTITY;
    content_hash(elf, identity);
    return INPUT_CONTENT_HASH;
}
