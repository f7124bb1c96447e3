// SPDX-License-Identifier: Apache-2.0
// What is not told: that a thread has ended, what it is called, and which file bytecode lies in.
#include <string.h>

#include "libqut/host/host.h"
#include "libqut/javascript/javascript.h"
#include "libqut/os/task.h"
#include "libqut/python/python.h"
#include "libqut/trace/feed_entry_inline.h"

enum { LOOK_EVERY_MS = 1000 };

// ---- threads

static struct qut_trace_thread *slot_at(const struct feed *feed, uint32_t index)
{
    return (struct qut_trace_thread *)(void *)(feed->segment.threads +
                                               (size_t)index * feed->segment.thread_stride_bytes);
}

static bool is_live(const struct qut_trace_thread *slot)
{
    return __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == QUT_TRACE_THREAD_LIVE;
}

// Acquire: whose tid is read next is this one's, or a later one's.
static uint32_t uid_of(const struct qut_trace_thread *slot)
{
    return __atomic_load_n(&slot->uid, __ATOMIC_ACQUIRE);
}

// Another thread has its number, and has been met: of two with the same one, only the later can live.
static bool has_successor(const struct feed *feed, uint32_t count, uint32_t tid, uint32_t uid)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct qut_trace_thread *other = slot_at(feed, i);
        uint32_t other_uid = uid_of(other);
        if (is_live(other) && __atomic_load_n(&other->tid, __ATOMIC_RELAXED) == tid && (int32_t)(other_uid - uid) > 0 &&
            uid_of(other) == other_uid)
            return true;
    }
    return false;
}

static void look_at_thread(struct feed *feed, uint32_t count, struct qut_trace_thread *slot, uint64_t now_ns)
{
    char name[OS_NAME_BYTES];
    uint32_t uid = uid_of(slot), tid = __atomic_load_n(&slot->tid, __ATOMIC_ACQUIRE);
    if (!is_live(slot) || uid_of(slot) != uid)
        return;
    if (os_thread_is_gone(tid) || has_successor(feed, count, tid, uid)) {
        // A dead thread has not ended its slot meanwhile, unless it had ended it before; then it may be another's.
        if (is_live(slot) && uid_of(slot) == uid)
            segment_thread_end(&feed->segment, slot, now_ns);
        return;
    }
    char known[QUT_TRACE_NAME_BYTES];
    segment_thread_name(slot, known);
    if (os_thread_name(tid, name) && strncmp(name, known, sizeof name) != 0 && is_live(slot) && uid_of(slot) == uid)
        segment_thread_rename(slot, name);
}

void feed_look_at_threads(struct feed *feed)
{
    uint32_t count = __atomic_load_n(&feed->segment.header->thread_count, __ATOMIC_ACQUIRE);
    uint64_t now_ns = os_now_ns();
    if (count > feed->segment.thread_capacity)
        count = feed->segment.thread_capacity;
    for (uint32_t i = 0; i < count; i++)
        look_at_thread(feed, count, slot_at(feed, i), now_ns);
}

void feed_look_at_command(struct feed *feed)
{
    char command[sizeof feed->segment.header->command];
    os_command(command, sizeof command);
    if (*command && strncmp(command, feed->segment.header->command, sizeof command) != 0)
        segment_set_command(&feed->segment, command);
}

void feed_look_at_names(void)
{
    struct feed_entry entry;
    if (!feed_enter(&entry, (uintptr_t)__builtin_frame_address(0)))
        return;
    feed_look_at_command(entry.feed);
    if (feed_has_slot(entry.feed) && feed_know_slot(&entry))
        feed_look_at_own_name(entry.slot);
    feed_leave(&entry);
}

// ---- raw pcs

void feed_tell_raw(struct feed *feed, uint32_t index, uintptr_t pc)
{
    uint32_t bit = 1u << (index & 31), *word = &feed->raw_is_told[index / 32];
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bit) || (__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit))
        return;
    uint32_t at = __atomic_fetch_add(&feed->told_count, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&feed->told[at % FEED_TOLD_COUNT], pc, __ATOMIC_RELEASE);
}

static bool is_in_file(const struct feed *feed, uintptr_t pc)
{
    for (uint32_t i = 0; i < feed->file_count; i++)
        if (pc >= feed->files[i].start && pc < feed->files[i].end)
            return true;
    return false;
}

static void describe(struct feed *feed, uintptr_t pc)
{
    static struct os_mapping mapping; // under work; too large for a stack
    if (is_in_file(feed, pc) || feed->file_count == FEED_FILES_MAX || os_mapping_at(pc, &mapping) != 0)
        return;
    feed->files[feed->file_count++] = (struct feed_file){mapping.start, mapping.end};
    struct qut_trace_module module = {
        .code_bytes = mapping.end - mapping.start,
        .start = mapping.start,
        .start_vaddr = mapping.offset_bytes,
        .load_ns = os_now_ns(),
        .flags = QUT_TRACE_MODULE_FILE,
    };
    if (mapping.path[0])
        segment_module_add(&feed->segment, &module, mapping.path);
}

static void describe_told(struct feed *feed)
{
    uint32_t count = __atomic_load_n(&feed->told_count, __ATOMIC_ACQUIRE);
    if (count - feed->read_count > FEED_TOLD_COUNT)
        feed->read_count = count - FEED_TOLD_COUNT;
    for (; feed->read_count != count; feed->read_count++) {
        uintptr_t pc = __atomic_load_n(&feed->told[feed->read_count % FEED_TOLD_COUNT], __ATOMIC_ACQUIRE);
        if (pc)
            describe(feed, pc);
    }
}

// ---- functions of an interpreter, which have numbers for pcs

static void name_function(void *context, uint64_t start, uint64_t bytes, const char *text)
{
    struct feed *feed = context;
    const struct segment *segment = &feed->segment;
    // Modules need theirs: what is without one here is a number.
    if (__atomic_load_n(&segment->header->module_count, __ATOMIC_RELAXED) >= segment->module_capacity / 4 * 3)
        return;
    const struct qut_trace_module module = {.code_bytes = bytes,
                                            .start = start,
                                            .start_vaddr = start,
                                            .load_ns = os_now_ns(),
                                            .flags = QUT_TRACE_MODULE_JIT | QUT_TRACE_MODULE_LINES};
    segment_module_add(&feed->segment, &module, text);
}

void feed_name_functions(struct feed *feed)
{
    python_tell(feed->generation, name_function, feed);
    javascript_tell(feed->generation, name_function, feed);
}

// ---- now and then

int feed_maintain(void)
{
    // A close frees it under work only, which the caller holds.
    struct feed *feed = feed_now();
    if (!feed)
        return -1;
    describe_told(feed);
    int python_ms = python_look();
    javascript_look();
    feed_name_functions(feed);
    uint64_t now_ns = os_now_ns();
    bool is_wanted = atomic_exchange_explicit(&feed->is_short_of_slots, 0, memory_order_acq_rel) != 0;
    if (is_wanted || now_ns - feed->looked_ns >= (uint64_t)LOOK_EVERY_MS * 1000000u) {
        feed->looked_ns = now_ns;
        feed_look_at_threads(feed);
        feed_look_at_command(feed);
    }
    return python_ms >= 0 && python_ms < LOOK_EVERY_MS ? python_ms : LOOK_EVERY_MS;
}

uint64_t feed_collector_ns(void)
{
    os_lock(&modules_registry.work); // against a close
    const struct feed *feed = feed_now();
    uint64_t looked_ns = feed ? __atomic_load_n(&feed->segment.counters->collector_ns, __ATOMIC_RELAXED) : 0;
    os_unlock(&modules_registry.work);
    return looked_ns;
}
