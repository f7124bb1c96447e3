// SPDX-License-Identifier: Apache-2.0
// Walks without pause through code that another thread frees, replaces and packs all the time: from what the code
// calls, and from a timer that stops it anywhere. A walk may end where the code is not known yet. It may never go on by
// a rule of what was there before: every frame is of another size, and all that lies outside is compared.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/discipline.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/modules/jit/player.h"

enum { LAYOUTS = 3, PLAYERS = 2, GROUP_SLOTS = 8, STORM_MS = 700, PATIENCE_MS = 10000, CROSSED_LEAST = 100 };

// ---- the code

struct slot {
    _Atomic int users; // -1: it is being replaced
    struct code_method method;
    struct jit_entry *entry; // of it alone; NULL: a group's
    void *symfile;
    unsigned group;
};

struct group {
    struct jit_entry *entry;
    void *symfile;
    unsigned members;
};

static struct owner owner;
static struct slot slots[CODE_SLOTS];
static struct group groups[CODE_SLOTS];
static unsigned group_count;
static unsigned random_state;

static unsigned below(unsigned bound)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % bound;
}

static struct jit_entry *add(const struct code_method *methods, unsigned count, void **symfile)
{
    uint8_t bytes[CODE_SYMFILE_BYTES_MAX];
    size_t size = code_symfile(methods, count, bytes);
    *symfile = malloc(size); // and freed: what is there next is for malloc to say
    memcpy(*symfile, bytes, size);
    return owner_add(&owner, *symfile, size);
}

static void forget(struct jit_entry *entry, void *symfile)
{
    owner_remove(&owner, entry);
    free(symfile);
}

// The method is in its file no more, or its place there is not known.
static void leave_group(struct slot *slot)
{
    struct group *group = &groups[slot->group];
    if (--group->members == 0) {
        forget(group->entry, group->symfile);
        group->entry = NULL;
    }
}

static void replace(unsigned index)
{
    struct slot *slot = &slots[index];
    int nobody = 0;
    if (!atomic_compare_exchange_strong(&slot->users, &nobody, -1))
        return;
    struct jit_entry *old = slot->entry;
    void *old_symfile = slot->symfile;
    // Android's newest removes what it no longer has whenever it likes.
    bool is_lazy = owner.layout == ART_JIT_ANDROID2 && below(2);
    if (old && !is_lazy)
        forget(old, old_symfile);
    if (!old && owner.layout != ART_JIT_ANDROID2)
        leave_group(slot);
    slot->method = code_emit(index, below(MACHINE_FRAME_STEPS));
    slot->entry = add(&slot->method, 1, &slot->symfile);
    if (old && is_lazy) {
        atomic_store(&slot->users, 0);
        usleep(below(300));
        forget(old, old_symfile);
        return;
    }
    if (!old && owner.layout == ART_JIT_ANDROID2)
        leave_group(slot);
    atomic_store(&slot->users, 0);
}

// Others, in GDB's layout, have no order in which an entry is newer: there a file whose code has gone goes as a whole.
static void pack(unsigned first)
{
    struct code_method methods[GROUP_SLOTS];
    if (group_count == CODE_SLOTS || owner.layout == ART_JIT_GDB)
        return;
    for (unsigned i = 0; i < GROUP_SLOTS; i++) {
        if (!slots[first + i].entry)
            return;
        methods[i] = slots[first + i].method;
    }
    struct group *group = &groups[group_count];
    group->entry = add(methods, GROUP_SLOTS, &group->symfile);
    group->members = GROUP_SLOTS;
    for (unsigned i = 0; i < GROUP_SLOTS; i++) {
        struct slot *slot = &slots[first + i];
        forget(slot->entry, slot->symfile);
        slot->entry = NULL;
        slot->group = group_count;
    }
    group_count++;
}

static void be_odd(void)
{
    if (owner.layout == ART_JIT_GDB)
        return;
    __atomic_fetch_add(&owner.descriptor->seqlock, 1, __ATOMIC_SEQ_CST);
    usleep(below(2000));
    __atomic_fetch_add(&owner.descriptor->seqlock, 1, __ATOMIC_SEQ_CST);
}

static void add_others(void)
{
    static const char other[] = "something else";
    struct jit_entry *entries[] = {owner_add(&owner, NULL, 0), owner_add(&owner, other, sizeof other)};
    usleep(below(300));
    for (unsigned i = 0; i < 2; i++)
        owner_remove(&owner, entries[i]);
}

static void change(void)
{
    switch (below(16)) {
    case 0: pack(below(CODE_SLOTS / GROUP_SLOTS) * GROUP_SLOTS); break;
    case 1: be_odd(); break;
    case 2: add_others(); break;
    default: replace(below(CODE_SLOTS)); break;
    }
}

// ---- walks

static _Atomic uint64_t verdicts[WRONG + 1], timer_verdicts[WRONG + 1];
static _Atomic int is_over;
static _Atomic int wrong_is_told;
static _Thread_local struct player player;
static _Thread_local _Atomic bool is_playing;

static bool in_code(uintptr_t pc)
{
    return pc - (uintptr_t)code_buffer < (uintptr_t)CODE_SLOTS * CODE_SLOT_BYTES;
}

static void on_timer(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    if (!atomic_load(&is_playing))
        return;
    uintptr_t pcs[PLAYER_FRAMES_MAX];
    struct qut_end end;
    size_t count = qut_backtrace_context(context, pcs, PLAYER_FRAMES_MAX, &end), at = 0;
    while (at < count && !in_code(pcs[at]))
        at++;
    // A timer stops a thread in functions of libc without exact unwind information too: how these are left is a guess.
    if (at == count || end.guessed_frame != QUT_NO_GUESS)
        return;
    enum verdict verdict = WRONG;
    if (at + 1 == count)
        verdict = end.reason == QUT_END_TABLE_PENDING ? PENDING : end.reason == QUT_END_NO_MODULE ? UNKNOWN : WRONG;
    else if (player_is_outer(&player, pcs, count, at, &end))
        verdict = CROSSED;
    atomic_fetch_add(&timer_verdicts[verdict], 1);
    if (verdict == WRONG && !atomic_exchange(&wrong_is_told, 1)) {
        memcpy(player.pcs, pcs, sizeof pcs);
        player.count = count;
        player.end = end;
        printf("# from the timer, at +%#zx: %s\n", (size_t)(pcs[at] - (uintptr_t)code_buffer) % CODE_SLOT_BYTES,
               player_text(&player));
    }
}

static void *play(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    qut_thread_register();
    atomic_store(&is_playing, true);
    while (!atomic_load(&is_over)) {
        state = state * 1664525 + 1013904223;
        struct slot *slot = &slots[(state >> 8) % CODE_SLOTS];
        int users = atomic_load(&slot->users);
        if (users < 0 || !atomic_compare_exchange_strong(&slot->users, &users, users + 1))
            continue;
        enum verdict verdict = player_walk(&player, (unsigned)(slot - slots));
        atomic_fetch_sub(&slot->users, 1);
        atomic_fetch_add(&verdicts[verdict], 1);
        if (verdict == WRONG && !atomic_exchange(&wrong_is_told, 1))
            printf("# %s\n", player_text(&player));
    }
    atomic_store(&is_playing, false);
    return NULL;
}

static void set_timer(long microseconds)
{
    struct itimerval interval = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &interval, NULL);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void storm(void)
{
    memset(slots, 0, sizeof slots);
    memset(groups, 0, sizeof groups);
    group_count = 0;
    for (unsigned i = 0; i <= WRONG; i++)
        verdicts[i] = timer_verdicts[i] = 0;
    is_over = 0;
    for (unsigned i = 0; i < CODE_SLOTS; i++) {
        slots[i].method = code_emit(i, i);
        slots[i].entry = add(&slots[i].method, 1, &slots[i].symfile);
    }
    qut_refresh();

    sigset_t timer, before;
    sigemptyset(&timer);
    sigaddset(&timer, SIGALRM);
    pthread_t threads[PLAYERS];
    for (uintptr_t i = 0; i < PLAYERS; i++)
        pthread_create(&threads[i], NULL, play, (void *)(i + 1));
    pthread_sigmask(SIG_BLOCK, &timer, &before);
    set_timer(997);
    // Bursts, and rests in which all becomes known; on a slow machine these take long.
    unsigned changes = 0;
    for (uint64_t end_ms = now_ms() + STORM_MS, last_ms = end_ms + PATIENCE_MS;
         now_ms() < end_ms || (verdicts[CROSSED] <= CROSSED_LEAST && now_ms() < last_ms);) {
        for (unsigned i = below(60); i > 0; i--, changes++)
            change();
        if (below(4) == 0)
            qut_refresh();
        usleep(below(30000));
    }
    is_over = 1;
    for (unsigned i = 0; i < PLAYERS; i++)
        pthread_join(threads[i], NULL);
    set_timer(0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    struct qut_stats stats;
    qut_get_stats(&stats, sizeof stats);
    printf("# layout %d: %u changes; crossed %llu, pending %llu, unknown %llu; from the timer %llu, %llu, %llu; %llu "
           "readings\n",
           owner.layout, changes, (unsigned long long)verdicts[CROSSED], (unsigned long long)verdicts[PENDING],
           (unsigned long long)verdicts[UNKNOWN], (unsigned long long)timer_verdicts[CROSSED],
           (unsigned long long)timer_verdicts[PENDING], (unsigned long long)timer_verdicts[UNKNOWN],
           (unsigned long long)stats.jit_readings);
    CHECK(verdicts[WRONG] == 0 && timer_verdicts[WRONG] == 0, "%llu wrong, from the timer %llu",
          (unsigned long long)verdicts[WRONG], (unsigned long long)timer_verdicts[WRONG]);
    CHECK(verdicts[CROSSED] > CROSSED_LEAST, "only %llu were crossed", (unsigned long long)verdicts[CROSSED]);
    qut_refresh();
    unsigned known = 0;
    for (unsigned i = 0; i < CODE_SLOTS; i++)
        known += player_walk(&player, i) == CROSSED;
    CHECK(known == CODE_SLOTS, "%u are known when it is over", known);
    for (unsigned i = 0; i < CODE_SLOTS; i++)
        if (slots[i].entry)
            forget(slots[i].entry, slots[i].symfile);
    for (unsigned i = 0; i < group_count; i++)
        if (groups[i].entry)
            forget(groups[i].entry, groups[i].symfile);
}

int main(void)
{
    static const char *const names[LAYOUTS] = {"storm in GDB's layout", "storm in Android's first",
                                               "storm in Android's second"};
    struct qut_options options = {.size = sizeof options, .compile = player_compile};
    if (!discipline_has_compiler()) {
        puts("SKIP: no qutc for the program's own table\n0 passed, 0 failed, 1 skipped");
        return 77;
    }
    if (!code_start() || qut_start(&options) != 0)
        return 1;
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        owner_load(&owner, (enum art_jit_layout)layout);
        qut_refresh();
        if (!owner.descriptor)
            return 1;
        tap_run(names[layout], storm);
        owner_unload(&owner);
    }
    qut_stop();
    return tap_finish();
}
