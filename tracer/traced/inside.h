// SPDX-License-Identifier: Apache-2.0
// What the parts of a traced process share. All of it is the thread's own, but for what is said to be the recorder's.
#ifndef TRACER_TRACED_INSIDE_H
#define TRACER_TRACED_INSIDE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/vector.h"
#include "formats/qut_calls.h"
#include "formats/qut_probe_live.h"
#include "tracer/calls/patterns.h"
#include "tracer/calls/places.h"
#include "tracer/calls/thunk.h"
#include "tracer/collect/calls_write.h"
#include "tracer/patch/patch.h"
#include "tracer/traced/process.h"
#include "tracer/traced/scope.h"

struct traced_module {
    char *path;       // as the process's maps have it
    const char *name; // by which patterns mean it; NULL: none does
    uint64_t start, bias;
    bool is_there;               // at the last look
    struct calls_plan *plan;     // NULL: nothing in it is traced
    uint32_t number;             // in the file
    uint64_t block, block_bytes; // of thunks
    uint64_t traps;              // their table; 0: there is none
    size_t traps_bytes;
    uint64_t first_address; // of what was exchanged; 0: nothing was
    uint8_t first_bytes[CALLS_JUMP_BYTES];
    uint8_t build_id[QUT_TRACE_BUILD_ID_BYTES];
    uint32_t build_id_bytes;
};

struct traced_function {
    uint32_t module, index; // in the module's plan
    uint64_t address;       // in the process, of what was exchanged; 0: nothing is
    uint64_t thunk;         // 0: it has none
    uint8_t thunk_begin[5]; // the first bytes of that
    bool is_counted;        // makes no events, or no longer
    bool is_told;           // in the file
    bool is_caller;
    bool is_thinned;         // events of some of its calls, which have an id of their own, and a count of all
    uint32_t thinned_id;     // of these events; 0: it has had none
    uint32_t same_as;        // of such an id: the function's; 0: it is another's own
    uint32_t thinning_log2;  // one of so many calls is recorded
    uint64_t mask_address;   // in the process
    uint64_t thinned_enters; // events of thinned_id that were read
    uint64_t entered_now;    // events since the last look at the budget
    uint64_t short_calls;    // that filters left out
    uint64_t least_ticks;    // shorter ones are left out
};

struct traced_running { // a call that ran when tracing began
    uint32_t tid;       // 0: it is in the file
    struct qut_calls_event event;
};

struct traced_ring; // events.c

struct traced_process {
    // The recorder's.
    struct traced_begin begin;
    char token[AGENT_TOKEN_BYTES];
    int stop_fd, replaced_fd; // eventfds
    pthread_t thread;
    _Atomic bool is_finished; // then the result may be read

    struct traced_result result;
    struct base_error error; // the first; reason 0: none
    pid_t pid;
    char command[32], program_path[PATH_MAX], started_as[PATH_MAX];
    struct calls_patterns patterns;
    struct traced_leasts *leasts; // NULL: all calls are long enough
    int channel_fd;               // -1: the agent is gone
    uint64_t question;
    const struct traced_options *options;
    struct qut_calls_header header; // as it was when it was checked
    uint8_t *memory;
    size_t memory_bytes;
    struct patch_process *patch;
    struct collect_calls *writer;
    struct {
        BASE_VECTOR(struct traced_module);
    } modules;
    struct {
        BASE_VECTOR(struct traced_function);
    } functions; // by id; the first is none
    struct {
        BASE_VECTOR(struct traced_running);
    } running;
    uint64_t begin_ticks;
    struct traced_ring *rings;                // header.ring_count
    struct qut_calls_event *batch;            // on their way from a ring to the file
    bool traps_are_refused;                   // the agent cannot catch them
    uint64_t least_ticks;                     // of functions that have none of their own
    uint64_t maps_hash;                       // of what is mapped executable
    uint64_t modules_ns, clock_ns, budget_ns; // when each was looked after
    // Children of fork take over from here what is exchanged: modules, functions, sites, which change under the lock.
    pthread_mutex_t code_lock;
    pthread_cond_t has_begun_event;
    bool has_begun, has_failed;
    // Of probes: which programs run at a function, by its number; shared. NULL: there are none.
    uint32_t *masks;
    uint64_t masks_begin;                                      // in the memory of probes
    struct calls_patterns probe_patterns[TRACED_PATTERNS_MAX]; // one each
    // Likewise: out of which functions a program's calls are. What is shared is read by others only.
    struct qut_probe_callers *callers;                             // behind the masks
    uint32_t caller_rooms[QUT_PROBE_LIVE_CALLER_MODULES_MAX];      // of each of its modules
    struct calls_patterns caller_patterns[QUT_PROBE_PROGRAMS_MAX]; // at most one, by program
    struct {
        BASE_VECTOR(struct calls_patterns);
    } place_patterns; // as options->probe->places
    unsigned users;   // the recorder's: children whose parent this is, and the recorder itself
};

// ---- inherit.c

// Of a child of fork: what its parent has exchanged, as far as its own code has it.
int traced_inherit(struct traced_process *process, struct base_error *error);

// ---- begin.c

void traced_use_stub(const struct traced_process *process, struct patch_process *patch);
// A moment by both clocks, into the file.
int traced_write_clock(struct traced_process *process, struct base_error *error);
// All up to the first look at the rings. Needs the lock.
int traced_begin_process(struct traced_process *process, struct base_error *error);

// ---- leasts.c

// From options. 0; -1: *error.
int traced_leasts_begin(struct traced_process *process, struct base_error *error);
// Of what is traced of a module that is called so.
void traced_leasts_mark(struct traced_process *process, uint32_t module, const char *name);
void traced_leasts_free(struct traced_process *process);

// ---- probes.c

// Without probes nothing happens. 0; -1: *error.
int traced_probe_begin(struct traced_process *process, struct base_error *error);
// The agent runs programs from now on.
int traced_probe_tell(struct traced_process *process, struct base_error *error);
// Of functions that a child of fork has from its parent, whose lock the caller has.
void traced_probe_inherit(struct traced_process *process, const struct traced_process *parent);
// Of functions of a module that have numbers, before they are put in.
// Leaves out of the selection where none of the programs runs, and counts where some do not.
int traced_probe_narrow(struct traced_process *process, uint32_t module, struct calls_selection *selection,
                        struct base_error *error);
int traced_probe_mark(struct traced_process *process, uint32_t module, struct base_error *error);
// Probes took more of the processor than they may: all is to be put back.
bool traced_probe_is_over(const struct traced_process *process);
void traced_probe_free(struct traced_process *process);

// ---- callers.c

// Behind the masks, which are there. 0; -1: *error.
int traced_callers_begin(struct traced_process *process, struct base_error *error);
// Whether calls out of a module of that name may be meant.
bool traced_callers_want(const struct traced_process *process, const char *module);
// Those of a module, which has a plan and a name, before its functions are put in. file_path: where its file is read.
// 0; -1: *error.
int traced_callers_add(struct traced_process *process, uint32_t module, const char *file_path,
                       struct base_error *error);
void traced_callers_forget(struct traced_process *process, uint32_t module); // it has gone
// Of a child of fork: its parent's, whose lock the caller has.
void traced_callers_inherit(struct traced_process *process, const struct traced_process *parent);
void traced_callers_free(struct traced_process *process);

// ---- places.c

// From options, which have probes. 0; -1: *error.
int traced_places_begin(struct traced_process *process, struct base_error *error);
bool traced_places_want(const struct traced_process *process, const char *module);
// Those of a module, which has a plan and a name. What cannot be is in the process's result.
int traced_places_install(struct traced_process *process, uint32_t module, const char *file_path,
                          struct base_error *error);
void traced_places_free(struct traced_process *process);

// ---- end.c

// The first stays; *error is empty then.
void traced_note_error(struct traced_process *process, struct base_error *error);
// `is_stopped`: the process lives, and its code is put back.
void traced_end_process(struct traced_process *process, bool is_stopped);
void traced_let_go(struct traced_process *process);

// ---- channel.c

// A mapping of the agent's near begin..end.
int traced_channel_map(struct traced_process *process, uint64_t begin, uint64_t end, uint64_t size_bytes,
                       uint64_t *address, struct base_error *error);
int traced_channel_unmap(struct traced_process *process, uint64_t begin, uint64_t end, struct base_error *error);
int traced_channel_shadow(struct traced_process *process, uint64_t begin, uint64_t end, struct base_error *error);
int traced_channel_traps(struct traced_process *process, uint64_t begin, uint64_t end, struct base_error *error);
int traced_channel_probe(struct traced_process *process, int memory_fd, uint64_t masks_begin, uint64_t masks_end,
                         struct base_error *error);
// What waits for us in the process goes on. `refused` NULL: it is traced.
void traced_channel_go_on(struct traced_process *process, const char *refused);

// ---- modules.c

// Looks at what is mapped, and traces what has come. 0; -1: nothing can be traced, *error.
int traced_modules_look(struct traced_process *process, struct base_error *error);
void traced_modules_free(struct traced_process *process);

// ---- install.c

// What is put in of a module at a time.
struct traced_install {
    struct traced_process *process;
    struct traced_module *module;
    uint32_t module_index;
    uint32_t *wanted;                 // of the plan's functions, those that get a thunk; or
    const struct calls_place *places; // these instead
    uint32_t *ids;
    size_t count;
    uint8_t *code; // the block as it will be
    uint64_t block, block_bytes;
    struct patch_site *sites;
    size_t site_count;
    size_t trap_count;  // wanted
    uint64_t traps_at;  // their table, in the block
    uint64_t ledger_at; // likewise; of so many sites:
    size_t ledger_room;
};

static inline uint64_t traced_aligned(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

// A block for all of them, with the addresses of the stubs in it, and room for their sites.
int traced_map_block(struct traced_install *work, struct base_error *error);
// The block as it is to be, with what others need who have to put back its sites.
int traced_write_block(struct traced_install *work, struct base_error *error);
// The thunk of the i-th, as that is by now: counted, thinned.
bool traced_make_thunk(const struct traced_install *work, size_t i, uint64_t at, struct calls_thunk *thunk);
int traced_make_block(struct traced_install *work, struct base_error *error);
int traced_put_in(struct traced_install *work, struct base_error *error);

// Tells the file of a function.
int traced_tell_function(struct traced_process *process, uint32_t id, struct base_error *error);
// Puts in all that is wanted of a module. What cannot be is in the process's result.
int traced_install(struct traced_process *process, uint32_t module, const uint32_t *wanted, size_t count,
                   struct base_error *error);
// The module has gone: so have its entries.
void traced_forget(struct traced_process *process, uint32_t module);
void traced_take_out(struct traced_process *process);
// The same without a process of ours, of all that is known to be in. 0 or -1.
int traced_take_all_out(struct patch_process *patch, pid_t pid, struct patch_figures *figures,
                        struct base_error *error);

// A stop for something else is counted as well.
void traced_note_stop(struct traced_process *process, const struct patch_figures *figures);

// ---- switch.c

// From now on these are counted only; or of those that have a thinned_id some calls are recorded.
void traced_switch(struct traced_process *process, const uint32_t *ids, size_t count, bool is_thinned);

// ---- traps.c

// Whether functions of the module that have room for a trap only are traced.
bool traced_traps_fit(const struct traced_process *process, const struct traced_module *module);
// A row of the site, behind those that there are.
void traced_traps_add(struct qut_calls_trap *rows, size_t *count, const struct patch_site *site);
// The agent knows the table, which is in place. False: none of its functions may be put in.
bool traced_traps_tell(struct traced_process *process, struct traced_module *module, uint64_t address, size_t count);
// Leaves them out of sites, of which so many are left.
size_t traced_traps_leave(struct traced_process *process, const struct traced_module *module, struct patch_site *sites,
                          size_t count);
// The module has gone: what stands at these addresses is another's.
void traced_traps_forget(struct traced_process *process, struct traced_module *module);

// ---- running.c

// Has the exits told of calls that are running.
void traced_running_take(struct traced_process *process);
// Writes the entries of those of a thread, in the order in which they were entered.
int traced_running_write(struct traced_process *process, uint32_t tid, uint32_t thread, struct traced_scope *scope,
                         struct base_error *error);
// A thread whose entries are not written yet; 0: there is none.
uint32_t traced_running_next(const struct traced_process *process);

// ---- events.c

// What is kept of a thread's events, where only some are wanted: as traced_scope; *error is filled.
ptrdiff_t traced_keep(struct traced_process *process, struct traced_scope *scope, struct qut_calls_event *events,
                      size_t count, struct base_error *error);

// ---- result.c

// What is said beside the events. Returns how many; at most `most`.
size_t traced_notes(const struct traced_result *result, struct trace_note *notes, size_t most);

// ---- budget.c

void traced_budget_look(struct traced_process *process, uint64_t elapsed_ns);

#endif
