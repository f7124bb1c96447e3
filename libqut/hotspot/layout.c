// SPDX-License-Identifier: Apache-2.0
#include "libqut/hotspot/layout.h"

#include <string.h>

enum {
    ENTRIES_MAX = 1 << 14, // JDK 17 has 788 fields
    ENTRIES_AT_ONCE = 32,
    NAME_BYTES_MAX = 48,
};

// VMStructEntry, VMTypeEntry: the same since JDK 6, and stated by gHotSpotVM...EntryArrayStride.
struct struct_entry {
    uint64_t type_name, field_name, type_string;
    int32_t is_static, zero;
    uint64_t offset, address;
};
static_assert(sizeof(struct struct_entry) == 48, "as the machine has it");

struct type_entry {
    uint64_t type_name, superclass_name;
    int32_t is_oop, is_integer, is_unsigned, zero;
    uint64_t size;
};
static_assert(sizeof(struct type_entry) == 40, "as the machine has it");

#define INTO(field) offsetof(struct hotspot_layout, field)

static const struct wanted {
    const char *type, *field; // no field: the type's size
    size_t into;
} wanted[] = {
    {"CodeCache", "_heaps", INTO(heaps)},
    {"CodeCache", "_heap", INTO(heap)},
    {"AbstractInterpreter", "_code", INTO(interpreter)},
    {"StubRoutines", "_call_stub_return_address", INTO(call_stub_return)},
    {"GrowableArrayBase", "_len", INTO(array_length)},
    {"GenericGrowableArray", "_len", INTO(array_length)}, // to 15
    {"GrowableArray<int>", "_data", INTO(array_data)},
    {"CodeHeap", "_memory", INTO(heap_memory)},
    {"CodeHeap", "_segmap", INTO(heap_segment_map)},
    {"CodeHeap", "_log2_segment_size", INTO(heap_segment_shift)},
    {"VirtualSpace", "_low", INTO(space_low)},
    {"VirtualSpace", "_high", INTO(space_high)},
    {"VirtualSpace", "_low_boundary", INTO(space_low_boundary)},
    {"VirtualSpace", "_high_boundary", INTO(space_high_boundary)},
    {"HeapBlock::Header", "_used", INTO(block_used)},
    {"CodeBlob", "_code_begin", INTO(blob_code_begin)}, // 9 to 22
    {"CodeBlob", "_code_offset", INTO(blob_code_offset)},
    {"CodeBlob", "_frame_size", INTO(blob_frame_size)},
    {"CodeBlob", "_frame_complete_offset", INTO(blob_frame_complete)},
    {"StubQueue", "_stub_buffer", INTO(queue_buffer)},
    {"StubQueue", "_buffer_limit", INTO(queue_limit)},
    {"StubQueue", "_queue_end", INTO(queue_end)},
    {"InterpreterCodelet", "_size", INTO(codelet_size)},
    {"HeapBlock", NULL, INTO(block)},
    {"CodeBlob", "_name", INTO(blob_name)},
    {"CodeBlob", "_size", INTO(blob_size)},
    {"CompiledMethod", "_method", INTO(method)}, // 9 to 22
    {"nmethod", "_method", INTO(method)},
    {"Method", "_constMethod", INTO(method_const)},
    {"ConstMethod", "_constants", INTO(const_pool)},
    {"ConstMethod", "_name_index", INTO(const_name_index)},
    {"ConstantPool", NULL, INTO(pool)},
    {"ConstantPool", "_pool_holder", INTO(pool_holder)},
    {"Klass", "_name", INTO(klass_name)},
    {"InstanceKlass", "_constants", INTO(klass_constants)},
    {"Method", NULL, INTO(method_bytes)},
    {"Symbol", "_length", INTO(symbol_length)},
    {"Symbol", "_body", INTO(symbol_body)},
    {"ConstMethod", NULL, INTO(const_bytes)},
    {"ConstMethod", "_constMethod_size", INTO(const_words)},
    {"ConstMethod", "_flags", INTO(const_flags)},
    {"ConstMethod", "_flags._flags", INTO(const_flags)}, // from 21
    {"ConstMethod", "_code_size", INTO(code_size)},
    {"ConstantPool", "_source_file_name_index", INTO(pool_source)},
    {"InstanceKlass", "_source_file_name_index", INTO(klass_source)}, // earlier
    {"Method", "_access_flags", INTO(access_flags)},
    {"Abstract_VM_Version", "_vm_major_version", INTO(vm_major)},
    {"nmethod", "_compile_id", INTO(compile_id)},
    {"nmethod", "_scopes_pcs_offset", INTO(places_offset)},
    {"CompiledMethod", "_scopes_data_begin", INTO(scopes_begin)}, // to 22
    {"nmethod", "_scopes_data_offset", INTO(scopes_offset)},      // from 23
    {"nmethod", "_dependencies_offset", INTO(dependencies_offset)},
    {"nmethod", "_metadata_offset", INTO(metadata_offset)},
    {"nmethod", "_immutable_data", INTO(immutable)}, // from 23
    {"nmethod", "_immutable_data_size", INTO(immutable_size)},
    {"CodeBlob", "_mutable_data", INTO(mutable)}, // from 25
    {"CodeBlob", "_mutable_data_size", INTO(mutable_size)},
    {"CodeBlob", "_relocation_size", INTO(relocation_size)},
    {"Threads", "_thread_list", INTO(threads)}, // to 8: later there are lists
};
enum { NEEDED_COUNT = 24 }; // the rest is for names

enum { WANTED_COUNT = sizeof wanted / sizeof wanted[0] };

static struct hotspot_field *field_of(struct hotspot_layout *layout, const struct wanted *one)
{
    return (struct hotspot_field *)((char *)layout + one->into);
}

// A longer one is cut, and like none of those that are looked for.
static bool read_name(const struct elf_art_memory *memory, uint64_t address, char name[NAME_BYTES_MAX])
{
    size_t count = address ? memory->read(memory->context, address, name, NAME_BYTES_MAX - 1) : 0;
    name[count] = 0;
    return count != 0;
}

// Names stand in the library once, and those of one type's fields follow each other: most need not be read.
struct type_seen {
    uint64_t address;
    uint64_t wanted; // bit i: of the type of wanted[i]
};
static_assert(WANTED_COUNT <= 64, "a bit each");

static uint64_t wanted_of_type(const struct elf_art_memory *memory, uint64_t type_name, struct type_seen *seen)
{
    if (type_name != seen->address) {
        char name[NAME_BYTES_MAX];
        *seen = (struct type_seen){.address = type_name};
        bool has_name = read_name(memory, type_name, name);
        for (unsigned i = 0; i < WANTED_COUNT && has_name; i++)
            seen->wanted |= (uint64_t)(strcmp(name, wanted[i].type) == 0) << i;
    }
    return seen->wanted;
}

static uint8_t number_bytes(const struct elf_art_memory *memory, uint64_t type_string)
{
    char name[NAME_BYTES_MAX];
    if (!read_name(memory, type_string, name))
        return 0;
    static const char *const shorts[] = {"int16_t", "u2", "short", "unsigned short"}; // the last: to 11
    for (size_t i = 0; i < sizeof shorts / sizeof shorts[0]; i++)
        if (strcmp(name, shorts[i]) == 0)
            return 2;
    return strcmp(name, "int") == 0 ? 4 : 0;
}

static void take_field(const struct elf_art_memory *memory, const struct struct_entry *entry, uint64_t of_type,
                       struct hotspot_layout *layout)
{
    char name[NAME_BYTES_MAX];
    if (of_type == 0 || !read_name(memory, entry->field_name, name))
        return;
    for (unsigned i = 0; i < WANTED_COUNT; i++)
        if (of_type >> i & 1 && wanted[i].field && strcmp(name, wanted[i].field) == 0)
            *field_of(layout, &wanted[i]) =
                (struct hotspot_field){.at = (int64_t)(entry->is_static ? entry->address : entry->offset),
                                       .size_bytes = number_bytes(memory, entry->type_string)};
}

static bool read_word(const struct elf_art_memory *memory, uint64_t address, uint64_t *word)
{
    return elf_art_read(memory, address, word, sizeof *word);
}

static enum hotspot_fault read_fields(const struct elf_art_memory *memory, uint64_t at, struct hotspot_layout *layout)
{
    struct struct_entry entries[ENTRIES_AT_ONCE];
    struct type_seen seen = {0};
    for (unsigned first = 0; first < ENTRIES_MAX; first += ENTRIES_AT_ONCE) {
        size_t got = memory->read(memory->context, at + first * sizeof entries[0], entries, sizeof entries);
        for (unsigned i = 0; i < ENTRIES_AT_ONCE; i++) {
            if ((i + 1) * sizeof entries[0] > got)
                return HOTSPOT_UNREADABLE;
            if (entries[i].type_name == 0)
                return HOTSPOT_FINE;
            take_field(memory, &entries[i], wanted_of_type(memory, entries[i].type_name, &seen), layout);
        }
    }
    return HOTSPOT_UNKNOWN_LAYOUT;
}

static enum hotspot_fault read_sizes(const struct elf_art_memory *memory, uint64_t at, struct hotspot_layout *layout)
{
    struct type_entry entries[ENTRIES_AT_ONCE];
    struct type_seen seen = {0};
    for (unsigned first = 0; first < ENTRIES_MAX; first += ENTRIES_AT_ONCE) {
        size_t got = memory->read(memory->context, at + first * sizeof entries[0], entries, sizeof entries);
        for (unsigned i = 0; i < ENTRIES_AT_ONCE; i++) {
            if ((i + 1) * sizeof entries[0] > got)
                return HOTSPOT_UNREADABLE;
            if (entries[i].type_name == 0)
                return HOTSPOT_FINE;
            uint64_t of_type = wanted_of_type(memory, entries[i].type_name, &seen);
            for (unsigned w = 0; w < WANTED_COUNT; w++)
                if (of_type >> w & 1 && !wanted[w].field)
                    *field_of(layout, &wanted[w]) = (struct hotspot_field){.at = (int64_t)entries[i].size};
        }
    }
    return HOTSPOT_UNKNOWN_LAYOUT;
}

static bool has(const struct hotspot_field *field)
{
    return field->at != HOTSPOT_MISSING;
}

enum hotspot_fault hotspot_layout_read(const struct elf_art_memory *memory, uint64_t structs, uint64_t types,
                                       struct hotspot_layout *layout)
{
    for (unsigned i = 0; i < WANTED_COUNT; i++)
        *field_of(layout, &wanted[i]) = (struct hotspot_field){.at = HOTSPOT_MISSING};
    uint64_t structs_at, types_at;
    if (!read_word(memory, structs, &structs_at) || !read_word(memory, types, &types_at))
        return HOTSPOT_UNREADABLE;
    if (structs_at == 0 || types_at == 0)
        return HOTSPOT_STARTING;
    enum hotspot_fault fault = read_fields(memory, structs_at, layout);
    if (fault == HOTSPOT_FINE)
        fault = read_sizes(memory, types_at, layout);
    if (fault != HOTSPOT_FINE)
        return fault;
    for (unsigned i = 0; i < NEEDED_COUNT; i++) {
        const struct hotspot_field *field = field_of(layout, &wanted[i]);
        bool is_one_of_two = field == &layout->heaps || field == &layout->heap || field == &layout->blob_code_begin ||
                             field == &layout->blob_code_offset || field == &layout->array_length ||
                             field == &layout->array_data;
        if (!has(field) && !is_one_of_two)
            return HOTSPOT_UNKNOWN_LAYOUT;
    }
    bool has_array = has(&layout->heaps) && has(&layout->array_length) && has(&layout->array_data);
    bool has_code_begin = has(&layout->blob_code_begin) || has(&layout->blob_code_offset);
    return (has_array || has(&layout->heap)) && has_code_begin ? HOTSPOT_FINE : HOTSPOT_UNKNOWN_LAYOUT;
}
