// SPDX-License-Identifier: Apache-2.0
#include "tests/support/feed_view.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <qut/trace.h>

bool view_open_fd(struct view *view, int fd)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        return false;
    view->size = (size_t)status.st_size;
    view->bytes = mmap(NULL, view->size, PROT_READ, MAP_SHARED, fd, 0);
    if (view->bytes == MAP_FAILED)
        return false;
    view->header = (const struct qut_trace_header *)(void *)view->bytes;
    view->counters = (const void *)(view->bytes + view->header->counters.offset_bytes);
    view->modules = (const void *)(view->bytes + view->header->modules.offset_bytes);
    view->nodes = (const void *)(view->bytes + view->header->nodes.offset_bytes);
    view->raw = (const void *)(view->bytes + view->header->raw.offset_bytes);
    return true;
}

bool view_open(struct view *view)
{
    return view_open_fd(view, qut_trace_fd());
}

void view_close(struct view *view)
{
    munmap(view->bytes, view->size);
}

const struct qut_trace_thread *view_thread_at(const struct view *view, uint32_t slot)
{
    return (const void *)(view->bytes + view->header->threads.offset_bytes +
                          (size_t)slot * view->header->thread_stride_bytes);
}

const struct qut_trace_thread *view_thread(const struct view *view, uint32_t tid)
{
    const struct qut_trace_thread *found = NULL;
    for (uint32_t i = 0; i < view->header->thread_count; i++) {
        const struct qut_trace_thread *thread = view_thread_at(view, i);
        if (thread->tid == tid && (!found || thread->uid > found->uid))
            found = thread;
    }
    return found;
}

const struct qut_trace_thread *view_self(const struct view *view)
{
    return view_thread(view, (uint32_t)syscall(SYS_gettid));
}

const struct qut_trace_commit *view_commit(const struct qut_trace_thread *thread, unsigned level)
{
    const struct qut_trace_writer *writer = &thread->writers[level];
    return &writer->commits[__atomic_load_n(&writer->version, __ATOMIC_ACQUIRE) & 1];
}

uint32_t view_last_node(const struct qut_trace_thread *thread, unsigned level)
{
    const struct qut_trace_commit *commit = view_commit(thread, level);
    return commit->run.count ? commit->run.node : 0;
}

static const struct qut_trace_module *module_of(const struct view *view, uint64_t code)
{
    const struct qut_trace_module *found = NULL;
    for (uint32_t i = 0; i < view->header->module_count; i++) {
        const struct qut_trace_module *module = &view->modules[i];
        if (module->code_base && code >= module->code_base && code - module->code_base < module->code_bytes)
            found = module; // the one that was loaded last
    }
    return found;
}

size_t view_stack(const struct view *view, uint32_t node, struct view_frame *frames, size_t max)
{
    size_t count = 0;
    while (node != 0 && count < max) {
        uint64_t word = node < view->header->node_capacity ? view->nodes[node] : 0;
        unsigned kind = (unsigned)(word & ((1u << QUT_TRACE_KIND_BITS) - 1));
        struct view_frame *frame = &frames[count++];
        *frame = (struct view_frame){
            .class = kind >> QUT_TRACE_CLASS_SHIFT,
            .bits = kind & 3,
            .node = node,
            .code = word >> QUT_TRACE_KIND_BITS & (((uint64_t)1 << QUT_TRACE_CODE_BITS) - 1),
        };
        if (frame->class == QUT_TRACE_CLASS_CODE || frame->class == QUT_TRACE_CLASS_SIGNAL) {
            frame->module = module_of(view, frame->code);
            if (frame->module)
                frame->pc = (uintptr_t)(frame->code - frame->module->code_base + frame->module->start);
        } else if (frame->class != QUT_TRACE_CLASS_LABEL && frame->class != QUT_TRACE_CLASS_END) {
            frame->pc = (uintptr_t)view->raw[frame->code];
        }
        node = (uint32_t)(word >> QUT_TRACE_PARENT_SHIFT);
    }
    return count;
}

const char *view_string(const struct view *view, uint32_t string)
{
    return (const char *)view->bytes + view->header->strings.offset_bytes + (size_t)string * 4 + 2;
}

int64_t view_imbalance(void)
{
    struct qut_trace_counters_now now;
    qut_trace_get_counts(&now, sizeof now);
    uint64_t sum = now.stored + now.merged + now.throttled + now.under_way;
    for (unsigned i = 0; i < 8; i++)
        sum += now.lost[i];
    return (int64_t)(now.hits - sum);
}
