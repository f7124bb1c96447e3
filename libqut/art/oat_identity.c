// SPDX-License-Identifier: Apache-2.0
#include "libqut/art/oat_identity.h"

#include <string.h>

#include "libqut/elf/dynamic_symbol.h"

enum {
    DATA_BYTES_MAX = 64 << 10,
    CODE_PIECES = 16,
    PIECE_BYTES = 1024, // none of them lies in two pages, since the code begins with one
    LAST_WORD_BYTES = 4,
};

// The bytes that the file has from an address on, in memory that is never written.
static uint64_t bytes_from(const struct art_oat_image *image, uint64_t address)
{
    uint64_t mask = image->memory->arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX;
    for (unsigned i = 0; i < image->segment_count; i++) {
        const struct art_oat_segment *segment = &image->segments[i];
        uint64_t into = (address - image->load_bias - segment->vaddr) & mask;
        if (into < segment->file_bytes)
            return segment->is_written ? 0 : segment->file_bytes - into;
    }
    return 0;
}

static bool add(struct qut_content_hash *hash, const struct elf_art_memory *memory, uint64_t address, uint64_t size)
{
    uint8_t bytes[PIECE_BYTES];
    for (uint64_t done = 0; done < size;) {
        size_t part = size - done < sizeof bytes ? (size_t)(size - done) : sizeof bytes;
        if (!elf_art_read(memory, address + done, bytes, part))
            return false;
        qut_content_hash_add(hash, bytes, part);
        done += part;
    }
    return true;
}

static bool add_code(struct qut_content_hash *hash, const struct elf_art_memory *memory, uint64_t start, uint64_t size)
{
    if (size <= CODE_PIECES * PIECE_BYTES)
        return add(hash, memory, start, size);
    uint64_t step = (size - PIECE_BYTES) / (CODE_PIECES - 1) / PIECE_BYTES * PIECE_BYTES;
    for (unsigned i = 0; i < CODE_PIECES; i++)
        if (!add(hash, memory, start + i * step, PIECE_BYTES))
            return false;
    return true;
}

bool art_oat_identity(const struct art_oat_image *image, uint8_t identity[ART_OAT_IDENTITY_BYTES],
                      uint64_t *header_address)
{
    const struct elf_art_memory *memory = image->memory;
    uint64_t data = elf_art_find_symbol(memory, image->load_bias, image->dynamic_address, "oatdata");
    if (data == 0)
        return false;
    uint64_t code = elf_art_find_symbol(memory, image->load_bias, image->dynamic_address, "oatexec");
    uint64_t last = elf_art_find_symbol(memory, image->load_bias, image->dynamic_address, "oatlastword");
    uint64_t data_bytes = bytes_from(image, data), code_bytes = last - code + LAST_WORD_BYTES;
    if (code == 0 || last < code || code_bytes > bytes_from(image, code))
        return false;
    data_bytes = code > data && code - data < data_bytes ? code - data : data_bytes;
    data_bytes = data_bytes < DATA_BYTES_MAX ? data_bytes : DATA_BYTES_MAX;
    char magic[4];
    if (data_bytes < sizeof magic || !elf_art_read(memory, data, magic, sizeof magic) ||
        memcmp(magic, "oat\n", sizeof magic) != 0)
        return false;
    struct qut_content_hash hash;
    qut_content_hash_begin(&hash);
    const uint64_t places[4] = {code - data, last - data, data_bytes, 0};
    qut_content_hash_add(&hash, places, sizeof places);
    if (!add(&hash, memory, data, data_bytes) || !add_code(&hash, memory, code, code_bytes))
        return false;
    qut_content_hash_end(&hash, identity);
    *header_address = data;
    return true;
}
