// SPDX-License-Identifier: Apache-2.0
// HotSpot, the virtual machine of OpenJDK: where it keeps the code it makes, and what it says about the frames of that
// code. Its library exports tables of its own types, fields and constants for debuggers (vmStructs), from JDK 8 on: by
// them everything here is found, in this process, in another one, or in a core file. Nothing is asked of the machine,
// and no option is needed where it is started.
//
//   code cache    one to three heaps of code, reserved when the machine starts and never moved
//   segment map   a byte for each 128 bytes of a heap: how far back its block begins
//   blob          a block in use: a compiled method, a wrapper of a native one, a stub, the interpreter, ...
//   frame size    of a blob: cfa = sp + size where the frame stands; 0: the blob's frames differ
//   frame complete  offset in the blob's code from which on it stands
#ifndef QUT_HOTSPOT_MACHINE_H
#define QUT_HOTSPOT_MACHINE_H

#include "libqut/elf/image_memory.h"
#include "libqut/hotspot/hotspot_arch.h"

enum {
    HOTSPOT_HEAPS_MAX = 4,
    HOTSPOT_SEGMENT_FREE = 0xff, // in a segment map
    HOTSPOT_HEAD_BYTES = 160,    // of a block and its blob: all fields that walks read lie in them. They stand on the
                                 // stacks of signal handlers
};

enum hotspot_fault {
    HOTSPOT_FINE = 0,
    HOTSPOT_STARTING,       // it has not made what every method needs
    HOTSPOT_UNREADABLE,     // memory of its tables cannot be read
    HOTSPOT_UNKNOWN_LAYOUT, // a field is missing, or says what cannot be
    HOTSPOT_OTHER_ARCH,     // the code of this architecture is not known
    HOTSPOT_NO_MEMORY,      // ours
    HOTSPOT_FAULT_COUNT,
};
// "the machine is starting", ... Static text.
const char *hotspot_fault_text(enum hotspot_fault fault);

// Memory of which a part is in use, which only grows: the part's end stands at *end_at.
struct hotspot_space {
    uint64_t start, reserved_end;
    uint64_t end_at;
};

struct hotspot_heap {
    struct hotspot_space code, segment_map;
    uint8_t segment_shift; // log2 of its bytes
};

// Offsets of what is read of a block and its blob, from the block's first byte.
struct hotspot_blob_layout {
    uint16_t used, code_begin, frame_size, frame_complete;
    uint8_t code_begin_is_pointer;   // else an offset from the blob
    uint8_t frame_complete_is_short; // 16 bits, else 32
    uint16_t blob;                   // where the blob begins
};

// Offsets of what leads from a blob to its name; `is_known` where all were found.
struct hotspot_name_layout {
    bool is_known;
    uint16_t blob_name, blob_size, method; // of the blob
    uint16_t method_const, method_bytes, const_pool, const_name_index, pool_bytes, pool_holder;
    uint16_t klass_name, klass_constants, symbol_length, symbol_body;
};

// Offsets of what leads from a method to its lines. Layouts of names are needed, too.
struct hotspot_line_layout {
    bool is_known;
    bool source_is_of_class;  // where the file's name is: in the class (earlier), else with the constants
    bool has_digits_from_one; // compressed numbers: 0 stands for nothing, from 20 on
    uint16_t const_bytes, const_words, const_flags, code_size, source_index, access_flags;
};

// ... and from compiled code to the methods inlined at each place: descriptions of places, of scopes, methods. From 25
// on they are in memory of their own, before in the blob.
struct hotspot_scope_layout {
    bool is_known;
    bool is_apart;
    uint16_t compile_id;
    uint16_t places_offset, scopes, places_end, methods; // apart: `scopes` is an offset there, else an address
    uint16_t immutable, immutable_size, mutable, mutable_size, relocation_size;
};

// A piece of the interpreter in which a frame does not stand, or not yet.
enum hotspot_shape {
    HOTSPOT_RA_ON_TOP = 0,   // ra = *sp; fp is the caller's
    HOTSPOT_RA_IN_REGISTER,  // ra = ra_reg; fp is the caller's
    HOTSPOT_FP_ON_TOP,       // fp = *sp; ra = *(sp + word)
    HOTSPOT_FRAME_WITHOUT_SP // as where it stands, but the caller's sp is in sp_reg
};

struct hotspot_place {
    uint32_t start, end;          // offsets in the interpreter
    uint8_t shape;                // enum hotspot_shape
    uint8_t ra_reg, sp_reg, zero; // the caller's sp
};

struct hotspot_machine {
    const struct hotspot_arch *arch;
    struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
    unsigned heap_count;
    struct hotspot_blob_layout blob;
    struct hotspot_name_layout names;
    struct hotspot_line_layout lines;
    struct hotspot_scope_layout scopes;
    int16_t bytecode_cfa_words; // of the interpreter's frames
    uint64_t interpreter_start, interpreter_end;
    uint64_t call_stub_return;    // where methods return to that C++ has called
    struct hotspot_place *places; // ascending, apart; from malloc
    size_t place_count;
};

// `structs` and `types` are the addresses of gHotSpotVMStructs and gHotSpotVMTypes, as the library exports them. Not
// for handlers. What was read holds as long as the library is loaded.
enum hotspot_fault hotspot_machine_read(const struct elf_art_memory *memory, uint64_t structs, uint64_t types,
                                        struct hotspot_machine *machine);
void hotspot_machine_free(struct hotspot_machine *machine);

// Whether code may be made at an address. Signal-safe.
static inline const struct hotspot_heap *hotspot_heap_at(const struct hotspot_machine *machine, uint64_t address)
{
    for (unsigned i = 0; i < machine->heap_count; i++)
        if (address - machine->heaps[i].code.start < machine->heaps[i].code.reserved_end - machine->heaps[i].code.start)
            return &machine->heaps[i];
    return NULL;
}

static inline bool hotspot_is_interpreter(const struct hotspot_machine *machine, uint64_t pc)
{
    return pc - machine->interpreter_start < machine->interpreter_end - machine->interpreter_start;
}

// The blob in use at an address. Signal-safe, where memory->read is.
struct hotspot_blob {
    uint64_t address, code_begin;
    int32_t frame_bytes; // 0: frames differ
    int32_t frame_complete_bytes;
};
bool hotspot_blob_at(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t address,
                     struct hotspot_blob *blob);

// What the code at an address, or an interpreted frame's method, is called: "java.lang.String.hashCode" of a method,
// else as the machine calls its blob. False: nothing is known, or the blob changed meanwhile.
enum { HOTSPOT_NAME_BYTES = 512 };
struct hotspot_code_name {
    uint64_t start, end; // of the blob's code, or the method's description
    char text[HOTSPOT_NAME_BYTES];
};
bool hotspot_name_code(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t address,
                       struct hotspot_code_name *name);

// pc is where a frame stands: behind a call, or where it was interrupted. The rule is QUT_RULE_BODY_ONLY where an
// interrupted method would be left by the size that its blob states: around some calls code pushes more, and a caller
// that is none tells. *interpreted: where one of the interpreter's says what it runs; 0: it is none, or does not stand.
// False: nothing is known of it. Signal-safe, where memory->read is.
bool hotspot_frame_rule(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t pc,
                        enum arch_pc_kind kind, struct qut_rule *rule, struct arch_interpreted *interpreted);

// Of a frame that returns to `ra` and that set_sized's rule leaves: cfa = sp + bytes; ra = *(cfa - word); fp = *(cfa -
// 2 words). 0: another rule does, or none. Signal-safe, where memory->read is.
int32_t hotspot_frame_bytes(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t ra);

// ---- interpreter.c

// Finds places by the code itself. codelet_size_at: where in a codelet its size stands. Under hotspot_machine_read.
enum hotspot_fault hotspot_find_places(const struct elf_art_memory *memory, unsigned codelet_size_at,
                                       struct hotspot_machine *machine);
// NULL: a frame stands there.
const struct hotspot_place *hotspot_place_at(const struct hotspot_machine *machine, uint64_t pc);

#endif
