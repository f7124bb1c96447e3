// SPDX-License-Identifier: Apache-2.0
// One thread: asked to stop, its registers and its stack copied, let go; walked after that. Seized for this moment
// only: a thread that is traced all the time would stop at each signal until we come to look, and signals that it
// ignores would wake it.
//
//   seize  interrupt  wait | registers  stack  mend  detach |  walk, store
//                          '--------- it stands still ------'
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/qut_calls.h"
#include "libqut/os/os.h"
#include "libqut/os/process.h"
#include "tracer/attach/inside.h"

enum {
    RELEASE_MAX_NS = 2000000000,
    RED_ZONE_BYTES = 128, // below the stack pointer: a leaf's own
    SPIN_NS = 12000,      // nearly all that run on another processor have stopped by then
    NAP_US = 20,
    WAIT_MAX_NS = 20000000,     // then others wait too long for their turn
    TOP_SLACK_BYTES = 256,      // where another outermost frame may begin
    SECOND_BELOW_BYTES = 4096,  // a second stack, from a little below where a walk came to
    SYSTEM_ABOVE_BYTES = 4096,  // what C code has on a thread's stack before Go's begins
    UNKNOWN_STACK_BYTES = 16384 // where nothing is known of what is mapped
};

// ---- the copy

// A goroutine's stack, or that of its thread's signal handlers: they say themselves how far they go.
static bool is_other_stack(const struct go_thread *go, uint64_t sp)
{
    return go->is_known && (go_is_on(&go->user, sp) || go_is_on(&go->signal, sp));
}

static void copy_piece(struct attach_session *session, struct target_window *piece, uint64_t start, uint64_t size)
{
    const struct target_live *live = attach_live(session);
    piece->start = start;
    piece->size = size ? os_read_process(live->memory_tid, live->memory_fd, start, piece->bytes, (size_t)size) : 0;
}

static void copy_go_stack(struct attach_session *session, struct target_window *piece, const struct go_stack *stack,
                          uint64_t start, uint64_t most_bytes)
{
    if (stack->high - stack->low <= ATTACH_SECOND_BYTES || !go_is_on(stack, start))
        start = stack->low;
    // The last call into C stands close to where Go says that the system stack begins, and is known by words above it.
    bool is_system = stack == &session->taken.copy.go.system;
    uint64_t size = stack->high - start + (is_system ? SYSTEM_ABOVE_BYTES : 0);
    copy_piece(session, piece, start, size < most_bytes ? size : most_bytes);
}

// A Go program's other stack. All of it, if it is small, as most are; else from where the thread left it, or changed to
// it. (The clock's functions change from a stack without a word in its record: larger ones are cut there.) From the
// stack of signal handlers it may go to either: what runs on the system stack lies around where it is changed to.
static void copy_other_stacks(struct attach_session *session, uint64_t sp)
{
    struct target_copy *copy = &session->taken.copy;
    const struct go_thread *go = &copy->go;
    uint64_t start;
    const struct go_stack *other = go_other_stack(go, sp, &start);
    copy->pieces[2].size = copy->pieces[3].size = 0;
    if (other)
        copy_go_stack(session, &copy->pieces[2], other, start, ATTACH_STACK_BYTES);
    if (go->is_known && go_is_on(&go->signal, sp))
        copy_go_stack(session, &copy->pieces[3], &go->system, go->system_sp - ATTACH_SECOND_BYTES / 2,
                      ATTACH_SECOND_BYTES);
}

// Who traces calls keeps true return addresses below the stack. (Not of Go programs, whose stacks have these places.)
static void copy_shadow(struct attach_session *session, unsigned of, unsigned to)
{
    static const uint64_t distance = (uint64_t)1 << QUT_CALLS_X86_64_SHADOW_LOG2;
    struct target_copy *copy = &session->taken.copy;
    const struct target_window *stack = &copy->pieces[of];
    if (stack->size && stack->start > distance &&
        target_maps_find(&session->target->maps, stack->start + stack->size - 1 - distance))
        copy_piece(session, &copy->pieces[to], stack->start - distance, stack->size);
}

// Where the copy of the stack at sp ends.
static uint64_t end_of_stack(const struct attach_session *session, const struct attach_thread *thread, uint64_t sp,
                             uint64_t start)
{
    const struct go_thread *go = &session->taken.copy.go;
    uint64_t end = thread->stack_top;
    if (is_other_stack(go, sp)) {
        end = go_is_on(&go->user, sp) ? go->user.high : go->signal.high;
    } else if (go->is_known && end && end < go->system.high + SYSTEM_ABOVE_BYTES) {
        end = go->system.high + SYSTEM_ABOVE_BYTES;
    }
    if (end > sp && end - start <= ATTACH_STACK_BYTES)
        return end;
    const struct target_map *map = target_maps_find(&session->target->maps, sp);
    return map ? map->end : start + UNKNOWN_STACK_BYTES;
}

void attach_copy_stack(struct attach_session *session, struct attach_thread *thread, uint64_t sp)
{
    struct target_copy *copy = &session->taken.copy;
    if (thread->thread_pointer)
        target_go_thread(session->target, thread->thread_pointer, &copy->go);
    else
        target_go_sleeper(session->target, sp, thread->inner_tid, &thread->go_g, &copy->go);
    uint64_t start = (sp - RED_ZONE_BYTES) & ~(uint64_t)7;
    uint64_t size = end_of_stack(session, thread, sp, start) - start;
    copy_piece(session, &copy->pieces[0], start, size < ATTACH_STACK_BYTES ? size : ATTACH_STACK_BYTES);
    if (copy->pieces[0].size == 0) // what is below may not be mapped
        copy_piece(session, &copy->pieces[0], sp, UNKNOWN_STACK_BYTES);
    copy_piece(session, &copy->pieces[1], thread->second_start, thread->second_start ? ATTACH_SECOND_BYTES : 0);
    copy_other_stacks(session, sp);
    copy->art_returns = session->taken.art_returns;
    copy->art_return_count =
        target_art_returns(session->target, thread->art_thread, session->taken.art_returns, ATTACH_RETURNS_MAX);
    if (!copy->go.is_known) {
        copy_shadow(session, 0, 2);
        copy_shadow(session, 1, 3);
    }
}

// ---- the stop

struct attach_stop {
    int signal_number;        // it stopped for; 0: none
    uint64_t still_ns;        // it stands still since then, or less long
    uint64_t woke_ns;         // when a wait that blocked was over; 0: none was
    uint64_t delay_before_ns; // attach_patience_delay_ns before that wait
};

// A call that was cut short counts only if it would not have been without us.
static bool analysis_is_blocking(const struct attach_session *session, const struct attach_thread *thread, uint64_t fd)
{
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)thread->tid, (int)fd);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return true;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    text[size > 0 ? size : 0] = 0;
    const char *flags = strstr(text, "flags:");
    (void)session;
    return !flags || !(strtoul(flags + 6, NULL, 8) & O_NONBLOCK);
}

// Registers, and what becomes of the system call. False: there are none that we know.
static bool read_registers(struct attach_session *session, const struct attach_thread *thread, enum attach_call *call,
                           uint64_t *fd)
{
    struct attach_taken *taken = &session->taken;
    const struct arch_register_layout *layout = session->target->arch->core_registers;
    size_t size = sizeof taken->block;
    *call = ATTACH_CALL_UNTOUCHED;
    // The kernel gives 32-bit registers of a 32-bit thread: a set of another size is of another mode.
    if (os_trace_registers(thread->tid, NT_PRSTATUS, taken->block, &size) != 0 || size != layout->size_bytes)
        return false;
    taken->block_bytes = size;
    *call = attach_mend_call(session->target->arch, taken->block, fd);
    if (*call == ATTACH_CALL_RESTARTED && os_trace_set_registers(thread->tid, NT_PRSTATUS, taken->block, size) != 0)
        *call = ATTACH_CALL_DISTURBED;
    return true;
}

static uint64_t sp_of(const struct attach_session *session)
{
    const struct arch *arch = session->target->arch;
    const struct arch_register_layout *layout = arch->core_registers;
    uint64_t sp = 0;
    memcpy(&sp, session->taken.block + layout->reg_offset[arch->sp_reg], layout->word_bytes);
    return sp;
}

static void copy_all(struct attach_session *session, struct attach_thread *thread)
{
    thread->thread_pointer = target_core_word(session->target->arch, session->taken.block,
                                              session->target->arch->core_thread_pointer_offset);
    thread->art_thread = target_art_thread(session->target->arch, session->taken.block);
    attach_copy_stack(session, thread, sp_of(session));
    attach_python_take(session, thread);
    attach_v8_take(session);
}

static void count_call(struct attach_session *session, const struct attach_thread *thread, enum attach_call call,
                       uint64_t fd, uint64_t since_ns)
{
    struct attach_result *result = session->result;
    if (call == ATTACH_CALL_RESTARTED) {
        result->restarted++;
        if (since_ns > result->longest_restart_ns)
            result->longest_restart_ns = since_ns;
    }
    result->disturbed +=
        call == ATTACH_CALL_DISTURBED || (call == ATTACH_CALL_SHORT && analysis_is_blocking(session, thread, fd));
}

// A wait that blocks is woken at the moment at which the thread stands still: what is behind that moment is the time we
// were ready and had no processor. Before it, the thread itself may have waited for one, and that is not a stop.
static uint64_t still_since(const struct attach_session *session, const struct attach_stop *stop)
{
    uint64_t delay_ns = attach_patience_delay_ns(&session->patience);
    if (!stop->woke_ns || !delay_ns)
        return stop->still_ns;
    uint64_t since_ns = stop->woke_ns - (delay_ns - stop->delay_before_ns);
    return since_ns > stop->still_ns && since_ns <= stop->woke_ns ? since_ns : stop->still_ns;
}

static enum attach_took copy_and_let_go(struct attach_session *session, struct attach_thread *thread,
                                        const struct attach_stop *stop, uint64_t looked_ns, bool wanted)
{
    enum attach_call call;
    uint64_t fd = 0;
    bool got = read_registers(session, thread, &call, &fd);
    if (got && wanted)
        copy_all(session, thread);
    os_trace_detach(thread->tid, stop->signal_number);
    uint64_t now_ns = os_now_ns();
    session->still_ns = still_since(session, stop);
    attach_times_add(&session->stops, now_ns - session->still_ns);
    session->result->stops++;
    count_call(session, thread, call, fd, now_ns - looked_ns);
    if (got)
        arch_registers_from_block(session->target->arch->core_registers, session->taken.block, &session->taken.regs);
    return got ? ATTACH_TOOK : ATTACH_TOOK_NO_REGISTERS;
}

static enum attach_took refused(const struct attach_session *session, const struct attach_thread *thread, int result)
{
    char state = result == -ESRCH ? 0 : target_live_thread_state(attach_live(session), thread->tid);
    return state == 0 || state == 'Z' || state == 'X' ? ATTACH_TOOK_GONE : ATTACH_TOOK_REFUSED;
}

static enum os_stop wait_once(const struct attach_session *session, const struct attach_thread *thread, bool block,
                              int *signal_number)
{
    return os_trace_wait_once(thread->tid, block, session->is_child && thread->is_main, signal_number);
}

// A thread that runs on another processor stops within microseconds: so long it is asked again and again. Then it waits
// for a processor, perhaps for this one.
static enum os_stop await(struct attach_session *session, struct attach_thread *thread, uint64_t asked_ns,
                          struct attach_stop *came)
{
    struct attach_patience *patience = &session->patience;
    enum os_stop stop = OS_STOP_NONE;
    *came = (struct attach_stop){.still_ns = asked_ns};
    while (came->still_ns - asked_ns < SPIN_NS) {
        stop = wait_once(session, thread, false, &came->signal_number);
        if (stop != OS_STOP_NONE)
            return stop;
        came->still_ns = os_now_ns();
    }
    if (patience->has_timer) {
        came->delay_before_ns = attach_patience_delay_ns(patience);
        attach_patience_set(patience, WAIT_MAX_NS);
        stop = wait_once(session, thread, true, &came->signal_number);
        if (stop != OS_STOP_NONE && came->delay_before_ns)
            came->woke_ns = os_now_ns();
        attach_patience_set(patience, 0);
    }
    for (; stop == OS_STOP_NONE && came->still_ns - asked_ns < WAIT_MAX_NS; came->still_ns = os_now_ns()) {
        os_sleep_us(NAP_US);
        stop = wait_once(session, thread, false, &came->signal_number);
    }
    return stop;
}

static enum attach_took take(struct attach_session *session, struct attach_thread *thread, uint64_t looked_ns)
{
    struct attach_stop stop;
    int result = os_trace_seize(thread->tid);
    if (result != 0)
        return refused(session, thread, result);
    uint64_t asked_ns = os_now_ns();
    if (os_trace_interrupt(thread->tid) != 0)
        return ATTACH_TOOK_GONE;
    switch (await(session, thread, asked_ns, &stop)) {
    case OS_STOP_GONE: return ATTACH_TOOK_GONE;
    case OS_STOP_ASKED:
    case OS_STOP_SIGNAL: return copy_and_let_go(session, thread, &stop, looked_ns, true);
    case OS_STOP_NONE: break;
    }
    thread->is_asked = true;
    thread->asked_ns = looked_ns;
    thread->polled_ns = stop.still_ns;
    session->asked_count++;
    return ATTACH_TOOK_SLOW;
}

enum attach_took attach_take(struct attach_session *session, struct attach_thread *thread, uint64_t looked_ns)
{
    attach_python_prepare(session, thread);
    attach_v8_prepare(session);
    attach_patience_hurry(&session->patience, true);
    enum attach_took took = take(session, thread, looked_ns);
    if (session->asked_count == 0) // else it stops at any moment, and waits for us then
        attach_patience_hurry(&session->patience, false);
    return took;
}

static void poll_one(struct attach_session *session, struct attach_thread *thread)
{
    struct attach_stop came = {.still_ns = thread->polled_ns};
    uint64_t now_ns = os_now_ns();
    enum os_stop stop = wait_once(session, thread, false, &came.signal_number);
    if (stop == OS_STOP_NONE) {
        thread->polled_ns = now_ns;
        return;
    }
    thread->is_asked = false;
    session->asked_count--;
    if (stop != OS_STOP_GONE)
        copy_and_let_go(session, thread, &came, thread->asked_ns, false);
    if (session->asked_count == 0)
        attach_patience_hurry(&session->patience, false);
}

void attach_poll_asked(struct attach_session *session)
{
    for (size_t i = 0; session->asked_count && i < session->threads.count; i++)
        if (session->threads.items[i].is_asked)
            poll_one(session, &session->threads.items[i]);
}

void attach_release_asked(struct attach_session *session)
{
    // What was asked to stop cannot be let go before it does; it does so the moment its disk has answered. If it never
    // does, the kernel lets go of it when we end.
    uint64_t end_ns = os_now_ns() + RELEASE_MAX_NS;
    while (session->asked_count && os_now_ns() < end_ns) {
        attach_poll_asked(session);
        os_sleep_us(NAP_US);
    }
}

// ---- the walk

static size_t walk_once(struct attach_session *session, struct qut_end *end)
{
    struct attach_taken *taken = &session->taken;
    return target_walk_copy(session->target, &taken->regs, &taken->copy, session->frames, ATTACH_FRAMES_MAX, end);
}

size_t attach_walk(struct attach_session *session, struct attach_thread *thread, struct qut_end *end)
{
    const struct target_copy *copy = &session->taken.copy;
    size_t count = walk_once(session, end);
    if (count == 1 && end->reason == QUT_END_NO_ROW && session->taken.block_bytes &&
        target_live_has_just_begun(session->target, session->taken.block))
        end->reason = QUT_END_OUTERMOST;
    // Something may have been loaded since we looked last. The copy is what it was.
    if (end->reason != QUT_END_OUTERMOST && attach_refresh(session, true))
        count = walk_once(session, end);
    const struct target_window *piece = &copy->pieces[0];
    bool is_other = is_other_stack(&copy->go, session->taken.regs.reg[session->target->arch->sp_reg]);
    if (end->reason == QUT_END_OUTERMOST) {
        // A Go thread that has left its goroutine, in the middle of a call from C, has more further out.
        if (!is_other && copy->reached >= thread->stack_needed && thread->stack_top < copy->reached + TOP_SLACK_BYTES)
            thread->stack_top = copy->reached + TOP_SLACK_BYTES;
    } else if (end->reason == QUT_END_BAD_MEMORY) {
        bool is_behind = end->address >= piece->start && end->address - piece->start < 2 * ATTACH_STACK_BYTES;
        if (!is_behind) // of another stack, which a signal frame led to: next time it is copied, too
            thread->second_start = end->address > SECOND_BELOW_BYTES ? end->address - SECOND_BELOW_BYTES : 0;
        else if (end->address > thread->stack_needed)
            thread->stack_needed = end->address;
        if (!is_other)
            thread->stack_top = 0;
    }
    count = attach_v8_merge(session, count, end);
    return attach_python_merge(session, count, end);
}
