// SPDX-License-Identifier: Apache-2.0
// Programs of probes, where an event would be written (prepare.c): the same holds here. A signal handler may come in
// anywhere, and come here.
#include <sys/syscall.h>

#include "agent/calls/inside.h"
#include "bytecode/machine.h"
#include "bytecode/run.h"

enum { EMIT_TRIES = 1000 };

struct calls_probe *calls_probe;
bool calls_has_times;
static _Thread_local uint32_t own_tid __attribute__((tls_model("initial-exec"))); // 0: not asked for yet

struct calls_probe_spent calls_probe_spent;
static _Thread_local uint32_t lot __attribute__((tls_model("initial-exec")));

static calls_take_stack *take_stack;
// The slot for which a stack is being taken, else 0. What that calls has its slots further in.
static _Thread_local uint64_t takes_stack_at __attribute__((tls_model("initial-exec")));

struct host {
    struct bytecode_host host;
    const struct calls_probe *probe;
    uint64_t slot;
    bool is_exit;
    const struct calls_caller *place; // the place that it is about; NULL: a call's slot
};

void calls_probe_stacks(calls_take_stack *take)
{
    take_stack = take;
}

void calls_probe_thread_is_new(void)
{
    own_tid = 0;
    calls_open_after_fork();
}

// In a child of fork that is not ours yet nothing is known.
static uint32_t thread_id(void)
{
    if (own_tid && calls_are_ours())
        return own_tid;
    const uint32_t tid = (uint32_t)calls_system(SYS_gettid, 0, 0, 0, 0, 0, 0);
    if (calls_are_ours())
        own_tid = tid;
    return tid;
}

uint32_t calls_process_id(void)
{
    return calls_are_ours() ? calls_header->pid : (uint32_t)calls_system(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static uint64_t ns_of(const struct calls_probe *probe, uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * probe->rate) >> 32);
}

// ---- helpers

static void emit(const struct calls_probe *probe, uint32_t record, const uint64_t *words)
{
    struct qut_probe_live *live = probe->live;
    uint64_t head = __atomic_load_n(&live->head, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < EMIT_TRIES; i++) {
        if (head - __atomic_load_n(&live->tail, __ATOMIC_ACQUIRE) >= probe->slot_count)
            break;
        if (!__atomic_compare_exchange_n(&live->head, &head, head + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        uint64_t *slot = probe->slots + (head & (probe->slot_count - 1)) * probe->slot_words;
        for (uint32_t n = 0; n < probe->image.records[record].words; n++)
            __atomic_store_n(slot + 1 + n, words[n], __ATOMIC_RELAXED);
        __atomic_store_n(slot, qut_probe_live_mark(head, record), __ATOMIC_RELEASE);
        return;
    }
    __atomic_fetch_add(&live->lost, 1, __ATOMIC_RELAXED);
}

// A handler that comes in between gets none, unless its stack lies further out. One that jumps away leaves the mark,
// which holds until somebody further out asks.
static uint64_t stack(const struct host *host, uint32_t frames)
{
    struct calls_caller caller;
    if (!take_stack || host->slot <= takes_stack_at)
        return 0;
    if (host->place)
        caller = *host->place;
    else
        calls_kept_registers(host->slot, host->is_exit, &caller);
    takes_stack_at = host->slot;
    const uint64_t taken = calls_aside(take_stack, &caller, frames);
    takes_stack_at = 0;
    return taken;
}

static uint64_t call(struct bytecode_host *host, uint32_t helper, uint64_t a, uint64_t b, uint64_t c)
{
    const struct host *own = (const struct host *)host;
    const struct calls_probe *probe = own->probe;
    switch (helper) {
    case QUT_PROBE_READ: return calls_read_number((uint8_t *)a, b, c);
    case QUT_PROBE_STRING: return calls_read_text((uint8_t *)a, b, c);
    case QUT_PROBE_PATH: return calls_read_path((uint8_t *)a, b, (uint32_t)c);
    case QUT_PROBE_AGGREGATE: bytecode_maps_aggregate(&probe->maps, (uint32_t)a, (const uint64_t *)b, c); return 0;
    case QUT_PROBE_LOOKUP: return bytecode_maps_lookup(&probe->maps, (uint32_t)a, (const uint64_t *)b);
    case QUT_PROBE_EMIT: emit(probe, (uint32_t)a, (const uint64_t *)b); return 0;
    case QUT_PROBE_STACK: return stack(own, (uint32_t)a);
    default: return 0;
    }
}

// ---- a call

static bool wants(uint32_t fields, enum qut_probe_field field)
{
    return (fields >> field & 1) != 0;
}

// Each thread has numbers of its own: a state that goes round all of 64 bits, and of its mixed bits the upper half.
static uint64_t next_random(void)
{
    static _Thread_local uint64_t state __attribute__((tls_model("initial-exec")));
    if (state == 0)
        state = calls_ticks() ^ calls_thread_pointer() << 20;
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed >> 32;
}

static void run_program(const struct calls_probe *probe, unsigned number, const uint64_t *fields, struct host *host)
{
    if (probe->machine_code)
        bytecode_machine.enter(probe->machine_programs[number], fields, &host->host);
    else
        bytecode_run(probe->image.instructions + probe->image.programs[number].first_instruction, fields, &host->host);
}

// tid 0: this one's.
static void run_in_thread(struct host *host, uint32_t programs, uint64_t *fields, uint64_t ticks, uint32_t tid)
{
    const struct calls_probe *probe = host->probe;
    uint32_t wanted = 0;
    for (uint32_t left = programs; left; left &= left - 1)
        wanted |= probe->image.programs[__builtin_ctz(left)].fields;
    if (wants(wanted, QUT_PROBE_TIME))
        fields[QUT_PROBE_TIME] = probe->base_ns + ns_of(probe, ticks - probe->base_ticks);
    if (wants(wanted, QUT_PROBE_TID))
        fields[QUT_PROBE_TID] = tid ? tid : thread_id();
    if (wants(wanted, QUT_PROBE_PID))
        fields[QUT_PROBE_PID] = calls_process_id();
    if (wants(wanted, QUT_PROBE_ERRNO))
        fields[QUT_PROBE_ERRNO] = (uint32_t) * (const int *)(calls_thread_pointer() + probe->errno_distance);
    if (wants(wanted, QUT_PROBE_RANDOM))
        fields[QUT_PROBE_RANDOM] = next_random();
    for (uint32_t left = programs; left; left &= left - 1)
        run_program(probe, (unsigned)__builtin_ctz(left), fields, host);
}

static void run(struct host *host, uint32_t programs, uint64_t *fields, uint64_t ticks)
{
    run_in_thread(host, programs, fields, ticks, 0);
}

static uint32_t masks_of(const struct calls_probe *probe, uint32_t id)
{
    return id < probe->function_count ? __atomic_load_n(&probe->masks[id], __ATOMIC_RELAXED) : 0;
}

// Of those that are put there, with what calls them.
static uint32_t that_run(const struct calls_probe *probe, uint32_t put_there, uint64_t slot)
{
    const uint32_t called = put_there & probe->called_programs;
    return called
               ? (put_there & ~called) | (called & qut_probe_callers_programs(probe->callers, calls_returns_to(slot)))
               : put_there;
}

// ---- calls that are left

struct leaving {
    struct host *host; // the call by which that is noticed
    uint64_t ticks;
};

static void run_left(void *context, const struct calls_open_call *call, uint32_t tid)
{
    const struct leaving *leaving = context;
    const struct calls_probe *probe = leaving->host->probe;
    const uint32_t put_there = masks_of(probe, call->id) & probe->unwind_programs;
    const uint32_t called = put_there & probe->called_programs;
    const uint32_t programs =
        called ? (put_there & ~called) | (called & qut_probe_callers_programs(probe->callers, call->returns_to))
               : put_there;
    uint64_t fields[QUT_PROBE_FIELD_END];
    fields[QUT_PROBE_DURATION] = ns_of(probe, leaving->ticks - call->began);
    if (programs)
        run_in_thread(leaving->host, programs, fields, leaving->ticks, tid);
}

// What has jumped to it goes on to be a call, which ends with this one.
static void note_jump(const struct calls_probe *probe, uint64_t slot)
{
    const uint64_t from = calls_jumped_from(slot);
    const struct calls_open_call jumped = {.slot = slot,
                                           .began =
                                               *(const uint64_t *)(slot - calls_distance(calls_machine.times_log2)),
                                           .returns_to = calls_returns_to(slot),
                                           .id = qut_calls_word_id(from),
                                           .is_first = (from & QUT_CALLS_EVENT_TAIL) == 0};
    if (!calls_open_jumps(&jumped))
        __atomic_fetch_add(&probe->live->unlisted, 1, __ATOMIC_RELAXED);
}

// A call comes: by it others may be known to be over.
static void look_for_left(struct host *host, uint32_t put_there, bool is_tail, uint64_t ticks)
{
    const struct calls_probe *probe = host->probe;
    struct leaving leaving = {host, ticks};
    uint64_t *began = (uint64_t *)(host->slot - calls_distance(calls_machine.times_log2));
    if (put_there & probe->throw_marks)
        calls_open_thrown(host->slot);
    if (put_there & probe->catch_marks)
        calls_open_caught(host->slot, run_left, &leaving);
    if (is_tail)
        *began = 0;
    else if (*began)
        calls_open_reused(host->slot, run_left, &leaving);
}

static void begin_call(const struct calls_probe *probe, uint64_t slot, uint32_t id)
{
    const struct calls_open_call begun = {slot, calls_ticks(), calls_returns_to(slot), id, 0};
    if (!probe->unwind_programs)
        *(uint64_t *)(slot - calls_distance(calls_machine.times_log2)) = begun.began;
    else if (!calls_open_begins(&begun))
        __atomic_fetch_add(&probe->live->unlisted, 1, __ATOMIC_RELAXED);
}

void calls_probe_look_for_ended(void)
{
    const struct calls_probe *probe = __atomic_load_n(&calls_probe, __ATOMIC_ACQUIRE);
    if (!probe || __atomic_load_n(&probe->is_left, __ATOMIC_RELAXED))
        return;
    struct host host = {{call}, probe, 0, false, NULL}; // slot 0: no stack can be taken
    struct leaving leaving = {&host, calls_ticks()};
    calls_open_look_for_ended(calls_process_id(), run_left, &leaving);
}

static bool returns_to_us(uint64_t slot)
{
    extern const char __ehdr_start[] __attribute__((visibility("hidden"))),
        etext[] __attribute__((visibility("hidden"))); // the linker's
    const uint64_t pc = calls_returns_to(slot);
    return pc - (uint64_t)__ehdr_start < (uint64_t)etext - (uint64_t)__ehdr_start;
}

// With what it has jumped to, a call has returned.
static void run_jumped(struct host *host, uint64_t *fields, uint64_t ticks)
{
    const struct calls_probe *probe = host->probe;
    struct calls_open_call jumped;
    while (calls_open_jumped(host->slot, &jumped)) {
        const uint32_t programs = that_run(probe, masks_of(probe, jumped.id), host->slot) & probe->return_programs;
        fields[QUT_PROBE_DURATION] = ns_of(probe, ticks - jumped.began);
        if (programs)
            run(host, programs, fields, ticks);
        if (jumped.is_first)
            return;
    }
}

// `ticks`: 0 where calls_probe_run needs none.
static void run_call(const struct calls_probe *probe, bool is_exit, uint64_t word, uint64_t ticks)
{
    const uint64_t slot = calls_slot(word);
    const uint32_t id = qut_calls_word_id(word);
    const uint32_t put_there = masks_of(probe, id);
    const bool has_jumped = (word & QUT_CALLS_EVENT_TAIL) && (probe->return_programs | probe->unwind_programs);
    if (slot < takes_stack_at && returns_to_us(slot)) // a walk calls memset: no call of the program's
        return;
    const uint32_t mask = that_run(probe, put_there, slot);
    uint64_t *began = (uint64_t *)(slot - calls_distance(calls_machine.times_log2));
    uint64_t fields[QUT_PROBE_FIELD_END]; // those are set that a program claims
    struct host host = {{call}, probe, slot, is_exit, NULL};
    const bool is_told = (mask & probe->told_programs) != 0;
    if (is_exit && is_told) // what programs take is not the call's time
        calls_write_event(true, word);
    if (!is_exit && has_jumped)
        note_jump(probe, slot);
    if (!is_exit && probe->unwind_programs)
        look_for_left(&host, put_there, qut_calls_word_is_tail(word), ticks);
    if (!is_exit) {
        if (mask & probe->entry_programs) {
            calls_kept_arguments(slot, fields);
            run(&host, mask & probe->entry_programs, fields, ticks);
        }
        // Its caller may become known while it runs. What has jumped to it is left with it.
        if ((put_there & probe->lasting_programs) || (has_jumped && probe->unwind_programs))
            begin_call(probe, slot, id);
        if (is_told)
            calls_write_event(false, word);
    } else if ((mask & probe->return_programs) || has_jumped) {
        fields[QUT_PROBE_RETVAL] = calls_kept_result(slot);
        fields[QUT_PROBE_DURATION] = ns_of(probe, ticks - *began);
        if (mask & probe->return_programs)
            run(&host, mask & probe->return_programs, fields, ticks);
        if (has_jumped)
            run_jumped(&host, fields, ticks);
    }
    if (is_exit && probe->unwind_programs)
        calls_open_ends(slot);
}

// ---- the budget

static bool is_drawn(void)
{
    lot = lot * 1664525 + 1013904223;
    return lot >> (32 - CALLS_PROBE_TIMED_LOG2) == 0;
}

static void note_spent(const struct calls_probe *probe, uint64_t ticks)
{
    __atomic_fetch_add(&calls_probe_spent.runs, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&calls_probe_spent.ticks, ticks < probe->run_most_ticks ? ticks : probe->run_most_ticks,
                       __ATOMIC_RELAXED);
}

static bool is_off(const struct calls_probe *probe)
{
    return __atomic_load_n(&probe->is_left, __ATOMIC_RELAXED) ||
           (probe->budget_permille && __atomic_load_n(&probe->live->over, __ATOMIC_RELAXED) != QUT_PROBE_LIVE_OVER_NOT);
}

// To read the counter takes longer than most of what a run does: only where somebody asks.
void calls_probe_run(const struct calls_probe *probe, bool is_exit, uint64_t word)
{
    if (is_off(probe))
        return;
    const bool is_timed = probe->budget_permille && is_drawn();
    const uint64_t ticks = is_timed || (is_exit ? probe->exit_has_ticks : probe->entry_has_ticks) ? calls_ticks() : 0;
    run_call(probe, is_exit, word, ticks);
    if (is_timed)
        note_spent(probe, calls_ticks() - ticks);
}

// ---- a place within a function

// Where the thunk that goes on at `back` is of; 0: it does not say.
static uint64_t address_of_place(uint64_t back)
{
    enum { STEP = QUT_CALLS_THUNK_ALIGNMENT };
    for (uint64_t at = (back | (STEP - 1)) + 1; at - back < QUT_CALLS_THUNK_BYTES_MAX; at += STEP) {
        const struct qut_calls_origin *origin = (const struct qut_calls_origin *)at;
        if (qut_calls_origin_is_of(origin, at, back))
            return origin->address;
    }
    return 0;
}

void calls_place_run(const struct calls_kept_at_place *kept)
{
    const uint64_t sp = (uint64_t)&kept->id + QUT_CALLS_PLACE_BYTES;
    const struct calls_probe *probe = __atomic_load_n(&calls_probe, __ATOMIC_ACQUIRE);
    if (!probe || calls_is_agents() || is_off(probe) || kept->id >= probe->function_count)
        return;
    const bool is_timed = probe->budget_permille && is_drawn();
    const uint64_t ticks = is_timed || probe->place_has_ticks ? calls_ticks() : 0;
    const uint32_t programs = __atomic_load_n(&probe->masks[kept->id], __ATOMIC_RELAXED) & probe->place_programs;
    // One behind it, as a return address is.
    const struct calls_caller place = {.pc = address_of_place(kept->back) + 1,
                                       .sp = sp,
                                       .kept = {kept->rbx, kept->rbp, kept->r12, kept->r13, kept->r14, kept->r15}};
    uint64_t fields[QUT_PROBE_FIELD_END];
    fields[QUT_PROBE_ARG0] = kept->rdi;
    fields[QUT_PROBE_ARG0 + 1] = kept->rsi;
    fields[QUT_PROBE_ARG0 + 2] = kept->rdx;
    fields[QUT_PROBE_ARG0 + 3] = kept->rcx;
    fields[QUT_PROBE_ARG0 + 4] = kept->r8;
    fields[QUT_PROBE_ARG5] = kept->r9;
    struct host host = {{call}, probe, sp, false, &place};
    if (programs)
        run(&host, programs, fields, ticks);
    if (is_timed)
        note_spent(probe, calls_ticks() - ticks);
}
