// SPDX-License-Identifier: Apache-2.0
// Finds the heaps of code, the interpreter and the call stub.
#include "libqut/hotspot/machine.h"

#include <stdlib.h>
#include <string.h>

#include "libqut/hotspot/inside.h"

enum {
    SEGMENT_SHIFT_MIN = 4,
    SEGMENT_SHIFT_MAX = 16,
    HEAP_BYTES_MAX = 1 << 30 << 1,                                      // 2 GiB: calls reach no further
    HEAD_FIELD_OFFSET_MAX = HOTSPOT_HEAD_BYTES - (int)sizeof(uint64_t), // from the block on
    INTERPRETER_BYTES_MAX = 16 << 20,
};

const char *hotspot_fault_text(enum hotspot_fault fault)
{
    static const char *const texts[HOTSPOT_FAULT_COUNT] = {
        [HOTSPOT_FINE] = "nothing is wrong",
        [HOTSPOT_STARTING] = "the machine is starting",
        [HOTSPOT_UNREADABLE] = "its tables cannot be read",
        [HOTSPOT_UNKNOWN_LAYOUT] = "its tables say what no known release says",
        [HOTSPOT_OTHER_ARCH] = "its code on this architecture is not known",
        [HOTSPOT_NO_MEMORY] = "out of memory",
    };
    return fault < HOTSPOT_FAULT_COUNT && texts[fault] ? texts[fault] : "?";
}

static bool read_word(const struct elf_art_memory *memory, uint64_t base, const struct hotspot_field *field,
                      uint64_t *word)
{
    return elf_art_read(memory, base + (uint64_t)field->at, word, sizeof *word);
}

static bool read_int(const struct elf_art_memory *memory, uint64_t base, const struct hotspot_field *field,
                     int32_t *value)
{
    return elf_art_read(memory, base + (uint64_t)field->at, value, sizeof *value);
}

static enum hotspot_fault read_space(const struct elf_art_memory *memory, const struct hotspot_layout *layout,
                                     uint64_t at, struct hotspot_space *space)
{
    uint64_t boundary;
    if (!read_word(memory, at, &layout->space_low, &space->start) ||
        !read_word(memory, at, &layout->space_low_boundary, &boundary) ||
        !read_word(memory, at, &layout->space_high_boundary, &space->reserved_end))
        return HOTSPOT_UNREADABLE;
    space->end_at = at + (uint64_t)layout->space_high.at;
    if (space->start == 0)
        return HOTSPOT_STARTING;
    return space->start == boundary && space->reserved_end > space->start &&
                   space->reserved_end - space->start <= (uint64_t)HEAP_BYTES_MAX
               ? HOTSPOT_FINE
               : HOTSPOT_UNKNOWN_LAYOUT;
}

static enum hotspot_fault read_heap(const struct elf_art_memory *memory, const struct hotspot_layout *layout,
                                    uint64_t at, struct hotspot_heap *heap)
{
    int32_t shift;
    if (!read_int(memory, at, &layout->heap_segment_shift, &shift))
        return HOTSPOT_UNREADABLE;
    if (shift < SEGMENT_SHIFT_MIN || shift > SEGMENT_SHIFT_MAX)
        return shift == 0 ? HOTSPOT_STARTING : HOTSPOT_UNKNOWN_LAYOUT;
    heap->segment_shift = (uint8_t)shift;
    enum hotspot_fault fault = read_space(memory, layout, at + (uint64_t)layout->heap_memory.at, &heap->code);
    return fault ? fault : read_space(memory, layout, at + (uint64_t)layout->heap_segment_map.at, &heap->segment_map);
}

static enum hotspot_fault read_heaps(const struct elf_art_memory *memory, const struct hotspot_layout *layout,
                                     struct hotspot_machine *machine)
{
    uint64_t array, data, heaps[HOTSPOT_HEAPS_MAX];
    int32_t count = 1;
    if (layout->heaps.at != HOTSPOT_MISSING) {
        if (!read_word(memory, 0, &layout->heaps, &array))
            return HOTSPOT_UNREADABLE;
        if (array == 0)
            return HOTSPOT_STARTING;
        if (!read_int(memory, array, &layout->array_length, &count) ||
            !read_word(memory, array, &layout->array_data, &data))
            return HOTSPOT_UNREADABLE;
        if (count < 0 || count > HOTSPOT_HEAPS_MAX)
            return HOTSPOT_UNKNOWN_LAYOUT;
        if (!elf_art_read(memory, data, heaps, (size_t)count * sizeof heaps[0]))
            return HOTSPOT_UNREADABLE;
    } else if (!read_word(memory, 0, &layout->heap, &heaps[0])) {
        return HOTSPOT_UNREADABLE;
    }
    enum hotspot_fault fault = count == 0 || heaps[0] == 0 ? HOTSPOT_STARTING : HOTSPOT_FINE;
    for (; fault == HOTSPOT_FINE && machine->heap_count < (unsigned)count; machine->heap_count++)
        fault = read_heap(memory, layout, heaps[machine->heap_count], &machine->heaps[machine->heap_count]);
    return fault;
}

// Whether the interpreter is made. Its queue of codelets then is as long as its buffer, which was cut to that. JDK 8
// does not cut it, and enters its first thread after that.
static bool is_made(const struct elf_art_memory *memory, const struct hotspot_layout *layout, int32_t limit,
                    int32_t end)
{
    uint64_t thread;
    if (layout->heaps.at != HOTSPOT_MISSING || layout->threads.at == HOTSPOT_MISSING)
        return limit == end;
    return end > 0 && end <= limit && read_word(memory, 0, &layout->threads, &thread) && thread != 0;
}

static enum hotspot_fault read_interpreter(const struct elf_art_memory *memory, const struct hotspot_layout *layout,
                                           struct hotspot_machine *machine)
{
    uint64_t queue;
    int32_t limit, end;
    if (!read_word(memory, 0, &layout->call_stub_return, &machine->call_stub_return) ||
        !read_word(memory, 0, &layout->interpreter, &queue))
        return HOTSPOT_UNREADABLE;
    if (machine->call_stub_return == 0 || queue == 0)
        return HOTSPOT_STARTING;
    if (!read_word(memory, queue, &layout->queue_buffer, &machine->interpreter_start) ||
        !read_int(memory, queue, &layout->queue_limit, &limit) || !read_int(memory, queue, &layout->queue_end, &end))
        return HOTSPOT_UNREADABLE;
    if (!is_made(memory, layout, limit, end))
        return HOTSPOT_STARTING;
    if (end <= 0 || end > INTERPRETER_BYTES_MAX || !hotspot_heap_at(machine, machine->interpreter_start) ||
        !hotspot_heap_at(machine, machine->call_stub_return))
        return HOTSPOT_UNKNOWN_LAYOUT;
    machine->interpreter_end = machine->interpreter_start + (uint32_t)end;
    return HOTSPOT_FINE;
}

static bool take_blob_layout(const struct hotspot_layout *layout, struct hotspot_blob_layout *blob)
{
    bool is_pointer = layout->blob_code_begin.at != HOTSPOT_MISSING;
    const struct hotspot_field *code = is_pointer ? &layout->blob_code_begin : &layout->blob_code_offset;
    const struct hotspot_field *fields[] = {code, &layout->blob_frame_size, &layout->blob_frame_complete};
    if (layout->block_used.at < 0 || layout->block_used.at > HEAD_FIELD_OFFSET_MAX || layout->block.at < 0 ||
        layout->block.at > HEAD_FIELD_OFFSET_MAX)
        return false;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i]->at < 0 || fields[i]->at > HEAD_FIELD_OFFSET_MAX - layout->block.at)
            return false;
    unsigned complete_bytes = layout->blob_frame_complete.size_bytes;
    uint16_t begin = (uint16_t)layout->block.at;
    *blob = (struct hotspot_blob_layout){
        .blob = begin,
        .used = (uint16_t)layout->block_used.at,
        .code_begin = (uint16_t)(begin + code->at),
        .code_begin_is_pointer = is_pointer,
        .frame_size = (uint16_t)(begin + layout->blob_frame_size.at),
        .frame_complete = (uint16_t)(begin + layout->blob_frame_complete.at),
        .frame_complete_is_short = complete_bytes == 2,
    };
    return complete_bytes == 2 || complete_bytes == 4;
}

static bool offsets_can_be(const struct hotspot_layout *layout)
{
    const struct hotspot_field *members[] = {
        &layout->array_length,        &layout->array_data,   &layout->heap_memory, &layout->heap_segment_map,
        &layout->heap_segment_shift,  &layout->space_low,    &layout->space_high,  &layout->space_low_boundary,
        &layout->space_high_boundary, &layout->queue_buffer, &layout->queue_limit, &layout->queue_end,
        &layout->codelet_size};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (members[i]->at > HOTSPOT_FIELD_OFFSET_MAX)
            return false;
    return true;
}

enum hotspot_fault hotspot_machine_read(const struct elf_art_memory *memory, uint64_t structs, uint64_t types,
                                        struct hotspot_machine *machine)
{
    struct hotspot_layout layout;
    *machine = (struct hotspot_machine){.arch = hotspot_arch_by_id(memory->arch->id)};
    if (!machine->arch)
        return HOTSPOT_OTHER_ARCH;
    enum hotspot_fault fault = hotspot_layout_read(memory, structs, types, &layout);
    if (fault == HOTSPOT_FINE && (!offsets_can_be(&layout) || !take_blob_layout(&layout, &machine->blob)))
        fault = HOTSPOT_UNKNOWN_LAYOUT;
    hotspot_method_layouts(memory, &layout, machine);
    if (fault == HOTSPOT_FINE)
        fault = read_heaps(memory, &layout, machine);
    if (fault == HOTSPOT_FINE)
        fault = read_interpreter(memory, &layout, machine);
    return fault == HOTSPOT_FINE ? hotspot_find_places(memory, (unsigned)layout.codelet_size.at, machine) : fault;
}

void hotspot_machine_free(struct hotspot_machine *machine)
{
    free(machine->places);
    machine->places = NULL;
    machine->place_count = 0;
}
