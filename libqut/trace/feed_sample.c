// SPDX-License-Identifier: Apache-2.0
// Hits. Everything here is signal-safe.
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/javascript/javascript.h"
#include "libqut/os/task.h"
#include "libqut/python/python.h"
#include "libqut/trace/feed_entry_inline.h"
#include "libqut/trace/feed_sample.h"

static_assert(sizeof(struct qut_extra) == sizeof(struct segment_extra) &&
                  offsetof(struct qut_extra, value) == offsetof(struct segment_extra, value),
              "extras go through as they are");
static_assert((int)QUT_METRIC_COUNT == (int)QUT_TRACE_METRIC_COUNT &&
                  (int)QUT_TOTAL_OWN_FIRST == QUT_TRACE_TOTAL_OWN_FIRST &&
                  (int)QUT_EXTRA_CPU_NS == QUT_TRACE_EXTRA_CPU_NS && (int)QUT_SAMPLE_FAULT == QUT_TRACE_KIND_FAULT &&
                  (int)QUT_EVENT_OFF_CPU == QUT_TRACE_SAMPLE_OFF_CPU &&
                  (int)QUT_EVENT_BEGINS == QUT_TRACE_SAMPLE_BEGINS && (int)QUT_MARK_COUNTER == QUT_TRACE_MARK_COUNTER,
              "the numbers are the format's");

enum { KERNEL_KIND = QUT_TRACE_CLASS_KERNEL << QUT_TRACE_CLASS_SHIFT | QUT_TRACE_NODE_EXACT };

static const struct qut_event no_event;

// ---- what is stored

static uint64_t time_of(const struct qut_event *event)
{
    return event->time_ns ? event->time_ns : os_now_ns();
}

static bool is_bad(const struct qut_event *event)
{
    return event->kind >= QUT_TRACE_OWN_KIND_FIRST + QUT_TRACE_OWN_KIND_COUNT ||
           (event->flags & ~(uint32_t)(QUT_EVENT_ON_CPU | QUT_EVENT_OFF_CPU | QUT_EVENT_BEGINS)) ||
           event->extra_count > QUT_TRACE_EXTRAS_MAX || (event->extra_count && !event->extras);
}

static inline struct feed_scratch *scratch_of(const struct feed_entry *entry)
{
    const struct qut_trace_writer *first = entry->slot->writers;
    if (__builtin_expect(entry->writer == first, 1))
        return feed_scratch(entry, 0);
    return feed_scratch(entry, entry->writer == first + 1 ? 1 : 2);
}

// In memory of this level's own: stacks are small.
static inline void fill_sample(const struct feed_entry *entry, struct feed_scratch *scratch,
                               const struct qut_event *event, uint64_t time_ns, uint32_t node, bool is_cut)
{
    struct segment_sample *sample = &scratch->sample;
    sample->time_ns = time_ns;
    sample->cpu_ns = event->cpu_ns;
    sample->node = node;
    sample->kind = (uint16_t)event->kind;
    sample->flags = (uint16_t)(event->flags | (is_cut ? QUT_TRACE_SAMPLE_CUT : 0u));
    sample->metrics = event->metrics;
    sample->extras = (const struct segment_extra *)(const void *)event->extras;
    sample->extra_count = event->extra_count;
    if (sample->cpu_ns == 0 && (entry->feed->segment.flags & QUT_TRACE_HAS_CPU_TIME))
        sample->cpu_ns = os_thread_cpu_ns();
}

// Called where little stack is in use.
static inline __attribute__((always_inline)) int store(const struct feed_entry *entry,
                                                       const struct feed_scratch *scratch)
{
    return segment_append(&entry->feed->segment, entry->slot, entry->writer, &scratch->sample);
}

// Where the outermost frame hangs from. False: there is no room even for that.
static bool find_base(const struct feed_entry *entry, const struct qut_end *end, uint32_t *base)
{
    *base = 0;
    if (!end || end->reason == QUT_END_OUTERMOST)
        return true;
    uint64_t code = 1 + (uint64_t)end->reason + ((uint64_t)end->refusal << 8);
    *base = segment_node(&entry->feed->segment, 0, code, QUT_TRACE_CLASS_END << QUT_TRACE_CLASS_SHIFT);
    segment_cut(entry->writer, end->reason == QUT_END_LIMIT ? QUT_TRACE_CUT_DEPTH : QUT_TRACE_CUT_WALK);
    return *base != 0;
}

// The frame itself, with *is_cut, where there is no room.
static uint32_t kernel_node(const struct feed_entry *entry, uint32_t frame, uint32_t code, bool *is_cut)
{
    uint32_t node = segment_node(&entry->feed->segment, frame, code, KERNEL_KIND);
    *is_cut = node == 0;
    return node ? node : frame;
}

// False: it is lost.
__attribute__((noinline)) static bool fill(const struct feed_entry *entry, struct feed_scratch *scratch,
                                           const struct qut_end *end, const struct qut_event *event, uint64_t time_ns)
{
    struct feed_stack *stack = &scratch->stack;
    uint32_t node = 0;
    bool is_cut = true;
    if (is_bad(event)) {
        segment_lose(entry->writer, QUT_TRACE_LOST_BAD);
        return false;
    }
    stack->cut = QUT_TRACE_CUT_TREE;
    if (find_base(entry, end, &node))
        node = feed_stack_node(stack, node, &is_cut);
    if (stack->is_in_kernel && node && !is_cut)
        node = kernel_node(entry, node, stack->kernel_code, &is_cut);
    if (is_cut)
        segment_cut(entry->writer, stack->cut);
    fill_sample(entry, scratch, event, time_ns, node, is_cut || (end && end->reason != QUT_END_OUTERMOST));
    return true;
}

// ---- hits

// Not inline in what walks: there is little room on stacks. NULL: *result says what became of the hit.
__attribute__((noinline)) static struct feed_scratch *begin(uintptr_t here, int *result)
{
    struct feed_entry entry;
    *result = QUT_STORED_NO_TRACE;
    if (!feed_enter(&entry, here))
        return NULL;
    *result = QUT_STORED_NOT;
    if (!feed_begin(&entry, here)) {
        feed_leave(&entry);
        return NULL;
    }
    struct feed_scratch *scratch = scratch_of(&entry);
    struct feed_stack *stack = &scratch->stack;
    scratch->entry = entry;
    stack->feed = entry.feed;
    stack->thread = NULL;
    stack->modules = entry.modules;
    stack->noted_count = 0;
    stack->skip_count = 0;
    stack->is_in_kernel = false;
    stack->scratch = scratch;
    return scratch;
}

__attribute__((noinline)) static void end_hit(const struct feed_scratch *scratch)
{
    segment_end_of(scratch->entry.slot);
    feed_leave(&scratch->entry);
}

// The outermost frame is kept.
static inline void skip(struct feed_stack *stack, size_t wanted_count)
{
    size_t most = stack->count ? stack->count - 1 : 0;
    stack->skip_count = wanted_count < most ? wanted_count : most;
}

// A hit that began: walks, stores, ends it.
static inline __attribute__((always_inline)) int sample(struct feed_scratch *scratch, const void *ucontext,
                                                        const struct qut_event *event,
                                                        const struct arch_capture *capture)
{
    event = event ? event : &no_event;
    struct walk_noted_walk *notes = &scratch->notes;
    uint64_t time_ns = time_of(event);
    notes->modules = scratch->entry.modules;
    scratch->stack.is_interrupted = ucontext != NULL;
    scratch->stack.count = walk_take_notes(notes, capture, ucontext);
    if (!ucontext && event->skip_frames)
        skip(&scratch->stack, event->skip_frames);
    scratch->stack.thread = scratch->entry.thread;
    if (python_is_there() || javascript_is_there())
        feed_add_functions(scratch, ucontext, capture);
    scratch->stack.pcs = notes->pcs;
    scratch->stack.flags = notes->flags;
    scratch->stack.noted_count = notes->noted_count;
    int result =
        fill(&scratch->entry, scratch, &notes->end, event, time_ns) ? store(&scratch->entry, scratch) : QUT_STORED_NOT;
    end_hit(scratch);
    return result;
}

// capture.S calls it.
int feed_trace_sample_captured(const void *ucontext, const struct qut_event *event, const struct arch_capture *capture);

int feed_trace_sample_captured(const void *ucontext, const struct qut_event *event, const struct arch_capture *capture)
{
    int result;
    struct feed_scratch *scratch = begin((uintptr_t)__builtin_frame_address(0), &result);
    return scratch ? sample(scratch, ucontext, event, capture) : result;
}

// A context has all registers: none needs to be captured.
int feed_trace_sample_in_kernel(const void *ucontext, const struct qut_event *event, uint32_t kernel_code)
{
    int result;
    struct feed_scratch *scratch = begin((uintptr_t)__builtin_frame_address(0), &result);
    if (scratch) {
        scratch->stack.is_in_kernel = true;
        scratch->stack.kernel_code = kernel_code;
        result = sample(scratch, ucontext, event, NULL);
    }
    return result;
}

int feed_trace_sample_own(const struct qut_event *event)
{
    int result;
    struct feed_scratch *scratch = begin((uintptr_t)__builtin_frame_address(0), &result);
    if (scratch) {
        uint32_t node = segment_node(&scratch->entry.feed->segment, 0, QUT_TRACE_KERNEL_OWN, KERNEL_KIND);
        if (node == 0)
            segment_cut(scratch->entry.writer, QUT_TRACE_CUT_TREE);
        fill_sample(&scratch->entry, scratch, event, time_of(event), node, node == 0);
        result = store(&scratch->entry, scratch);
        end_hit(scratch);
    }
    return result;
}

int feed_store_node(uint32_t node, const struct qut_event *event)
{
    int result;
    struct feed_scratch *scratch = begin((uintptr_t)__builtin_frame_address(0), &result);
    if (scratch) {
        struct feed_scratch *steps = feed_scratch(&scratch->entry, 0);
        bool is_cut = steps->is_cut;
        event = event ? event : &no_event;
        result = QUT_STORED_NOT;
        if (is_cut) {
            segment_cut(scratch->entry.writer, QUT_TRACE_CUT_TREE);
            node = node ? node : steps->cut_node;
            steps->is_cut = false;
        }
        if (is_bad(event)) {
            segment_lose(scratch->entry.writer, QUT_TRACE_LOST_BAD);
        } else {
            fill_sample(&scratch->entry, scratch, event, time_of(event), node, is_cut);
            result = store(&scratch->entry, scratch); // which knows a node from none
        }
        end_hit(scratch);
    }
    return result;
}

int feed_trace_store_walk(const uintptr_t *pcs, size_t count, const uint8_t *flags, size_t flag_count,
                          const struct qut_end *end, bool is_interrupted, const struct qut_event *event)
{
    int result;
    struct feed_scratch *scratch = begin((uintptr_t)__builtin_frame_address(0), &result);
    if (scratch) {
        event = event ? event : &no_event;
        scratch->stack.pcs = pcs;
        scratch->stack.count = count;
        scratch->stack.is_interrupted = is_interrupted;
        scratch->stack.thread = scratch->entry.thread;
        scratch->stack.flags = flags;
        scratch->stack.noted_count = flag_count;
        result = fill(&scratch->entry, scratch, end, event, time_of(event)) ? store(&scratch->entry, scratch)
                                                                            : QUT_STORED_NOT;
        end_hit(scratch);
    }
    return result;
}

int qut_trace_append(const uintptr_t *pcs, size_t count, const struct qut_end *end, uint32_t stack_flags,
                     const struct qut_event *event)
{
    int result;
    struct feed_scratch *scratch = begin((uintptr_t)__builtin_frame_address(0), &result);
    if (scratch) {
        event = event ? event : &no_event;
        scratch->stack.pcs = pcs;
        scratch->stack.count = count;
        scratch->stack.is_interrupted = stack_flags & QUT_STACK_INTERRUPTED;
        result = fill(&scratch->entry, scratch, end, event, time_of(event)) ? store(&scratch->entry, scratch)
                                                                            : QUT_STORED_NOT;
        end_hit(scratch);
    }
    return result;
}

int qut_trace_skip(void)
{
    struct feed_entry entry;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!feed_enter(&entry, here))
        return QUT_STORED_NO_TRACE;
    bool began = feed_begin(&entry, here);
    if (began) {
        segment_skip(entry.writer);
        segment_end_of(entry.slot);
    }
    feed_leave(&entry);
    return QUT_STORED_NOT;
}

static bool throttle_slowly(uint32_t total, uint64_t amount, uintptr_t here)
{
    struct feed_entry entry;
    if (!feed_enter(&entry, here))
        return false;
    if (!feed_has_slot(entry.feed) && os_thread_word(OS_WORD_ENDING)) {
        segment_throttle_unowned(&entry.feed->segment);
        feed_add_beside(&entry, total, amount);
    } else if (feed_begin(&entry, here)) {
        segment_throttle(entry.writer, total, amount);
        segment_end_of(entry.slot);
    } else {
        feed_add_beside(&entry, total, amount);
    }
    feed_leave(&entry);
    return false;
}

// Called for each hit that is throttled: no more than what has to be done. As throttle_slowly, for a thread that is
// registered, has a slot, and has nothing under way: all that feed_enter and feed_leave would ask is known. Each sum
// grows by one instruction, so nothing marks the hit as begun: a handler that appends, jumps out or is killed in
// between finds it counted or not.
bool feed_trace_throttle(uint32_t total, uint64_t amount)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (__builtin_expect(!feed_enter_outermost(here), 0))
        return throttle_slowly(total, amount, here);
    struct feed_entry entry = {.feed = feed_now()};
    bool is_done = entry.feed && feed_has_slot(entry.feed) && feed_know_slot(&entry);
    if (__builtin_expect(is_done, 1)) {
        struct qut_trace_writer *writer = entry.slot->writers;
        arch_native_add(&writer->counts.passed, 1);
        if (total < QUT_TRACE_TOTAL_COUNT - 1) {
            arch_native_add(&writer->totals[total], 1);
            arch_native_add(&writer->totals[total + 1], amount);
        }
    }
    feed_leave_outermost();
    return __builtin_expect(is_done, 1) ? false : throttle_slowly(total, amount, here);
}

// ---- what sampling wants to know

uint32_t feed_trace_own_metrics(uint64_t metrics[QUT_METRIC_COUNT])
{
    struct feed_entry entry;
    if (!feed_enter(&entry, (uintptr_t)__builtin_frame_address(0)))
        return 0;
    uint32_t mask = entry.feed->segment.metric_mask;
    if ((mask & (1u << QUT_METRIC_ALLOCATIONS | 1u << QUT_METRIC_ALLOCATED_BYTES)) && feed_own_slot(&entry)) {
        const struct qut_trace_writer *writers = entry.slot->writers;
        uint64_t count = 0, bytes = 0;
        for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++) {
            count += __atomic_load_n(&writers[level].totals[QUT_TOTAL_ALLOCATIONS], __ATOMIC_RELAXED);
            bytes += __atomic_load_n(&writers[level].totals[QUT_TOTAL_ALLOCATED_BYTES], __ATOMIC_RELAXED);
        }
        metrics[QUT_METRIC_ALLOCATIONS] = count;
        metrics[QUT_METRIC_ALLOCATED_BYTES] = bytes;
    }
    feed_leave(&entry);
    return mask;
}

// What a handler stored meanwhile has another time.
uint32_t feed_trace_node_at(uint64_t time_ns)
{
    struct feed_entry entry;
    uint32_t node = 0;
    if (!feed_enter(&entry, (uintptr_t)__builtin_frame_address(0)))
        return 0;
    uint32_t level = feed_own_slot(&entry) ? segment_depth(entry.slot) : QUT_TRACE_LEVELS;
    if (level < QUT_TRACE_LEVELS) {
        const struct segment_sample *sample = &feed_scratch(&entry, level)->sample;
        node = __atomic_load_n(&sample->node, __ATOMIC_RELAXED);
        atomic_signal_fence(memory_order_seq_cst);
        if (__atomic_load_n(&sample->time_ns, __ATOMIC_RELAXED) != time_ns)
            node = 0;
    }
    feed_leave(&entry);
    return node;
}
