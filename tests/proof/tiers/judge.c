// SPDX-License-Identifier: Apache-2.0
// One walk with all shortcuts, with the cache alone, with none: all must say the same, and what the play knows. Of the
// first two one goes by links and the other by hashed rules, in turns.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libqut/runtime/tiers.h"
#include "libqut/runtime/walking_thread.h"
#include "tests/proof/tiers/play.h"

struct judged judged;

// A handler's walks may interrupt a judge at its work.
enum { LEVELS = 4, MODES = 3, NODES_SEED = 2166136261u };
static struct level {
    uint32_t tiers[MODES];
    bool without_links[MODES];
    uintptr_t pcs[MODES][PLAY_PCS_MAX + 1];
    size_t counts[MODES];
    struct qut_end ends[MODES];
} levels[LEVELS];
static volatile unsigned level_count;

__attribute__((format(printf, 1, 2))) static void note_wrong(const char *format, ...)
{
    if (judged.wrong++)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(judged.first_wrong, sizeof judged.first_wrong, format, arguments);
    va_end(arguments);
}

void judged_reset(void)
{
    memset(&judged, 0, sizeof judged);
}

// ---- what the play knows

static size_t known_count(const struct play *play)
{
    return play->depth + play->outer_count;
}

// i-th of the known frames, innermost first.
static uintptr_t known(const struct play *play, size_t i)
{
    size_t depth = play->depth;
    return i < depth ? play_pc_of_return(play->returns[depth - 1 - i]) : play->outer[i - depth];
}

static bool same_end(const struct qut_end *a, const struct qut_end *b)
{
    return a->reason == b->reason && a->refusal == b->refusal && a->pc == b->pc && a->address == b->address &&
           a->guessed_frame == b->guessed_frame;
}

// Beneath walk() and play_judge().
static void judge_truth(const struct play *play, const uintptr_t *pcs, size_t count, const struct qut_end *end)
{
    enum { OWN = 2, OUTER_OWN = 3 }; // the latter: of the walk that noted what is beneath the play
    struct qut_end outer_end = play->outer_end;
    if (outer_end.guessed_frame != QUT_NO_GUESS)
        outer_end.guessed_frame += (uint32_t)play->depth + OWN - OUTER_OWN;
    size_t all = play->depth + play->outer_sure_count + OWN;
    bool cut = all > play->walk_max;
    for (size_t i = OWN; i < count && i < all; i++)
        if (pcs[i] != known(play, i - OWN))
            return note_wrong("frame %zu of %zu is at %#zx, not %#zx; depth %zu, guess %d", i, count, (size_t)pcs[i],
                              (size_t)known(play, i - OWN), (size_t)play->depth, (int)outer_end.guessed_frame);
    if (play->may_lose_fp && end->reason == QUT_END_NO_REGISTER && count < all)
        return;
    if (outer_end.guessed_frame != QUT_NO_GUESS && !cut) {
        if (count < all || end->guessed_frame != outer_end.guessed_frame)
            note_wrong("%zu frames and %s, guess %d; not at least %zu, guess %d", count,
                       qut_end_reason_name(end->reason), (int)end->guessed_frame, all, (int)outer_end.guessed_frame);
        return;
    }
    if (count != (cut ? play->walk_max : all) || (cut ? end->reason != QUT_END_LIMIT : !same_end(end, &outer_end)))
        note_wrong("%zu frames and %s, not %zu; at most %zu", count, qut_end_reason_name(end->reason), all,
                   play->walk_max);
}

bool play_is_outer_part(const struct play *play, const uintptr_t *pcs, size_t count, uint32_t reason)
{
    size_t there = known_count(play);
    if (reason != play->outer_end.reason || count < there)
        return false;
    for (size_t i = 0; i < there; i++)
        if (pcs[count - there + i] != known(play, i))
            return false;
    return true;
}

// ---- what could have been remembered

static const struct play *last_play; // whose walk was the last, if it came to the end of the stack

void judged_forget(void)
{
    last_play = NULL;
}

static void judge_memory(struct play *play)
{
    if (last_play == play && judged.reason != QUT_END_LIMIT) {
        size_t least = play->depth < play->last_depth ? play->depth : play->last_depth, common = 0;
        while (common < least && play->returns[common] == play->last_returns[common] &&
               play->positions[common] == play->last_positions[common])
            common++;
        common += play->outer_count;
        judged.common += common;
        judged.missed_last = common > judged.last_remembered ? common - judged.last_remembered : 0;
        if (judged.missed_most < judged.missed_last)
            judged.missed_most = judged.missed_last;
    }
    last_play = judged.reason == QUT_END_LIMIT ? NULL : play;
    play->last_depth = play->depth;
    memcpy(play->last_returns, play->returns, play->depth * sizeof *play->returns);
    memcpy(play->last_positions, play->positions, play->depth * sizeof *play->positions);
}

// ---- what a store would find

// A frame's node stands for the frame and all of its callers.
static uint32_t node_of(uint32_t parent, uintptr_t pc)
{
    return ((parent ^ (uint32_t)pc ^ (uint32_t)((uint64_t)pc >> 32)) * 16777619u) | 1;
}

static void judge_nodes(unsigned mode, const uintptr_t *pcs, size_t count, const struct qut_end *end)
{
    struct runtime_last_walk last = {0};
    bool is_known = runtime_last_walk(&last);
    if (mode == 0) {
        judged.last_known = is_known;
        judged.last_kept = is_known ? last.kept_count : 0;
    }
    if (!is_known)
        return;
    if (end->reason == QUT_END_LIMIT && last.kept_count)
        note_wrong("%zu frames kept of a walk that was cut", last.kept_count);
    if (end->reason == QUT_END_LIMIT)
        return;
    if (last.frame_count != count || last.kept_count > count)
        return note_wrong("the last walk has %zu frames, of these %zu kept, not %zu", last.frame_count, last.kept_count,
                          count);
    uint32_t node = NODES_SEED;
    for (size_t i = count; i-- > 0;) {
        node = node_of(node, pcs[i]);
        bool kept = i >= count - last.kept_count;
        uint32_t *found = runtime_last_walk_node(&last, i);
        if (*found && (!kept || *found != node))
            return note_wrong("frame %zu of %zu has the node of another; %u kept", i, count, (unsigned)last.kept_count);
        judged.nodes_kept += *found != 0;
        *found = node;
    }
}

// ---- walks

// How many frames walks must have in common: all, but where a guess has led astray: what it found there may be what the
// walks before left behind.
static size_t comparable(const struct play *play, const struct level *level)
{
    unsigned plain = MODES - 1;
    uint32_t guessed_frame = level->ends[plain].guessed_frame;
    bool is_astray = guessed_frame != QUT_NO_GUESS &&
                     !play_is_outer_part(play, level->pcs[plain], level->counts[plain], level->ends[plain].reason);
    return is_astray ? (size_t)guessed_frame + 1 : SIZE_MAX;
}

static void compare(const struct play *play, const struct level *level)
{
    size_t comparable_count = comparable(play, level);
    for (unsigned mode = 0; mode + 1 < MODES; mode++) {
        size_t count = level->counts[MODES - 1];
        bool is_whole = comparable_count == SIZE_MAX;
        if (is_whole ? level->counts[mode] != count
                     : level->counts[mode] < (count < comparable_count ? count : comparable_count))
            return note_wrong("tiers %u: %zu frames, %s; without: %zu, %s", level->tiers[mode], level->counts[mode],
                              qut_end_reason_name(level->ends[mode].reason), count,
                              qut_end_reason_name(level->ends[MODES - 1].reason));
        for (size_t i = 0; i < count && i < comparable_count; i++)
            if (level->pcs[mode][i] != level->pcs[MODES - 1][i])
                return note_wrong("tiers %u: frame %zu of %zu is at %#zx; without: %#zx", level->tiers[mode], i, count,
                                  (size_t)level->pcs[mode][i], (size_t)level->pcs[MODES - 1][i]);
        const struct qut_end *end = &level->ends[mode], *right = &level->ends[MODES - 1];
        if (is_whole ? !same_end(end, right) : end->guessed_frame != right->guessed_frame)
            return note_wrong("tiers %u: end %s at %#zx, refusal %u, address %#zx, guess %u; without: %s at %#zx, "
                              "refusal %u, address %#zx, guess %u",
                              level->tiers[mode], qut_end_reason_name(end->reason), (size_t)end->pc,
                              (unsigned)end->refusal, (size_t)end->address, (unsigned)end->guessed_frame,
                              qut_end_reason_name(right->reason), (size_t)right->pc, (unsigned)right->refusal,
                              (size_t)right->address, (unsigned)right->guessed_frame);
    }
}

static void count_shortcuts(const struct runtime_tier_counts *before)
{
    struct runtime_tier_counts after;
    if (!runtime_tier_counts(&after))
        return;
    judged.frames += after.frames - before->frames;
    judged.last_remembered = (size_t)(after.remembered - before->remembered);
    judged.remembered += judged.last_remembered;
    judged.without_links += after.without_links - before->without_links;
    judged.last_looked_up = (size_t)(after.looked_up - before->looked_up);
    judged.link_count = 0;
    const struct runtime_link_cache *cache = &runtime_thread_self()->links;
    for (size_t i = 0; i < RUNTIME_LINK_COUNT; i++)
        judged.link_count += cache->links[i].key != 0;
}

__attribute__((noinline)) static void walk(struct level *level, unsigned mode, const struct play *play,
                                           const void *ucontext, size_t max)
{
    uintptr_t *pcs = level->pcs[mode];
    struct runtime_tier_counts before = {0};
    if (mode == 0)
        runtime_tier_counts(&before);
    pcs[max] = 1;
    struct runtime_thread *thread = runtime_thread_self();
    if (thread && !play->lets_links_pause)
        thread->links.pause = level->without_links[mode] ? UINT8_MAX : 0;
    uint32_t tiers = atomic_exchange_explicit(&runtime_tiers, level->tiers[mode], memory_order_relaxed);
    level->counts[mode] = ucontext ? qut_backtrace_context(ucontext, pcs, max, &level->ends[mode])
                                   : qut_backtrace(pcs, max, &level->ends[mode]);
    atomic_store_explicit(&runtime_tiers, tiers, memory_order_relaxed);
    if (pcs[max] != 1)
        note_wrong("written behind the last of %zu", max);
    if (mode == 0)
        count_shortcuts(&before);
    if (!play->skip_nodes)
        judge_nodes(mode, pcs, level->counts[mode], &level->ends[mode]);
}

static struct level *enter_level(struct play *play)
{
    const uint32_t all = RUNTIME_TIERS_ALL | (play->lets_memory_pause ? 0 : RUNTIME_TIER_STUBBORN);
    // What foretells the next walk is to be this one alone.
    const uint32_t tiers[MODES] = {all, play->lets_links_pause ? 0 : RUNTIME_TIER_LINKED, 0};
    struct level *level = &levels[level_count++ % LEVELS];
    for (unsigned i = 0; i < MODES; i++) {
        level->without_links[i] = (judged.walks + i) % 2;
        level->tiers[i] = play->switches_at_random
                              ? (uint32_t)play_below(play, (RUNTIME_TIERS_ALL | RUNTIME_TIER_STUBBORN) + 1)
                              : tiers[i];
    }
    return level;
}

static void leave_level(const struct level *level)
{
    judged.count = level->counts[0];
    judged.reason = level->ends[0].reason;
    judged.walks++;
    level_count--;
}

void play_judge(struct play *play)
{
    play_enter(play, (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)));
    struct level *level = enter_level(play);
    // Unknown to the compiler: the modes must not become calls from different places.
    volatile unsigned mode_count = MODES;
    for (unsigned i = 0; i < mode_count; i++)
        walk(level, i, play, NULL, play->walk_max);
    compare(play, level);
    judge_truth(play, level->pcs[0], level->counts[0], &level->ends[0]);
    leave_level(level);
    judge_memory(play);
    play_leave(play);
}

void play_judge_context(struct play *play, const void *ucontext)
{
    struct level *level = enter_level(play);
    volatile unsigned mode_count = MODES;
    for (unsigned i = 0; i < mode_count; i++)
        walk(level, i, play, ucontext, PLAY_PCS_MAX);
    compare(play, level);
    // Interrupted code can lie anywhere, and not all of it has rules: a guess may lead astray.
    const struct qut_end *end = &level->ends[0];
    bool is_true = play_is_outer_part(play, level->pcs[0], level->counts[0], end->reason);
    if (end->reason != play->outer_end.reason || (!is_true && end->guessed_frame != QUT_NO_GUESS))
        judged.ended_elsewhere++;
    else if (!is_true)
        note_wrong("%zu frames from a context, not those of the play; depth %zu", level->counts[0],
                   (size_t)play->depth);
    leave_level(level);
    judged_forget();
}
