// SPDX-License-Identifier: Apache-2.0
// Seen in node 18.20.8, 20.20.2, 22.23.3 and 24.21.0 (V8 10.2, 11.3, 12.4, 13.6): names of fields change with what C++
// calls their types, the offsets themselves are always there.
#include <stddef.h>

#include "libqut/v8/inside.h"

enum { NAMES_MAX = 4, OFFSET_MAX = 1024, TYPE_MAX = 65535, ANY = INT32_MIN };

struct wanted {
    uint16_t place; // in struct v8_layout
    int32_t least, most;
    int32_t absent; // what it is then; ANY: it has to be there
    const char *names[NAMES_MAX];
};

#define PLACE(field) .place = offsetof(struct v8_layout, field)
#define IN_FRAME     .least = -V8_FRAME_BYTES, .most = -8, .absent = ANY
#define IN_OBJECT    .least = 8, .most = OFFSET_MAX, .absent = ANY
#define TYPE         .least = 0, .most = TYPE_MAX, .absent = ANY

static const struct wanted wanted[] = {
    {PLACE(frame_context), IN_FRAME, .names = {"v8dbg_off_fp_context"}},
    {PLACE(frame_function), IN_FRAME, .names = {"v8dbg_off_fp_function"}},
    {PLACE(frame_bytecodes), IN_FRAME, .names = {"v8dbg_off_fp_bytecode_array"}},
    {PLACE(frame_bytecode_offset), IN_FRAME, .names = {"v8dbg_off_fp_bytecode_offset"}},
    {PLACE(map_type), IN_OBJECT, .names = {"v8dbg_class_Map__instance_type__uint16_t"}},
    {PLACE(function_shared), IN_OBJECT, .names = {"v8dbg_class_JSFunction__shared__SharedFunctionInfo"}},
    {PLACE(shared_name), IN_OBJECT,
     .names = {"v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
               "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
               "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_"}},
    {PLACE(shared_script), IN_OBJECT,
     .names = {"v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
               "v8dbg_class_SharedFunctionInfo__script_or_debug_info__Object",
               "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_",
               "v8dbg_class_SharedFunctionInfo__raw_script__Tagged_Object_"}},
    {PLACE(script_name), IN_OBJECT, .names = {"v8dbg_class_Script__name__Object"}},
    {PLACE(script_source), IN_OBJECT, .names = {"v8dbg_class_Script__source__Object"}},
    {PLACE(script_line_ends), IN_OBJECT, .names = {"v8dbg_class_Script__line_ends__Object"}},
    {PLACE(string_length), IN_OBJECT, .names = {"v8dbg_class_String__length__int32_t"}},
    {PLACE(one_byte_chars), IN_OBJECT, .names = {"v8dbg_class_SeqOneByteString__chars__char"}},
    {PLACE(two_byte_chars), IN_OBJECT, .names = {"v8dbg_class_SeqTwoByteString__chars__char"}},
    {PLACE(cons_first), IN_OBJECT, .names = {"v8dbg_class_ConsString__first__String"}},
    {PLACE(cons_second), IN_OBJECT, .names = {"v8dbg_class_ConsString__second__String"}},
    {PLACE(thin_actual), IN_OBJECT, .names = {"v8dbg_class_ThinString__actual__String"}},
    {PLACE(sliced_parent), IN_OBJECT, .names = {"v8dbg_class_SlicedString__parent__String"}},
    {PLACE(sliced_offset), IN_OBJECT, .names = {"v8dbg_class_SlicedString__offset__SMI"}},
    {PLACE(external_resource), IN_OBJECT, .names = {"v8dbg_class_ExternalString__resource__Object"}},
    {PLACE(bytecodes_data), IN_OBJECT, .names = {"v8dbg_class_BytecodeArray__data__uintptr_t"}},
    {PLACE(scope_first_name), .least = 3, .most = 5, .absent = ANY, .names = {"v8dbg_scopeinfo_idx_first_vars"}},
    {PLACE(function_type), TYPE, .names = {"v8dbg_type_JSFunction__JS_FUNCTION_TYPE"}},
    {PLACE(shared_type), TYPE, .names = {"v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"}},
    {PLACE(script_type), TYPE, .names = {"v8dbg_type_Script__SCRIPT_TYPE"}},
    {PLACE(scope_type), TYPE, .names = {"v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE"}},
    {PLACE(bytecodes_type), TYPE, .names = {"v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE"}},
    {PLACE(byte_array_type), TYPE, .names = {"v8dbg_type_ByteArray__BYTE_ARRAY_TYPE"}},
    {PLACE(trusted_byte_array_type), .least = 0, .most = TYPE_MAX, .absent = -1,
     .names = {"v8dbg_type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE"}},
};

static bool read_one(const struct v8_symbols *symbols, const struct elf_art_memory *memory, const struct wanted *want,
                     int32_t *value)
{
    uint64_t address = 0;
    for (unsigned i = 0; i < NAMES_MAX && want->names[i] && !address; i++)
        address = symbols->find(symbols->context, want->names[i]);
    if (!address && want->absent != ANY) {
        *value = want->absent;
        return true;
    }
    return address && elf_art_read(memory, address, value, sizeof *value) && *value >= want->least &&
           *value <= want->most;
}

bool v8_layout_read(const struct v8_symbols *symbols, const struct elf_art_memory *memory, struct v8_layout *layout,
                    const char **missing)
{
    *layout = (struct v8_layout){0};
    *missing = "a machine of 64 bits";
    if (memory->arch->word_bytes != 8)
        return false;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        int32_t value = 0;
        *missing = wanted[i].names[0];
        if (!read_one(symbols, memory, &wanted[i], &value))
            return false;
        memcpy((uint8_t *)layout + wanted[i].place, &value, sizeof value);
    }
    *missing = NULL;
    // Not told. V8 10 and 11: length, constants, handlers, positions; from 12 on a wrapper and the positions come
    // behind the length.
    bool has_wrapper = symbols->find(symbols->context, "v8dbg_class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_");
    layout->bytecodes_positions = has_wrapper ? 24 : 32;
    return true;
}
