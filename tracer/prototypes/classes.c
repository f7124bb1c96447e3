// SPDX-License-Identifier: Apache-2.0
// Where arguments are when a function is entered: x86-64's psABI, 3.2.3, and what Itanium's C++ ABI, 3.1, adds to it.
// What is not certain is not told: one argument in a register more or fewer moves all that follow.
#include <string.h>

#include "tracer/prototypes/inside.h"

enum { GENERAL_REGISTERS = 6, VECTOR_REGISTERS = 8 };

enum class { CLASS_NONE, CLASS_GENERAL, CLASS_VECTOR, CLASS_X87, CLASS_MEMORY, CLASS_BY_POINTER, CLASS_UNKNOWN };

struct classes {
    enum class all;     // CLASS_NONE: by the words
    enum class word[2]; // eight bytes each
    unsigned budget;    // DIEs
    bool is_cpp;
};

static void merge(struct classes *classes, uint64_t offset_bytes, Dwarf_Word bytes, enum class class)
{
    for (uint64_t word = offset_bytes / 8; word <= (offset_bytes + bytes - 1) / 8; word++) {
        if (word > 1) {
            classes->all = CLASS_UNKNOWN;
            return;
        }
        enum class *known = &classes->word[word];
        if (*known != CLASS_NONE && *known != class && (*known == CLASS_X87 || class == CLASS_X87))
            classes->all = CLASS_UNKNOWN;
        else if (*known != CLASS_GENERAL)
            *known = class;
    }
}

static void classify_base(struct classes *classes, Dwarf_Die *type, uint64_t offset_bytes, Dwarf_Word bytes)
{
    Dwarf_Word encoding = 0;
    const char *name = names_dw.diename(type);
    prototypes_number(type, DW_AT_encoding, &encoding);
    switch (encoding) {
    case DW_ATE_boolean:
    case DW_ATE_signed:
    case DW_ATE_signed_char:
    case DW_ATE_unsigned:
    case DW_ATE_unsigned_char:
    case DW_ATE_UTF: merge(classes, offset_bytes, bytes, CLASS_GENERAL); break;
    case DW_ATE_float: // of 16 bytes: long double, if it is not one of quads
        merge(classes, offset_bytes, bytes, bytes < 16 || (name && strstr(name, "loat128")) ? CLASS_VECTOR : CLASS_X87);
        break;
    case DW_ATE_complex_float: // of 8 and 16 bytes in vector registers; of 32 in memory, and returned by the x87
        if (bytes <= 16)
            merge(classes, offset_bytes, bytes, CLASS_VECTOR);
        else
            classes->all = CLASS_X87;
        break;
    default: classes->all = CLASS_UNKNOWN;
    }
}

static void classify(struct classes *classes, const Dwarf_Die *die, uint64_t offset_bytes, unsigned depth);

static void classify_struct(struct classes *classes, Dwarf_Die *type, uint64_t offset_bytes, unsigned depth)
{
    Dwarf_Die die, member_type;
    struct prototypes_member member;
    if (names_dw.child(type, &die) != 0)
        return;
    do {
        const int tag = names_dw.tag(&die);
        if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || names_dw.hasattr(&die, DW_AT_external) ||
            names_dw.hasattr(&die, DW_AT_declaration))
            continue;
        if (classes->budget == 0 || !prototypes_place(&die, &member) || !prototypes_type_of(&die, &member_type)) {
            classes->all = CLASS_UNKNOWN;
            return;
        }
        classes->budget--;
        if (member.bits)
            merge(classes, offset_bytes + member.offset_bits / 8, (member.offset_bits % 8 + member.bits + 7) / 8,
                  CLASS_GENERAL);
        else
            classify(classes, &member_type, offset_bytes + member.offset_bits / 8, depth + 1);
    } while (classes->all == CLASS_NONE && prototypes_next(&die));
}

static void classify_array(struct classes *classes, Dwarf_Die *type, uint64_t offset_bytes, Dwarf_Word bytes,
                           unsigned depth)
{
    Dwarf_Die element;
    Dwarf_Word each;
    if (names_dw.hasattr(type, DW_AT_GNU_vector)) {
        if (bytes <= 16)
            merge(classes, offset_bytes, bytes, CLASS_VECTOR);
        else if (depth)
            classes->all = CLASS_UNKNOWN; // in vector registers, or not: an option of the compiler says
        else
            classes->all = CLASS_X87; // in no general register
        return;
    }
    if (!prototypes_type_of(type, &element) || !prototypes_bytes(&element, &each)) {
        classes->all = CLASS_UNKNOWN;
        return;
    }
    for (Dwarf_Word at = 0; each && at + each <= bytes && at < 16 && classes->all == CLASS_NONE; at += each)
        classify(classes, &element, offset_bytes + at, depth + 1);
}

// Of what is no struct and no array.
static Dwarf_Word alignment_of(Dwarf_Die *type, Dwarf_Word bytes)
{
    Dwarf_Word encoding = 0;
    prototypes_number(type, DW_AT_encoding, &encoding);
    return encoding == DW_ATE_complex_float && bytes > 1 ? bytes / 2 : bytes;
}

static void classify(struct classes *classes, const Dwarf_Die *die, uint64_t offset_bytes, unsigned depth)
{
    Dwarf_Die type = *die, target;
    Dwarf_Word bytes;
    const int tag = prototypes_peel(&type) ? names_dw.tag(&type) : DW_TAG_invalid;
    if (tag == DW_TAG_unspecified_type || tag == DW_TAG_ptr_to_member_type) {
        bytes = tag == DW_TAG_ptr_to_member_type && prototypes_type_of(&type, &target) && prototypes_peel(&target) &&
                        names_dw.tag(&target) == DW_TAG_subroutine_type
                    ? 16
                    : 8;
        merge(classes, offset_bytes, bytes, CLASS_GENERAL);
        return;
    }
    if (depth > PROTOTYPES_NEST_MAX || tag == DW_TAG_invalid || !prototypes_bytes(&type, &bytes)) {
        classes->all = CLASS_UNKNOWN;
        return;
    }
    if (bytes == 0)
        return;
    const bool is_struct = prototypes_is_struct(&type);
    enum prototypes_copied copied = PROTOTYPES_BY_BYTES;
    if (is_struct && depth == 0 && classes->is_cpp)
        copied = prototypes_how_copied(&type, &classes->budget, 0);
    if (copied != PROTOTYPES_BY_BYTES) {
        classes->all = copied == PROTOTYPES_BY_ADDRESS ? CLASS_BY_POINTER : CLASS_UNKNOWN;
    } else if (is_struct && bytes > 16) {
        classes->all = CLASS_MEMORY;
    } else if (is_struct) {
        classify_struct(classes, &type, offset_bytes, depth);
    } else if (tag == DW_TAG_array_type) {
        classify_array(classes, &type, offset_bytes, bytes, depth);
    } else if (tag == DW_TAG_base_type) {
        classify_base(classes, &type, offset_bytes, bytes);
    } else if (tag == DW_TAG_pointer_type || prototypes_is_reference(&type) || tag == DW_TAG_enumeration_type) {
        merge(classes, offset_bytes, bytes, CLASS_GENERAL);
    } else {
        classes->all = CLASS_UNKNOWN;
    }
    // What is not aligned makes all of it one of memory.
    const bool has_parts = is_struct || tag == DW_TAG_array_type;
    if (!has_parts && classes->all != CLASS_UNKNOWN && offset_bytes % alignment_of(&type, bytes))
        classes->all = CLASS_MEMORY;
}

static struct classes classes_of(Dwarf_Die *die, bool is_cpp)
{
    struct classes classes = {.budget = PROTOTYPES_DIES_MAX, .is_cpp = is_cpp};
    Dwarf_Die type;
    if (prototypes_type_of(die, &type))
        classify(&classes, &type, 0, 0);
    else
        classes.all = CLASS_UNKNOWN;
    // An x87 number as an argument is on the stack; in a struct with others it makes those stay there, too.
    if (classes.all == CLASS_NONE && (classes.word[0] == CLASS_X87 || classes.word[1] == CLASS_X87))
        classes.all = classes.word[0] == classes.word[1] ? CLASS_X87 : CLASS_UNKNOWN;
    return classes;
}

// ---- one after the other

static void list_of(Dwarf_Die *parent, struct prototypes_function *function, unsigned depth)
{
    Dwarf_Die die;
    if (names_dw.child(parent, &die) != 0)
        return;
    do {
        switch (names_dw.tag(&die)) {
        case DW_TAG_formal_parameter:
            function->is_cut |= function->count == PROTOTYPES_PARAMETERS_MAX;
            if (!function->is_cut)
                function->parameters[function->count++].die = die;
            break;
        case DW_TAG_GNU_formal_parameter_pack:
            if (depth == 0)
                list_of(&die, function, 1);
            break;
        case DW_TAG_unspecified_parameters: function->has_more = true; break;
        default: break;
        }
    } while (!function->is_cut && prototypes_next(&die));
}

void prototypes_list(Dwarf_Die *die, struct prototypes_function *function)
{
    memset(function, 0, sizeof *function);
    function->die = *die;
    list_of(die, function, 0);
}

static bool origin_of(Dwarf_Die *die, Dwarf_Die *origin)
{
    Dwarf_Attribute attribute;
    return names_dw.formref_die(names_dw.attr(die, DW_AT_abstract_origin, &attribute), origin) != NULL;
}

static uint32_t count_of(Dwarf_Die *die)
{
    struct prototypes_function function;
    prototypes_list(die, &function);
    return function.count;
}

// A register that debug information says an argument is in, at the function's first instruction; -1: it does not say.
static int said_register(Dwarf_Die *die, uint64_t entry_vaddr)
{
    static const int8_t arguments[] = {-1, 2, 3, -1, 1, 0, -1, -1, 4, 5}; // by DWARF's numbers
    Dwarf_Attribute attribute;
    Dwarf_Op *operations;
    size_t length;
    if (!names_dw.attr(die, DW_AT_location, &attribute) ||
        names_dw.getlocation_addr(&attribute, entry_vaddr, &operations, &length, 1) != 1 || length != 1)
        return -1;
    const int number =
        operations->atom >= DW_OP_reg0 && operations->atom <= DW_OP_reg31 ? operations->atom - DW_OP_reg0 : -1;
    return number >= 0 && number < (int)sizeof arguments ? arguments[number] : -1;
}

static bool is_changed_by_name(const char *name)
{
    static const char *const marks[] = {".isra.", ".constprop.", ".part.", ".argprom", ".argelim", ".retelim"};
    for (size_t i = 0; name && i < sizeof marks / sizeof *marks; i++)
        if (strstr(name, marks[i]))
            return true;
    return false;
}

enum { LANG_CPP_17 = 0x2a, LANG_CPP_20 = 0x2b, LANG_C17 = 0x2c }; // newer than DWARF 5

static bool is_known_language(int language, bool *is_cpp)
{
    switch (language) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case LANG_C17: *is_cpp = false; return true;
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case LANG_CPP_17:
    case LANG_CPP_20: *is_cpp = true; return true;
    default: return false;
    }
}

bool prototypes_is_known(Dwarf_Die *function, bool *is_cpp)
{
    Dwarf_Die unit;
    return names_dw.diecu(function, &unit, NULL, NULL) && is_known_language(names_dw.srclang(&unit), is_cpp);
}

struct registers {
    unsigned general, vector; // taken so far
    bool is_lost;             // something before took nobody knows how many
};

static struct prototypes_passed nowhere(const char *why)
{
    return (struct prototypes_passed){.where = PROTOTYPES_NOWHERE, .registers = {-1, -1}, .why = why};
}

static struct prototypes_passed pass(const struct classes *classes, struct registers *registers)
{
    struct prototypes_passed passed = {.where = PROTOTYPES_REGISTERS, .registers = {-1, -1}};
    unsigned general = 0, vector = 0;
    if (registers->is_lost)
        return nowhere("debug information does not tell how an argument before it is handed over");
    switch (classes->all) {
    case CLASS_UNKNOWN:
        registers->is_lost = true;
        return nowhere("debug information does not tell how it is handed over");
    case CLASS_X87: registers->vector++; return nowhere("it is handed over in no general register");
    case CLASS_MEMORY: return nowhere("it is handed over on the stack");
    case CLASS_BY_POINTER:
        passed.where = PROTOTYPES_POINTER;
        general = 1;
        break;
    default:
        for (unsigned i = 0; i < 2; i++) {
            general += classes->word[i] == CLASS_GENERAL;
            vector += classes->word[i] == CLASS_VECTOR; // at most: a vector of 16 bytes takes one
        }
        break;
    }
    if (registers->general + general > GENERAL_REGISTERS)
        return nowhere("it is handed over on the stack");
    if (general && vector && registers->vector + vector > VECTOR_REGISTERS) {
        registers->is_lost = true;
        return nowhere("debug information does not tell how it is handed over");
    }
    registers->vector += vector;
    if (general == 0)
        return nowhere("it is in a vector register");
    for (unsigned i = 0; i < 2; i++)
        if (classes->all == CLASS_BY_POINTER ? i == 0 : classes->word[i] == CLASS_GENERAL)
            passed.registers[i] = (int8_t)registers->general++;
    return passed;
}

bool prototypes_pass(struct prototypes_function *function, uint64_t entry_vaddr, const char *name, const char **why)
{
    struct registers registers = {.general = 0}, result = {.general = 0};
    Dwarf_Die origin, type;
    Dwarf_Word convention = 0;
    bool is_cpp = false;
    *why = NULL;
    if (!prototypes_is_known(&function->die, &is_cpp))
        *why = "it is not written in C or C++: how arguments are handed over is not known";
    else if (is_changed_by_name(name) ||
             (prototypes_number(&function->die, DW_AT_calling_convention, &convention) && convention != DW_CC_normal) ||
             (origin_of(&function->die, &origin) && count_of(&origin) != function->count))
        *why = "the compiler has changed how its arguments are handed over";
    else if (function->is_cut)
        *why = "it has too many arguments";
    if (*why)
        return false;
    function->result = nowhere("it returns nothing");
    if (prototypes_type_of(&function->die, &type)) {
        const struct classes classes = classes_of(&function->die, is_cpp);
        const bool is_by_pointer = classes.all == CLASS_BY_POINTER || classes.all == CLASS_MEMORY;
        registers.is_lost = classes.all == CLASS_UNKNOWN;
        if (is_by_pointer) { // an argument before the first one, which comes back
            registers.general++;
            function->result = (struct prototypes_passed){.where = PROTOTYPES_POINTER, .registers = {0, -1}};
        } else {
            function->result = pass(&classes, &result);
            if (classes.all == CLASS_X87)
                function->result = nowhere("it is in a register of the x87, or a vector register");
        }
    }
    for (uint32_t i = 0; i < function->count; i++) {
        struct prototypes_parameter *parameter = &function->parameters[i];
        const struct classes classes = classes_of(&parameter->die, is_cpp);
        parameter->passed = pass(&classes, &registers);
        const int said = said_register(&parameter->die, entry_vaddr);
        if (said < 0 || parameter->passed.where == PROTOTYPES_NOWHERE || parameter->passed.registers[1] >= 0)
            continue;
        if (said != parameter->passed.registers[0]) {
            *why = "the compiler has changed how its arguments are handed over";
            return false;
        }
    }
    return true;
}
