// SPDX-License-Identifier: Apache-2.0
// What the stubs (x86_64/stub.S, aarch64/stub.S) and what prepares for them share. The stubs know these places by
// number: they are held together below.
#ifndef AGENT_CALLS_INSIDE_H
#define AGENT_CALLS_INSIDE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/calls/calls.h"
#include "bytecode/maps.h"
#include "formats/qut_calls.h"
#include "formats/qut_probe_live.h"

#pragma GCC visibility push(hidden)

// What a thread has of its ring. Memory that a child of fork finds zeroed: then it has no room, no ring and no table,
// and asks.
struct calls_own {
    uint64_t head_bytes;  // written so far. Taken by one instruction
    uint64_t limit_bytes; // up to there the stub may write; with probes it never may
    uint64_t ring;        // address of its first event
    uint64_t mask_bytes;
    uint64_t counts; // address of its table
    struct qut_calls_ring *entry;
    uint64_t stuck_events; // 1 + the tail at which a wait for room was in vain; 0: none was
    uint64_t room_bytes;   // up to there it is known that there is room
};
static_assert(sizeof(struct calls_own) == 64, "a line of its own");
static_assert(offsetof(struct calls_own, limit_bytes) == 8, "*/stub.S");
static_assert(offsetof(struct calls_own, ring) == 16, "*/stub.S");
static_assert(offsetof(struct calls_own, mask_bytes) == 24, "*/stub.S");
static_assert(offsetof(struct calls_own, counts) == QUT_CALLS_OWN_COUNTS_AT, "*/stub.S, thunks");

// Never NULL: at first one with no room.
extern _Thread_local struct calls_own *calls_own __attribute__((tls_model("initial-exec")));
extern uint8_t *calls_granules; // calls_granule_count() of enum qut_calls_granule

// Of the whole process. `is_here` is zeroed in a child of fork as well.
struct calls_area {
    uint64_t is_here;
    uint64_t zero[7];
    struct calls_own own[];
};
extern struct calls_area *calls_area;         // NULL: calls_begin was not called
extern struct qut_calls_header *calls_header; // the memory that is shared
extern struct qut_calls_ring *calls_directory;

// Whether this very process is the one that calls_begin was called in.
static inline bool calls_are_ours(void)
{
    return calls_area && __atomic_load_n(&calls_area->is_here, __ATOMIC_RELAXED) != 0;
}

// ---- */machine.c: what differs between machines

struct calls_machine {
    uint8_t arch;                    // enum qut_arch_id
    uint8_t shadow_log2, words_log2; // distances below a slot
    uint8_t address_log2;            // of the addresses that stacks can have
    uint8_t slot_bytes;              // slots are multiples of these
    uint8_t times_log2;              // of probes: when the call of a slot began; 0: there are no probes
    // The slot is where the exit's address is while a call runs. Else the word of the shadow is 0 again behind it; of
    // calls that an exception or a jump has left it stays.
    bool slot_holds_exit;
    const char *place_stub; // of places within functions; NULL: there is none
};
extern const struct calls_machine calls_machine;

static inline uint64_t calls_distance(unsigned log2)
{
    return (uint64_t)1 << log2;
}
static inline size_t calls_granule_count(void)
{
    return (size_t)1 << (calls_machine.address_log2 - QUT_CALLS_GRANULE_LOG2);
}

// A system call by itself: errno stays as it is. Returns what the kernel does.
long calls_system(long number, long a, long b, long c, long d, long e, long f);
uint64_t calls_thread_pointer(void);
// Its calls ask for a ring again.
void calls_thread_is_new(void);

// 0, -EEXIST or -errno. By a system call only; signal-safe.
int calls_map_granule(uint64_t granule);
// The part of it that probes need, if it is not there yet. As above.
int calls_map_times(uint64_t granule);

// The counter that events have.
uint64_t calls_ticks(void);
// What the stub keeps while it calls C: the six arguments at a slot's entry; what its function returns.
void calls_kept_arguments(uint64_t slot, uint64_t arguments[6]);
uint64_t calls_kept_result(uint64_t slot);
// The registers with which the function of a slot was called, or has come back, and which calls keep.
void calls_kept_registers(uint64_t slot, bool is_exit, struct calls_caller *caller);
// At an entry that a jump led to: the exit's word of the call that has jumped.
uint64_t calls_jumped_from(uint64_t slot);
// Where the call of a slot returns to: that whose entry or exit it is.
uint64_t calls_returns_to(uint64_t slot);
// Of the calling thread's stack.
uint64_t calls_slot(uint64_t word);
// Runs `take`, which may use any register, where those that are not general ones belong to the program. 0: they cannot
// be kept here. Uses 3 KiB of stack.
uint64_t calls_aside(calls_take_stack *take, const struct calls_caller *caller, uint32_t frames);

// ---- probe.c, probe_begin.c, probe_code.c, probe_budget.c

struct calls_probe {
    struct qut_probe_live *live;
    uint64_t live_bytes, own_bytes, masks_bytes;
    const uint32_t *masks;                   // shared,
    const struct qut_probe_callers *callers; // likewise
    uint32_t function_count;
    uint32_t called_programs;                              // bits of those that run in calls out of some functions only
    uint32_t entry_programs, return_programs;              // bits
    uint32_t place_programs;                               // likewise
    uint32_t unwind_programs, throw_marks, catch_marks;    // likewise; without the first the others do nothing
    uint32_t lasting_programs;                             // likewise; when a call of theirs began is kept
    uint32_t told_programs;                                // likewise; events are written where they run
    bool entry_has_ticks, exit_has_ticks, place_has_ticks; // when that was, is asked there
    struct qut_probe_image image;                          // behind this structure: our own copy
    struct bytecode_maps maps;
    uint8_t *machine_code; // of all programs that run here; NULL: they are interpreted
    uint64_t machine_code_bytes;
    const uint8_t *machine_programs[QUT_PROBE_PROGRAMS_MAX];
    uint64_t *slots;
    uint32_t slot_count, slot_words;
    uint64_t base_ticks, base_ns, rate;
    uint64_t errno_distance;      // of each thread's errno from its thread pointer: libc's own variables lie alike
    uint32_t budget_permille;     // 0: none
    uint32_t is_left;             // the tool has gone: no program runs any more
    uint64_t run_most_ticks;      // that one run counts: a thread that loses its processor in one does not spend that
    struct calls_probe *previous; // of the parent, in a child of fork
};
// Of runs that were timed, one of 2^CALLS_PROBE_TIMED_LOG2, drawn by lot: entries and exits take turns.
enum { CALLS_PROBE_TIMED_LOG2 = 4 };
struct calls_probe_spent {
    uint64_t runs, ticks;
};
extern struct calls_probe_spent calls_probe_spent;
extern struct calls_probe *calls_probe; // NULL: events are written
extern bool calls_has_times;            // granules have the part that probes need

// An entry or an exit, whose event is `word`. Signal-safe, system calls only.
void calls_probe_run(const struct calls_probe *probe, bool is_exit, uint64_t word);
// The event of an entry or an exit, with the time that it is now. One that has no room is counted. (prepare.c)
void calls_write_event(bool is_exit, uint64_t word);
// In a child of fork, by its thread.
void calls_probe_thread_is_new(void);
void calls_probe_end(void);
// Makes machine code of the programs, in memory that is written and then executed, never both at once. 0, or -errno:
// then they are interpreted. Blocks. (probe_code.c)
int calls_probe_make_code(struct calls_probe *probe);
void calls_probe_free_code(struct calls_probe *probe);
// What was spent so far is no concern of the next look. (probe_budget.c)
void calls_probe_budget_begin(void);
// Of all granules, those that are mapped already as well. (begin.c)
int calls_make_times(void);

uint32_t calls_process_id(void);

// ---- probe_read.c

// As many bytes as could be read; whole words are written.
uint64_t calls_read_number(uint8_t *to, uint64_t bytes, uint64_t address); // 1: all of them, 0: none
uint64_t calls_read_text(uint8_t *to, uint64_t bytes, uint64_t address);
uint64_t calls_read_path(uint8_t *to, uint64_t bytes, uint32_t descriptor);

// ---- probe_open.c

struct calls_open_call {
    uint64_t slot, began, returns_to;
    uint32_t id;
    uint32_t is_first; // of those that have jumped at their slot, one to the next
};
// tid 0: of the calling thread.
typedef void calls_left_fn(void *context, const struct calls_open_call *call, uint32_t tid);

// A call has jumped to another function, which returns in its place. False: it has no room.
bool calls_open_jumps(const struct calls_open_call *call);
// What has jumped to the call of a slot, which is over: the last one first. False: there is none.
bool calls_open_jumped(uint64_t slot, struct calls_open_call *call);
// A call has begun, and `began` is the word of its slot from now on. False: it has no room.
bool calls_open_begins(const struct calls_open_call *call);
void calls_open_ends(uint64_t slot); // by returning, or at the end of what it has jumped to
// Another call has come to the slot of one that is open: that was left.
void calls_open_reused(uint64_t slot, calls_left_fn *left, void *context);
// Calls that an exception has left, the innermost first: the slots of the calls that throw, and that begin a handler.
void calls_open_thrown(uint64_t slot);
void calls_open_caught(uint64_t slot, calls_left_fn *left, void *context);
void calls_open_look_for_ended(uint32_t pid, calls_left_fn *left, void *context); // of threads
void calls_open_after_fork(void);                                                 // in the child, by its thread
void calls_open_end(void);

// ---- */walkers.c

// Tells the program's own walkers where true return addresses are; no longer, before the stub may go.
void calls_help_walkers(void);
void calls_leave_walkers(void);

// ---- */stub.S

extern const char calls_stub_begin[], calls_enter[], calls_exit[], calls_exit_end[], calls_count[], calls_place[],
    calls_stub_end[];

// A trap's pc, which is behind it, becomes the thunk; or the trap's own, where the byte is none any more. Within the
// stub, since a tracer lets whoever is there go on before it believes that nobody is on the way to a thunk.
void calls_trap_go(void *pc, uint64_t thunk);

// ---- called from the stub: general registers only, system calls only

// The shadow of `slot` was not known to be there. Whether it is: then the stub looks again. Else the call passes.
bool calls_prepare_stack(uint64_t slot);
// There is no room for an event. Whether there is now: then the stub looks again. Else the event is lost, and counted.
// With probes the stub never writes one: their programs run here, and where they are told of the event is written here.
bool calls_prepare_room(bool is_exit, uint64_t word);
// There is no table of counts. As above.
bool calls_prepare_counts(void);
// A place within a function, x86-64: what the stub keeps, from the lowest on.
struct calls_kept_at_place {
    uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax, flags;
    uint32_t id, zero; // QUT_CALLS_PLACE_ID_AT
    uint64_t back;
};
void calls_place_run(const struct calls_kept_at_place *kept);
bool calls_is_agents(void); // the calling thread is the agent's own

#pragma GCC visibility pop

#endif
