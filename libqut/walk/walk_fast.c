// SPDX-License-Identifier: Apache-2.0
#include "libqut/walk/walk_fast.h"

#include "libqut/runtime/shared_rules_inline.h"

// The table of the module at pc. NULL: there is none.
static inline const struct runtime_near_table *table_at(struct runtime_thread *thread, const struct modules *modules,
                                                        uintptr_t pc)
{
    const struct runtime_near_table *near = runtime_near_find(&thread->near, pc);
    if (near)
        return near;
    const struct module *module = modules_at(modules, pc);
    if (!module || module->code.state != RUNTIME_CODE_READY || module->unlisted)
        return NULL;
    return runtime_near_keep(&thread->near, module->start, module->end, (uintptr_t)module->code.load_bias,
                             module->code.table);
}

// All of a link but its key and what comes next. False: there is no rule, or none that a link can say. With a frame of
// its own it would take riscv64 beyond the KiB of stack that walks may have.
RUNTIME_WALK_INLINE bool find_rule(struct runtime_thread *thread, const struct modules *modules, uintptr_t key,
                                   struct runtime_link *link)
{
    uintptr_t pc = key - 1;
    const struct runtime_near_table *near = table_at(thread, modules, pc);
    if (!near)
        return false;
    const struct qut_table *table = &near->table;
    uint64_t vaddr = pc - near->load_bias, row_end;
    const struct qut_rule_cell *cell = qut_table_cell(table, vaddr, &row_end);
    // A row that ends here may have a signal trampoline behind it: pc is then not what was called from.
    if (!cell || (row_end <= vaddr + 1 && qut_table_cell(table, vaddr + 1, &row_end) != cell))
        return false;
    // A rule of a whole function holds where calls are made. A pc that was interrupted may not pass for such a place:
    // its key lies within an instruction, where not every byte can begin one.
    uintptr_t within = ((uintptr_t)1 << arch_native_arch.pc_shift) - 1;
    if (cell->flags & QUT_RULE_BODY_ONLY && (within == 0 || key & within))
        return false;
    return runtime_link_pack(cell, link) && (!ARCH_NATIVE_RA_OFFSET_BYTES || link->cfa == 0 ||
                                             link->step.ra_offset_bytes == ARCH_NATIVE_RA_OFFSET_BYTES);
}

// What a virtual machine says of its code holds at this moment.
static inline enum modules_machine_told ask_machine(struct runtime_thread *thread, uintptr_t key, bool is_return)
{
    struct runtime_link found;
    if (RUNTIME_MEMO_MACHINE == 0 || !is_return)
        return MODULES_MACHINE_NOT;
    enum modules_machine_told told = modules_machine_link(key, &found);
    if (told != MODULES_MACHINE_LINK)
        return told;
    struct runtime_link *link = &thread->links.links[RUNTIME_LINK_COUNT];
    link->cfa = found.cfa;
    link->step = (struct runtime_link_step){(int16_t)(found.step.ra_offset_bytes | RUNTIME_MEMO_MACHINE),
                                            found.step.fp_offset_bytes};
    thread->counts.looked_up++;
    return told;
}

// So a link for it is no more than what to expect, and the machine is asked whether it is so, each time. Its key is the
// complement of a key, which no return address has: what looks for rules does not come upon it.
static inline bool is_link_of_machine(const struct runtime_link *link, uintptr_t key, bool is_return)
{
    return RUNTIME_MEMO_MACHINE != 0 && link->key == ~key && is_return && modules_machine_holds(key, link->cfa);
}

// What others have looked up, what a machine says, what the module's table has. `found`: all of a link but its key and
// what comes next, to be kept. Another: holds at this moment only. NULL: there is none.
static inline struct runtime_link *look_up(struct runtime_thread *thread, const struct modules *modules, uintptr_t key,
                                           bool is_return, struct runtime_link *found)
{
    bool shares = modules->shared && (atomic_load_explicit(&runtime_tiers, memory_order_relaxed) & RUNTIME_TIER_SHARED);
    if (shares && runtime_shared_find(modules->shared, key, found))
        return found;
    enum modules_machine_told told = ask_machine(thread, key, is_return);
    if (told != MODULES_MACHINE_NOT)
        return told == MODULES_MACHINE_LINK ? &thread->links.links[RUNTIME_LINK_COUNT] : NULL;
    if (!find_rule(thread, modules, key, found))
        return NULL;
    if (shares)
        runtime_shared_put(modules->shared, key, found);
    thread->counts.looked_up++;
    return found;
}

// The rule of the frame that was interrupted. Its pc is seldom one that was met before, so it is read from the table at
// once, and has an entry that is no place of any other key's: the first, which empty sets name. That it is found there
// is no harm: it is the rule of its key.
__attribute__((noinline)) static struct runtime_link *read_interrupted(struct runtime_thread *thread,
                                                                       const struct modules *modules, uintptr_t key)
{
    struct runtime_link *link = thread->links.links;
    if (link->key == key)
        return link;
    link->key = 0;
    if (find_rule(thread, modules, key, link)) {
        link->key = key;
        thread->counts.looked_up++;
    }
    return link;
}

// A link that the thread has not, or not where it was expected. NULL: there is none.
__attribute__((noinline)) static struct runtime_link *
make_link(struct runtime_thread *thread, const struct modules *modules, uintptr_t key, bool is_return)
{
    // Of code that was made at run time and interrupted, no link tells: what others have looked up is far to look for.
    if (!is_return && !modules_at(modules, key - 1))
        return NULL;
    struct runtime_link found, *of_machine = NULL;
    if (RUNTIME_MEMO_MACHINE != 0 && is_return && thread->links.has_machine_keys) {
        of_machine = runtime_link_find(&thread->links, ~key);
        if (of_machine && modules_machine_holds(key, of_machine->cfa))
            return of_machine;
    }
    struct runtime_link *told = look_up(thread, modules, key, is_return, &found);
    if (!told)
        return NULL;
    bool is_told_by_machine = RUNTIME_MEMO_MACHINE != 0 && told != &found;
    struct runtime_link *link = is_told_by_machine ? of_machine : NULL;
    if (!link) {
        thread->links.has_machine_keys |= is_told_by_machine;
        link = runtime_link_make(&thread->links, is_told_by_machine ? ~key : key);
        link->next_bytes = 0;
    }
    link->cfa = told->cfa;
    link->step = told->step;
    return link;
}

// The same of a hashed rule that does not stand at its first place.
__attribute__((noinline)) static struct runtime_link *
find_hashed(struct runtime_thread *thread, const struct modules *modules, uintptr_t key, bool is_return)
{
    struct runtime_hashed_rules *hashed = thread->hashed;
    struct runtime_link found, *rule = runtime_hashed_place(hashed, key) + 1;
    if (rule->key == key)
        return rule;
    rule = look_up(thread, modules, key, is_return, &found);
    if (rule != &found)
        return rule;
    rule = runtime_hashed_make(hashed, key);
    rule->cfa = found.cfa;
    rule->step = found.step;
    return rule;
}

const struct runtime_memo_frame *walk_fast_follow_machine(const struct runtime_memo_frame *frame,
                                                          const struct runtime_memo_frame *end, uintptr_t *pc)
{
    // What stands on the stack stays what it is: of a method that has called itself, the machine is asked once.
    uintptr_t asked_key = 0, asked_bytes = 0;
    for (;;) {
        const struct runtime_memo_frame *next = frame + 1;
        if (frame == end || !(next->step.ra_offset_bytes & RUNTIME_MEMO_MACHINE)) {
            const struct runtime_memo_frame *followed = runtime_memo_follow(frame, end, pc);
            if (followed == frame)
                return frame;
            pc += followed - frame;
            frame = followed;
            continue;
        }
        // Where it is left by fp the distance may be any. fp itself was compared where it was read: it is live.
        uintptr_t key = arch_native_key(frame->ra), frame_bytes = next->sp - frame->sp;
        bool is_asked = key == asked_key && frame_bytes == asked_bytes;
        if (!runtime_memo_reads_the_same(next) ||
            !(is_asked || modules_machine_holds(key, frame_bytes) || modules_machine_holds_by_fp(key)))
            return frame;
        asked_key = key;
        asked_bytes = frame_bytes;
        *pc++ = arch_native_key(next->ra) - 1;
        frame = next;
    }
}

// A new frame that the walk has come to by `step`, and the link by which it leaves it; NULL: it does not know one.
static inline void record(struct runtime_memo *memo, struct runtime_memo_frame *frame, uintptr_t sp, uintptr_t ra,
                          uintptr_t fp, struct runtime_link_step step, const struct runtime_link *link)
{
    frame->sp = sp;
    frame->fp = fp;
    frame->ra = ra;
    frame->step = step;
    if (__builtin_expect(!link || !(link->cfa & RUNTIME_LINK_FP), 1))
        return;
    if (runtime_memo_fp_offset_bytes(step) != 0 || runtime_memo_ra_offset_bytes(step) == 0) {
        runtime_memo_set_live(frame);
        return;
    }
    memo->new_count = (uint32_t)(frame + 1 - memo->frames);
    runtime_memo_mark_live(memo, fp);
}

static inline intptr_t ra_offset_bytes(const struct runtime_link *link)
{
    return ARCH_NATIVE_RA_OFFSET_BYTES ? ARCH_NATIVE_RA_OFFSET_BYTES : link->step.ra_offset_bytes;
}

// All that a frame saved below its fp lies not further in than the frame, and its caller further out.
static inline bool is_within(const struct runtime_link *link, uintptr_t sp, uintptr_t cfa)
{
    intptr_t ra_offset = ra_offset_bytes(link), fp_offset = link->step.fp_offset_bytes;
    return cfa > sp && cfa + (uintptr_t)(ra_offset < fp_offset ? ra_offset : fp_offset) >= sp;
}

// Whether a frame that is found by fp begins beneath sp, or ends beyond the stack's last word; or its cfa has wrapped,
// which it does for an fp of 64 bits only where that is negative as a signed number, and so beneath sp.
static inline bool is_off_stack(uintptr_t fp, uintptr_t sp, uintptr_t cfa, uintptr_t last_word)
{
    bool can_wrap = sizeof(uintptr_t) < 8;
    bool is_beneath = can_wrap ? fp < sp || cfa < fp : (intptr_t)fp < (intptr_t)sp;
    return is_beneath || cfa > last_word;
}

// Where in the memo a walk is.
struct cursor {
    struct runtime_memo_frame *new_frame; // the next one to record
    struct runtime_memo_frame *room_end;
    struct runtime_memo_frame *older; // not further in than the walk, as far as it has looked
};

static inline struct cursor take_cursor(struct runtime_memo *memo)
{
    return (struct cursor){memo->frames + memo->new_count, memo->frames + memo->good, memo->frames + memo->next};
}

static inline void put_cursor(struct runtime_memo *memo, struct cursor at)
{
    memo->new_count = (uint32_t)(at.new_frame - memo->frames);
    memo->next = (uint32_t)(at.older - memo->frames);
}

// The walk has come to a frame for which there is no room.
__attribute__((noinline)) static struct cursor stop_at_limit(struct runtime_fast *f, struct cursor at, uintptr_t sp,
                                                             uintptr_t ra, uintptr_t fp, struct runtime_link_step step)
{
    struct runtime_memo *memo = &f->thread->memo;
    while (at.older->sp < sp)
        at.older++;
    if (runtime_memo_is_state(at.older, sp, ra, fp, step)) {
        put_cursor(memo, at);
        runtime_memo_join(memo, step);
        f->remember = RUNTIME_REMEMBER_DONE;
    } else if (at.new_frame < at.room_end) {
        record(memo, at.new_frame++, sp, ra, fp, step, NULL);
    }
    return at;
}

enum { STOP_FULL = WALK_STOP_STUCK + 1 }; // the memo is: the walk goes on without it

// One source for walks that remember, others, and those that find rules by hashing alone.
RUNTIME_WALK_INLINE unsigned walk_run_as(struct runtime_fast *f, const bool remember, const bool is_hashed)
{
    struct runtime_thread *thread = f->thread;
    struct runtime_hashed_rules *hashed = thread->hashed;
    struct runtime_link_cache *links = &thread->links;
    struct runtime_memo *memo = &thread->memo;
    struct cursor at = take_cursor(memo);
    uintptr_t sp = f->sp, fp = f->fp, ra = f->ra, key = f->key;
    uintptr_t *pc = f->pcs + f->count, *pcs_end = f->pcs + f->max;
    // The link by which the walk came here, and the one by which it leaves. Walks that met a frame for the first time
    // made its link behind that of the frame within: that one, whose place is known without a load, is tried before the
    // one that the link names.
    struct runtime_link *last = f->count ? &thread->later_link : &thread->first_link;
    struct runtime_link *link = runtime_link_at(links, last->next_bytes);
    if (!is_hashed && f->count == 0 && f->ucontext)
        link = read_interrupted(thread, f->modules, key);
    const uintptr_t last_word = thread->stack_high - sizeof(uintptr_t); // of the stack
    unsigned stop = WALK_STOP_STUCK;
    bool is_remembered = f->is_given;
    f->is_given = false;
    struct runtime_link_step hashed_step = last->step;
    for (;; is_remembered = false) {
        // That led here. The link that it is in may be replaced below, before this is recorded.
        struct runtime_link_step step = is_hashed ? hashed_step : last->step;
        if (pc == pcs_end && !(remember && is_remembered)) {
            // The frame is remembered though it is not given out: so that the step to it can be.
            if (remember)
                at = stop_at_limit(f, at, sp, ra, fp, step);
            stop = WALK_STOP_LIMIT;
            break;
        }
        if (!(remember && is_remembered))
            *pc++ = key - 1;
        if (remember && !is_remembered) {
            // Where frames cannot be foretold, neither can how many are passed: two without a jump.
            if (is_hashed) {
                at.older += at.older->sp < sp;
                at.older += at.older->sp < sp;
            }
            while (at.older->sp < sp)
                at.older++;
            if (__builtin_expect(runtime_memo_is_state(at.older, sp, ra, fp, step), 0)) {
                put_cursor(memo, at);
                runtime_memo_join(memo, step);
                f->count = (size_t)(pc - f->pcs);
                f->fp = fp;
                f->key = key;
                const struct runtime_memo_frame *end;
                enum qut_stop followed;
                if (walk_fast_follow(f, memo, at.older, at.older, &followed, &end))
                    return followed;
                memo->good_end = memo->next = (uint32_t)(end + 1 - memo->frames);
                at = take_cursor(memo);
                pc = f->pcs + f->count;
                sp = f->sp;
                fp = f->fp;
                key = f->key;
                last = &thread->later_link;
                link = runtime_link_at(links, last->next_bytes);
                is_remembered = true;
            } else if (__builtin_expect(at.new_frame == at.room_end, 0)) {
                put_cursor(memo, at);
                if (!runtime_memo_make_room(memo)) {
                    runtime_memo_cut(memo);
                    pc--;
                    f->remember = RUNTIME_REMEMBER_DONE;
                    stop = STOP_FULL;
                    break;
                }
                at = take_cursor(memo);
            }
        }
        // What is expected here lies in one line of code: jumps are what a frame costs most.
        if (is_hashed) {
            link = runtime_hashed_place(hashed, key);
            if (__builtin_expect(link->key != key, 0))
                link = find_hashed(thread, f->modules, key, pc - f->pcs > 1);
        } else if (__builtin_expect(link->key != key, 0)) {
            // What calls a frame that was interrupted is not what called the one before: that is not even looked at.
            if (last != links->links)
                link = runtime_link_at(links, last->next_bytes);
            if (link->key != key && !is_link_of_machine(link, key, pc - f->pcs > 1)) {
                if (f->modules->shared)
                    runtime_shared_expect(f->modules->shared, key);
                link = runtime_link_find(links, key);
                f->mispredicted_count += link != NULL;
                if (!link)
                    link = make_link(thread, f->modules, key, pc - f->pcs > 1); // the first may be interrupted
                if (link)
                    last->next_bytes = runtime_link_bytes(links, link);
            }
        }
        if (remember && !is_remembered)
            record(memo, at.new_frame++, sp, ra, fp, step, link);
        if (__builtin_expect(!link, 0))
            break;
        uintptr_t cfa, outer_fp = fp;
        if (__builtin_expect(link->cfa & RUNTIME_LINK_FP, 0)) {
            uintptr_t frame_bytes = link->cfa & ~(uintptr_t)RUNTIME_LINK_BASES;
            cfa = fp + frame_bytes;
            if (remember && is_remembered)
                runtime_memo_mark_live(memo, fp);
            if (is_off_stack(fp, sp, cfa, last_word) || (ARCH_NATIVE_FRAME_IS_BELOW_FP && !is_within(link, sp, cfa)))
                break;
            // Not from the cfa: what is found by fp waits for nothing but the load of fp.
            if (__builtin_expect((link->cfa & RUNTIME_LINK_CHAIN) != 0, !ARCH_NATIVE_FRAME_IS_BELOW_FP)) {
                outer_fp = os_load(fp);
            } else if (link->step.fp_offset_bytes) {
                intptr_t fp_offset_bytes = link->step.fp_offset_bytes;
                uintptr_t from_fp = frame_bytes + (uintptr_t)fp_offset_bytes;
                __asm__("" : "+r"(from_fp));
                outer_fp = os_load(fp + from_fp);
            }
        } else {
            if (__builtin_expect(link->cfa == 0, 0)) {
                stop = WALK_STOP_END;
                break;
            }
            cfa = sp + link->cfa;
            if (__builtin_expect(cfa > last_word, 0))
                break;
            // No jump: whether code that leaves fp alone saves it is as good as random.
            uintptr_t saved_fp = walk_load_at(cfa, link->step.fp_offset_bytes);
            __asm__("" : "+r"(saved_fp));
            outer_fp = link->step.fp_offset_bytes ? saved_fp : fp;
        }
        uintptr_t outer_ra = walk_load_at(cfa, ra_offset_bytes(link)), outer_key = arch_native_key(outer_ra);
        if (__builtin_expect(outer_key == 0, 0))
            break;
        if (remember)
            ra = outer_ra;
        fp = outer_fp;
        sp = cfa;
        key = outer_key;
        if (is_hashed) {
            hashed_step = link->step;
        } else {
            last = link;
            link = last + 1;
        }
    }
    f->sp = sp;
    f->fp = fp;
    f->key = key;
    f->ra = ra;
    f->count = (size_t)(pc - f->pcs);
    if (remember && f->remember == RUNTIME_REMEMBER)
        put_cursor(memo, at);
    if (!is_hashed)
        runtime_links_judge(links, f->count - f->remembered_count, f->mispredicted_count);
    return stop;
}

// Links mispredict: whether this is a run without them.
static inline bool does_without_links(struct runtime_fast *f)
{
    struct runtime_thread *thread = f->thread;
    if (__builtin_expect(thread->links.pause == 0 || !thread->hashed, 1))
        return false;
    thread->links.pause--;
    thread->counts.without_links++;
    runtime_hashed_use(thread->hashed, thread->links.epoch);
    return true;
}

__attribute__((noinline)) static unsigned run_hashed(struct runtime_fast *f)
{
    return walk_run_as(f, false, true);
}

__attribute__((noinline)) static unsigned remember_hashed(struct runtime_fast *f)
{
    return walk_run_as(f, true, true);
}

enum qut_stop walk_fast_run_links(struct runtime_fast *f)
{
    if (does_without_links(f))
        return (enum qut_stop)run_hashed(f);
    return (enum qut_stop)walk_run_as(f, false, false);
}

enum qut_stop walk_fast_run_and_remember(struct runtime_fast *f)
{
    unsigned stop = does_without_links(f) ? remember_hashed(f) : walk_run_as(f, true, false);
    return stop == STOP_FULL ? walk_fast_run_links(f) : (enum qut_stop)stop;
}

void walk_fast_end_memo(struct runtime_fast *f, enum qut_stop stop)
{
    struct runtime_memo *memo = &f->thread->memo;
    if (stop == WALK_STOP_END)
        runtime_memo_end(memo);
    else
        runtime_memo_cut(memo);
    f->remember = RUNTIME_REMEMBER_DONE;
}
