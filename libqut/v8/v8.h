// SPDX-License-Identifier: Apache-2.0
// V8 from its memory: which functions of JavaScript its frames are in, what those are called and where they stand. The
// same for a thread that stands still and for a core file; nothing is asked of the machine, and no option of it is
// needed. Where things are it says itself, for debuggers: v8dbg_* symbols, which node exports.
//
//   frame pointer -> JSFunction -> SharedFunctionInfo -> name, ScopeInfo, Script -> name, source
//
// Objects move, and what lies where one was is another: so each has to be what it should be, by its map's type, when it
// is read, and all is read while the thread stands still. Lists are followed for a bounded number of steps, lengths are
// bounded.
#ifndef QUT_V8_V8_H
#define QUT_V8_V8_H

#include "libqut/elf/image_memory.h"

enum {
    V8_NAME_BYTES = 256,
    V8_FILE_BYTES = 512,
    V8_FRAME_BYTES = 40, // below its frame pointer, of a frame: what is read of it
};

// What lookup_pc of a frame of JavaScript is, as for those of Python: in no address space. The number of its function
// stands above the line.
#define V8_NUMBER_BASE ((uint64_t)0x4a53 << 48)
enum { V8_LINE_BITS = 20 };

static inline bool v8_is_number(uint64_t lookup_pc)
{
    return lookup_pc >> 48 == V8_NUMBER_BASE >> 48;
}

// ---- layout.c

// What the machine says of itself: offsets in bytes, numbers of types. Objects have 8 bytes to a field.
struct v8_layout {
    int32_t frame_context, frame_function, frame_bytecodes, frame_bytecode_offset; // from the frame pointer
    int32_t map_type;
    int32_t function_shared;
    int32_t shared_name, shared_script;
    int32_t script_name, script_source, script_line_ends;
    int32_t string_length, one_byte_chars, two_byte_chars;
    int32_t cons_first, cons_second, thin_actual, sliced_parent, sliced_offset, external_resource;
    int32_t bytecodes_data, bytecodes_positions; // the latter, 0: not known
    int32_t scope_first_name;                    // in fields behind the map
    int32_t function_type, shared_type, script_type, scope_type, bytecodes_type;
    int32_t byte_array_type, trusted_byte_array_type; // the latter, -1: there is none
};

struct v8_symbols {
    // The address of what the image exports under this name; 0: nothing.
    uint64_t (*find)(void *context, const char *name);
    void *context;
};
// False: something is missing, or makes no sense. *missing is its name, static text.
bool v8_layout_read(const struct v8_symbols *symbols, const struct elf_art_memory *memory, struct v8_layout *layout,
                    const char **missing);

// ---- frame.c

// What a frame holds.
struct v8_frame {
    uint64_t function;  // address of the JSFunction; 0: it is one of the machine's own, marked as that
    uint64_t bytecodes; // address of what is interpreted; 0: nothing is
    uint32_t offset;    // in it: of the call that the frame is in
};
// From the bytes just below the frame pointer. False: it is none. Nothing of it is confirmed.
bool v8_frame_of(const struct v8_layout *layout, const uint8_t bytes[V8_FRAME_BYTES], struct v8_frame *frame);
// Whether a word on a stack, and those below it, look like such a frame's. end: of the stack.
bool v8_may_be_frame(const struct v8_layout *layout, const uint8_t *bytes, uint64_t address, uint64_t end);

// A frame's pointer, by the stack pointers of the frame and of the one behind it, if it stands: its caller's is found
// by it. 0: it has none.
static inline uint64_t v8_frame_pointer(uint64_t sp, uint64_t caller_sp)
{
    enum { LINK_BYTES = 16, LEAST_BYTES = 16 };
    uint64_t pointer = caller_sp - LINK_BYTES;
    // What lies below sp is left from before.
    return pointer >= sp + LEAST_BYTES && pointer < caller_sp ? pointer : 0;
}
// Whether made code is interrupted there where it has no frame yet, or no longer.
bool v8_is_near_edge(const struct elf_art_memory *memory, uint64_t pc);

// ---- function.c

struct v8_script {
    uint64_t address; // 0: it has none, as functions of the machine itself
    uint64_t source;  // a string's address
    int32_t id, first_line;
};

struct v8_function {
    char name[V8_NAME_BYTES]; // "": it has none
    char file[V8_FILE_BYTES]; // of the script; "": it has none
    struct v8_script script;
    int32_t start; // where its text begins in the script; -1: not known
};
// False: what lies there is no function, or cannot be read.
bool v8_read_function(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t address,
                      struct v8_function *function);
// Whether the script is still there, with this source.
bool v8_holds_script(const struct v8_layout *layout, const struct elf_art_memory *memory,
                     const struct v8_script *script);
// The type of the object at an address, as its map has it; -1: it is none.
int32_t v8_type_of(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t address);

// What a function's name rests on: bytes of the objects that lead to it, each found by the one before.
enum { V8_PROOF_FUNCTION = 0, V8_PROOF_SHARED, V8_PROOF_NAME, V8_PROOF_TEXT, V8_PROOF_STEPS };
enum { V8_PROOF_BYTES_MAX = 96 };
struct v8_proof {
    uint64_t address[V8_PROOF_STEPS]; // 0: there is none
    uint8_t got[V8_PROOF_STEPS];
    uint8_t function[40], shared[48], name[V8_PROOF_BYTES_MAX], text[32];
};
// For reading the bytes of a step.
void *v8_proof_bytes(struct v8_proof *proof, unsigned step);
size_t v8_proof_size(unsigned step);
// They were read. What changes without being another function is cleared, and the next step's address is found.
void v8_proof_lead(const struct v8_layout *layout, struct v8_proof *proof, unsigned step);

// ---- text.c

// A string, as UTF-8, cut to fit. False: it is none, or cannot be read.
bool v8_read_text(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t address, char *text,
                  size_t text_size);
// Where the characters of a string are that has all of them in one place.
struct v8_characters {
    uint64_t address;
    uint32_t count;
    uint8_t bytes_each;
};
bool v8_find_characters(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t address,
                        struct v8_characters *characters);

// ---- positions.c

// Where in its script the bytecode at an offset stands; -1: not known. The machine keeps that only of some functions.
int32_t v8_position_at(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t bytecodes,
                       uint32_t offset);

// Ends of lines, counted while a text is read piece by piece.
struct v8_line_count {
    uint32_t position, line; // of the character that comes next; both from 0
    bool after_return;       // which a line feed does not end another line
};
// `count` characters more. `at` is called with each position that a new line begins at.
void v8_count_lines(struct v8_line_count *lines, const uint8_t *characters, size_t count, unsigned bytes_each,
                    void (*at)(void *context, uint32_t position), void *context);

#endif
