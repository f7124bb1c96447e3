// SPDX-License-Identifier: Apache-2.0
// Sync points. Which hit is due is settled with a word or two of the thread's own, and a clock that costs no system
// call; everything else is for those that are. Where hits come so fast that this clock stands still between them, it is
// not looked at for each: as long as it stands still, twice as many go by until the next look.
#include <string.h>

#include "libqut/os/os.h"
#include "libqut/os/thread_word.h"
#include "libqut/os/usage.h"
#include "libqut/sample/cycle_clock.h"
#include "libqut/sample/inside.h"
#include "libqut/segment/segment.h"
#include "libqut/trace/feed_sample.h"

// What a word holds: nanoseconds, and where it has 32 bits 2^16 of them (it comes round in three days, after which one
// sample may come late).
enum { UNIT_SHIFT = sizeof(uintptr_t) == 8 ? 0 : 16 };
#define NEVER UINTPTR_MAX
enum { STRIDE_MAX = 63 };

static _Atomic uintptr_t interval_units = NEVER; // 0: every hit is due
static _Atomic bool is_fine;                     // shorter than the coarse clock's step

void sample_sync_begin(uint64_t interval_ns)
{
    sample_counter_begin(ARCH_NATIVE_HAS_COUNTER && os_clock_is(ARCH_NATIVE_COUNTER_CLOCK));
    uint64_t units = interval_ns <= 1 ? 0 : (interval_ns + (((uint64_t)1 << UNIT_SHIFT) - 1)) >> UNIT_SHIFT;
    atomic_store_explicit(&is_fine, interval_ns < os_coarse_step_ns(), memory_order_relaxed);
    os_set_thread_word(OS_WORD_SYNC_LEFT, 0);
    os_set_thread_word(OS_WORD_SYNC_DUE, 1); // of the thread that starts; with others their last sample counts
    atomic_store_explicit(&interval_units, units < NEVER ? (uintptr_t)units : NEVER - 1, memory_order_relaxed);
}

void sample_sync_end(void)
{
    atomic_store_explicit(&interval_units, NEVER, memory_order_relaxed);
}

static inline uintptr_t units_of(uint64_t coarse_ns)
{
    bool fine = __builtin_expect(atomic_load_explicit(&is_fine, memory_order_relaxed), 0);
    return (uintptr_t)((fine ? os_now_ns() : coarse_ns) >> UNIT_SHIFT);
}

static inline bool has_passed(uintptr_t now, uintptr_t interval)
{
    return now - os_thread_word(OS_WORD_SYNC_LAST) >= interval;
}

void sample_sync_tick(void)
{
    uintptr_t interval = atomic_load_explicit(&interval_units, memory_order_relaxed);
    if (interval == NEVER || !has_passed(units_of(os_coarse_ns()), interval))
        return;
    os_set_thread_word(OS_WORD_SYNC_DUE, 1);
    os_set_thread_word(OS_WORD_SYNC_LEFT, 0); // a hit that is just counting down may put back what it had
}

// Not more than so many hits are late for the clock, and none behind a scope.
static inline bool goes_by(void)
{
    uintptr_t left = os_thread_word(OS_WORD_SYNC_LEFT);
    if (left == 0 || __builtin_expect(atomic_load_explicit(&interval_units, memory_order_relaxed) == 0, 0))
        return false;
    os_set_thread_word(OS_WORD_SYNC_LEFT, left - 1);
    return true;
}

static void look_again_later(uintptr_t now)
{
    uintptr_t stride = 0;
    if (os_thread_word(OS_WORD_SYNC_LOOKED) == now)
        stride = 2 * os_thread_word(OS_WORD_SYNC_STRIDE) + 1;
    stride = stride < STRIDE_MAX ? stride : STRIDE_MAX;
    os_set_thread_word(OS_WORD_SYNC_LOOKED, now);
    os_set_thread_word(OS_WORD_SYNC_STRIDE, stride);
    os_set_thread_word(OS_WORD_SYNC_LEFT, stride);
}

// The thread that is told so takes the sample: the interval begins anew.
static inline bool is_due(uint64_t coarse_ns)
{
    uintptr_t interval = atomic_load_explicit(&interval_units, memory_order_relaxed);
    if (interval == 0)
        return !os_thread_word(OS_WORD_ENDING);
    if (__builtin_expect(interval == NEVER, 0))
        return false;
    uintptr_t now = units_of(coarse_ns);
    if (!os_thread_word(OS_WORD_SYNC_DUE) && __builtin_expect(!has_passed(now, interval), 1)) {
        look_again_later(now);
        return false;
    }
    os_set_thread_word(OS_WORD_SYNC_DUE, 0);
    os_set_thread_word(OS_WORD_SYNC_LAST, now);
    return !os_thread_word(OS_WORD_ENDING); // then the trace has no place for it
}

static inline bool has_sums(uint32_t total)
{
    return total < QUT_TRACE_TOTAL_COUNT - 1;
}

// Not inline: what goes by needs no frame.
__attribute__((noinline)) static bool look(uint32_t total, uint64_t amount)
{
    if (!is_due(os_coarse_ns())) {
        feed_trace_throttle(total, amount);
        return false;
    }
    if (!feed_trace_is_open())
        return false;
    if (has_sums(total))
        feed_trace_add_both(total, amount);
    return true;
}

bool qut_sync_hit(uint32_t total, uint64_t amount)
{
    return __builtin_expect(goes_by(), 1) ? feed_trace_throttle(total, amount) : look(total, amount);
}

// ---- samples
//
// The frame of the public function that calls qut_trace_sample is the first one of the walk, and left out.

enum { OWN_FRAMES = 1 };

int qut_sync_take(const struct qut_event *event)
{
    uint64_t metrics[QUT_METRIC_COUNT];
    struct qut_event sample = *event;
    sample.skip_frames += OWN_FRAMES;
    sample.metrics = sample_measure(metrics, event->metrics);
    int result = qut_trace_sample(NULL, &sample);
    __asm__ volatile("" : "+r"(result)); // behind the call: this frame is there
    return result;
}

// ---- scopes

enum { SCOPE_BEGAN = 1 }; // its beginning was stored

// What takes less is seen to be short by the processor's counter alone, and a sample that has become due meanwhile is
// the next one's.
enum { SHORT_NS = 10000 };

static uint32_t flags_of_kind(uint32_t kind)
{
    switch (kind) {
    case QUT_SAMPLE_LOCK:
    case QUT_SAMPLE_WAIT:
    case QUT_SAMPLE_READ:
    case QUT_SAMPLE_WRITE:
    case QUT_SAMPLE_POLL:
    case QUT_SAMPLE_SLEEP: return QUT_EVENT_OFF_CPU;
    default: return 0;
    }
}

void qut_scope_begin(struct qut_scope *scope)
{
    scope->flags = 0;
    scope->begin_node = 0;
    scope->begin_ns = 0;
    scope->begin_count = 0;
    if (!feed_trace_is_open())
        return;
    uint64_t coarse_ns = os_coarse_ns();
    if (__builtin_expect(!is_due(coarse_ns), 1)) {
        os_set_thread_word(OS_WORD_SYNC_LEFT, 0); // it may take long: the next hit looks
        scope->begin_count = sample_counter_begins();
        scope->begin_ns = scope->begin_count ? coarse_ns : os_now_ns();
        return;
    }
    scope->begin_ns = os_now_ns();
    uint64_t metrics[QUT_METRIC_COUNT];
    struct qut_event event = {
        .time_ns = scope->begin_ns,
        .kind = scope->kind,
        .flags = QUT_EVENT_BEGINS,
        .metrics = sample_measure(metrics, NULL),
        .skip_frames = scope->skip_frames + OWN_FRAMES,
    };
    if (qut_trace_sample(NULL, &event) != QUT_STORED)
        return;
    scope->begin_node = feed_trace_node_at(event.time_ns);
    scope->flags = SCOPE_BEGAN;
}

uint64_t qut_scope_end(struct qut_scope *scope, uint32_t total, uint64_t least_ns, const struct qut_extra *extras,
                       uint32_t extra_count)
{
    if (scope->begin_ns == 0)
        return 0;
    uint64_t counts = 0;
    if (scope->begin_count) {
        counts = arch_native_counter() - scope->begin_count;
        uint64_t few_ns = sample_counter_few_ns(counts);
        if (__builtin_expect(few_ns < SHORT_NS && few_ns < least_ns, 1)) {
            feed_trace_throttle(total, few_ns);
            return few_ns;
        }
    }
    uint64_t end_ns = os_now_ns();
    uint64_t duration_ns =
        scope->begin_count ? sample_counter_many_ns(counts, scope->begin_ns, end_ns) : end_ns - scope->begin_ns;
    sample_counter_compare(end_ns);
    bool is_wanted = (scope->flags & SCOPE_BEGAN) || duration_ns >= least_ns;
    if (!is_due(os_coarse_ns()) && !is_wanted) {
        feed_trace_throttle(total, duration_ns);
        return duration_ns;
    }
    if (has_sums(total))
        feed_trace_add_both(total, duration_ns);
    struct qut_extra all[QUT_TRACE_EXTRAS_MAX];
    uint64_t metrics[QUT_METRIC_COUNT];
    uint32_t count = 0;
    all[count++] = (struct qut_extra){.key = QUT_EXTRA_DURATION_NS, .value = duration_ns};
    if (scope->begin_node)
        all[count++] = (struct qut_extra){.key = QUT_EXTRA_BEGIN_NODE, .value = scope->begin_node};
    for (uint32_t i = 0; i < extra_count && count < QUT_TRACE_EXTRAS_MAX; i++)
        all[count++] = extras[i];
    struct qut_event event = {
        .time_ns = end_ns,
        .kind = scope->kind,
        .flags = flags_of_kind(scope->kind),
        .metrics = sample_measure(metrics, NULL),
        .extras = all,
        .extra_count = count,
        .skip_frames = scope->skip_frames + OWN_FRAMES,
    };
    qut_trace_sample(NULL, &event);
    scope->begin_ns = 0;
    return duration_ns;
}
