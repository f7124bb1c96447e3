// SPDX-License-Identifier: Apache-2.0
// A process with code that was made at run time, and the lists that tell of it: what children of tests of targets do.
// The code lies where frame_asm.h has its text; x86-64 alone.
#ifndef TESTS_UNIT_LIBQUT_TARGET_MADE_CODE_H
#define TESTS_UNIT_LIBQUT_TARGET_MADE_CODE_H

#include "tests/support/frame_asm.h"

enum {
    MADE_ENTRIES = 8,
    SLOTS = 4,
    SLOT_BYTES = 0x40,
    RETURN_OFFSET = 9,
    CODE_BYTES = 4096,
    CHANGE_BYTES = 64,
};
enum { ANY_LAYOUT = 0, ANDROID1 = '1', ANDROID2 = '2' };

// As debuggers know them, with what Android adds.
struct made_entry {
    struct made_entry *next, *previous;
    const void *symfile;
    uint64_t symfile_bytes, timestamp;
    uint32_t seqlock, zero;
};
struct made_descriptor {
    uint32_t version, action;
    struct made_entry *relevant, *first;
    char magic[8];
    uint32_t flags, descriptor_bytes, entry_bytes, seqlock;
    uint64_t timestamp;
};
__attribute__((visibility("default"))) extern struct made_descriptor __jit_debug_descriptor, __dex_debug_descriptor;

typedef void (*made_function)(void);

// Shared with the test.
struct made_shared {
    _Atomic unsigned ready; // how often made_leaf was reached
};
extern struct made_shared *made_shared;
extern int made_pipe[2]; // made_leaf goes on when a byte is written

// What is in the lists.
extern struct made_entry made_entries[MADE_ENTRIES];
// Slot n's code has a frame of that many bytes between its return address and what it calls.
extern unsigned made_frame_bytes[SLOTS];

// Maps the code and writes all slots. Ends the process, with 77, where that cannot be.
void made_begin(void);
void made_write_slot(unsigned slot);

// A symbol file as ART makes them, for some slots. too_large: what each frame is said to have in excess.
struct build_buffer made_file(unsigned first, unsigned count, int too_large);
// As libLLVM makes them: what is registered is not relocated, what was loaded is. Once in a process.
struct build_buffer made_loaded_file(unsigned first, unsigned count);

void made_set_layout(int layout);
// At the head of the list, as everybody does. index: in made_entries.
struct made_entry *made_add(struct made_descriptor *descriptor, unsigned index, const void *symfile, size_t size,
                            uint64_t timestamp);
struct made_entry *made_add_file(unsigned index, struct build_buffer file, uint64_t timestamp);

// Through slot 0 and slot 1 to made_leaf, which sleeps.
void made_descend(void);
void made_leaf(void);
// made_descend twice; in between the frame of slot 1 grows by CHANGE_BYTES, and it is described anew:
void made_reused(void);       // ... at the same place, by the same entry: only the bytes differ
void made_entry_reused(void); // ... elsewhere, by the same entry: the descriptor looks as it did before
void made_replaced(void);     // ... by another entry; Android2, and the old one is still there
// Registers, calls, removes, again and again; never the same frames twice in a row.
void made_storm(void);

#endif
