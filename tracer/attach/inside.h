// SPDX-License-Identifier: Apache-2.0
// What the parts of attach_record share. One thread does all of it: ptrace belongs to the thread that seized.
//
//   attach.c             begin, rounds, end
//   attach_threads.c     which threads there are, and which of them run
//   take_thread.c        one thread: stopped, copied, let go
//   kernel_time.c        what the kernel does for a thread
//   sleepers.c           threads that wait: walked asleep, intervals, locks
//   attach_store.c       stacks -> segment
//   attach_modules.c     what is mapped, tables, exec
//   attach_python.c      functions of CPython
//   attach_v8.c          functions of JavaScript
//   interrupted_calls.c  what a system call that was interrupted comes to
//   refuse.c             why not, and what to do
#ifndef TRACER_ATTACH_INSIDE_H
#define TRACER_ATTACH_INSIDE_H

#include <pthread.h>

#include "base/vector.h"
#include "libqut/arch/calls.h"
#include "libqut/arch/system_call.h"
#include "libqut/segment/segment.h"
#include "libqut/target/live.h"
#include "tracer/attach/attach.h"
#include "tracer/attach/patience.h"
#include "tracer/attach/place.h"
#include "tracer/attach/times.h"
#include "tracer/collect/made_code.h"

enum {
    ATTACH_BLOCK_BYTES = 1024,      // of registers
    ATTACH_STACK_BYTES = 256 << 10, // of a stack that are copied at most
    ATTACH_SECOND_BYTES = 64 << 10, // of a second one, and a third
    ATTACH_FRAMES_MAX = 4096,
    ATTACH_RETURNS_MAX = 1024, // that method tracing of Android's runtime has exchanged
};

// Registers and stack of a thread at one moment.
struct attach_taken {
    _Alignas(8) uint8_t block[ATTACH_BLOCK_BYTES];
    size_t block_bytes;
    struct arch_frame_regs regs;
    struct target_copy copy; // pieces 0 and 2 have room for ATTACH_STACK_BYTES, the others for ATTACH_SECOND_BYTES
    struct art_return art_returns[ATTACH_RETURNS_MAX];
};

// What the kernel says of a thread.
struct attach_split {
    uint64_t user_ns, kernel_ns, faults;
    int processor; // that it used last
};
struct attach_kernel_time {
    bool is_known, faults; // it had some since the look before
    struct attach_split seen;
    uint64_t looked_cpu_ns, sampled_cpu_ns;
    double user_ns, kernel_ns;                  // as told, of late
    double met_ns, met_calls_ns, met_faults_ns; // as samples have it: all; in calls; elsewhere while it had faults
    double fault_debt;
    uint64_t rest_ns; // less than a unit of time, in no sample yet
};

struct attach_thread {
    pid_t tid;
    pid_t inner_tid; // as the process itself knows it, in its namespace
    bool is_main;
    bool is_gone;
    bool is_asked;                 // to stop, and has not done so: it is let go once it does
    bool was_running;              // when it was looked at last
    int schedstat_fd, syscall_fd;  // -1: opened each time
    struct qut_trace_thread *slot; // NULL: none yet
    char name[QUT_TRACE_NAME_BYTES];
    uint64_t pace_ns, next_ns;
    // Of /proc/PID/task/TID/schedstat.
    uint64_t cpu_ns, slices;
    uint64_t delay_ns;               // it was ready without a processor for so long, all its life
    uint64_t first_cpu_ns, first_ns; // when it was first seen
    uint64_t taken, missed;          // rounds
    // Behind the outermost word of its stack that a walk needed, which is the same as long as it lives; 0: not known.
    uint64_t stack_top, stack_needed; // needed: the furthest word that a copy lacked
    uint64_t second_start;            // 0: none; else where another piece begins that walks came to
    // When it was last stopped; 0: it was not, or it is not known. What leads to its records in Android's runtime.
    uint64_t thread_pointer, art_thread;
    uint64_t go_g;                // where the records of a Go thread were found that was never stopped; 0: not known
    uint64_t asked_ns, polled_ns; // with is_asked: when, and when it did not stand still yet
    struct attach_kernel_time kernel_time;
    // ---- sleepers.c
    bool sleeps;         // in an interval that has begun
    bool sleep_is_poked; // we have stopped it in this sleep
    uint64_t covered;    // rounds that met it in a sleep that was stored
    uint64_t sleep_slices, sleep_begin_ns, sleep_sp, sleep_pc, sleep_lock;
    pid_t sleep_owner; // 0: it does not wait for a lock that is known
    uint32_t sleep_node;
    struct qut_end sleep_end;
    uint16_t sleep_kind;
};

struct attach_module {
    uint64_t start, end, code_base;   // addresses in memory; code_base 0: not in the trace
    const struct target_image *image; // lives as long as the target
    uint32_t index;
    bool is_there;
};

struct attach_store {
    struct segment segment;
    bool is_open;
    BASE_VECTOR(struct attach_module) modules; // ascending, those that are there now
    size_t last;                               // where the last lookup ended
};

// What is read of CPython.
struct target_python_stack;
struct attach_python {
    struct target_python_stack *stack; // NULL: no memory
    bool is_there, is_taken;           // of the thread that was stopped last
    uint64_t looked_ns;
    size_t known, base;        // functions of this program that have names; of those before it
    pthread_mutex_t lock;      // of the names
    BASE_VECTOR(char *) names; // by number; NULL: not known
};
// What is read of V8, likewise.
struct script_stack;
struct attach_v8 {
    struct script_stack *stack;
    bool is_there, is_taken;
    uint64_t looked_ns;
    size_t known, base;
    pthread_mutex_t lock;
    BASE_VECTOR(char *) names;
};
// For the thread that collects.
struct attach_naming {
    struct attach_v8 *v8;
    struct attach_python *python;
    struct made_code made_code; // the session's target is for the one that stops threads
};

struct attach_session {
    const struct attach_options *options;
    struct attach_result *result;
    struct qut_target *target;
    struct attach_store store;
    BASE_VECTOR(struct attach_thread) threads;
    uint64_t known_links; // of /proc/PID/task when threads were listed last
    struct attach_taken taken;
    struct qut_frame *frames;
    struct attach_python python;
    struct attach_v8 v8;
    struct attach_times stops;
    struct attach_patience patience;
    struct attach_place place;
    int process_fd;
    bool is_child;      // of ours: its parent asks how it ended
    bool has_namespace; // of pids: what the process calls its threads is not what we do
    uint64_t begin_ns, now_ns;
    uint64_t random;
    uint64_t maps_ns, maps_cost_ns; // when the maps were read last, and how long it took
    uint64_t last_refusal_ns, first_refusal_ns;
    unsigned asked_count;
    char auxv[1024]; // tells one program from the next
    size_t auxv_bytes;
    struct qutc_provide_options *provide;
    uint64_t still_ns; // since when the thread that was stopped last stood still
    struct trace_note notes[15];
};

static inline struct target_live *attach_live(const struct attach_session *session)
{
    return session->target->source;
}

// ---- refuse.c

// attach_refuse of attach.h, and
void attach_read_state(pid_t pid, char *state); // as in its status; 0: it has gone
bool attach_same_namespace(pid_t pid, const char *name);
__attribute__((format(printf, 2, 3))) int attach_fail(struct attach_error *error, const char *format, ...);

// ---- attach_modules.c

int attach_open_target(struct attach_session *session, struct attach_error *error);
// Makes tables for all that is mapped.
void attach_make_tables(struct attach_session *session);
// Looks at the maps, if that is due or `now`. True: they may be others than before.
bool attach_refresh(struct attach_session *session, bool now);

// ---- attach_store.c

int attach_store_open(struct attach_session *session, struct attach_error *error);
void attach_store_modules(struct attach_session *session); // what is mapped now
void attach_store_close(struct attach_session *session);
// The slot of a thread, made if there is none.
struct qut_trace_thread *attach_store_slot(struct attach_session *session, struct attach_thread *thread);
struct attach_sample {
    size_t frame_count;
    struct qut_end end;
    bool is_asleep, is_in_kernel;
    uint32_t kernel_code; // enum qut_trace_kernel
    uint16_t kind, flags;
    uint64_t time_ns;
    const struct segment_extra *extras;
    uint32_t extra_count;
};
// session->frames -> a sample of the thread's. Returns its node.
uint32_t attach_store_sample(struct attach_session *session, struct attach_thread *thread,
                             const struct attach_sample *sample);
// The same of a stack that has a node.
void attach_store_node(struct attach_session *session, struct attach_thread *thread, uint32_t node,
                       const struct attach_sample *sample);

// ---- attach_threads.c

// Brings the list up to date, if threads have come or gone.
void attach_list_threads(struct attach_session *session);
void attach_forget_thread(struct attach_session *session, struct attach_thread *thread);
void attach_free_threads(struct attach_session *session);
// Reads its schedstat. False: it has gone. *moved: it ran since the last time.
bool attach_look(struct attach_session *session, struct attach_thread *thread, bool *moved);
// Reads its `syscall`. False: it has gone. *runs: it runs, or waits for a processor; else *sleep is filled.
bool attach_state(struct attach_session *session, struct attach_thread *thread, struct target_sleep *sleep, bool *runs);
// Its `stat`. False: it has gone.
bool attach_read_stat(const struct attach_session *session, const struct attach_thread *thread, char *text,
                      size_t size);
void attach_read_name(struct attach_session *session, struct attach_thread *thread);

// ---- take_thread.c

enum attach_took {
    ATTACH_TOOK,
    ATTACH_TOOK_GONE,
    ATTACH_TOOK_SLOW,
    ATTACH_TOOK_REFUSED,
    ATTACH_TOOK_NO_REGISTERS,
};
// Fills session->taken. looked_ns: when it was seen to run, or to sleep where it may be woken.
enum attach_took attach_take(struct attach_session *session, struct attach_thread *thread, uint64_t looked_ns);
// Copies what a walk needs of the stack at sp.
void attach_copy_stack(struct attach_session *session, struct attach_thread *thread, uint64_t sp);
// Walks session->taken into session->frames.
size_t attach_walk(struct attach_session *session, struct attach_thread *thread, struct qut_end *end);
// Those that did not stop in time are let go, if they have stopped by now.
void attach_poll_asked(struct attach_session *session);
// At the end: waits until all have been let go.
void attach_release_asked(struct attach_session *session);

// ---- attach_v8.c

void attach_v8_open(struct attach_session *session);
// The target is another program's.
void attach_v8_new_target(struct attach_session *session);
void attach_v8_close(struct attach_session *session);
// Before a thread is asked to stop; while it stands still, of the copy of its stack; into the frames of its walk.
void attach_v8_prepare(struct attach_session *session);
void attach_v8_take(struct attach_session *session);
size_t attach_v8_merge(struct attach_session *session, size_t count, struct qut_end *end);
// As attach_name_code, of a number.
bool attach_v8_name(struct attach_v8 *v8, uint64_t address, struct collect_code *code);

// ---- attach_python.c

// "function\nfile"; a path that does not fit is known by its end. NULL: it has no name, or no memory.
char *attach_name_in_file(const char *name, const char *file);

void attach_python_open(struct attach_session *session);
// The process became another program.
void attach_python_new_target(struct attach_session *session);
void attach_python_close(struct attach_session *session);
// Before a thread is stopped, or looked at while it sleeps; while it stands still.
void attach_python_prepare(struct attach_session *session, const struct attach_thread *thread);
void attach_python_take(struct attach_session *session, const struct attach_thread *thread);
// Into session->frames. Returns how many there are then.
size_t attach_python_merge(struct attach_session *session, size_t count, struct qut_end *end);
// As struct collect_options.name_code, name_past_code and levels_of_code; context: a struct attach_naming.
bool attach_name_code(void *context, uint64_t address, uint64_t since_ns, struct collect_code *code);
bool attach_name_past_code(void *context, uint64_t address, uint64_t met_ns, struct collect_code *code);
size_t attach_levels_of_code(void *context, uint64_t address, struct collect_level *levels);

// ---- kernel_time.c

struct attach_kernel_tick {
    uint32_t code;   // enum qut_trace_kernel
    uint64_t cpu_ns; // that the sample stands for
};
// Of a running thread that was stopped and has been let go: whether the kernel worked for it.
bool attach_kernel_look(const struct attach_session *session, struct attach_thread *thread, long call,
                        struct attach_kernel_tick *tick);

// ---- sleepers.c (with options->wall)

void attach_sleeper(struct attach_session *session, struct attach_thread *thread, const struct target_sleep *sleep);
// It runs again, or has gone: its interval ends.
void attach_sleep_ends(struct attach_session *session, struct attach_thread *thread);

// ---- interrupted_calls.c

enum attach_call { ATTACH_CALL_UNTOUCHED, ATTACH_CALL_RESTARTED, ATTACH_CALL_DISTURBED, ATTACH_CALL_SHORT };
// What the system call that a thread was stopped in comes to. RESTARTED: the block was changed. SHORT: it may have done
// less than it was asked to; *fd is what to.
enum attach_call attach_mend_call(const struct arch *arch, void *block, uint64_t *fd);
// The number of the call that a thread was stopped in; -1: none.
long attach_call_of(const struct arch *arch, const void *block);
// enum qut_trace_kind of a thread that sleeps in that call.
uint16_t attach_kind_of_call(enum qut_arch_id arch, const struct target_sleep *sleep);

#endif
