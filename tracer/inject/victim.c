// SPDX-License-Identifier: Apache-2.0
#include "tracer/inject/victim.h"

#include <stdlib.h>
#include <string.h>

#include "libqut/os/os.h"
#include "libqut/os/process.h"
#include "libqut/target/live.h"
#include "tracer/inject/inject.h"

enum { LOOKS = 20, LOOK_NAP_US = 100, FRAMES_MAX = 1024, NAP_FIRST_US = 500, NAP_LAST_US = 5000 };

// What may wait in a call that some allocator makes as well. A caller of these holds no lock of libc's meanwhile.
static const char *const waiting_functions[] = {
    "nanosleep",
    "clock_nanosleep",
    "usleep",
    "sleep",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "sem_wait",
    "pthread_cond_clockwait",
    "sem_timedwait",
    "sem_clockwait",
    "pthread_join",
    "pthread_timedjoin_np",
    "pthread_mutex_lock",
    "pthread_barrier_wait",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_clockjoin_np",
    "__pthread_cond_wait",
    "__nanosleep",
    "__clock_nanosleep",
    "cnd_wait",
    "mtx_lock",
    "thrd_join",
    "thrd_sleep",
    "poll",
    "__poll",
    "ppoll",
};
static const char *const allocating_functions[] = {
    "malloc",
    "calloc",
    "realloc",
    "free",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "malloc_trim",
    "fork",
    "_Fork",
    "vfork",
    "__libc_fork",
    "dlopen",
    "dlclose",
    "dlmopen",
    "dlsym",
    "pthread_create",
    "pthread_exit",
    "pthread_cancel",
    "exit",
    "quick_exit",
    "reallocarray",
    "pvalloc",
    "cfree",
    "mallopt",
    "mallinfo",
    "mallinfo2",
    "malloc_info",
    "malloc_stats",
    "__libc_memalign",
    "dlvsym",
    "setuid",
    "setgid",
    "setgroups",
    "thrd_create",
    "pthread_getattr_np",
    "pthread_setattr_default_np",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_one_of(const struct symbol *symbol, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == symbol->name_length && memcmp(names[i], symbol->name, symbol->name_length) == 0)
            return true;
    return false;
}

static bool name_in_libc(const struct inject_program *program, uint64_t pc, struct symbol *symbol)
{
    return program->symbols && symbols_find(program->symbols, pc - program->libc->load_bias, symbol);
}

// An allocator that stands in for libc's. Which of its functions are called with locks held cannot be told.
static bool is_allocator(const struct inject_program *program, const struct target_image *image)
{
    return image != program->libc && image != program->linker && image->is_elf &&
           inject_symbol(program, image, "malloc") != 0;
}

struct frames {
    const struct inject_program *program;
    struct qut_frame frame[FRAMES_MAX];
    const struct target_image *image[FRAMES_MAX];
    size_t count;
    bool is_whole;
};

// The libc function that was called from outside of libc, of the frames from `first` on.
static bool names_outermost(const struct frames *frames, size_t first, struct symbol *symbol)
{
    size_t last = first;
    while (last + 1 < frames->count && frames->image[last + 1] == frames->program->libc)
        last++;
    return name_in_libc(frames->program, frames->frame[last].lookup_pc, symbol);
}

static bool has_bad_frame(const struct frames *frames, enum hijack_place place)
{
    for (size_t i = 0; i < frames->count; i++) {
        const struct target_image *image = frames->image[i];
        struct symbol symbol;
        if (!image || image == frames->program->linker)
            return true;
        if (image == frames->program->libc && name_in_libc(frames->program, frames->frame[i].lookup_pc, &symbol) &&
            is_one_of(&symbol, allocating_functions, COUNT(allocating_functions)))
            return true;
        if (place != HIJACK_WAITS && is_allocator(frames->program, image))
            return true;
        // A handler: what it interrupted can be anything in libc.
        if (frames->frame[i].flags & QUT_FRAME_SIGNAL && i + 1 < frames->count &&
            (frames->image[i + 1] == frames->program->libc || frames->image[i + 1] == frames->program->linker ||
             is_allocator(frames->program, frames->image[i + 1])))
            return true;
    }
    return false;
}

// The stack of a thread of libc's making, on which there is room: it ends in libc, or in the program's entry.
static bool is_own_stack(const struct frames *frames)
{
    const struct target_image *last = frames->image[frames->count - 1];
    if (!frames->is_whole || !last)
        return false;
    return last == frames->program->libc ||
           (frames->count > 1 && frames->image[frames->count - 2] == frames->program->libc);
}

static bool is_suitable(const struct frames *frames, enum hijack_place place)
{
    struct symbol symbol;
    if (frames->count == 0 || !is_own_stack(frames) || has_bad_frame(frames, place))
        return false;
    bool in_libc = frames->image[0] == frames->program->libc;
    switch (place) {
    case HIJACK_WAITS:
    case HIJACK_AWAITS: return true;
    case HIJACK_PERHAPS: // called by itself, or by something that waits, but not by an allocator
        return !in_libc ||
               (names_outermost(frames, 0, &symbol) && is_one_of(&symbol, waiting_functions, COUNT(waiting_functions)));
    case HIJACK_RUNS: return !in_libc;
    default: return false;
    }
}

static bool look_at(const struct inject_program *program, size_t index, pid_t tid, struct victim *victim,
                    struct frames *frames)
{
    enum hijack_place before = inject_hijack_place_asleep(program->pid, tid);
    if (before == HIJACK_NOWHERE)
        return false;
    struct qut_target *target = program->target;
    struct qut_target_thread *thread = &target->threads[index];
    victim->since_ns = os_now_ns();
    victim->index = index;
    victim->tid = tid;
    target->interrupt = true;
    bool is_taken = target_live_retake(target, thread) && thread->stopped;
    target->interrupt = false;
    if (!is_taken)
        return false;
    // A call that ends because of us is mended at once: we may be killed. One that ran before the stop may have fallen
    // asleep since; of calls that it cannot be in here nothing is known.
    enum hijack_place place = inject_hijack_place_stopped(tid);
    if (before != HIJACK_RUNS || place != HIJACK_NOWHERE)
        inject_hijack_settle(program->pid, tid);
    if (place == HIJACK_NOWHERE || thread->pending_signal != 0)
        return false;
    struct qut_end end;
    frames->count = qut_target_walk(target, index, frames->frame, FRAMES_MAX, &end);
    if (frames->count == 0)
        return false;
    frames->is_whole = end.reason == QUT_END_OUTERMOST && end.guessed_frame == QUT_NO_GUESS;
    for (size_t i = 0; i < frames->count; i++)
        frames->image[i] = inject_image_at(program, frames->frame[i].lookup_pc);
    return is_suitable(frames, place);
}

void inject_victim_let_go(const struct inject_program *program, const struct victim *victim,
                          struct victim_figures *figures)
{
    qut_target_resume_thread(program->target, victim->index);
    uint64_t stopped_ns = os_now_ns() - victim->since_ns;
    if (stopped_ns > figures->stopped_ns)
        figures->stopped_ns = stopped_ns;
}

// Those that sleep first: they notice least. Last those whose system call would end if we were killed right now.
enum { TURN_WAITS, TURN_PERHAPS, TURN_RUNS, TURN_ENDS, TURNS };

static unsigned turn_of(const struct inject_program *program, pid_t tid)
{
    struct target_sleep sleep;
    const char *name;
    switch (inject_hijack_place_asleep(program->pid, tid)) {
    case HIJACK_NOWHERE: return TURNS;
    case HIJACK_RUNS: return TURN_RUNS;
    case HIJACK_PERHAPS: return TURN_PERHAPS;
    default:
        return target_live_look(program->target->source, tid, &sleep) &&
                       target_live_wake(program->target, tid, &sleep, &name) == TARGET_WAKE_SEEN
                   ? TURN_ENDS
                   : TURN_WAITS;
    }
}

static bool look_at_all(const struct inject_program *program, struct victim *victim, struct frames *frames,
                        struct victim_figures *figures)
{
    size_t count = qut_target_thread_count(program->target);
    for (unsigned turn = 0; turn < TURNS; turn++)
        for (size_t i = 0; i < count; i++) {
            pid_t tid = qut_target_tid(program->target, i, NULL);
            if (turn_of(program, tid) != turn)
                continue;
            // One that runs is somewhere else each time.
            unsigned looks = turn == TURN_RUNS ? LOOKS : 1;
            for (unsigned look = 0; look < looks; look++) {
                figures->looked_at++;
                if (look_at(program, i, tid, victim, frames))
                    return true;
                inject_victim_let_go(program, victim, figures);
                if (look + 1 < looks)
                    os_sleep_us(LOOK_NAP_US);
            }
        }
    return false;
}

int inject_victim_find(const struct inject_program *program, uint64_t end_ns, struct victim *victim,
                       struct victim_figures *figures, struct base_error *error)
{
    struct frames *frames = calloc(1, sizeof *frames);
    if (!frames)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    frames->program = program;
    unsigned nap_us = NAP_FIRST_US;
    int result = 1;
    while (result > 0) {
        struct qut_target_error why;
        figures->rounds++;
        if (qut_target_stop(program->target, &why) != 0)
            result = base_fail(error, BASE_ERR_IO, "", 0, "%s", why.text);
        else if (look_at_all(program, victim, frames, figures))
            result = 0;
        else if (os_now_ns() > end_ns)
            result =
                base_fail(error, BASE_ERR_LIMIT, "", 0,
                          "none of its threads came to a place where it could be used (%u looks)" INJECT_OR_OUTSIDE,
                          figures->looked_at);
        if (result > 0) {
            qut_target_resume(program->target);
            os_sleep_us(nap_us);
            nap_us = nap_us * 2 < NAP_LAST_US ? nap_us * 2 : NAP_LAST_US;
        }
    }
    free(frames);
    return result;
}
