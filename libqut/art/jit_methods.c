// SPDX-License-Identifier: Apache-2.0
#include "libqut/art/jit_methods.h"

#include <string.h>

enum { WORD = 8, DEPTH_MAX = 64, NATIVE = 0x100 };

static bool read_word(const struct elf_art_memory *memory, uint64_t address, uint64_t *word)
{
    return address && address % WORD == 0 && elf_art_read(memory, address, word, sizeof *word);
}

static bool read_half(const struct elf_art_memory *memory, uint64_t address, uint64_t *word)
{
    uint32_t half;
    if (!address || address % sizeof half || !elf_art_read(memory, address, &half, sizeof half))
        return false;
    *word = half;
    return true;
}

// The JitCodeCache whose code is in this cache.
static bool find_records(const struct elf_art_memory *memory, const struct art_jit_cache *cache,
                         uint64_t instance_address, uint64_t *records)
{
    const struct art_jit_records *at = art_jit_records(memory->arch);
    uint64_t runtime, code;
    return at && read_word(memory, instance_address, &runtime) && read_word(memory, runtime + at->cache_at, records) &&
           *records && read_word(memory, *records + at->code_at, &code) && code == cache->code_start;
}

bool art_jit_collections_of(const struct elf_art_memory *memory, const struct art_jit_cache *cache,
                            uint64_t instance_address, struct art_jit_collections *collections)
{
    const struct art_jit_records *at = art_jit_records(memory->arch);
    uint64_t records;
    uint8_t under_way;
    if (!find_records(memory, cache, instance_address, &records) ||
        !read_word(memory, records + at->begun_at, &collections->begun) ||
        !elf_art_read(memory, records + at->under_way_at, &under_way, sizeof under_way) || under_way > 1)
        return false;
    collections->is_under_way = under_way;
    return true;
}

uint64_t art_jit_made_at(const struct elf_art_memory *memory, const struct art_jit_cache *cache,
                         uint64_t instance_address)
{
    const struct art_jit_records *at = art_jit_records(memory->arch);
    uint64_t records, methods, made, entered;
    // What the map has was made, and what is entered in a loop, too: else these are numbers of something else.
    bool is_sound = instance_address && find_records(memory, cache, instance_address, &records) &&
                    read_word(memory, records + at->method_count_at, &methods) &&
                    read_word(memory, records + at->entered_at, &entered) &&
                    read_word(memory, records + at->made_at, &made) && methods != 0 && methods <= made &&
                    entered <= made && made <= UINT32_MAX;
    return is_sound ? records + at->made_at : 0;
}

static bool find_method(const struct elf_art_memory *memory, uint64_t records, uint64_t code_start, uint64_t *method)
{
    const struct art_jit_records *at = art_jit_records(memory->arch);
    uint64_t node, key;
    bool has_node = read_word(memory, records + at->methods_at, &node);
    for (unsigned depth = 0; has_node && depth < DEPTH_MAX && read_word(memory, node + at->key_at, &key); depth++) {
        if (key == code_start)
            return read_word(memory, node + at->value_at, method);
        has_node = read_word(memory, node + (code_start < key ? at->left_at : at->right_at), &node);
    }
    return false;
}

// Where a dex file's first instruction of a method is behind the beginning of the method's code item.
static bool head_bytes(const uint8_t magic[4], uint64_t *bytes)
{
    enum { CODE_ITEM_BYTES = 16, COMPACT_CODE_ITEM_BYTES = 4 };
    bool is_compact = memcmp(magic, "cdex", 4) == 0;
    *bytes = is_compact ? COMPACT_CODE_ITEM_BYTES : CODE_ITEM_BYTES;
    return is_compact || memcmp(magic, "dex\n", 4) == 0;
}

bool art_jit_bytecode_of(const struct elf_art_memory *memory, const struct art_jit_cache *cache,
                         uint64_t instance_address, uint64_t code_start, uint64_t *dex_pc)
{
    const struct art_jit_records *at = art_jit_records(memory->arch);
    uint64_t records, method, class, flags, code_item, dex_cache, dex_file, begin, data, head;
    uint8_t magic[4];
    if (!find_records(memory, cache, instance_address, &records) ||
        !find_method(memory, records, code_start, &method) || !read_half(memory, method, &class) ||
        !read_half(memory, method + at->flags_at, &flags) || flags & NATIVE ||
        !read_half(memory, method + at->bytecode_at, &code_item) || !code_item ||
        !read_half(memory, class + at->dex_cache_at, &dex_cache) ||
        !read_word(memory, dex_cache + at->dex_file_at, &dex_file) ||
        !read_word(memory, dex_file + at->file_begin_at, &begin) || !read_word(memory, dex_file + at->data_at, &data) ||
        !elf_art_read(memory, begin, magic, sizeof magic) || !head_bytes(magic, &head))
        return false;
    *dex_pc = data + code_item + head;
    return true;
}
