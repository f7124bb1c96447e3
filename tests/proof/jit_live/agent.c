// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program with a just-in-time compiler: walks its main thread from a timer's handler, and says how far
// that went. It ends the program after QUT_AGENT_WALKS walks that met made code, or after some seconds. Only the
// program named QUT_AGENT_PROGRAM: others on the way to it go on undisturbed.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <qut/local.h>
#include <qutc/provide.h>

enum { FRAMES_MAX = 512, TIMER_PERIOD_NS = 1000000, END_REASONS = QUT_END_REASON_COUNT };
enum { SECONDS_MAX = 5, SETTLE_US = 200000 }; // QEMU takes all signals for itself when it starts

static struct {
    uint64_t wanted;     // walks in made code
    uint64_t walks;      // all
    uint64_t made;       // ... with a frame of made code, or that end in it
    uint64_t crossed;    // ... of these, to the outermost frame
    uint64_t late;       // ... of these, that did not, after one had
    uint64_t guessed;    // with a guessed frame; but for those that got lost before one had crossed: until then, made
                         // code has no description
    uint64_t different;  // the two ways to walk gave other frames
    uint64_t wrong_base; // the outermost frame was another than the first time
    uint64_t ends[END_REASONS];
    uint64_t outermost_pc;
} seen;
static sem_t done;

// By cursor, which takes no shortcut. Returns the number of frames.
static size_t walk(const void *context, uintptr_t *pcs, bool *is_made, struct qut_end *end)
{
    struct qut_cursor cursor;
    struct qut_frame frame;
    size_t count = 0;
    *is_made = false;
    qut_cursor_context(&cursor, context);
    do {
        qut_cursor_frame(&cursor, &frame);
        pcs[count++] = (uintptr_t)frame.lookup_pc;
        *is_made |= (frame.flags & QUT_FRAME_JIT) != 0;
    } while (count < FRAMES_MAX && qut_cursor_next(&cursor));
    qut_cursor_end(&cursor, end);
    return count;
}

static void note(const uintptr_t *pcs, size_t count, bool is_made, const struct qut_end *end)
{
    bool is_whole = end->reason == QUT_END_OUTERMOST;
    seen.walks++;
    seen.ends[end->reason < END_REASONS ? end->reason : 0]++;
    seen.guessed += end->guessed_frame != QUT_NO_GUESS && (is_whole || seen.crossed > 0);
    if (is_whole) {
        seen.outermost_pc = seen.outermost_pc ? seen.outermost_pc : pcs[count - 1];
        seen.wrong_base += pcs[count - 1] != seen.outermost_pc;
    }
    bool ends_in_made = end->reason == QUT_END_NO_MODULE || end->reason == QUT_END_TABLE_PENDING;
    if (!is_made && !ends_in_made)
        return;
    seen.made++;
    seen.crossed += is_whole;
    seen.late += !is_whole && seen.crossed > 0;
    if (seen.made == seen.wanted)
        sem_post(&done);
}

static void on_timer(int number, siginfo_t *info, void *context)
{
    static uintptr_t by_cursor[FRAMES_MAX], at_once[FRAMES_MAX];
    struct qut_end end, other_end;
    bool is_made;
    int saved_errno = errno;
    (void)number;
    (void)info;
    size_t count = walk(context, by_cursor, &is_made, &end);
    size_t other_count = qut_backtrace_context(context, at_once, FRAMES_MAX, &other_end);
    // What was pending may have come in between.
    if (end.reason == QUT_END_OUTERMOST && other_end.reason == QUT_END_OUTERMOST)
        seen.different += other_count != count || memcmp(by_cursor, at_once, count * sizeof *at_once) != 0;
    note(by_cursor, count, is_made, &end);
    errno = saved_errno;
}

static bool start_timer(void)
{
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    const struct itimerspec period = {{0, TIMER_PERIOD_NS}, {0, TIMER_PERIOD_NS}};
    timer_t timer;
    event._sigev_un._tid = getpid();
    return sigaction(SIGPROF, &action, NULL) == 0 && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
           timer_settime(timer, 0, &period, NULL) == 0;
}

static void *tell(void *unused)
{
    (void)unused;
    usleep(SETTLE_US);
    if (!start_timer())
        dprintf(2, "agent: no timer\n");
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SECONDS_MAX;
    while (sem_timedwait(&done, &until) != 0 && errno == EINTR)
        ;
    // The thread that is walked need not have come to made code: then no walk has asked what was registered since.
    qut_refresh();
    struct qut_stats stats;
    qut_get_stats(&stats, sizeof stats);
    dprintf(
        2,
        "agent: {\"walks\": %ju, \"made\": %ju, \"crossed\": %ju, \"late\": %ju, \"guessed\": %ju, \"different\": %ju, "
        "\"wrong_base\": %ju, \"entries\": %ju, \"not_elf\": %ju, \"no_table\": %ju, \"ends\": {",
        (uintmax_t)seen.walks, (uintmax_t)seen.made, (uintmax_t)seen.crossed, (uintmax_t)seen.late,
        (uintmax_t)seen.guessed, (uintmax_t)seen.different, (uintmax_t)seen.wrong_base, (uintmax_t)stats.jit_entries,
        (uintmax_t)stats.jit_not_elf, (uintmax_t)stats.jit_no_table);
    const char *comma = "";
    for (uint32_t i = 0; i < END_REASONS; i++) {
        if (seen.ends[i]) {
            dprintf(2, "%s\"%s\": %ju", comma, qut_end_reason_name(i), (uintmax_t)seen.ends[i]);
            comma = ", ";
        }
    }
    dprintf(2, "}}\n");
    _exit(0);
}

__attribute__((constructor)) static void begin(void)
{
    static const struct qutc_provide_options provide = {.size = sizeof provide};
    const struct qut_options options = {
        .size = sizeof options, .compile = qutc_compile_for_qut, .compile_context = (void *)&provide};
    const char *walks = getenv("QUT_AGENT_WALKS"), *program = getenv("QUT_AGENT_PROGRAM");
    pthread_t thread;
    if (!walks || !program || strcmp(program, program_invocation_short_name) != 0)
        return;
    seen.wanted = strtoull(walks, NULL, 10);
    unsetenv("LD_PRELOAD");
    if (sem_init(&done, 0, 0) != 0 || qut_start(&options) != 0 || pthread_create(&thread, NULL, tell, NULL) != 0)
        dprintf(2, "agent: cannot start\n");
}
