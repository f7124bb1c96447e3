// SPDX-License-Identifier: Apache-2.0
// An address -> the name of the method whose code lies there. The machine may unload a class, and use memory again,
// while it is looked at: whatever is read is checked to be what it should, and the blob once more at the end.
#include <string.h>

#include "libqut/hotspot/inside.h"

enum {
    CLASS_BYTES_MAX = 320,
    METHOD_BYTES_MAX = 160,
    BLOB_BYTES_MAX = 64 << 20,
    POOL_INDEX_MAX = 0xffff,
};

bool hotspot_read_pointer(const struct elf_art_memory *memory, uint64_t at, uint64_t *pointer)
{
    return elf_art_read(memory, at, pointer, sizeof *pointer) && *pointer != 0;
}

// Names are UTF-8 without zeros.
bool hotspot_read_symbol(const struct hotspot_name_layout *layout, const struct elf_art_memory *memory, uint64_t symbol,
                         char *text, size_t size)
{
    uint16_t length;
    if (!elf_art_read(memory, symbol + layout->symbol_length, &length, sizeof length) || length == 0)
        return false;
    size_t kept = length < size ? length : size - 1;
    if (!elf_art_read(memory, symbol + layout->symbol_body, text, kept))
        return false;
    text[kept] = '\0';
    for (size_t i = 0; i < kept; i++)
        if ((unsigned char)text[i] < ' ')
            return false;
    return true;
}

// method -> its constants -> the names of its class and its own
bool hotspot_name_method(const struct hotspot_name_layout *layout, const struct elf_art_memory *memory, uint64_t method,
                         char text[HOTSPOT_NAME_BYTES])
{
    uint64_t constant, pool, holder, holders_pool, class_symbol, name_symbol;
    uint16_t index;
    char class_name[CLASS_BYTES_MAX], method_name[METHOD_BYTES_MAX];
    static_assert(CLASS_BYTES_MAX + METHOD_BYTES_MAX <= HOTSPOT_NAME_BYTES, "both fit");
    if (!hotspot_read_pointer(memory, method + layout->method_const, &constant) ||
        !hotspot_read_pointer(memory, constant + layout->const_pool, &pool) ||
        !elf_art_read(memory, constant + layout->const_name_index, &index, sizeof index) || index == 0 ||
        !hotspot_read_pointer(memory, pool + layout->pool_holder, &holder) ||
        !hotspot_read_pointer(memory, holder + layout->klass_constants, &holders_pool) || holders_pool != pool ||
        !hotspot_read_pointer(memory, holder + layout->klass_name, &class_symbol) ||
        !hotspot_read_pointer(memory, pool + layout->pool_bytes + (uint64_t)index * memory->arch->word_bytes,
                              &name_symbol) ||
        !hotspot_read_symbol(layout, memory, class_symbol, class_name, sizeof class_name) ||
        !hotspot_read_symbol(layout, memory, name_symbol, method_name, sizeof method_name))
        return false;
    for (char *at = class_name; *at; at++)
        *at = *at == '/' ? '.' : *at;
    size_t class_bytes = strlen(class_name);
    memcpy(text, class_name, class_bytes);
    text[class_bytes] = '.';
    memcpy(text + class_bytes + 1, method_name, strlen(method_name) + 1);
    return true;
}

// "nmethod", "Interpreter", "StubRoutines (2)", ...: static text of the machine's, or of one blob.
static bool read_blob_name(const struct hotspot_name_layout *layout, const struct elf_art_memory *memory, uint64_t blob,
                           char text[HOTSPOT_NAME_BYTES])
{
    uint64_t at;
    if (!hotspot_read_pointer(memory, blob + layout->blob_name, &at))
        return false;
    size_t count = memory->read(memory->context, at, text, METHOD_BYTES_MAX);
    text[count] = '\0';
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ')
            return false;
    return *text != '\0';
}

bool hotspot_blob_name(const struct hotspot_name_layout *layout, const struct elf_art_memory *memory, uint64_t blob,
                       char text[HOTSPOT_NAME_BYTES], bool *is_method)
{
    *is_method = false;
    if (!read_blob_name(layout, memory, blob, text))
        return false;
    *is_method = strcmp(text, "nmethod") == 0 || strcmp(text, "native nmethod") == 0;
    return true;
}

static bool name_blob(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t address,
                      struct hotspot_code_name *name)
{
    const struct hotspot_name_layout *layout = &machine->names;
    struct hotspot_blob blob;
    uint64_t method, again;
    int32_t size;
    bool is_method;
    if (!hotspot_blob_at(machine, memory, address, &blob) ||
        !elf_art_read(memory, blob.address + layout->blob_size, &size, sizeof size) || size <= 0 ||
        size > BLOB_BYTES_MAX || address - blob.address >= (uint32_t)size ||
        !hotspot_blob_name(layout, memory, blob.address, name->text, &is_method))
        return false;
    name->start = blob.code_begin;
    name->end = blob.address + (uint32_t)size;
    if (!is_method)
        return true;
    return hotspot_read_pointer(memory, blob.address + layout->method, &method) &&
           hotspot_name_method(layout, memory, method, name->text) &&
           hotspot_read_pointer(memory, blob.address + layout->method, &again) && again == method;
}

bool hotspot_name_code(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t address,
                       struct hotspot_code_name *name)
{
    if (!machine->names.is_known)
        return false;
    if (hotspot_heap_at(machine, address))
        return name_blob(machine, memory, address, name);
    // Of an interpreted frame's word the range is that word alone.
    uint64_t method = arch_interpreted_method(address);
    name->start = address;
    name->end = address + (method == address ? machine->names.method_bytes : 1);
    return method % memory->arch->word_bytes == 0 && hotspot_name_method(&machine->names, memory, method, name->text);
}
