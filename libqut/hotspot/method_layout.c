// SPDX-License-Identifier: Apache-2.0
#include "libqut/hotspot/inside.h"

enum { DIGITS_FROM_ONE_RELEASE = 20 };

struct taken {
    const struct hotspot_field *from;
    uint16_t *to;
};

static bool take(const struct taken *all, size_t count)
{
    bool is_known = true;
    for (size_t i = 0; i < count; i++) {
        is_known = is_known && all[i].from->at >= 0 && all[i].from->at <= HOTSPOT_FIELD_OFFSET_MAX;
        *all[i].to = (uint16_t)all[i].from->at;
    }
    return is_known;
}
#define TAKE(all) take(all, sizeof(all) / sizeof(all)[0])

static void take_names(const struct hotspot_layout *layout, struct hotspot_name_layout *names)
{
    const struct taken all[] = {
        {&layout->blob_name, &names->blob_name},
        {&layout->blob_size, &names->blob_size},
        {&layout->method, &names->method},
        {&layout->method_const, &names->method_const},
        {&layout->const_pool, &names->const_pool},
        {&layout->const_name_index, &names->const_name_index},
        {&layout->pool, &names->pool_bytes},
        {&layout->pool_holder, &names->pool_holder},
        {&layout->klass_name, &names->klass_name},
        {&layout->klass_constants, &names->klass_constants},
        {&layout->method_bytes, &names->method_bytes},
        {&layout->symbol_length, &names->symbol_length},
        {&layout->symbol_body, &names->symbol_body},
    };
    names->is_known = TAKE(all) && layout->symbol_length.size_bytes == 2;
}

// How numbers are compressed changed in 20. Releases from 23 on are told by what they have; before, by their number.
static bool take_digits(const struct elf_art_memory *memory, const struct hotspot_layout *layout, bool *from_one)
{
    int32_t release;
    *from_one = true;
    if (layout->immutable.at != HOTSPOT_MISSING)
        return true;
    if (layout->vm_major.at == HOTSPOT_MISSING ||
        !elf_art_read(memory, (uint64_t)layout->vm_major.at, &release, sizeof release))
        return false;
    *from_one = layout->heaps.at != HOTSPOT_MISSING && release >= DIGITS_FROM_ONE_RELEASE; // JDK 8 says 25
    return true;
}

static void take_lines(const struct elf_art_memory *memory, const struct hotspot_layout *layout,
                       struct hotspot_line_layout *lines)
{
    lines->source_is_of_class = layout->pool_source.at == HOTSPOT_MISSING;
    const struct hotspot_field *source = lines->source_is_of_class ? &layout->klass_source : &layout->pool_source;
    const struct taken all[] = {
        {&layout->const_bytes, &lines->const_bytes},   {&layout->const_words, &lines->const_words},
        {&layout->const_flags, &lines->const_flags},   {&layout->code_size, &lines->code_size},
        {&layout->access_flags, &lines->access_flags}, {source, &lines->source_index},
    };
    lines->is_known = TAKE(all) && layout->const_words.size_bytes == 4 && layout->code_size.size_bytes == 2 &&
                      source->size_bytes == 2 && take_digits(memory, layout, &lines->has_digits_from_one);
}

static void take_scopes(const struct hotspot_layout *layout, struct hotspot_scope_layout *scopes)
{
    scopes->is_apart = layout->immutable.at != HOTSPOT_MISSING;
    const struct taken in_blob[] = {
        {&layout->compile_id, &scopes->compile_id},          {&layout->places_offset, &scopes->places_offset},
        {&layout->dependencies_offset, &scopes->places_end}, {&layout->scopes_begin, &scopes->scopes},
        {&layout->metadata_offset, &scopes->methods},
    };
    const struct taken apart[] = {
        {&layout->compile_id, &scopes->compile_id},         {&layout->places_offset, &scopes->places_offset},
        {&layout->scopes_offset, &scopes->scopes},          {&layout->immutable, &scopes->immutable},
        {&layout->immutable_size, &scopes->immutable_size}, {&layout->mutable, &scopes->mutable},
        {&layout->mutable_size, &scopes->mutable_size},     {&layout->relocation_size, &scopes->relocation_size},
    };
    const struct hotspot_field *numbers[] = {&layout->compile_id, &layout->places_offset};
    scopes->is_known = scopes->is_apart ? TAKE(apart) : TAKE(in_blob);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        scopes->is_known = scopes->is_known && numbers[i]->size_bytes == 4;
}

void hotspot_method_layouts(const struct elf_art_memory *memory, const struct hotspot_layout *layout,
                            struct hotspot_machine *machine)
{
    enum { BYTECODE_CFA_WORDS = -10, BYTECODE_CFA_WORDS_8 = -9 }; // 9 put the method's class into frames
    machine->bytecode_cfa_words = layout->heaps.at == HOTSPOT_MISSING ? BYTECODE_CFA_WORDS_8 : BYTECODE_CFA_WORDS;
    take_names(layout, &machine->names);
    take_lines(memory, layout, &machine->lines);
    take_scopes(layout, &machine->scopes);
}
