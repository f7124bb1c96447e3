// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/libqut/hotspot/fake_hotspot.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIELD_BYTES = 48,
    TYPE_BYTES = 40,
    ENTRIES_BYTES = 4096, // of each table
    HEAP_MEMORY = 8,      // offsets of a heap's parts
    HEAP_SEGMENT_MAP = 120,
    HEAP_SHIFT = 256,
    SPACE_LOW_BOUNDARY = 0,
    SPACE_HIGH_BOUNDARY = 8,
    SPACE_LOW = 16,
    SPACE_HIGH = 24,
    QUEUE_BUFFER = 8,
    QUEUE_LIMIT = 20,
    QUEUE_END = 28,
    CODELET_SIZE = 8,
    CODELET_HEADER_BYTES = 32,
    BLOB_NAME = 96, // offsets of what names are made from
    BLOB_SIZE = 12,
    BLOB_METHOD = 112,
    METHOD_CONST = 8,
    METHOD_BYTES = 88,
    CONST_POOL = 8,
    CONST_NAME_INDEX = 34,
    CONST_BYTES = 48,
    POOL_HOLDER = 24,
    POOL_BYTES = 72,
    KLASS_NAME = 24,
    KLASS_CONSTANTS = 224,
    KLASS_BYTES = 240,
    SYMBOL_LENGTH = 4,
    SYMBOL_BODY = 6,
    NAME_INDEX = 3,
    FILE_INDEX = 4,
    METHOD_ACCESS = 40, // ... and lines
    CONST_WORDS = 24,
    CONST_FLAGS = 28,
    CONST_CODE_SIZE = 32,
    POOL_SOURCE = 54,
    BLOB_COMPILE_ID = 120, // ... and what is inlined
    BLOB_PLACES = 124,
    BLOB_DEPENDENCIES = 128,
    BLOB_METADATA = 132,
    BLOB_SCOPES_BEGIN = 136,
    BLOB_IMMUTABLE = 144,
    BLOB_IMMUTABLE_SIZE = 152,
    BLOB_MUTABLE = 160,
    BLOB_MUTABLE_SIZE = 168,
    BLOB_RELOCATION_SIZE = 172,
    BLOB_SCOPES = 176,
    BLOB_TABLES = 0x400,
    RELOCATION_BYTES = 24, // before methods
};

static size_t read_fake(void *context, uint64_t address, void *bytes, size_t size)
{
    const struct fake_hotspot *fake = context;
    if (address < FAKE_BASE || address >= FAKE_BASE + FAKE_BYTES)
        return 0;
    uint64_t left = FAKE_BASE + FAKE_BYTES - address;
    size = size < left ? size : (size_t)left;
    memcpy(bytes, fake->bytes + (address - FAKE_BASE), size);
    return size;
}

void fake_put(struct fake_hotspot *fake, uint64_t address, const void *bytes, size_t size)
{
    if (address < FAKE_BASE || address - FAKE_BASE + size > FAKE_BYTES)
        abort();
    memcpy(fake->bytes + (address - FAKE_BASE), bytes, size);
}

void fake_put_word(struct fake_hotspot *fake, uint64_t address, uint64_t value)
{
    fake_put(fake, address, &value, sizeof value);
}

void fake_put_int(struct fake_hotspot *fake, uint64_t address, int32_t value)
{
    fake_put(fake, address, &value, sizeof value);
}

static uint64_t take(struct fake_hotspot *fake, size_t size)
{
    uint64_t at = fake->next;
    fake->next += (size + 15) / 16 * 16;
    return at;
}

static uint64_t text(struct fake_hotspot *fake, const char *string)
{
    uint64_t at = take(fake, strlen(string) + 1);
    fake_put(fake, at, string, strlen(string) + 1);
    return at;
}

// A static one's address, or a member's offset.
static void field(struct fake_hotspot *fake, const char *without, const char *type, const char *name,
                  const char *type_string, uint64_t offset, uint64_t address)
{
    uint64_t table, at;
    if (without && strcmp(name, without) == 0)
        return;
    memcpy(&table, fake->bytes + (fake->structs - FAKE_BASE), sizeof table);
    at = table + (uint64_t)fake->field_count++ * FIELD_BYTES;
    fake_put_word(fake, at, text(fake, type));
    fake_put_word(fake, at + 8, text(fake, name));
    fake_put_word(fake, at + 16, text(fake, type_string));
    fake_put_int(fake, at + 24, address != 0);
    fake_put_word(fake, at + 32, offset);
    fake_put_word(fake, at + 40, address);
}

static void type(struct fake_hotspot *fake, const char *name, uint64_t size)
{
    uint64_t table, at;
    memcpy(&table, fake->bytes + (fake->types - FAKE_BASE), sizeof table);
    at = table + (uint64_t)fake->type_count++ * TYPE_BYTES;
    fake_put_word(fake, at, text(fake, name));
    fake_put_word(fake, at + 32, size);
}

static void put_space(struct fake_hotspot *fake, uint64_t at, uint64_t start, uint64_t used, uint64_t reserved)
{
    fake_put_word(fake, at + SPACE_LOW_BOUNDARY, start);
    fake_put_word(fake, at + SPACE_LOW, start);
    fake_put_word(fake, at + SPACE_HIGH, start + used);
    fake_put_word(fake, at + SPACE_HIGH_BOUNDARY, start + reserved);
}

static unsigned block_header_bytes(const struct fake_hotspot *fake)
{
    return fake->release == FAKE_17 ? 16 : 8;
}

void fake_begin(struct fake_hotspot *fake, enum fake_release release, const char *without)
{
    memset(fake, 0, sizeof *fake);
    fake->release = release;
    fake->next = FAKE_BASE + 0x100;
    fake->memory = (struct elf_art_memory){.read = read_fake, .context = fake, .arch = &arch_x86_64};
    fake->structs = take(fake, 8);
    fake->types = take(fake, 8);
    fake_put_word(fake, fake->structs, take(fake, ENTRIES_BYTES));
    fake_put_word(fake, fake->types, take(fake, ENTRIES_BYTES));
    uint64_t heaps_at = take(fake, 8), array = take(fake, 24), data = take(fake, 8), heap = take(fake, 512),
             code_at = take(fake, 8), map = take(fake, FAKE_CODE_BYTES / FAKE_SEGMENT_BYTES);
    fake->heap_object = heap;
    fake->queue = take(fake, 64);
    fake->call_stub_at = take(fake, 8);
    field(fake, without, "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", 0, heaps_at);
    field(fake, without, "Other", "_heaps", "int", 12, 0);
    field(fake, without, "AbstractInterpreter", "_code", "StubQueue*", 0, code_at);
    field(fake, without, "StubRoutines", "_call_stub_return_address", "address", 0, fake->call_stub_at);
    field(fake, without, "GrowableArrayBase", "_len", "int", 0, 0);
    field(fake, without, "GrowableArray<int>", "_data", "int*", 8, 0);
    field(fake, without, "CodeHeap", "_memory", "VirtualSpace", HEAP_MEMORY, 0);
    field(fake, without, "CodeHeap", "_segmap", "VirtualSpace", HEAP_SEGMENT_MAP, 0);
    field(fake, without, "CodeHeap", "_log2_segment_size", "int", HEAP_SHIFT, 0);
    field(fake, without, "VirtualSpace", "_low_boundary", "char*", SPACE_LOW_BOUNDARY, 0);
    field(fake, without, "VirtualSpace", "_high_boundary", "char*", SPACE_HIGH_BOUNDARY, 0);
    field(fake, without, "VirtualSpace", "_low", "char*", SPACE_LOW, 0);
    field(fake, without, "VirtualSpace", "_high", "char*", SPACE_HIGH, 0);
    field(fake, without, "HeapBlock::Header", "_used", "bool", release == FAKE_17 ? 8 : 4, 0);
    if (release == FAKE_17)
        field(fake, without, "CodeBlob", "_code_begin", "address", 32, 0);
    else
        field(fake, without, "CodeBlob", "_code_offset", "int", 36, 0);
    field(fake, without, "CodeBlob", "_frame_size", "int", release == FAKE_17 ? 28 : 44, 0);
    field(fake, without, "CodeBlob", "_frame_complete_offset", release == FAKE_17 ? "int" : "int16_t",
          release == FAKE_17 ? 20 : 54, 0);
    field(fake, without, "StubQueue", "_stub_buffer", "address", QUEUE_BUFFER, 0);
    field(fake, without, "StubQueue", "_buffer_limit", "int", QUEUE_LIMIT, 0);
    field(fake, without, "StubQueue", "_queue_end", "int", QUEUE_END, 0);
    field(fake, without, "InterpreterCodelet", "_size", "int", CODELET_SIZE, 0);
    field(fake, without, "CodeBlob", "_name", "const char*", BLOB_NAME, 0);
    field(fake, without, "CodeBlob", "_size", "int", BLOB_SIZE, 0);
    field(fake, without, release == FAKE_17 ? "CompiledMethod" : "nmethod", "_method", "Method*", BLOB_METHOD, 0);
    field(fake, without, "Method", "_constMethod", "ConstMethod*", METHOD_CONST, 0);
    field(fake, without, "ConstMethod", "_constants", "ConstantPool*", CONST_POOL, 0);
    field(fake, without, "ConstMethod", "_name_index", "u2", CONST_NAME_INDEX, 0);
    field(fake, without, "ConstantPool", "_pool_holder", "InstanceKlass*", POOL_HOLDER, 0);
    field(fake, without, "Klass", "_name", "Symbol*", KLASS_NAME, 0);
    field(fake, without, "InstanceKlass", "_constants", "ConstantPool*", KLASS_CONSTANTS, 0);
    field(fake, without, "Symbol", "_length", "u2", SYMBOL_LENGTH, 0);
    field(fake, without, "Symbol", "_body", "u1", SYMBOL_BODY, 0);
    field(fake, without, "ConstMethod", "_constMethod_size", "int", CONST_WORDS, 0);
    field(fake, without, "ConstMethod", release == FAKE_17 ? "_flags" : "_flags._flags", "u2", CONST_FLAGS, 0);
    field(fake, without, "ConstMethod", "_code_size", "u2", CONST_CODE_SIZE, 0);
    field(fake, without, "ConstantPool", "_source_file_name_index", "u2", POOL_SOURCE, 0);
    field(fake, without, "Method", "_access_flags", "AccessFlags", METHOD_ACCESS, 0);
    field(fake, without, "nmethod", "_compile_id", "int", BLOB_COMPILE_ID, 0);
    field(fake, without, "nmethod", "_scopes_pcs_offset", "int", BLOB_PLACES, 0);
    if (release == FAKE_17) {
        uint64_t major = take(fake, 4);
        fake_put_int(fake, major, 17);
        field(fake, without, "Abstract_VM_Version", "_vm_major_version", "int", 0, major);
        field(fake, without, "CompiledMethod", "_scopes_data_begin", "address", BLOB_SCOPES_BEGIN, 0);
        field(fake, without, "nmethod", "_dependencies_offset", "int", BLOB_DEPENDENCIES, 0);
        field(fake, without, "nmethod", "_metadata_offset", "int", BLOB_METADATA, 0);
    } else {
        field(fake, without, "nmethod", "_scopes_data_offset", "int", BLOB_SCOPES, 0);
        field(fake, without, "nmethod", "_immutable_data", "address", BLOB_IMMUTABLE, 0);
        field(fake, without, "nmethod", "_immutable_data_size", "int", BLOB_IMMUTABLE_SIZE, 0);
        field(fake, without, "CodeBlob", "_mutable_data", "address", BLOB_MUTABLE, 0);
        field(fake, without, "CodeBlob", "_mutable_data_size", "int", BLOB_MUTABLE_SIZE, 0);
        field(fake, without, "CodeBlob", "_relocation_size", "int", BLOB_RELOCATION_SIZE, 0);
    }
    type(fake, "ConstMethod", CONST_BYTES);
    type(fake, "CodeBlob", 104);
    type(fake, "ConstantPool", POOL_BYTES);
    type(fake, "Method", METHOD_BYTES);
    type(fake, "HeapBlock", block_header_bytes(fake));

    fake_put_word(fake, heaps_at, array);
    fake_put_int(fake, array, 1);
    fake_put_word(fake, array + 8, data);
    fake_put_word(fake, data, heap);
    put_space(fake, heap + HEAP_MEMORY, FAKE_CODE, FAKE_CODE_BYTES / 2, FAKE_CODE_BYTES);
    put_space(fake, heap + HEAP_SEGMENT_MAP, map, FAKE_CODE_BYTES / FAKE_SEGMENT_BYTES / 2,
              FAKE_CODE_BYTES / FAKE_SEGMENT_BYTES);
    fake_put_int(fake, heap + HEAP_SHIFT, 7);
    fake_put_word(fake, code_at, fake->queue);
    memset(fake->bytes + (map - FAKE_BASE), 0xff, FAKE_CODE_BYTES / FAKE_SEGMENT_BYTES);
}

uint64_t fake_blob(struct fake_hotspot *fake, uint64_t block, uint64_t block_bytes, int frame_words, int frame_complete,
                   const void *code, size_t code_bytes)
{
    uint64_t map, header = block_header_bytes(fake), blob = block + header, begin = block + FAKE_BLOB_HEAD_BYTES;
    memcpy(&map, fake->bytes + (fake->heap_object + HEAP_SEGMENT_MAP + SPACE_LOW - FAKE_BASE), sizeof map);
    uint64_t first = (block - FAKE_CODE) / FAKE_SEGMENT_BYTES, count = block_bytes / FAKE_SEGMENT_BYTES;
    for (uint64_t i = 0; i < count; i++) { // long blobs are told in hops, as the machine does it
        uint8_t back = (uint8_t)(i == 0 ? 0 : (i - 1) % 0xfe + 1);
        fake_put(fake, map + first + i, &back, 1);
    }
    uint8_t used = 1;
    fake_put(fake, block + (fake->release == FAKE_17 ? 8 : 4), &used, 1);
    if (fake->release == FAKE_17) {
        fake_put_word(fake, blob + 32, begin);
        fake_put_int(fake, blob + 28, frame_words);
        fake_put_int(fake, blob + 20, frame_complete);
    } else {
        int16_t complete = (int16_t)frame_complete;
        fake_put_int(fake, blob + 36, (int32_t)(begin - blob));
        fake_put_int(fake, blob + 44, frame_words);
        fake_put(fake, blob + 54, &complete, sizeof complete);
    }
    fake_put_int(fake, blob + BLOB_SIZE, (int32_t)(block_bytes - header));
    fake_put(fake, begin, code, code_bytes);
    return begin;
}

static uint64_t symbol(struct fake_hotspot *fake, const char *string)
{
    uint16_t length = (uint16_t)strlen(string);
    uint64_t at = take(fake, SYMBOL_BODY + length);
    fake_put(fake, at + SYMBOL_LENGTH, &length, sizeof length);
    fake_put(fake, at + SYMBOL_BODY, string, length);
    return at;
}

uint64_t fake_method(struct fake_hotspot *fake, const char *class_name, const char *name)
{
    return fake_method_of(fake, class_name, name, NULL, 0, NULL, 0);
}

uint64_t fake_method_of(struct fake_hotspot *fake, const char *class_name, const char *name, const char *file,
                        uint16_t code_bytes, const uint8_t *lines, size_t lines_bytes)
{
    size_t const_bytes = (CONST_BYTES + code_bytes + lines_bytes + 7) / 8 * 8;
    uint64_t method = take(fake, METHOD_BYTES), constant = take(fake, const_bytes),
             pool = take(fake, POOL_BYTES + 8 * (FILE_INDEX + 1)), klass = take(fake, KLASS_BYTES);
    uint16_t index = NAME_INDEX, file_index = file ? FILE_INDEX : 0, has_lines = lines_bytes != 0;
    fake_put_int(fake, constant + CONST_WORDS, (int32_t)(const_bytes / 8));
    fake_put(fake, constant + CONST_CODE_SIZE, &code_bytes, sizeof code_bytes);
    fake_put(fake, constant + CONST_FLAGS, &has_lines, sizeof has_lines);
    if (lines_bytes)
        fake_put(fake, constant + CONST_BYTES + code_bytes, lines, lines_bytes);
    fake_put(fake, pool + POOL_SOURCE, &file_index, sizeof file_index);
    if (file)
        fake_put_word(fake, pool + POOL_BYTES + 8 * FILE_INDEX, symbol(fake, file));
    fake->constant = constant;
    fake_put_word(fake, method + METHOD_CONST, constant);
    fake_put_word(fake, constant + CONST_POOL, pool);
    fake_put(fake, constant + CONST_NAME_INDEX, &index, sizeof index);
    fake_put_word(fake, pool + POOL_HOLDER, klass);
    fake_put_word(fake, pool + POOL_BYTES + 8 * NAME_INDEX, symbol(fake, name));
    fake_put_word(fake, klass + KLASS_NAME, symbol(fake, class_name));
    fake_put_word(fake, klass + KLASS_CONSTANTS, pool);
    fake->pool = pool;
    return method;
}

void fake_name_blob(struct fake_hotspot *fake, uint64_t block, const char *name, uint64_t method)
{
    uint64_t blob = block + block_header_bytes(fake);
    fake_put_word(fake, blob + BLOB_NAME, text(fake, name));
    fake_put_word(fake, blob + BLOB_METHOD, method);
}

void fake_scopes(struct fake_hotspot *fake, uint64_t block, int32_t compile_id, const struct fake_scopes *scopes)
{
    enum { PLACE_BYTES = 16 };
    uint64_t blob = block + block_header_bytes(fake), methods_bytes = 8 * scopes->method_count,
             places_bytes = PLACE_BYTES * scopes->place_count, scopes_bytes = (scopes->bytes_count + 7) / 8 * 8;
    bool is_apart = fake->release != FAKE_17;
    uint64_t immutable = is_apart ? take(fake, (size_t)(places_bytes + scopes_bytes)) : 0;
    uint64_t mutable = is_apart ? take(fake, (size_t)(RELOCATION_BYTES + methods_bytes)) : 0;
    uint64_t methods = is_apart ? mutable + RELOCATION_BYTES : blob + BLOB_TABLES;
    uint64_t bytes = is_apart ? immutable + places_bytes : methods + methods_bytes;
    uint64_t places = is_apart ? immutable : bytes + scopes_bytes;
    for (size_t i = 0; i < scopes->method_count; i++)
        fake_put_word(fake, methods + 8 * i, scopes->methods[i]);
    fake_put(fake, bytes, scopes->bytes, scopes->bytes_count);
    for (size_t i = 0; i < scopes->place_count; i++)
        fake_put(fake, places + PLACE_BYTES * i, scopes->places[i], sizeof scopes->places[i]);
    fake_put_int(fake, blob + BLOB_COMPILE_ID, compile_id);
    fake_put_int(fake, blob + BLOB_PLACES, is_apart ? 0 : (int32_t)(places - blob));
    fake_put_int(fake, blob + BLOB_DEPENDENCIES, (int32_t)(places + places_bytes - blob));
    fake_put_int(fake, blob + BLOB_METADATA, (int32_t)(methods - blob));
    fake_put_word(fake, blob + BLOB_SCOPES_BEGIN, bytes);
    fake_put_word(fake, blob + BLOB_IMMUTABLE, immutable);
    fake_put_int(fake, blob + BLOB_IMMUTABLE_SIZE, (int32_t)(places_bytes + scopes_bytes));
    fake_put_word(fake, blob + BLOB_MUTABLE, mutable);
    fake_put_int(fake, blob + BLOB_MUTABLE_SIZE, (int32_t)(RELOCATION_BYTES + methods_bytes));
    fake_put_int(fake, blob + BLOB_RELOCATION_SIZE, RELOCATION_BYTES);
    fake_put_int(fake, blob + BLOB_SCOPES, (int32_t)places_bytes);
    fake->scopes_at = bytes;
    fake->places_at = places;
    fake->methods_at = methods;
    fake->compile_id_at = blob + BLOB_COMPILE_ID;
}

uint64_t fake_interpreter(struct fake_hotspot *fake, uint64_t address, const void *code, size_t code_bytes)
{
    int32_t size = (int32_t)(CODELET_HEADER_BYTES + code_bytes);
    fake_put_word(fake, fake->queue + QUEUE_BUFFER, address);
    fake_put_int(fake, fake->queue + QUEUE_LIMIT, size);
    fake_put_int(fake, fake->queue + QUEUE_END, size);
    fake_put_int(fake, address + CODELET_SIZE, size);
    fake_put(fake, address + CODELET_HEADER_BYTES, code, code_bytes);
    return address + CODELET_HEADER_BYTES;
}
