// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/backtrace.h"

static inline uintptr_t load_at(uintptr_t base, intptr_t offset_bytes)
{
    return qut_os_load(base + (uintptr_t)offset_bytes);
}

// ---- links

// A rule that the table has, made an entry. NULL: it is none that a link can say.
__attribute__((noinline)) static struct qut_link *look_up(struct qut_backtrace *b, uintptr_t key)
{
    uintptr_t pc = key - 1;
    if (!b->module || pc < b->module->start || pc >= b->module->end)
        b->module = qut_modules_find(b->modules, pc);
    if (!b->module || b->module->code.state != QUT_CODE_READY)
        return NULL;
    const struct qut_table *table = b->module->code.table;
    uint64_t vaddr = pc - b->module->code.load_bias, row_end;
    const struct qut_rule_cell *cell = qut_table_cell(table, vaddr, &row_end);
    // A row that ends here may have a signal trampoline behind it: pc is then not what was called from.
    if (!cell || (row_end <= vaddr + 1 && qut_table_cell(table, vaddr + 1, &row_end) != cell))
        return NULL;
    struct qut_link rule;
    if (!qut_link_pack(&qut_native_arch, QUT_NATIVE_FP_SLOT, cell, &rule))
        return NULL;
    struct qut_link *link = qut_link_make(&b->thread->links, key);
    link->next_bytes = 0;
    link->cfa = rule.cfa;
    link->step = rule.step;
    b->thread->counts.looked_up++;
    return link;
}

// ---- follow

// The step to a remembered frame would be taken again.
static inline bool holds(const struct qut_memo_frame *frame)
{
    if (frame->step.ra_offset_bytes == 0 || load_at(frame->sp, frame->step.ra_offset_bytes) != frame->ra)
        return false;
    if (!(frame->step.fp_offset_bytes & QUT_MEMO_LIVE))
        return true;
    intptr_t fp_offset_bytes = qut_memo_fp_offset_bytes(frame);
    return fp_offset_bytes == 0 || load_at(frame->sp, fp_offset_bytes) == frame->fp;
}

static inline bool is_state(const struct qut_memo_frame *older, const struct qut_memo_frame *at)
{
    int16_t older_flags = older->step.fp_offset_bytes;
    return older->sp == at->sp && older->ra == at->ra &&
           ((older_flags ^ at->step.fp_offset_bytes) & QUT_MEMO_EXACT) == 0 &&
           (!(older_flags & QUT_MEMO_LIVE) || older->fp == at->fp);
}

// From the state of frame `next`, which was given out, as far as the memo goes.
static inline enum qut_stop follow(struct qut_backtrace *b, struct qut_memo *memo)
{
    const struct qut_memo_frame *first = &memo->frames[memo->next], *frame = first;
    const struct qut_memo_frame *last = &memo->frames[QUT_MEMO_CAPACITY - 1];
    size_t room = b->max - b->count;
    const struct qut_memo_frame *stop = (size_t)(last - first) < room ? last : first + room;
    uintptr_t *pc = b->pcs + b->count;
    while (frame < stop && holds(frame + 1)) {
        frame++;
        *pc++ = qut_key_of(frame->ra) - 1;
    }
    size_t followed_count = (size_t)(frame - first);
    b->count += followed_count;
    b->remembered_count += followed_count + 1;
    memo->good_end = memo->next = (uint32_t)(frame + 1 - memo->frames);
    if (frame != first)
        b->key = qut_key_of(frame->ra);
    b->memo_is_done = true;
    if (frame == last && memo->complete)
        return STOP_END;
    if (b->count == b->max && frame < last && holds(frame + 1)) {
        b->key = qut_key_of(frame[1].ra);
        return STOP_LIMIT;
    }
    b->memo_is_done = false;
    b->at.sp = frame->sp;
    if (frame->step.fp_offset_bytes & QUT_MEMO_LIVE) {
        b->at.fp = frame->fp;
        return STOP_NOT;
    }
    // Nobody looked at an fp that is not live: it is what was read last, if anything was.
    for (; frame != first; frame--)
        if (qut_memo_fp_offset_bytes(frame)) {
            b->at.fp = load_at(frame->sp, qut_memo_fp_offset_bytes(frame));
            break;
        }
    return STOP_NOT;
}

// ---- both

// A new frame that the walk has come to, and the link by which it leaves it; NULL: it does not know one.
static inline struct qut_memo_frame *record(struct qut_memo *memo, struct qut_memo_frame *frame,
                                            const struct qut_memo_frame *at, const struct qut_link *link)
{
    *frame = *at;
    if (!link || !(link->cfa & QUT_LINK_FP))
        return frame + 1;
    if (qut_memo_fp_offset_bytes(at) || at->step.ra_offset_bytes == 0) {
        frame->step.fp_offset_bytes |= QUT_MEMO_LIVE;
        return frame + 1;
    }
    memo->new_count = (uint32_t)(frame + 1 - memo->frames);
    qut_memo_mark_live(memo, at->fp);
    return frame + 1;
}

// From the frame the walk is at, which is on the thread's own stack. One source for walks that remember and others.
static inline __attribute__((always_inline)) enum qut_stop run_links(struct qut_backtrace *b, const bool remember)
{
    struct qut_thread *thread = b->thread;
    struct qut_link_cache *links = &thread->links;
    struct qut_memo *memo = &thread->memo;
    struct qut_memo_frame *new_frame = memo->frames + memo->new_count, *room_end = memo->frames + memo->good;
    struct qut_memo_frame *older = memo->frames + memo->next;
    struct qut_memo_frame at = b->at;
    uintptr_t key = b->key, high = thread->stack_high;
    uintptr_t *pc = b->pcs + b->count, *pcs_end = b->pcs + b->max;
    uint16_t *guess = b->count ? &thread->later_guess : &thread->first_guess;
    enum qut_stop stop = STOP_STUCK;
    for (;;) {
        if (pc == pcs_end) {
            stop = STOP_LIMIT;
            break;
        }
        *pc++ = key - 1;
        bool is_remembered = false;
        if (remember) {
            while (older->sp < at.sp)
                older++;
            if (is_state(older, &at)) {
                memo->new_count = (uint32_t)(new_frame - memo->frames);
                memo->next = (uint32_t)(older - memo->frames);
                qut_memo_join(memo, at.step);
                b->count = (size_t)(pc - b->pcs);
                b->key = key;
                b->at = at;
                stop = follow(b, memo);
                if (stop != STOP_NOT)
                    return stop;
                stop = STOP_STUCK;
                new_frame = memo->frames;
                room_end = memo->frames + memo->good;
                older = memo->frames + memo->next;
                at = b->at;
                key = b->key;
                pc = b->pcs + b->count;
                guess = &thread->later_guess;
                is_remembered = true;
            } else if (__builtin_expect(new_frame == room_end, 0)) {
                memo->new_count = (uint32_t)(new_frame - memo->frames);
                memo->next = (uint32_t)(older - memo->frames);
                if (!qut_memo_make_room(memo)) {
                    qut_memo_cut(memo);
                    pc--;
                    stop = STOP_FORGETFUL;
                    break;
                }
                room_end = memo->frames + memo->good;
                older = memo->frames + memo->next;
            }
        }
        struct qut_link *link = qut_link_at(links, *guess);
        if (__builtin_expect(link->key != key, 0)) {
            link = qut_link_find(links, key);
            if (!link)
                link = look_up(b, key);
            if (link)
                *guess = qut_link_bytes(links, link);
        }
        if (remember && !is_remembered)
            new_frame = record(memo, new_frame, &at, link);
        if (!link)
            break;
        uintptr_t base = at.sp;
        if (link->cfa & QUT_LINK_FP) {
            base = at.fp;
            if (remember && is_remembered)
                qut_memo_mark_live(memo, at.fp);
            if (base < at.sp)
                break;
        }
        uintptr_t cfa = base + (link->cfa & ~(uintptr_t)QUT_LINK_FP);
        if (link->cfa == 0) {
            stop = STOP_END;
            break;
        }
        if (cfa - at.sp - 1 >= high - at.sp)
            break;
        uintptr_t ra = load_at(cfa, link->step.ra_offset_bytes), outer_key = qut_key_of(ra);
        if (outer_key == 0)
            break;
        if (link->step.fp_offset_bytes)
            at.fp = load_at(cfa, link->step.fp_offset_bytes);
        at.ra = ra;
        at.sp = cfa;
        at.step = link->step;
        key = outer_key;
        guess = &link->next_bytes;
    }
    b->at = at;
    b->key = key;
    b->count = (size_t)(pc - b->pcs);
    if (remember && stop != STOP_FORGETFUL) {
        memo->new_count = (uint32_t)(new_frame - memo->frames);
        memo->next = (uint32_t)(older - memo->frames);
    }
    return stop;
}

__attribute__((noinline)) static enum qut_stop run_and_remember(struct qut_backtrace *b)
{
    return run_links(b, true);
}

__attribute__((noinline)) static enum qut_stop run_only(struct qut_backtrace *b)
{
    return run_links(b, false);
}

// The memo is left alone from here on.
void qut_walk_fast_end(struct qut_backtrace *b, enum qut_stop stop)
{
    if (b->remembers && !b->memo_is_done) {
        if (stop == STOP_END)
            qut_memo_end(&b->thread->memo);
        else
            qut_memo_cut(&b->thread->memo);
        b->thread->memo.contiguous &= stop == STOP_END;
    }
    b->memo_is_done = true;
}

enum qut_stop qut_walk_fast(struct qut_backtrace *b)
{
    if (b->remembers && !b->memo_is_done) {
        enum qut_stop stop = run_and_remember(b);
        if (stop != STOP_FORGETFUL)
            return stop;
        b->memo_is_done = true;
    }
    return run_only(b);
}
