// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share. Types lead to types: each way through them is bounded.
#ifndef TRACER_PROTOTYPES_INSIDE_H
#define TRACER_PROTOTYPES_INSIDE_H

#include <dwarf.h>

#include "tracer/names/dw_late.h"
#include "tracer/prototypes/prototypes.h"

enum {
    PROTOTYPES_LINKS_MAX = 64,         // typedefs behind each other
    PROTOTYPES_NEST_MAX = 16,          // structs in each other
    PROTOTYPES_DIES_MAX = 1 << 16,     // looked at for one member
    PROTOTYPES_PARAMETERS_MAX = 64,    // of one function
    PROTOTYPES_BYTES_MAX = 0x7fffffff, // of a type
};

struct prototypes {
    struct input_image *image;
    struct names_inlines *inlines; // of it
};

// ---- types.c

// What a DIE's DW_AT_type leads to. False: void.
bool prototypes_type_of(Dwarf_Die *die, Dwarf_Die *type);
void prototypes_to_unit(Dwarf_Die *type);
// The same through typedefs, const and the like. False: void, or in circles.
bool prototypes_peel(Dwarf_Die *type);
bool prototypes_number(Dwarf_Die *die, unsigned attribute, Dwarf_Word *value);
// False: not known, as of what is only declared.
bool prototypes_bytes(const Dwarf_Die *type, Dwarf_Word *bytes);
// Elements in dimension `at` and behind it; 0: not known. False: there is no such dimension.
bool prototypes_dimension(const Dwarf_Die *array, unsigned at, Dwarf_Word *count);
bool prototypes_is_reference(Dwarf_Die *type);
bool prototypes_is_struct(Dwarf_Die *type); // class, union
bool prototypes_next(Dwarf_Die *die);       // false: there is none behind it

struct prototypes_member {
    Dwarf_Die die;
    uint64_t offset_bits;
    Dwarf_Word bits; // of a bit-field; else 0
};
// Where a member is in what it is in. False: debug information does not say, or computes it.
bool prototypes_place(Dwarf_Die *die, struct prototypes_member *member);
// Also that of a struct without a name in it, and of base classes. Its words are filled if there is none.
bool prototypes_find_member(const Dwarf_Die *type, const struct probe_step *step, struct prototypes_member *member,
                            struct probe_unresolved *why);

// ---- copied.c

enum prototypes_copied { PROTOTYPES_BY_BYTES, PROTOTYPES_COPIED_UNKNOWN, PROTOTYPES_BY_ADDRESS }; // by weight
enum prototypes_copied prototypes_how_copied(Dwarf_Die *class, unsigned *budget, unsigned depth);

// ---- classes.c

// Where a value is handed over: eight bytes of it in each register. Registers are counted, as arg0 to arg5 are.
struct prototypes_passed {
    enum { PROTOTYPES_REGISTERS, PROTOTYPES_POINTER /* in the first one */, PROTOTYPES_NOWHERE } where;
    int8_t registers[2]; // -1: none of the general ones
    const char *why;     // PROTOTYPES_NOWHERE
};

struct prototypes_parameter {
    Dwarf_Die die;
    struct prototypes_passed passed;
};

struct prototypes_function {
    Dwarf_Die die;
    uint32_t count;
    bool has_more; // "..."
    bool is_cut;   // there are more parameters than are kept
    struct prototypes_parameter parameters[PROTOTYPES_PARAMETERS_MAX];
    struct prototypes_passed result; // its register 0 is rax
};
// Its parameters as they are declared; nothing is in .passed yet.
void prototypes_list(Dwarf_Die *die, struct prototypes_function *function);
// Whether it is written in C, or C++.
bool prototypes_is_known(Dwarf_Die *function, bool *is_cpp);
// Where they are. False, with *why: that is not known of this function.
bool prototypes_pass(struct prototypes_function *function, uint64_t entry_vaddr, const char *name, const char **why);

// ---- path.c

// As prototypes_resolve, of a function whose arguments have their places.
int prototypes_follow(struct prototypes_function *function, const struct probe_path *path, struct probe_recipe *recipe,
                      struct probe_unresolved *why);

// ---- text.c

// "const char *", and with a name "const char *path": cut where the room ends. NULL: void.
void prototypes_type_text(const Dwarf_Die *type, const char *name, char *text, size_t size);
char *prototypes_function_text(struct prototypes_function *function, const char *name); // malloc's; NULL: no memory

#endif
