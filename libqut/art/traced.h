// SPDX-License-Identifier: Apache-2.0
// Method tracing of Android's runtime (Android 13 and before) puts an address of its own in place of a method's return
// address, that of art_quick_instrumentation_exit, and keeps the true one on a stack of its own. As it is in ART 11
// (OAT version 183), on x86-64:
//
//   thread    art::Thread, which gs points at, and which points at itself; a word of it leads to a std::map
//   map       from the place of a return address on the stack to: object, method, the true return address
//
// The map is libstdc++'s or libc++'s: the head tells which, as only one of the two readings leads to the place that is
// sought. A node counts with that very place as its key. It is there from when the address was exchanged until it is
// put back, and is changed by the thread itself, or while that stands still.
#ifndef QUT_ART_TRACED_H
#define QUT_ART_TRACED_H

#include "libqut/elf/image_memory.h"

// What is known of an architecture.
struct art_traced_layout {
    uint16_t core_thread_at;      // in what ptrace and core files give: what leads to art::Thread
    uint16_t self_at, returns_at; // in art::Thread
};
const struct art_traced_layout *art_traced_layout(const struct arch *arch); // NULL: nothing

// `thread`: of the runtime; 0: not known. sp: as it is behind the return. False: nothing is kept for it, or it is not
// known. Signal-safe where memory->read is; at most 150 words are read.
bool art_true_return(const struct elf_art_memory *memory, uint64_t thread, uint64_t sp, uint64_t *pc);

// One of them: the place that the map has it for, where it would stand on the stack.
struct art_return {
    uint64_t slot, pc;
};
// All that are kept for a thread that stands still, for one who walks a copy of its stack later; at most `max`. Returns
// how many. A level of the map is read at once. Not for handlers.
size_t art_true_returns(const struct elf_art_memory *memory, uint64_t thread, struct art_return *returns, size_t max);
// As art_true_return, of these.
bool art_true_return_of(const struct art_return *returns, size_t count, uint64_t sp, uint64_t *pc);

#endif
