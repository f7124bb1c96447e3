// SPDX-License-Identifier: Apache-2.0
#include "libqut/trace/feed_entry_inline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/host/host.h"
#include "libqut/javascript/javascript.h"
#include "libqut/os/process.h"
#include "libqut/os/shared_memory.h"
#include "libqut/os/task.h"
#include "libqut/python/python.h"
#include "libqut/trace/feed_sample.h"

static struct feed_current nothing;
_Atomic(struct feed_current *) feed_current = &nothing;
_Atomic uint32_t feed_control;
struct feed *feed_all;

static const struct modules_watch watch = {
    .publishes = feed_publishes,
    .goes = feed_module_goes,
    .thread_ends = feed_thread_ends,
    .before_fork = feed_before_fork,
    .in_parent = feed_in_parent,
    .in_child = feed_in_child,
    .maintain = feed_maintain,
};

// ---- memory

static size_t rounded(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

// Each level's part begins a page: what a thread never uses costs nothing.
static int make_scratch(struct feed *feed)
{
    size_t depth = feed->depth_max, head = rounded(sizeof(struct feed_scratch), 64);
    size_t bytes = head + depth * (3 * sizeof(uintptr_t) + sizeof(uint32_t)) + depth + 1;
    feed->scratch_stride_bytes = rounded(bytes, 4096);
    uint64_t all = (uint64_t)feed->scratch_stride_bytes * QUT_TRACE_LEVELS * feed->segment.thread_capacity;
    if (all > SIZE_MAX)
        return -ENOMEM;
    feed->scratch_bytes = (size_t)all;
    feed->scratch = os_reserve(feed->scratch_bytes);
    feed->raw_is_told_bytes = (feed->segment.raw_mask / 32 + 1) * sizeof *feed->raw_is_told;
    feed->raw_is_told = os_reserve(feed->raw_is_told_bytes);
    return feed->scratch && feed->raw_is_told ? 0 : -ENOMEM;
}

void feed_free(struct feed *feed)
{
    os_free_pages(feed->scratch, feed->scratch_bytes);
    os_free_pages(feed->raw_is_told, feed->raw_is_told_bytes);
    os_free_pages(feed, sizeof *feed + (feed->path ? strlen(feed->path) + 1 : 0));
}

// When no append can look at it any more. Under work.
static void close_feed(struct modules_retired *retired)
{
    struct feed *feed = (struct feed *)retired;
    os_lock(&modules_registry.lock);
    struct feed **link = &feed_all;
    while (*link && *link != feed)
        link = &(*link)->next;
    if (*link)
        *link = feed->next;
    os_unlock(&modules_registry.lock);
    if (feed->is_given_up) {
        segment_unmap(&feed->segment);
    } else if (!feed->is_unmapped) {
        feed_name_functions(feed);
        feed_look_at_threads(feed);
        feed_look_at_command(feed);
        feed_keep_counts(&feed->segment);
        segment_close(&feed->segment);
    }
    feed_free(feed);
}
static_assert(offsetof(struct feed, retired) == 0, "a trace is freed by its node");

struct feed *feed_plan(const struct segment_options *options, uint32_t flags, uint32_t depth_max)
{
    const size_t path_bytes = options->path ? strlen(options->path) + 1 : 0;
    struct feed *feed = os_reserve(sizeof *feed + path_bytes); // it may be made in a handler
    if (!feed)
        return NULL;
    feed->options = *options;
    feed->flags = flags;
    feed->depth_max = depth_max;
    feed->retired.free = close_feed;
    if (options->path)
        feed->path = memcpy(feed + 1, options->path, path_bytes);
    feed->options.path = feed->path;
    feed->options.command = NULL;
    return feed;
}

int feed_new(struct feed **out, const struct segment_options *options, uint32_t flags, uint32_t depth_max)
{
    static uint32_t generation;
    struct feed *feed = feed_plan(options, flags, depth_max);
    if (!feed)
        return -ENOMEM;
    int result = segment_create(&feed->segment, options);
    if (result == 0) {
        result = make_scratch(feed);
        if (result != 0)
            segment_close(&feed->segment);
    }
    if (result != 0) {
        feed_free(feed);
        return result;
    }
    if (++generation == 0)
        generation = 1;
    feed->generation = generation;
    *out = feed;
    return 0;
}

// Its modules are written down before they can be named.
void feed_publish(struct feed *feed)
{
    feed->next = feed_all;
    feed_all = feed;
    struct feed_current *current = atomic_load_explicit(&feed_current, memory_order_relaxed);
    feed_publishes();
    atomic_store_explicit(&current->feed, feed, memory_order_seq_cst);
}

void feed_forget(void)
{
    python_forget();
    javascript_forget();
    struct feed_current *current = atomic_load_explicit(&feed_current, memory_order_relaxed);
    if (current == &nothing)
        return;
    atomic_store_explicit(&feed_current, &nothing, memory_order_release);
    os_free_pages(current, os_page_bytes());
}

// ---- open and close

static bool are_zero(const uint32_t *words, size_t count)
{
    uint32_t any = 0;
    for (size_t i = 0; i < count; i++)
        any |= words[i];
    return any == 0;
}

static bool is_valid(const struct qut_trace_options *options)
{
    return options && options->size == sizeof *options && options->mode <= QUT_TRACE_KEEP_ALL &&
           !(options->flags & ~(uint32_t)(QUT_TRACE_FOLLOW_FORK | QUT_TRACE_CPU_TIME | QUT_TRACE_ON_DEMAND)) &&
           options->metric_mask < 1u << QUT_METRIC_COUNT && options->thread_count <= QUT_TRACE_THREADS_MAX &&
           options->node_bits <= QUT_TRACE_NODE_BITS_MAX && options->depth_max <= FEED_DEPTH_MAX &&
           are_zero(options->zero, sizeof options->zero / sizeof *options->zero);
}

// Under control. Once in a process's life, but for the page: a child may have to get another one.
static int prepare(void)
{
    int result = modules_registry_prepare_process();
    if (result != 0)
        return result;
    if (atomic_load_explicit(&feed_current, memory_order_relaxed) == &nothing) {
        struct feed_current *page = os_wiped_page();
        if (!page)
            return -ENOMEM;
        atomic_store_explicit(&feed_current, page, memory_order_release);
    }
    os_lock(&modules_registry.lock);
    atomic_store_explicit(&modules_registry_watch, &watch, memory_order_release);
    os_unlock(&modules_registry.lock);
    return qut_thread_register();
}

static struct segment_options segment_of(const struct qut_trace_options *options)
{
    return (struct segment_options){
        .segment_bytes = options->segment_bytes,
        .path = options->path,
        .mode = options->mode == QUT_TRACE_KEEP_ALL ? QUT_TRACE_STREAM : QUT_TRACE_OVERWRITE,
        .flags = options->flags & QUT_TRACE_CPU_TIME ? QUT_TRACE_HAS_CPU_TIME : 0,
        .metric_mask = options->metric_mask,
        .thread_count = options->thread_count,
        .node_bits = options->node_bits,
        .merge_gap_ns = options->merge_gap_ns,
        .pid = (uint32_t)os_own_pid(),
        .arch = (uint8_t)arch_native_arch.id,
        .word_bytes = sizeof(uintptr_t),
        .on_demand = (options->flags & QUT_TRACE_ON_DEMAND) != 0,
    };
}

static uint32_t depth_of(const struct qut_trace_options *options)
{
    enum { DEPTH = 1024 };
    return options->depth_max ? options->depth_max : DEPTH;
}

// Under control.
static int open_feed(const struct qut_trace_options *options)
{
    char command[sizeof((struct qut_trace_header *)0)->command];
    os_command(command, sizeof command);
    struct segment_options wanted = segment_of(options);
    wanted.command = command;
    struct feed *feed;
    int result = prepare();
    if (result == 0)
        result = feed_new(&feed, &wanted, options->flags, depth_of(options));
    if (result != 0)
        return result;
    os_lock(&modules_registry.lock);
    feed_publish(feed);
    os_unlock(&modules_registry.lock);
    return 0;
}

int qut_trace_open(const struct qut_trace_options *options)
{
    if (!is_valid(options))
        return -EINVAL;
    if (!os_has_thread_words())
        return -ENOMEM;
    os_lock(&feed_control);
    int result = feed_now() ? -EALREADY : open_feed(options);
    os_unlock(&feed_control);
    if (result == 0) {
        qut_trace_thread_register();
        modules_registry_ring();
    }
    return result;
}

int feed_open_later(const struct qut_trace_options *options)
{
    if (!is_valid(options))
        return -EINVAL;
    if (!os_has_thread_words())
        return -ENOMEM;
    const struct segment_options wanted = segment_of(options);
    os_lock(&feed_control);
    int result = feed_now() || feed_is_waiting() ? -EALREADY : prepare();
    struct feed *plan = result == 0 ? feed_plan(&wanted, options->flags, depth_of(options)) : NULL;
    if (result == 0 && !plan)
        result = -ENOMEM;
    if (result == 0) {
        os_lock(&modules_registry.lock);
        feed_find_files();
        os_unlock(&modules_registry.lock);
        feed_wait_with(plan);
    }
    os_unlock(&feed_control);
    return result;
}

// Under work: so it was not freed meanwhile.
static void give_up(struct feed *feed)
{
    feed_look_at_threads(feed);
    feed_look_at_command(feed);
    segment_give_up(&feed->segment);
    feed_keep_counts(&feed->segment);
    feed->is_given_up = true;
}

void qut_trace_close(void)
{
    enum { APPEND_PATIENCE_MS = 1000 };
    struct modules_registry *registry = &modules_registry;
    os_lock(&feed_control);
    struct feed *feed = feed_now();
    if (feed) {
        os_lock(&registry->work);
        os_lock(&registry->lock);
        struct feed_current *current = atomic_load_explicit(&feed_current, memory_order_relaxed);
        atomic_store_explicit(&current->feed, NULL, memory_order_seq_cst);
        feed->is_closed = true;
        modules_registry_push_retired(&feed->retired);
        os_unlock(&registry->lock);
        // Handlers that jumped out of appends of threads that were not registered look like appends that take for ever.
        if (!modules_registry_reclaim(APPEND_PATIENCE_MS))
            give_up(feed);
        os_unlock(&registry->work);
    }
    os_unlock(&feed_control);
}

int qut_trace_fd(void)
{
    struct feed_entry entry;
    if (!feed_enter(&entry, 0))
        return -1;
    int fd = __atomic_load_n(&entry.feed->segment.fd, __ATOMIC_RELAXED);
    feed_leave(&entry);
    return fd;
}

int qut_trace_take_fd(void)
{
    struct feed_entry entry;
    if (!feed_enter(&entry, 0))
        return -1;
    int fd = __atomic_exchange_n(&entry.feed->segment.fd, -1, __ATOMIC_RELAXED);
    feed_leave(&entry);
    return fd;
}

bool feed_trace_is_open(void)
{
    return feed_now() != NULL;
}
