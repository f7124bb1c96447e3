// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share.
#ifndef TRACER_PATCH_INSIDE_H
#define TRACER_PATCH_INSIDE_H

#include "base/vector.h"
#include "libqut/os/scheduling.h"
#include "libqut/target/opened_target.h"
#include "tracer/patch/patch.h"

// A site that is in, and what was mapped there: a module that is loaded later at the same place is another one.
struct patch_installed {
    struct patch_site site;
    uint64_t device, inode, file_offset; // of the site's address
};

// Code that threads are moved away from.
struct patch_place {
    uint64_t start, end;
    struct patch_site *site;
};

// What is read and written at once: bytes of neighbouring pages, and the sites in them.
struct patch_run {
    uint64_t address;
    size_t size, got;
    size_t first, count; // of the work's sites
    uint8_t *bytes;
    bool is_changed;
};

struct patch_process {
    pid_t pid;
    int memory_fd; // for writing
    int pages_fd;  // /proc/PID/pagemap; -1: none
    struct qut_target *target;
    struct patch_stub stub;
    struct os_scheduling usual; // of this thread, while it hurries
    bool hurries;
    // Of walks.
    char *cache_directory;
    qut_compile_fn compile;
    void *compile_context;
    BASE_VECTOR(struct patch_installed) installed; // ascending
    struct {
        BASE_VECTOR(struct patch_installed);
    } past; // was in, and is in the code of children that were forked then
    struct {
        BASE_VECTOR(uint64_t);
    } leaving; // slots of threads that are in the exit stub
    struct {
        BASE_VECTOR(pid_t);
    } inner;        // threads that were in thunks or the stub when all were looked at
    uint8_t *stack; // of one thread, as far as it was read
    size_t stack_capacity;
};

// One change, from before the stop to its end.
struct patch_work {
    struct patch_process *process;
    struct patch_figures *figures;
    struct patch_site **sites; // ascending by address
    size_t site_count;
    struct patch_run *runs;
    size_t run_count;
    uint8_t *bytes;             // of the runs
    struct patch_place *places; // ascending
    size_t place_count;
    // Where a pc at a place goes on; 0: it cannot be told.
    uint64_t (*move)(const struct patch_site *site, uint64_t pc);
};

// ---- patch_stop.c

// All threads but those that `figures` says. 0 or -1.
int patch_stop(struct patch_process *process, struct patch_figures *figures, struct base_error *error);
void patch_resume(struct patch_process *process, struct patch_figures *figures);
// The same, and waits until each of process->inner has run, or sleeps. Whether one runs still.
bool patch_let_inner_run(struct patch_process *process, struct patch_figures *figures);

// ---- patch_text.c

// Makes the runs of work->sites. 0 or -1: no memory.
int patch_plan_runs(struct patch_work *work, struct base_error *error);
void patch_read_runs(struct patch_work *work);
// A site's bytes in its run; NULL: they could not be read.
uint8_t *patch_run_bytes(struct patch_run *run, const struct patch_site *site);
// Runs that are changed. -1: those before the one that failed have been written, and *written of them.
int patch_write_runs(struct patch_work *work, size_t *written, struct base_error *error);
// What is mapped at the site. False: nothing that can be run.
bool patch_identify(const struct patch_process *process, const struct patch_site *site,
                    struct patch_installed *installed);

// ---- patch_move.c

// Sorts places, which do not overlap.
void patch_sort_places(struct patch_work *work);
// Moves every thread, and what handlers return to, away from the places. Where one cannot be moved `stuck` is called.
void patch_move_all(struct patch_work *work, void (*stuck)(struct patch_work *work, struct patch_site *site));

// ---- patch_returns.c

// Puts true return addresses into every slot that holds the exit stub's.
void patch_restore_returns(struct patch_process *process, struct patch_figures *figures);

// ---- patch_inherit.c

// What a child of fork that has not been looked at may still have.
void patch_note_past(struct patch_process *process, const struct patch_installed *installed);

// ---- patch_handlers.c

uint64_t patch_word_at(const uint8_t *bytes, unsigned word_bytes);
// Reads a stack from sp to the end of its mapping, or so far as is usual, into process->stack.
size_t patch_read_stack(struct patch_process *process, uint64_t sp, bool *is_whole);

// Calls `each` for what every signal handler on a thread's stack returns to: the pc, and where it is kept. Adds to
// *in_stub the words that look like a return into the stub's middle: what it calls is not there.
typedef void (*patch_handler_fn)(void *context, uint64_t pc, uint64_t kept_at);
// False: the stack is so deep that not all of it was searched.
bool patch_each_handler(struct patch_process *process, uint64_t sp, patch_handler_fn each, void *context,
                        unsigned *in_stub);

#endif
