// SPDX-License-Identifier: Apache-2.0
// An address -> the blob whose code lies there, by the segment map. Little endian, as all machines are that are known.
#include <string.h>

#include "libqut/hotspot/machine.h"

enum {
    HOPS_MAX = 256, // each leads up to 254 segments back: blobs of several MiB
    MAP_BYTES = 32, // read at once: most blobs begin within them
    FRAME_WORDS_MAX = 1 << 17,
    CODE_OFFSET_MAX = 1 << 16,
};

// The segment that the block of `segment` begins in.
static bool find_block(const struct hotspot_heap *heap, const struct elf_art_memory *memory, uint64_t *segment)
{
    uint8_t map[MAP_BYTES];
    uint64_t first = UINT64_MAX, at = *segment; // the segments of map[]: from `first` on
    for (unsigned hop = 0; hop < HOPS_MAX; hop++) {
        if (at < first || first == UINT64_MAX) {
            first = at + 1 > MAP_BYTES ? at + 1 - MAP_BYTES : 0;
            if (!elf_art_read(memory, heap->segment_map.start + first, map, (size_t)(at + 1 - first)))
                return false;
        }
        uint8_t back = map[at - first];
        if (back == 0) {
            *segment = at;
            return true;
        }
        if (back == HOTSPOT_SEGMENT_FREE || back > at)
            return false;
        at -= back;
    }
    return false;
}

bool hotspot_blob_at(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t address,
                     struct hotspot_blob *blob)
{
    const struct hotspot_heap *heap = hotspot_heap_at(machine, address);
    const struct hotspot_blob_layout *layout = &machine->blob;
    uint64_t end;
    if (!heap || !elf_art_read(memory, heap->code.end_at, &end, sizeof end) || address >= end)
        return false;
    uint64_t segment = (address - heap->code.start) >> heap->segment_shift;
    if (!find_block(heap, memory, &segment))
        return false;
    uint64_t block = heap->code.start + (segment << heap->segment_shift);
    uint8_t head[HOTSPOT_HEAD_BYTES];
    unsigned last = layout->used;
    last = layout->code_begin > last ? layout->code_begin : last;
    last = layout->frame_complete > last ? layout->frame_complete : last;
    last = (layout->frame_size > last ? layout->frame_size : last) + (unsigned)sizeof(uint64_t);
    if (!elf_art_read(memory, block, head, last) || !head[layout->used])
        return false;
    int32_t frame_words, frame_complete, code_offset;
    int16_t short_complete;
    memcpy(&frame_words, head + layout->frame_size, sizeof frame_words);
    memcpy(&frame_complete, head + layout->frame_complete, sizeof frame_complete);
    memcpy(&short_complete, head + layout->frame_complete, sizeof short_complete);
    if (layout->code_begin_is_pointer) {
        memcpy(&blob->code_begin, head + layout->code_begin, sizeof blob->code_begin);
    } else {
        memcpy(&code_offset, head + layout->code_begin, sizeof code_offset);
        blob->code_begin = block + layout->blob + (uint64_t)(int64_t)code_offset;
    }
    if (blob->code_begin <= block || blob->code_begin - block > CODE_OFFSET_MAX || address < blob->code_begin ||
        frame_words > FRAME_WORDS_MAX)
        return false;
    blob->address = block + layout->blob;
    blob->frame_bytes = frame_words > 0 ? frame_words * memory->arch->word_bytes : 0;
    blob->frame_complete_bytes = layout->frame_complete_is_short ? short_complete : frame_complete;
    return true;
}
