// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/symbol_sections.h"

#include "formats/elf_wide_inline.h"
#include "qutc/input/image_store.h"

static bool by_section(const struct input_image *image, const struct input_elf *elf, uint32_t type,
                       struct input_symbol_section *found)
{
    for (size_t i = 0; i < elf->section_count; i++) {
        const struct input_elf_section *section = &elf->sections[i];
        if (section->type != type || section->link == 0 || section->link > elf->section_count)
            continue;
        const struct input_elf_section *names = &elf->sections[section->link - 1];
        struct input_unpacker *unpacker = &image->store->unpacker;
        struct base_error why = {0};
        if (names->type == SHT_STRTAB && input_unpack_section(unpacker, elf, section, &found->symbols, &why) == 0 &&
            input_unpack_section(unpacker, elf, names, &found->names, &why) == 0 && found->symbols.size) {
            found->elf = elf;
            return true;
        }
        input_image_note_no_memory(image, &why);
    }
    return false;
}

// What PT_DYNAMIC says, as the loader reads it.
struct dynamic {
    uint64_t symbols_vaddr, names_vaddr, names_bytes, hash_vaddr, gnu_hash_vaddr;
};

static void read_dynamic(const struct input_elf *elf, const struct input_elf_segment *segment, struct dynamic *dynamic)
{
    unsigned word_bytes = elf->arch->word_bytes;
    struct base_cursor cursor = base_cursor(input_elf_segment_bytes(elf, segment));
    while (base_cursor_left(&cursor) >= 2 * word_bytes) {
        uint64_t tag = base_read_uint(&cursor, word_bytes);
        uint64_t value = base_read_uint(&cursor, word_bytes);
        switch (tag) {
        case DT_NULL: return;
        case DT_SYMTAB: dynamic->symbols_vaddr = value; break;
        case DT_STRTAB: dynamic->names_vaddr = value; break;
        case DT_STRSZ: dynamic->names_bytes = value; break;
        case DT_HASH: dynamic->hash_vaddr = value; break;
        case DT_GNU_HASH: dynamic->gnu_hash_vaddr = value; break;
        default: break;
        }
    }
}

static struct base_bytes at(const struct input_image *image, uint64_t vaddr, uint64_t load_bias)
{
    struct base_bytes bytes = input_image_at(image, vaddr);
    return bytes.size ? bytes : input_image_at(image, vaddr - load_bias);
}

// The highest index in any chain, plus one. Each bucket has the first of its chain; a chain ends at an odd hash.
static uint64_t count_by_gnu_hash(struct base_bytes bytes, unsigned word_bytes)
{
    struct base_cursor cursor = base_cursor(bytes);
    uint32_t bucket_count = base_read_u32(&cursor);
    uint32_t first_index = base_read_u32(&cursor);
    uint32_t filter_words = base_read_u32(&cursor);
    base_cursor_skip(&cursor, 4 + (uint64_t)filter_words * word_bytes);
    uint32_t last = 0;
    for (uint32_t i = 0; i < bucket_count && !cursor.failed; i++) {
        uint32_t index = base_read_u32(&cursor);
        last = index > last ? index : last;
    }
    if (cursor.failed || last < first_index)
        return 0;
    base_cursor_skip(&cursor, (uint64_t)(last - first_index) * 4);
    while (!cursor.failed && !(base_read_u32(&cursor) & 1))
        last++;
    return cursor.failed ? 0 : (uint64_t)last + 1;
}

static uint64_t count_by_hash(struct base_bytes bytes)
{
    struct base_cursor cursor = base_cursor(bytes);
    base_cursor_skip(&cursor, 4);
    return base_read_u32(&cursor);
}

static bool by_dynamic(const struct input_image *image, uint64_t load_bias, struct input_symbol_section *found)
{
    const struct input_elf *elf = &image->store->elf;
    struct dynamic dynamic = {0};
    for (size_t i = 0; i < elf->segment_count; i++)
        if (elf->segments[i].type == PT_DYNAMIC)
            read_dynamic(elf, &elf->segments[i], &dynamic);
    if (!dynamic.symbols_vaddr || !dynamic.names_vaddr)
        return false;
    uint64_t count = dynamic.gnu_hash_vaddr
                         ? count_by_gnu_hash(at(image, dynamic.gnu_hash_vaddr, load_bias), elf->arch->word_bytes)
                         : 0;
    if (!count && dynamic.hash_vaddr)
        count = count_by_hash(at(image, dynamic.hash_vaddr, load_bias));
    found->elf = elf;
    found->symbols = at(image, dynamic.symbols_vaddr, load_bias);
    found->names = at(image, dynamic.names_vaddr, load_bias);
    uint64_t symbols_bytes = count * elf_symbol_bytes(elf->is_64);
    if (symbols_bytes > found->symbols.size || dynamic.names_bytes > found->names.size)
        return false;
    found->symbols.size = (size_t)symbols_bytes;
    found->names.size = (size_t)dynamic.names_bytes;
    return count > 0;
}

unsigned input_image_symbol_sections(const struct input_image *image, uint64_t load_bias,
                                     struct input_symbol_section *sections)
{
    const struct input_image_store *store = image->store;
    unsigned count = 0;
    // A full table makes the dynamic one superfluous. The one of .gnu_debugdata leaves out what the dynamic one has.
    if (by_section(image, &store->elf, SHT_SYMTAB, &sections[count]) ||
        (store->debug_elf.arch == image->arch && by_section(image, &store->debug_elf, SHT_SYMTAB, &sections[count])))
        return 1;
    if (by_section(image, &store->elf, SHT_DYNSYM, &sections[count]) || by_dynamic(image, load_bias, &sections[count]))
        count++;
    if (store->debugdata_elf.arch == image->arch &&
        by_section(image, &store->debugdata_elf, SHT_SYMTAB, &sections[count]))
        count++;
    return count;
}

bool input_image_dynamic_symbols(const struct input_image *image, struct input_symbol_section *section)
{
    return by_section(image, &image->store->elf, SHT_DYNSYM, section) || by_dynamic(image, 0, section);
}
