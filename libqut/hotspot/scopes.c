// SPDX-License-Identifier: Apache-2.0
// A place in a compiled method -> the methods it belongs to. Places that may be asked for (calls, and what may stop)
// are described by PcDesc, ascending; each leads to a scope: numbers in a stream, of which the first three are the
// scope it was inlined into (0: none; always one that was written before), the method's index (from 1 on), and 1 + the
// bytecode's.
#include <string.h>

#include "libqut/hotspot/inside.h"

enum {
    PLACE_BYTES = 16, // struct PcDesc, the same since JDK 7: offset of the place, offset of its scope, two more
    PLACES_BYTES_MAX = 16 << 20,
    SCOPES_BYTES_MAX = 16 << 20,
    METHODS_BYTES_MAX = 4 << 20,
    ENTRY_BYTECODE = -1,
    BYTECODES_MAX = 0xffff,
};

struct tables {
    uint64_t places, places_end, scopes, scopes_end, methods, methods_end;
};

static bool read_int(const struct elf_art_memory *memory, uint64_t at, int32_t *value)
{
    return elf_art_read(memory, at, value, sizeof *value) && *value >= 0;
}

static bool read_in_blob(const struct hotspot_scope_layout *layout, const struct elf_art_memory *memory, uint64_t blob,
                         struct tables *tables)
{
    int32_t places, end, methods;
    if (!read_int(memory, blob + layout->places_offset, &places) ||
        !read_int(memory, blob + layout->places_end, &end) || !read_int(memory, blob + layout->methods, &methods) ||
        !hotspot_read_pointer(memory, blob + layout->scopes, &tables->scopes))
        return false;
    tables->places = tables->scopes_end = blob + (uint32_t)places;
    tables->places_end = blob + (uint32_t)end;
    tables->methods = blob + (uint32_t)methods;
    tables->methods_end = tables->scopes;
    return true;
}

static bool read_apart(const struct hotspot_scope_layout *layout, const struct elf_art_memory *memory, uint64_t blob,
                       struct tables *tables)
{
    uint64_t immutable, mutable;
    int32_t places, scopes, immutable_size, relocation_size, mutable_size;
    if (!hotspot_read_pointer(memory, blob + layout->immutable, &immutable) ||
        !hotspot_read_pointer(memory, blob + layout->mutable, &mutable) ||
        !read_int(memory, blob + layout->places_offset, &places) || !read_int(memory, blob + layout->scopes, &scopes) ||
        !read_int(memory, blob + layout->immutable_size, &immutable_size) ||
        !read_int(memory, blob + layout->relocation_size, &relocation_size) ||
        !read_int(memory, blob + layout->mutable_size, &mutable_size))
        return false;
    tables->places = immutable + (uint32_t)places;
    tables->places_end = tables->scopes = immutable + (uint32_t)scopes;
    tables->scopes_end = immutable + (uint32_t)immutable_size;
    tables->methods = mutable + (uint32_t)relocation_size;
    tables->methods_end = mutable + (uint32_t)mutable_size;
    return true;
}

static bool is_extent(uint64_t begin, uint64_t end, uint64_t bytes_max)
{
    return begin <= end && end - begin <= bytes_max;
}

static bool read_tables(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t blob,
                        struct tables *tables)
{
    const struct hotspot_scope_layout *layout = &machine->scopes;
    return (layout->is_apart ? read_apart(layout, memory, blob, tables) : read_in_blob(layout, memory, blob, tables)) &&
           is_extent(tables->places, tables->places_end, PLACES_BYTES_MAX) &&
           is_extent(tables->scopes, tables->scopes_end, SCOPES_BYTES_MAX) &&
           is_extent(tables->methods, tables->methods_end, METHODS_BYTES_MAX);
}

struct place {
    int32_t offset, scope; // of the code; scope 0: none
};

static bool read_place(const struct elf_art_memory *memory, const struct tables *tables, uint64_t index,
                       struct place *place)
{
    int32_t words[2];
    if (!elf_art_read(memory, tables->places + index * PLACE_BYTES, words, sizeof words) || words[1] < 0)
        return false;
    *place = (struct place){words[0], words[1]};
    return true;
}

// The first place at or behind an offset of the code, and the one before it. The first and the last entry are none.
static bool find_places(const struct elf_art_memory *memory, const struct tables *tables, int64_t offset,
                        struct place *before, struct place *at)
{
    uint64_t low = 0, count = (tables->places_end - tables->places) / PLACE_BYTES, high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (!read_place(memory, tables, middle, at))
            return false;
        if (at->offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    *before = (struct place){0};
    return low + 1 < count && read_place(memory, tables, low, at) &&
           (low < 2 || read_place(memory, tables, low - 1, before));
}

static bool read_level(const struct hotspot_machine *machine, const struct elf_art_memory *memory,
                       const struct tables *tables, uint32_t scope, struct hotspot_level *level, uint32_t *outer)
{
    struct hotspot_stream stream;
    hotspot_stream_begin(&stream, memory, tables->scopes + scope, tables->scopes_end,
                         machine->lines.has_digits_from_one);
    *outer = hotspot_stream_number(&stream);
    uint32_t index = hotspot_stream_number(&stream), bytecode = hotspot_stream_number(&stream);
    if (stream.is_bad || *outer >= scope || index == 0 ||
        index > (tables->methods_end - tables->methods) / memory->arch->word_bytes || bytecode > BYTECODES_MAX)
        return false;
    level->bytecode = (int32_t)bytecode + ENTRY_BYTECODE;
    return hotspot_read_pointer(memory, tables->methods + (uint64_t)(index - 1) * memory->arch->word_bytes,
                                &level->method);
}

// 0: it does not lead to the method that was compiled.
static unsigned read_levels(const struct hotspot_machine *machine, const struct elf_art_memory *memory,
                            const struct tables *tables, int32_t scope, uint64_t method, struct hotspot_level *levels)
{
    uint32_t at = (uint32_t)scope;
    unsigned count = 0;
    for (; at != 0 && count < HOTSPOT_LEVELS_MAX; count++)
        if (!read_level(machine, memory, tables, at, &levels[count], &at))
            return 0;
    return at == 0 && count && levels[count - 1].method == method ? count : 0;
}

// Between two places only what both have is known: the methods that they are in by the same calls. Of the innermost of
// these the bytecode is that of the second place, and that of the first one is kept beside it.
static void keep_common(struct hotspot_levels *levels, const struct hotspot_level *before, unsigned before_count)
{
    unsigned common = 0, most = before_count < levels->count ? before_count : levels->count;
    bool is_same = true; // so far, from the outermost on
    while (common < most && is_same) {
        const struct hotspot_level *one = &levels->items[levels->count - 1 - common],
                                   *other = &before[before_count - 1 - common];
        if (one->method != other->method)
            break;
        is_same = one->bytecode == other->bytecode;
        levels->bytecode_before = other->bytecode;
        common++;
    }
    levels->is_near = !is_same || common != levels->count || common != before_count;
    if (common == 0) { // no place before
        common = 1;
        levels->bytecode_before = HOTSPOT_NO_BYTECODE;
    }
    memmove(levels->items, levels->items + levels->count - common, common * sizeof levels->items[0]);
    levels->count = common;
}

static bool read_scopes(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t pc,
                        enum arch_pc_kind kind, struct hotspot_levels *levels)
{
    struct tables tables;
    struct place before, at;
    struct hotspot_level levels_before[HOTSPOT_LEVELS_MAX];
    int64_t offset = (int64_t)(pc - levels->start);
    if (!read_tables(machine, memory, levels->blob, &tables) || !find_places(memory, &tables, offset, &before, &at) ||
        (at.offset != offset && kind == ARCH_PC_RETURN))
        return false;
    levels->count = read_levels(machine, memory, &tables, at.scope, levels->method, levels->items);
    if (levels->count && at.offset != offset)
        keep_common(levels, levels_before,
                    read_levels(machine, memory, &tables, before.scope, levels->method, levels_before));
    return levels->count != 0;
}

// Which method's code it is, now.
static bool read_head(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t lookup_pc,
                      struct hotspot_levels *levels)
{
    struct hotspot_code_name name;
    struct hotspot_blob blob;
    int32_t size;
    bool is_method;
    *levels = (struct hotspot_levels){0};
    if (!machine->names.is_known || !machine->scopes.is_known || !machine->lines.is_known ||
        !hotspot_blob_at(machine, memory, lookup_pc, &blob) ||
        !hotspot_blob_name(&machine->names, memory, blob.address, name.text, &is_method) || !is_method ||
        !read_int(memory, blob.address + machine->names.blob_size, &size) ||
        lookup_pc - blob.address >= (uint32_t)size ||
        !elf_art_read(memory, blob.address + machine->scopes.compile_id, &levels->compile_id,
                      sizeof levels->compile_id) ||
        !hotspot_read_pointer(memory, blob.address + machine->names.method, &levels->method))
        return false;
    levels->blob = blob.address;
    levels->start = blob.code_begin;
    levels->end = blob.address + (uint32_t)size;
    return true;
}

bool hotspot_levels_at(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t pc,
                       enum arch_pc_kind kind, struct hotspot_levels *levels)
{
    if (!read_head(machine, memory, arch_lookup_pc(pc, kind), levels))
        return false;
    if (!read_scopes(machine, memory, pc, kind, levels)) {
        levels->count = 1;
        levels->is_near = false;
        levels->items[0] = (struct hotspot_level){levels->method, HOTSPOT_NO_BYTECODE};
    }
    return true;
}

bool hotspot_levels_hold(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t pc,
                         const struct hotspot_levels *levels)
{
    struct hotspot_levels now;
    return read_head(machine, memory, pc, &now) && now.blob == levels->blob && now.start == levels->start &&
           now.end == levels->end && now.method == levels->method && now.compile_id == levels->compile_id;
}
