// SPDX-License-Identifier: Apache-2.0
#include "libqut/elf/dynamic_symbol.h"

#include <limits.h>

#include "formats/elf_wide_inline.h"

enum {
    DYNAMIC_ENTRIES_MAX = 512,
    CHAIN_MAX = 1 << 16, // of a hash table: a list that is not sound ends here
    NAME_BYTES_MAX = 96,
    DYNAMIC_AT_ONCE = 40, // most images have fewer
    NAMES_AT_ONCE = 8,
};

enum { GNU_BUCKETS, GNU_FIRST_INDEX, GNU_BLOOM_WORDS, GNU_BLOOM_SHIFT, GNU_WORDS }; // a GNU hash table's first words

struct image {
    const struct elf_art_memory *memory;
    uint64_t load_bias, dynamic_address, word_mask;
    uint64_t symbols, strings, hash, gnu_hash; // 0: it has none
    uint64_t size_bytes;                       // of the symbol that was found
    uint32_t gnu_header[GNU_WORDS];
};

static bool read_words(const struct image *image, uint64_t address, uint32_t *words, unsigned count)
{
    return elf_art_read(image->memory, address & image->word_mask, words, count * sizeof *words);
}

// Relocated or not: an image's parts lie near each other.
static uint64_t address_of(const struct image *image, uint64_t value)
{
    uint64_t with_bias = (value + image->load_bias) & image->word_mask;
    uint64_t from = image->dynamic_address;
    uint64_t distance = value > from ? value - from : from - value;
    uint64_t with_bias_distance = with_bias > from ? with_bias - from : from - with_bias;
    return with_bias_distance < distance ? with_bias : value;
}

static bool read_dynamic(struct image *image)
{
    size_t word_bytes = image->memory->arch->word_bytes, entry_bytes = 2 * word_bytes;
    uint8_t bytes[DYNAMIC_AT_ONCE * 2 * sizeof(uint64_t)];
    for (size_t first = 0; first < DYNAMIC_ENTRIES_MAX; first += DYNAMIC_AT_ONCE) {
        size_t got = image->memory->read(image->memory->context, image->dynamic_address + first * entry_bytes, bytes,
                                         DYNAMIC_AT_ONCE * entry_bytes);
        for (size_t i = 0; i < DYNAMIC_AT_ONCE; i++) {
            uint64_t tag = 0, value = 0;
            if ((i + 1) * entry_bytes > got)
                return false;
            memcpy(&tag, bytes + i * entry_bytes, word_bytes);
            memcpy(&value, bytes + i * entry_bytes + word_bytes, word_bytes);
            switch (tag) {
            case DT_NULL: return image->symbols && image->strings;
            case DT_SYMTAB: image->symbols = address_of(image, value); break;
            case DT_STRTAB: image->strings = address_of(image, value); break;
            case DT_HASH: image->hash = address_of(image, value); break;
            case DT_GNU_HASH: image->gnu_hash = address_of(image, value); break;
            default: break;
            }
        }
    }
    return false;
}

// The value of the symbol with this index, if it is the one.
static bool symbol_is(struct image *image, uint32_t index, const char *name, uint64_t *value)
{
    bool is_64 = image->memory->arch->word_bytes == 8;
    size_t size = elf_symbol_bytes(is_64);
    uint8_t bytes[sizeof(Elf64_Sym)];
    if (!elf_art_read(image->memory, (image->symbols + (uint64_t)index * size) & image->word_mask, bytes, size))
        return false;
    const Elf64_Sym symbol = elf_wide_symbol(bytes, is_64);
    unsigned type = ELF64_ST_TYPE(symbol.st_info);
    *value = symbol.st_value;
    image->size_bytes = symbol.st_size;
    char found[NAME_BYTES_MAX];
    size_t name_bytes = strlen(name) + 1;
    return symbol.st_shndx != SHN_UNDEF && *value != 0 && type != STT_TLS && type != STT_GNU_IFUNC &&
           elf_art_read(image->memory, (image->strings + symbol.st_name) & image->word_mask, found, name_bytes) &&
           memcmp(found, name, name_bytes) == 0;
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (const char *at = name; *at; at++)
        hash = hash * 33 + (uint8_t)*at;
    return hash;
}

// What most names that are not there are known by: a word in which two bits of each name's hash are set. All names'
// words are read at once. Returns a bit for each of the first NAMES_AT_ONCE names that may be there.
static unsigned may_be_there(const struct image *image, const uint32_t *hashes, size_t count)
{
    const uint32_t words = image->gnu_header[GNU_BLOOM_WORDS], bits = 8 * (uint32_t)image->memory->arch->word_bytes;
    uint8_t bytes[NAMES_AT_ONCE * sizeof(uint64_t)];
    struct elf_art_piece pieces[NAMES_AT_ONCE];
    if (words == 0 || (words & (words - 1)) != 0) // not as loaders take it
        return UINT_MAX;
    for (size_t i = 0; i < count; i++) {
        const uint64_t at =
            image->gnu_hash + sizeof image->gnu_header + (uint64_t)(hashes[i] / bits & (words - 1)) * (bits / 8);
        pieces[i] = (struct elf_art_piece){at & image->word_mask, bytes + i * (bits / 8), bits / 8, 0};
    }
    elf_art_read_pieces(image->memory, pieces, count);
    unsigned may_be = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t hash = hashes[i], other = hash >> (image->gnu_header[GNU_BLOOM_SHIFT] & 31);
        uint64_t word = UINT64_MAX; // of a process of which not all was kept: what says it for certain may be there
        if (pieces[i].got == bits / 8) {
            word = 0; // little-endian, of either width
            memcpy(&word, pieces[i].bytes, bits / 8);
        }
        may_be |= (unsigned)(word >> hash % bits & word >> other % bits & 1) << i;
    }
    return may_be;
}

static bool find_by_gnu_hash(struct image *image, const char *name, uint32_t hash, uint64_t *value)
{
    const uint32_t *header = image->gnu_header;
    uint32_t index, chain;
    uint64_t buckets = image->gnu_hash + sizeof image->gnu_header +
                       (uint64_t)header[GNU_BLOOM_WORDS] * image->memory->arch->word_bytes;
    uint64_t chains = buckets + (uint64_t)header[GNU_BUCKETS] * 4;
    if (!read_words(image, buckets + (uint64_t)(hash % header[GNU_BUCKETS]) * 4, &index, 1) ||
        index < header[GNU_FIRST_INDEX])
        return false;
    for (unsigned step = 0; step < CHAIN_MAX; step++, index++) {
        if (!read_words(image, chains + (uint64_t)(index - header[GNU_FIRST_INDEX]) * 4, &chain, 1))
            return false;
        if ((chain | 1) == (hash | 1) && symbol_is(image, index, name, value))
            return true;
        if (chain & 1) // the last one of its bucket
            return false;
    }
    return false;
}

static bool find_by_hash(struct image *image, const char *name, uint64_t *value)
{
    uint32_t counts[2], hash = 0, index; // of buckets, of chains
    for (const char *at = name; *at; at++) {
        hash = (hash << 4) + (uint8_t)*at;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    if (!read_words(image, image->hash, counts, 2) || counts[0] == 0)
        return false;
    uint64_t buckets = image->hash + sizeof counts, chains = buckets + (uint64_t)counts[0] * 4;
    if (!read_words(image, buckets + (uint64_t)(hash % counts[0]) * 4, &index, 1))
        return false;
    for (unsigned step = 0; step < CHAIN_MAX && index != 0 && index < counts[1]; step++) {
        if (symbol_is(image, index, name, value))
            return true;
        if (!read_words(image, chains + (uint64_t)index * 4, &index, 1))
            return false;
    }
    return false;
}

static bool open_image(struct image *image, const struct elf_art_memory *memory, uint64_t load_bias,
                       uint64_t dynamic_address)
{
    *image = (struct image){
        .memory = memory,
        .word_mask = memory->arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX,
    };
    image->load_bias = load_bias & image->word_mask;
    image->dynamic_address = dynamic_address & image->word_mask;
    return read_dynamic(image) &&
           (!image->gnu_hash ||
            (read_words(image, image->gnu_hash, image->gnu_header, GNU_WORDS) && image->gnu_header[GNU_BUCKETS] != 0));
}

// At most NAMES_AT_ONCE. What is not there stays as it is.
static void find(struct image *image, const char *const *names, size_t count, uint64_t *addresses,
                 uint64_t *sizes_bytes)
{
    uint32_t hashes[NAMES_AT_ONCE];
    for (size_t i = 0; i < count; i++)
        hashes[i] = gnu_hash_of(names[i]);
    const unsigned may_be = image->gnu_hash ? may_be_there(image, hashes, count) : image->hash ? UINT_MAX : 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value;
        if (strlen(names[i]) >= NAME_BYTES_MAX || !(may_be >> i & 1) ||
            !(image->gnu_hash ? find_by_gnu_hash(image, names[i], hashes[i], &value)
                              : find_by_hash(image, names[i], &value)))
            continue;
        addresses[i] = (value + image->load_bias) & image->word_mask;
        if (sizes_bytes)
            sizes_bytes[i] = image->size_bytes;
    }
}

void elf_art_find_symbols(const struct elf_art_memory *memory, uint64_t load_bias, uint64_t dynamic_address,
                          const char *const *names, size_t count, uint64_t *addresses, uint64_t *sizes_bytes)
{
    struct image image;
    memset(addresses, 0, count * sizeof *addresses);
    if (sizes_bytes)
        memset(sizes_bytes, 0, count * sizeof *sizes_bytes);
    const bool is_open = open_image(&image, memory, load_bias, dynamic_address);
    for (size_t first = 0; is_open && first < count; first += NAMES_AT_ONCE)
        find(&image, names + first, count - first < NAMES_AT_ONCE ? count - first : NAMES_AT_ONCE, addresses + first,
             sizes_bytes ? sizes_bytes + first : NULL);
}

uint64_t elf_art_find_sized_symbol(const struct elf_art_memory *memory, uint64_t load_bias, uint64_t dynamic_address,
                                   const char *name, uint64_t *size_bytes)
{
    uint64_t address;
    elf_art_find_symbols(memory, load_bias, dynamic_address, &name, 1, &address, size_bytes);
    return address;
}

uint64_t elf_art_find_symbol(const struct elf_art_memory *memory, uint64_t load_bias, uint64_t dynamic_address,
                             const char *name)
{
    uint64_t size_bytes;
    return elf_art_find_sized_symbol(memory, load_bias, dynamic_address, name, &size_bytes);
}
