// SPDX-License-Identifier: Apache-2.0
// CPython from its memory: which functions each thread is in, what they are called and where they stand. The same for a
// process that is stopped and for a core file; nothing is asked of the interpreter. Nothing that is read is believed:
// lists are followed for a bounded number of steps, lengths are bounded, and each object has to be what it should be.
//
//   _PyRuntime -> interpreters -> thread states -> the innermost frame -> its caller's, ... -> code objects
//
// A native frame of the evaluator (_PyEval_EvalFrameDefault) stands for a group of functions: one of them in 3.8 to
// 3.10; from 3.11 on calls between functions need no native frame, and what a call from C begins with is marked. From
// 3.11 on something of each group lies in its evaluator's native frame: its anchor. By that groups are put where they
// belong, and no two of them can be confused.
#ifndef QUT_CPYTHON_CPYTHON_H
#define QUT_CPYTHON_CPYTHON_H

#include <qut/frame.h>

#include "libqut/elf/image_memory.h"

enum {
    CPYTHON_FRAMES_MAX = 4096,  // of a thread
    CPYTHON_GROUPS_MAX = 2048,  // likewise
    CPYTHON_STATES_MAX = 8,     // thread states of one native thread: one for each interpreter that it is in
    CPYTHON_THREADS_MAX = 8192, // of a process
    CPYTHON_NAME_BYTES = 512,
    CPYTHON_TEXT_ROOM_BYTES = 4 * CPYTHON_NAME_BYTES,
    CPYTHON_PAGE_BYTES = 4096,
    CPYTHON_PAGES = 8,        // of memory that are kept while a thread stands still
    CPYTHON_CODE_BYTES = 256, // of a code object: all that is read of it. It may be smaller, and end a mapping
};

enum cpython_fault {
    CPYTHON_FINE = 0,
    CPYTHON_UNKNOWN_VERSION,
    CPYTHON_NO_THREAD,  // no thread state belongs to the thread
    CPYTHON_UNREADABLE, // memory that is named cannot be read
    CPYTHON_TORN,       // frames do not lead to one another as they should
    CPYTHON_TOO_MANY,   // frames, or threads
    CPYTHON_NO_MEMORY,  // ours
    CPYTHON_FAULT_COUNT,
};
// "its frames do not lead to one another", ... Static text.
const char *cpython_fault_text(enum cpython_fault fault);

// ---- layout.c

enum cpython_form {
    CPYTHON_FRAME_OBJECTS,  // 3.8 to 3.10: a list of frame objects, one evaluator each
    CPYTHON_ENTRY_FRAMES,   // 3.11: what C called is marked; the evaluators' records are linked
    CPYTHON_RECORDED_SHIMS, // 3.12: behind what C called is a frame of no function; records as before
    CPYTHON_SHIMS,          // 3.13 on: the same without records
};

enum cpython_lines { CPYTHON_LINES_DELTAS, CPYTHON_LINES_RANGES, CPYTHON_LINES_PLACES }; // 3.8, 3.10, 3.11 on

// Offsets of what is read. A thread state's lie in its first CPYTHON_STATE_BYTES.
enum { CPYTHON_STATE_BYTES = 320 };
struct cpython_layout {
    uint8_t minor, form, lines;
    uint8_t executable_tag;    // bits of a code object's address in a frame that are none
    uint8_t generator_running; // the state of a generator that runs
    uint16_t runtime_interpreters;
    uint16_t interpreter_next, interpreter_threads;
    uint16_t thread_next, thread_interpreter, thread_id;
    uint16_t thread_native_id;                       // 0: there is none
    uint16_t thread_base_frame;                      // behind the outermost one; 0: nothing is there
    uint16_t thread_frame;                           // the innermost frame, or the evaluator's record
    uint16_t thread_root_record;                     // the outermost record is part of the thread state
    uint16_t thread_chunk, thread_top, thread_limit; // of the memory that frames lie in; 0: not so
    uint16_t record_frame, record_previous;          // of an evaluator's record
    uint16_t frame_code, frame_instruction, frame_previous, frame_owner, frame_entry;
    uint16_t code_first_line, code_name, code_qualified, code_file, code_lines, code_instructions;
    uint16_t code_version; // no two code objects have the same; 0: there is none
    uint16_t object_type, object_size, bytes_data;
    uint16_t text_length, text_state, text_ascii_data, text_data;
};

enum { CPYTHON_OWNED_BY_THREAD = 0, CPYTHON_OWNED_BY_GENERATOR = 1, CPYTHON_OWNED_BY_STACK = 3 };

// By the version's second number. From 3.13 on the interpreter itself says where things are, at `runtime`. False: it is
// not known.
bool cpython_layout_of(unsigned minor, const struct elf_art_memory *memory, uint64_t runtime,
                       struct cpython_layout *layout);

// ---- threads.c

struct cpython_thread {
    int32_t tid; // as its own process knows it; 0: not known
    uint64_t state, interpreter;
    uint64_t descriptor, native; // what the state says of the thread
};

struct cpython_runtime {
    struct cpython_layout layout;
    uint64_t runtime;   // _PyRuntime
    uint64_t code_type; // PyCode_Type
    uint64_t evaluator_start, evaluator_end;
    struct cpython_thread *threads; // as they were when they were listed; room for CPYTHON_THREADS_MAX
    size_t thread_count;
};

// The thread states of all interpreters. What was read before is forgotten. What could be read is there after a fault,
// too.
enum cpython_fault cpython_list_threads(struct cpython_runtime *runtime, const struct elf_art_memory *memory);

// ---- frames.c

struct cpython_frame {
    uint64_t code;        // the code object's address
    uint64_t instruction; // 3.11 on: address of the one that runs; before: its offset in bytes
};

struct cpython_group {
    uint64_t anchor; // an address in the evaluator's native frame; 0: not known
    uint32_t first, count;
    uint32_t state; // number of the thread state: groups of one state follow each other, innermost first
};

// What memory was read while a thread stands still.
struct cpython_view {
    const struct elf_art_memory *memory;
    uint64_t starts[CPYTHON_PAGES]; // 0: none
    unsigned next;
    uint8_t bytes[CPYTHON_PAGES][CPYTHON_PAGE_BYTES];
};

// The functions that a thread is in, innermost first.
struct cpython_stack {
    struct cpython_view *view;    // to work with: too large for a stack
    enum cpython_fault fault;     // what was taken before it is sound
    bool is_entering;             // the innermost evaluator's group is being made, or given up
    struct cpython_frame *frames; // room for CPYTHON_FRAMES_MAX
    size_t frame_count;
    struct cpython_group *groups; // room for CPYTHON_GROUPS_MAX
    size_t group_count;
    uint32_t state_count;
    // Pages that were needed last time, of this thread.
    uint64_t pages[CPYTHON_PAGES];
    int32_t pages_tid;
};

// The thread stands still, or sleeps, or is the caller. Signal-safe, where memory->read is.
void cpython_take(const struct cpython_runtime *runtime, const struct elf_art_memory *memory, int32_t tid,
                  struct cpython_stack *stack);

// ---- merge.c

// Functions among the native frames of their thread's walk: each group behind its evaluator's frame. Nothing is
// allocated; signal-safe.
struct cpython_merging {
    const struct cpython_runtime *runtime;
    uint64_t text_start, text_end; // of the code that the evaluator lies in
    const struct cpython_stack *taken;
    const struct qut_frame *native; // lookup_pc, sp and flags count
    size_t count;
    bool is_whole; // the walk came to the outermost frame
    // What is found, of each group: the native frame before it; whether that is not certain.
    int32_t places[CPYTHON_GROUPS_MAX];
    bool is_guessed[CPYTHON_GROUPS_MAX];
    bool has_unplaced; // groups that belong to no frame of a whole walk: of another thread, or not as they are now
};

bool cpython_has_evaluator(const struct cpython_merging *merging);
// Finds the places. False: which native frames run which functions is not certain.
bool cpython_place(struct cpython_merging *merging);
// Calls put for every native frame and every function, innermost first, until it returns false.
struct cpython_item {
    bool is_function, is_guessed;
    size_t index; // of the native frame; of a function: in taken->frames
    uint64_t sp;  // of the native frame; of a function: of the one behind its evaluator's
};
void cpython_each_merged(const struct cpython_merging *merging, bool (*put)(void *context, const struct cpython_item *),
                         void *context);

// What stands for a function and a line where an address would: in no address space, since addresses have 57 bits at
// most.
//   bits 20 to 47  the function's number; 0: it is not known
//   bits 0 to 19   the line; 0: not known
#define CPYTHON_NUMBER_BASE ((uint64_t)0x5059 << 48)
enum { CPYTHON_LINE_BITS = 20 };
static inline bool cpython_is_number(uint64_t pc)
{
    return pc >> 48 == CPYTHON_NUMBER_BASE >> 48;
}

// ---- code.c

// What tells a code object from another one at its address.
struct cpython_code {
    uint64_t address;
    uint64_t name, file, lines, instructions; // addresses of objects; of the first instruction
    int32_t first_line;
    uint32_t instruction_bytes; // at most
    uint32_t version;           // 0: another object may be like it, and lie where it lay
};
// False: there is none. The second by its first bytes, of which there are `got`.
bool cpython_read_code(const struct cpython_runtime *runtime, const struct elf_art_memory *memory, uint64_t address,
                       struct cpython_code *code);
bool cpython_code_of(const struct cpython_runtime *runtime, uint64_t address, const uint8_t *bytes, size_t got,
                     struct cpython_code *code);
// How many of its bytes are needed.
size_t cpython_code_bytes(const struct cpython_runtime *runtime);
// What the evaluator itself pushes so that __init__ returns to it, from 3.12 on: it is no function of the program.
static inline bool cpython_is_internal(const struct cpython_code *code)
{
    return code->name == code->file;
}
// A string, as UTF-8, cut to fit. False: it is none, or cannot be read.
bool cpython_read_text(const struct cpython_runtime *runtime, const struct elf_art_memory *memory, uint64_t address,
                       char *text, size_t text_size);
// The same with room for CPYTHON_TEXT_ROOM_BYTES to work with: in handlers.
bool cpython_read_text_with(const struct cpython_runtime *runtime, const struct elf_art_memory *memory,
                            uint64_t address, char *text, size_t text_size, uint8_t *room);
// The bytes of an object. Returns how many; 0: none, or they do not fit.
size_t cpython_read_bytes(const struct cpython_runtime *runtime, const struct elf_art_memory *memory, uint64_t address,
                          uint8_t *bytes, size_t size);

// ---- lines.c

// The line of an instruction, offset_bytes from the first one on; 0: it has none, or the table is not sound.
uint32_t cpython_line_at(enum cpython_lines form, const uint8_t *table, size_t table_bytes, int32_t first_line,
                         uint32_t offset_bytes);

#endif
