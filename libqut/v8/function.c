// SPDX-License-Identifier: Apache-2.0
// JSFunction -> SharedFunctionInfo -> what it is called and where it stands.
#include "libqut/v8/inside.h"

enum {
    FUNCTION_BYTES = 48,
    SHARED_BYTES = 64,
    SCRIPT_BYTES = 80,
    FUNCTION_TYPES = 32,     // constructors of classes and the machine's own have types behind that of functions
    LINE_OFFSET = 8,         // behind a script's name: the line that it begins at in its file
    ID_OFFSET = 8,           // behind where the script's lines end
    NAMES_INLINE_MAX = 75,   // of a scope's variables; where there are more, a table has them
    VARIABLES_MAX = 1 << 20, // of a scope
};

// What a scope has, by its flags.
enum {
    SCOPE_TYPE_MASK = 15,
    SCOPE_HAS_CLASS_VARIABLE = 1 << 10,
    SCOPE_FUNCTION_SHIFT = 12, // 2 bits; 0: it has no name of its own
    SCOPE_HAS_INFERRED_NAME = 1 << 14,
};

int32_t v8_type_of_map(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t map)
{
    uint16_t type;
    uint64_t address = v8_object(map);
    return address && elf_art_read(memory, address + (uint64_t)layout->map_type, &type, sizeof type) ? type : -1;
}

// A collector copies an object, then leaves the new address, without a tag, in place of its map.
bool v8_read_object(const struct elf_art_memory *memory, uint64_t *address, void *bytes, size_t size)
{
    uint64_t moved;
    if (!*address || !elf_art_read(memory, *address, bytes, size))
        return false;
    memcpy(&moved, bytes, sizeof moved);
    if (moved & V8_TAG_MASK || !v8_object(moved | V8_OBJECT_TAG))
        return true;
    *address = moved;
    return elf_art_read(memory, moved, bytes, size);
}

int32_t v8_type_of(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t address)
{
    uint64_t map;
    return address && elf_art_read(memory, address, &map, sizeof map) ? v8_type_of_map(layout, memory, map) : -1;
}

static uint64_t field(const uint8_t *bytes, int32_t offset)
{
    return v8_word(bytes, (size_t)offset);
}

// ---- scopes

struct scope {
    uint64_t address;
    uint32_t flags, variables;
    uint64_t at; // field behind those of the variables, from the object's beginning
};

// By its first words: map, flags, number of parameters, of variables.
static bool scope_of(const struct v8_layout *layout, const uint64_t words[4], struct scope *scope)
{
    // A number up to V8 12, later half a word.
    scope->flags = (uint32_t)words[1] ? (uint32_t)words[1] : (uint32_t)(words[1] >> V8_NUMBER_SHIFT);
    if (!v8_is_smi(words[3]) || v8_smi(words[3]) < 0 || v8_smi(words[3]) > VARIABLES_MAX)
        return false;
    scope->variables = (uint32_t)v8_smi(words[3]);
    uint64_t names = scope->variables < NAMES_INLINE_MAX ? scope->variables : 1;
    scope->at = 8 * (1 + (uint64_t)layout->scope_first_name + names + scope->variables);
    if (scope->flags & SCOPE_HAS_CLASS_VARIABLE)
        scope->at += 8;
    return true;
}

size_t v8_scope_name_at(const struct v8_layout *layout, const uint8_t *bytes, size_t size)
{
    uint64_t words[4];
    struct scope scope;
    if (size < sizeof words)
        return 0;
    memcpy(words, bytes, sizeof words);
    bool has_name = scope_of(layout, words, &scope) &&
                    (scope.flags >> SCOPE_FUNCTION_SHIFT & 3 || scope.flags & SCOPE_HAS_INFERRED_NAME);
    return has_name ? (size_t)scope.at : 0;
}

static bool read_scope(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t address,
                       struct scope *scope)
{
    uint64_t words[4];
    if (!v8_read_object(memory, &address, words, sizeof words) ||
        v8_type_of_map(layout, memory, words[0]) != layout->scope_type)
        return false;
    scope->address = address;
    return scope_of(layout, words, scope);
}

static bool read_text_at(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t address,
                         char *text, size_t size)
{
    uint64_t word;
    *text = 0;
    return elf_art_read(memory, address, &word, sizeof word) && v8_object(word) &&
           v8_read_text(layout, memory, v8_object(word), text, size);
}

static int32_t number_at(const struct elf_art_memory *memory, uint64_t address)
{
    uint64_t word;
    return elf_art_read(memory, address, &word, sizeof word) && v8_is_smi(word) && v8_smi(word) >= 0
               ? v8_smi(word)
               : -1;
}

// The name that the source gives it, else the one that the machine made of where it was put ("exports.run").
static void name_by_scope(const struct v8_layout *layout, const struct elf_art_memory *memory,
                          const struct scope *scope, struct v8_function *function)
{
    enum { FIRST_NAME_WITH_POSITION = 5 };
    uint64_t at = scope->address + scope->at;
    if (scope->flags >> SCOPE_FUNCTION_SHIFT & 3) {
        read_text_at(layout, memory, at, function->name, sizeof function->name);
        at += 16; // and where the variable is
    }
    if (scope->flags & SCOPE_HAS_INFERRED_NAME) {
        if (!*function->name)
            read_text_at(layout, memory, at, function->name, sizeof function->name);
        at += 8;
    }
    // In front of the variables' names, or behind all that.
    function->start =
        number_at(memory, layout->scope_first_name >= FIRST_NAME_WITH_POSITION ? scope->address + 4 * 8 : at);
}

// ---- scripts

static bool read_script(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t address,
                        struct v8_function *function)
{
    uint8_t bytes[SCRIPT_BYTES];
    if (layout->script_line_ends + ID_OFFSET + 8 > SCRIPT_BYTES ||
        layout->script_name + LINE_OFFSET + 8 > SCRIPT_BYTES || layout->script_source + 8 > SCRIPT_BYTES ||
        !v8_read_object(memory, &address, bytes, sizeof bytes) ||
        v8_type_of_map(layout, memory, v8_word(bytes, 0)) != layout->script_type)
        return false;
    uint64_t id = field(bytes, layout->script_line_ends + ID_OFFSET);
    uint64_t first_line = field(bytes, layout->script_name + LINE_OFFSET);
    if (!v8_is_smi(id) || !v8_is_smi(first_line))
        return false;
    function->script = (struct v8_script){.address = address,
                                          .source = v8_object(field(bytes, layout->script_source)),
                                          .id = v8_smi(id),
                                          .first_line = v8_smi(first_line)};
    uint64_t name = v8_object(field(bytes, layout->script_name));
    if (!name || !v8_read_text(layout, memory, name, function->file, sizeof function->file))
        *function->file = 0; // evaluated text has none
    return true;
}

bool v8_holds_script(const struct v8_layout *layout, const struct elf_art_memory *memory,
                     const struct v8_script *script)
{
    uint8_t bytes[SCRIPT_BYTES];
    return elf_art_read(memory, script->address, bytes, sizeof bytes) &&
           v8_type_of_map(layout, memory, v8_word(bytes, 0)) == layout->script_type &&
           v8_object(field(bytes, layout->script_source)) == script->source &&
           v8_smi(field(bytes, layout->script_line_ends + ID_OFFSET)) == script->id;
}

// ---- functions

bool v8_read_function(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t address,
                      struct v8_function *function)
{
    uint8_t bytes[SHARED_BYTES];
    struct scope scope;
    *function = (struct v8_function){.start = -1};
    if (layout->function_shared + 8 > FUNCTION_BYTES || layout->shared_name + 8 > SHARED_BYTES ||
        layout->shared_script + 8 > SHARED_BYTES || !v8_read_object(memory, &address, bytes, FUNCTION_BYTES))
        return false;
    int32_t type = v8_type_of_map(layout, memory, v8_word(bytes, 0));
    uint64_t shared = v8_object(field(bytes, layout->function_shared));
    if (type < layout->function_type || type >= layout->function_type + FUNCTION_TYPES || !shared ||
        !v8_read_object(memory, &shared, bytes, SHARED_BYTES) ||
        v8_type_of_map(layout, memory, v8_word(bytes, 0)) != layout->shared_type)
        return false;
    // The name itself, as long as nothing more is known; a number: it has none.
    uint64_t name_word = field(bytes, layout->shared_name), name = v8_object(name_word);
    if (name && read_scope(layout, memory, name, &scope))
        name_by_scope(layout, memory, &scope, function);
    else if (name ? !v8_read_text(layout, memory, name, function->name, sizeof function->name)
                  : !v8_is_smi(name_word))
        return false;
    // A debugger's record may be in its place, or nothing.
    uint64_t script = v8_object(field(bytes, layout->shared_script));
    if (script)
        read_script(layout, memory, script, function);
    return true;
}
