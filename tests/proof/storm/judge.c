// SPDX-License-Identifier: Apache-2.0
// The signal handlers, and whether a walk was right.
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include <qut/local.h>

#include "libqut/runtime/tiers.h"
#include "tests/proof/storm/storm.h"

extern const char __start_storm_roots[], __stop_storm_roots[];
extern const char __start_storm_coroutine_roots[], __stop_storm_coroutine_roots[];

enum { PLACES_MAX = 512, WRONG_MAX = 8, WRONG_PCS = 24, POISON = 12345 };

// Where walks ended that should not have: kept in a fixed table that handlers fill.
static struct place {
    _Atomic uintptr_t pc;
    uint32_t reason, refusal;
    _Atomic uint64_t count;
    char module[40];
    uintptr_t offset;
} places[PLACES_MAX];
static _Atomic uint64_t places_full;

static struct wrong {
    const char *why;
    uint32_t reason;
    size_t count;
    uintptr_t sp;
    uint32_t activity;
    bool nested;
    uintptr_t pcs[WRONG_PCS];
} wrongs[WRONG_MAX];
static _Atomic uint32_t wrong_count;

static _Atomic uint64_t counts[STORM_COUNT_END], handler_ns_most;

void storm_add(enum storm_count which, uint64_t n)
{
    atomic_fetch_add_explicit(&counts[which], n, memory_order_relaxed);
}

uint64_t storm_get(enum storm_count which)
{
    return atomic_load_explicit(&counts[which], memory_order_relaxed);
}

uint64_t storm_handler_ns_most(void)
{
    return atomic_load_explicit(&handler_ns_most, memory_order_relaxed);
}

static bool between(uintptr_t pc, const char *start, const char *stop)
{
    return pc >= (uintptr_t)start && pc < (uintptr_t)stop;
}

// The module of a pc whose thread stands in it: it cannot go away meanwhile.
static const struct link_map *module_of(uintptr_t pc)
{
    struct dl_find_object found;
    return _dl_find_object((void *)pc, &found) == 0 ? found.dlfo_link_map : NULL;
}

static uintptr_t vdso; // no object of the loader's, as far as _dl_find_object knows

static bool is_code(uintptr_t pc)
{
    return module_of(pc) || (vdso && pc - vdso < 4 * 4096u);
}

static bool in_generated_library(uintptr_t pc)
{
    const struct link_map *map = module_of(pc);
    return map && map->l_name && strstr(map->l_name, "storm_library");
}

_Atomic uintptr_t storm_library_code;

// A generated library holds one function of ours; all other code in it is the C runtime's.
static bool is_crt(uintptr_t pc)
{
    enum { FUNCTION_BYTES = 512 };
    const struct link_map *map = module_of(pc);
    uintptr_t code = atomic_load_explicit(&storm_library_code, memory_order_relaxed);
    return in_generated_library(pc) && code && pc - map->l_addr - code >= FUNCTION_BYTES;
}

static void note_place(uintptr_t pc, uint32_t reason, uint32_t refusal)
{
    for (unsigned i = 0; i < PLACES_MAX; i++) {
        struct place *place = &places[(pc + i) % PLACES_MAX];
        uintptr_t none = 0;
        if (atomic_compare_exchange_strong_explicit(&place->pc, &none, pc, memory_order_relaxed,
                                                    memory_order_relaxed)) {
            const struct link_map *map = module_of(pc);
            const char *name = map && map->l_name ? strrchr(map->l_name, '/') : NULL;
            strncpy(place->module, name ? name + 1 : map ? "program" : "?", sizeof place->module - 1);
            place->offset = map ? pc - map->l_addr : pc;
            place->reason = reason;
            place->refusal = refusal;
        } else if (none != pc || place->reason != reason) {
            continue;
        }
        atomic_fetch_add_explicit(&place->count, 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&places_full, 1, memory_order_relaxed);
}

static void note_wrong(const char *why, const uintptr_t *pcs, size_t count, uint32_t reason, uintptr_t sp, bool nested)
{
    storm_add(STORM_WRONG, 1);
    uint32_t at = atomic_fetch_add_explicit(&wrong_count, 1, memory_order_relaxed);
    if (at >= WRONG_MAX)
        return;
    wrongs[at].sp = sp;
    wrongs[at].reason = reason;
    wrongs[at].count = count;
    wrongs[at].nested = nested;
    wrongs[at].activity = storm_self ? storm_self->activity : 0;
    memcpy(wrongs[at].pcs, pcs, (count < WRONG_PCS ? count : WRONG_PCS) * sizeof *pcs);
    wrongs[at].why = why;
}

// libgcc's frame already holds the registers, and the return address, of the frame that will catch, but not yet its
// stack: the walk goes astray behind it.
static bool left_libgcc_late(const uintptr_t *pcs, size_t count)
{
    for (size_t i = count < 4 ? 0 : count - 4; i < count; i++)
        if (storm_is_in_libgcc(pcs[i]))
            return true;
    return false;
}

void storm_judge(const uintptr_t *pcs, size_t count, uint32_t reason, uintptr_t end_pc, uint32_t refusal, uintptr_t sp,
                 bool nested, bool errno_kept)
{
    struct storm_thread *self = storm_self;
    storm_add(STORM_WALKS, 1);
    storm_add(STORM_FRAMES, count);
    if (!errno_kept)
        storm_add(STORM_ERRNO, 1);
    bool root = false, coroutine_root = false, library = false, start_context = false;
    for (size_t i = 0; i < count; i++) {
        root |= between(pcs[i], __start_storm_roots, __stop_storm_roots);
        coroutine_root |= between(pcs[i], __start_storm_coroutine_roots, __stop_storm_coroutine_roots);
        start_context |= storm_is_start_context(pcs[i]);
        library |= i < 4 && in_generated_library(pcs[i]);
        // The last frame of a walk that did not get through may be what a wrong rule led to.
        if (!is_code(pcs[i]) && (i + 1 < count || reason == QUT_END_OUTERMOST))
            return note_wrong("a pc that is no code", pcs, count, reason, sp, nested);
    }
    storm_add(STORM_LIBRARY_HITS, library);
    storm_add(STORM_COROUTINE_HITS, coroutine_root);

    bool on_coroutine = self && sp >= self->coroutine_low && sp < self->coroutine_high;
    // A handler on its alternate stack can have interrupted the coroutine.
    bool has_coroutine = self && self->coroutine_high;
    if (reason == QUT_END_OUTERMOST) {
        bool good = nested         ? root || coroutine_root
                    : on_coroutine ? coroutine_root || (root && storm_is_in_setcontext(pcs[0]))
                                   : root || (coroutine_root && has_coroutine);
        if (!good && left_libgcc_late(pcs, count)) // a word behind it was 0, where stacks end
            return storm_add(STORM_EH_RETURN, 1);
        // Of the other stack: a word was 0, or the stack is new, and begins with __start_context.
        size_t last = count - 1;
        size_t switching = last > 0 && storm_is_start_context(pcs[last]) ? last - 1 : last;
        if (!good && storm_is_in_swapcontext(pcs[switching])) {
            storm_add(STORM_UNEXPLAINED, 1);
            return note_place(pcs[switching], reason, refusal);
        }
        if (!good)
            return note_wrong(on_coroutine ? "outermost without the coroutine's root" : "outermost without the root",
                              pcs, count, reason, sp, nested);
        storm_add(STORM_OUTERMOST, 1);
    } else if (reason == QUT_END_TABLE_PENDING && in_generated_library(end_pc)) {
        storm_add(STORM_PENDING, 1);
    } else if (start_context && (on_coroutine || nested || has_coroutine)) {
        storm_add(STORM_START_CONTEXT, 1);
    } else if (reason == QUT_END_NO_ROW && (is_crt(end_pc) || storm_is_in_sanitizer(end_pc))) {
        storm_add(STORM_CRT, 1);
    } else if (left_libgcc_late(pcs, count)) {
        storm_add(STORM_EH_RETURN, 1);
    } else {
        storm_add(STORM_UNEXPLAINED, 1);
        // The frame that led there: the last, or the one before. Nothing returns to where a function begins: that is
        // where a context is entered.
        bool is_entry = end_pc == (uintptr_t)__start_storm_coroutine_roots;
        bool misled = count >= 2 && (is_entry || !is_code(pcs[count - 1]));
        note_place(misled ? pcs[count - 2] : end_pc, reason, refusal);
    }
}

void storm_walk_here(void)
{
    uintptr_t pcs[128];
    struct qut_end end;
    errno = POISON;
    size_t count = qut_backtrace(pcs, 128, &end);
    bool kept = errno == POISON;
    storm_judge(pcs, count, end.reason, (uintptr_t)end.pc, end.refusal, (uintptr_t)__builtin_frame_address(0), false,
                kept);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t stack_pointer_of(const void *context)
{
    struct qut_cursor cursor;
    struct qut_frame frame;
    qut_cursor_context(&cursor, context);
    qut_cursor_frame(&cursor, &frame);
    return frame.sp;
}

static _Thread_local __attribute__((tls_model("initial-exec"))) uint32_t handler_depth;

// The same walk again, without shortcuts. Where one of the two met a table that was not there yet, or guessed, they
// need not be the same. Out of line: it has its own room for the pcs.
__attribute__((noinline)) static void walk_again(const void *context, const uintptr_t *pcs, size_t count,
                                                 const struct qut_end *end)
{
    uintptr_t again[STORM_PCS_MAX];
    struct qut_end again_end;
    uint32_t tiers = atomic_exchange_explicit(&runtime_tiers, 0, memory_order_relaxed);
    size_t again_count = qut_backtrace_context(context, again, STORM_PCS_MAX, &again_end);
    atomic_store_explicit(&runtime_tiers, tiers, memory_order_relaxed);
    storm_add(STORM_TWICE, 1);
    bool comparable = end->reason == QUT_END_OUTERMOST && again_end.reason == QUT_END_OUTERMOST &&
                      end->guessed_frame == again_end.guessed_frame;
    if (comparable && (count != again_count || memcmp(pcs, again, count * sizeof *pcs) != 0))
        storm_add(STORM_DIFFERENT, 1);
}

static void walk_in_handler(void *context)
{
    if (!storm_self)
        return;
    int saved = errno;
    uint64_t start = now_ns();
    uintptr_t pcs[STORM_PCS_MAX];
    struct qut_end end;
    handler_depth++;
    storm_add(STORM_IN_HANDLER, 1);
    if (handler_depth > 1)
        storm_add(STORM_NESTED, 1);
    struct runtime_tier_counts before = {0}, after = {0};
    runtime_tier_counts(&before);
    errno = POISON;
    size_t count = qut_backtrace_context(context, pcs, STORM_PCS_MAX, &end);
    bool kept = errno == POISON;
    runtime_tier_counts(&after);
    storm_add(STORM_REMEMBERED, after.remembered - before.remembered);
    if (storm_get(STORM_IN_HANDLER) % 4 == 0)
        walk_again(context, pcs, count, &end);
    uint64_t sp = stack_pointer_of(context);
    storm_judge(pcs, count, end.reason, (uintptr_t)end.pc, end.refusal, (uintptr_t)sp, handler_depth > 1, kept);
    uint64_t took = now_ns() - start, most = storm_handler_ns_most();
    handler_depth--;
    storm_add(STORM_HANDLER_NS, took);
    while (took > most && !atomic_compare_exchange_weak_explicit(&handler_ns_most, &most, took, memory_order_relaxed,
                                                                 memory_order_relaxed))
        ;
    errno = saved;
}

static bool in_child; // a forked one: timers are not inherited

static void on_tick(int number, siginfo_t *info, void *context)
{
    (void)info;
    int saved = errno;
    walk_in_handler(context);
    if (storm_self && !in_child)
        storm_set_timer(number == SIGPROF ? storm_self->tick_timer : storm_self->nested_timer,
                        number == SIGPROF ? STORM_TICK_NS : STORM_NESTED_NS);
    errno = saved;
}

bool storm_handlers(void)
{
    struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    vdso = getauxval(AT_SYSINFO_EHDR);
    storm_explain_begin();
    return sigaction(SIGPROF, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0;
}

int storm_walk_in_child(void)
{
    in_child = true;
    uint64_t bad = storm_get(STORM_UNEXPLAINED) + storm_get(STORM_WRONG), walks = storm_get(STORM_WALKS);
    storm_walk_here();
    raise(SIGPROF);
    bool good = storm_get(STORM_UNEXPLAINED) + storm_get(STORM_WRONG) == bad && storm_get(STORM_WALKS) == walks + 2;
    return good ? 0 : 1;
}

// ---- report

static void print_symbol(FILE *out, uintptr_t pc)
{
    Dl_info info;
    if (pc && dladdr((void *)pc, &info) && info.dli_fname) {
        const char *slash = strrchr(info.dli_fname, '/');
        fprintf(out, "%s+0x%" PRIxPTR, slash ? slash + 1 : info.dli_fname, pc - (uintptr_t)info.dli_fbase);
        if (info.dli_sname)
            fprintf(out, " %s+0x%" PRIxPTR, info.dli_sname, pc - (uintptr_t)info.dli_saddr);
    } else {
        fprintf(out, "0x%" PRIxPTR, pc);
    }
}

void storm_explain(void)
{
    for (unsigned i = 0; i < PLACES_MAX; i++) {
        uint64_t count = places[i].count;
        if (!count || !storm_has_wrong_rule(places[i].pc))
            continue;
        storm_add(STORM_BAD_CFI, count);
        storm_add(STORM_UNEXPLAINED, 0 - count);
        places[i].count = 0;
    }
}

void storm_print_ends(FILE *out)
{
    for (unsigned shown = 0; shown < 30; shown++) {
        struct place *most = NULL;
        for (unsigned i = 0; i < PLACES_MAX; i++)
            if (places[i].count && (!most || places[i].count > most->count))
                most = &places[i];
        if (!most)
            return;
        fprintf(out, "  unexplained %6" PRIu64 "  %s %s  %s+0x%" PRIxPTR "  ", most->count,
                qut_end_reason_name(most->reason), most->refusal ? qut_refusal_name(most->refusal) : "", most->module,
                most->offset);
        print_symbol(out, most->pc);
        fputc('\n', out);
        most->count = 0;
    }
    fprintf(out, "  ... and more\n");
}

void storm_print_wrong(FILE *out)
{
    for (unsigned i = 0; i < WRONG_MAX && wrongs[i].why; i++) {
        const struct wrong *wrong = &wrongs[i];
        fprintf(out, "  wrong: %s; %zu frames, %s, sp 0x%" PRIxPTR ", during %s%s\n", wrong->why, wrong->count,
                qut_end_reason_name(wrong->reason), wrong->sp, storm_activities[wrong->activity].name,
                wrong->nested ? ", in a handler" : "");
        for (size_t k = 0; k < wrong->count && k < WRONG_PCS; k++) {
            fprintf(out, "    #%02zu ", k);
            print_symbol(out, wrong->pcs[k]);
            fputc('\n', out);
        }
    }
}
