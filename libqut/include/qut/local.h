// SPDX-License-Identifier: Apache-2.0
// Walking the threads of this process.
//
//     qut_start(&options);            once
//     qut_thread_register();          in each thread that can do so: makes its walks faster
//     n = qut_backtrace(pcs, 64, &end);                 here, or
//     n = qut_backtrace_context(ucontext, pcs, 64, &end);   in a signal handler, from where it interrupted
#ifndef QUT_LOCAL_H
#define QUT_LOCAL_H

#include <qut/compiler.h>
#include <qut/frame.h>

QUT_DECLS_BEGIN

struct qut_options {
    size_t size;                 // sizeof(struct qut_options)
    const char *cache_directory; // where tables are looked for, by build-id; NULL: nowhere. Copied
    qut_compile_fn compile;      // makes those that the cache does not have; NULL: they stay unknown
    void *compile_context;
    uint32_t flags; // enum qut_start_flag
    uint32_t zero;
};

enum qut_start_flag {
    // No thread of our own: new modules become known in qut_refresh only.
    QUT_START_NO_THREAD = 1,
    // Where nothing is known about executable memory, walks follow frame pointers through it, if there seem to be some:
    // aligned, ever further out, each return address behind a call. Such frames are marked (QUT_FRAME_GUESSED).
    QUT_START_FRAME_POINTERS = 2,
};

// Learns the modules that are loaded now and starts the thread that looks after later ones and makes missing tables.
// Does not wait for them; qut_wait does. The calling thread is registered. Returns 0, or -EALREADY, -EINVAL, -ENOMEM,
// or what creating the thread failed with. [not signal-safe, blocks, allocates; start, stop, refresh and wait may run
// in any threads, one waits for the other]
QUT_API int qut_start(const struct qut_options *options);

// Ends the thread, drops all tables. Walks that are still running finish first; later ones give QUT_END_NOT_STARTED.
// Threads may stay registered. [not signal-safe, blocks, allocates]
QUT_API void qut_stop(void);

// Learns what was loaded and unloaded since, and what just-in-time compilers registered and removed, and has every
// table made before it returns. There is no need to call it: a walk that meets unknown code wakes the thread. Returns
// the number of modules without a table, or -EINVAL before qut_start. [not signal-safe, blocks, allocates]
QUT_API int qut_refresh(void);

// Waits until no table is pending, at most timeout_ms. Returns 0, -ETIMEDOUT (with QUT_START_NO_THREAD at once, if one
// is pending), or -EINVAL before qut_start. [not signal-safe, blocks; any thread]
QUT_API int qut_wait(int timeout_ms);

// Remembers the bounds of the calling thread's stack and gives it 43 KiB in which to remember rules and its last walk.
// Returns 0, also where it was registered already, or -ENOMEM. Undone when the thread ends. Unregistered threads can be
// walked as well, 20 times more slowly.
// [not signal-safe, blocks, allocates; any thread for itself]
QUT_API int qut_thread_register(void);
QUT_API void qut_thread_unregister(void);

// The stack of the caller, innermost first: frame 0 is the function that calls. Each pc lies inside the instruction
// that runs in its frame (for a caller, the call): look it up as it is, never with one subtracted. Returns the number
// of frames, at most max. `end` may be NULL. Behind the frame of an interpreter of a virtual machine comes one
// for the bytecode, whose pc lies in no module; qut_cursor_frame tells which are such (QUT_FRAME_DEX), and frame.h what
// it is: lookup_pc.
// [signal-safe; any thread; uses less than 1 KiB of stack]
QUT_API size_t qut_backtrace(uintptr_t *pcs, size_t max, struct qut_end *end);

// The same from the ucontext_t that a signal handler was given: frame 0 is the interrupted code. Only in the thread
// that was interrupted, while its handler runs. [signal-safe; uses less than 1 KiB of stack]
QUT_API size_t qut_backtrace_context(const void *ucontext, uintptr_t *pcs, size_t max, struct qut_end *end);

// One frame at a time. The cursor is plain memory: no need to close it. It may be copied; copies go on alone.
struct qut_cursor {
    uint64_t opaque[64];
};

// At the function that calls; it may not return while the cursor is in use. [signal-safe]
QUT_API void qut_cursor_here(struct qut_cursor *cursor);
// At the interrupted code. [signal-safe]
QUT_API void qut_cursor_context(struct qut_cursor *cursor, const void *ucontext);
// The frame the cursor is at. [signal-safe]
QUT_API void qut_cursor_frame(struct qut_cursor *cursor, struct qut_frame *frame);
// A register of the frame the cursor is at, by DWARF number: 1 and *value, or 0 where its value is not known. At the
// interrupted frame all are known; further out the stack pointer and those that unwind rules and virtual machines
// need. [signal-safe]
QUT_API int qut_cursor_register(const struct qut_cursor *cursor, unsigned dwarf_register, uint64_t *value);
// Moves to the caller: 1. Or stays: 0, and qut_cursor_end says why. [signal-safe]
QUT_API int qut_cursor_next(struct qut_cursor *cursor);
QUT_API void qut_cursor_end(const struct qut_cursor *cursor, struct qut_end *end);

// A module of this process, as walks know it: for names of code, and for why a walk ended in it.
struct qut_loaded_module {
    uintptr_t start, end;   // its first byte of code; behind its last
    uint64_t load_bias;     // address = virtual address in the ELF file + load_bias
    uint32_t has_table;     // 1: walks go through it
    uint32_t build_id_size; // 0: it has none
    uint8_t build_id[64];
    char reason[128]; // with has_table 0: why
    char path[4096];  // as the loader calls it; "" for the program itself. Cut off where it is longer
};

// The module that has code at an address: 1, or 0 where none is known. Of size bytes those that this version knows are
// filled, the others 0. [not signal-safe, blocks; any thread]
QUT_API int qut_module_at(uintptr_t address, struct qut_loaded_module *module, size_t size);

// What happened since qut_start. Times are of CLOCK_MONOTONIC.
struct qut_stats {
    uint64_t ends[16];         // walks that ended, by enum qut_end_reason: approximate while walks run
    uint64_t module_count;     // known now
    uint64_t pending_count;    // ... of these, whose table is not there yet
    uint64_t no_table_count;   // ... of these, that will have none
    uint64_t table_bytes;      // memory of all tables
    uint64_t tables_cached;    // read from the cache directory
    uint64_t tables_compiled;  // made
    uint64_t compile_ns;       // time that took, together
    uint64_t walkable_last_ns; // for the module that came last: from the moment it was met to its table in use
    uint64_t walkable_most_ns; // the longest of these
    // Code made at run time, which compilers register for debuggers (__jit_debug_descriptor).
    uint64_t jit_lists;           // of registered code, in this process
    uint64_t jit_list_faults;     // ... of these, that could not be read last
    uint64_t jit_entries;         // symbol files in the lists
    uint64_t jit_pending;         // ... of these, whose table is not there yet
    uint64_t jit_not_elf;         // ... that are something else than ELF files
    uint64_t jit_not_read;        // ... that could not be read, or are too large
    uint64_t jit_no_table;        // ... of which no table could be made
    uint64_t jit_table_bytes;     // memory of the others' tables
    uint64_t jit_tables_compiled; // made
    uint64_t jit_compile_ns;      // time that took, together
    uint64_t jit_readings;        // of all lists
};

// [not signal-safe, blocks; any thread]
QUT_API void qut_get_stats(struct qut_stats *stats, size_t size);

QUT_DECLS_END

#endif
