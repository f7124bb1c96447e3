// SPDX-License-Identifier: Apache-2.0
// Stacks of another process -> a segment of ours, as if it had written them itself.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qut/trace.h>

#include "libqut/os/os.h"
#include "tracer/attach/inside.h"

static_assert((int)ELF_BUILD_ID_MAX <= (int)QUT_TRACE_BUILD_ID_BYTES, "none is cut");

// Its arguments with blanks between.
static void read_command(pid_t pid, char *command, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, command, size - 1);
    if (fd >= 0)
        close(fd);
    size_t length = got > 0 ? (size_t)got : 0;
    while (length && command[length - 1] == 0)
        length--;
    for (size_t i = 0; i < length; i++)
        if (command[i] == 0)
            command[i] = ' ';
    command[length] = 0;
}

int attach_store_open(struct attach_session *session, struct attach_error *error)
{
    const struct attach_options *options = session->options;
    char command[256];
    read_command(options->pid, command, sizeof command);
    enum { LARGE_BYTES = 64 << 20, MANY_THREADS = 4096 };
    struct segment_options segment_options = {
        .segment_bytes = LARGE_BYTES,
        .thread_count = MANY_THREADS,
        .on_demand = true,
        .mode = QUT_TRACE_STREAM,
        .flags = QUT_TRACE_HAS_CPU_TIME,
        .pid = (uint32_t)options->pid,
        .arch = (uint8_t)session->target->arch->id,
        .word_bytes = session->target->arch->word_bytes,
        .merge_gap_ns = options->wall ? 2 * options->period_ns : UINT64_MAX,
        .command = options->command ? options->command : command,
    };
    int result =
        options->segment_bytes <= LARGE_BYTES ? segment_create(&session->store.segment, &segment_options) : -EINVAL;
    if (result != 0) { // on a small machine, say
        segment_options.segment_bytes = options->segment_bytes;
        segment_options.thread_count = 0;
        result = segment_create(&session->store.segment, &segment_options);
    }
    if (result != 0)
        return attach_fail(error, "%d: no memory for samples: %s", (int)options->pid, strerror(-result));
    session->store.is_open = true;
    attach_store_modules(session);
    return 0;
}

void attach_store_close(struct attach_session *session)
{
    if (session->store.is_open)
        segment_close(&session->store.segment);
    session->store.is_open = false;
    base_vector_free(&session->store.modules.vector);
}

// ---- modules

static struct attach_module *module_from(struct attach_store *store, const struct target_image *image, uint64_t start)
{
    for (size_t i = 0; i < store->modules.count; i++)
        if (store->modules.items[i].image == image && store->modules.items[i].start == start)
            return &store->modules.items[i];
    return NULL;
}

static void add_module(struct attach_session *session, const struct target_code_range *first, uint64_t end)
{
    struct attach_store *store = &session->store;
    const struct target_image *image = first->image;
    struct attach_module *known = module_from(store, image, first->start);
    if (known && known->end == end) {
        known->is_there = true;
        return;
    }
    if (!BASE_RESERVE(&store->modules, 1))
        return;
    bool is_vdso = strcmp(image->path, "[vdso]") == 0;
    struct qut_trace_module module = {
        .code_bytes = end - first->start,
        .start = first->start,
        .start_vaddr = first->start - image->load_bias,
        .load_ns = os_now_ns(),
        .flags = (image->has_oat_identity ? QUT_TRACE_MODULE_MANAGED : 0u) | (is_vdso ? QUT_TRACE_MODULE_VDSO : 0u),
        .build_id_bytes = image->build_id_size,
    };
    memcpy(module.build_id, image->build_id, image->build_id_size);
    int index = segment_module_add(&store->segment, &module, image->path);
    *BASE_ADD(&store->modules) = (struct attach_module){
        .start = first->start,
        .end = end,
        .code_base = index >= 0 ? store->segment.modules[index].code_base : 0,
        .image = image,
        .index = index >= 0 ? (uint32_t)index : UINT32_MAX,
        .is_there = true,
    };
}

static int by_start(const void *a, const void *b)
{
    const struct attach_module *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void drop_gone(struct attach_store *store)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->modules.count; i++) {
        if (store->modules.items[i].is_there)
            store->modules.items[kept++] = store->modules.items[i];
        else if (store->modules.items[i].index != UINT32_MAX)
            segment_module_unloaded(&store->segment, store->modules.items[i].index, os_now_ns());
    }
    store->modules.count = kept;
    store->last = 0;
}

// A module is its code from the first byte to the last: what lies between its pieces belongs to no other.
void attach_store_modules(struct attach_session *session)
{
    struct attach_store *store = &session->store;
    const struct qut_target *target = session->target;
    if (!store->is_open)
        return;
    for (size_t i = 0; i < store->modules.count; i++)
        store->modules.items[i].is_there = false;
    for (size_t i = 0, next; i < target->range_count; i = next) {
        const struct target_code_range *first = &target->ranges[i];
        for (next = i + 1; next < target->range_count && target->ranges[next].image == first->image;)
            next++;
        if (first->image->is_elf)
            add_module(session, first, target->ranges[next - 1].end);
    }
    drop_gone(store);
    qsort(store->modules.items, store->modules.count, sizeof *store->modules.items, by_start);
}

static const struct attach_module *module_at(struct attach_store *store, uint64_t pc)
{
    if (store->last < store->modules.count && pc >= store->modules.items[store->last].start &&
        pc < store->modules.items[store->last].end)
        return &store->modules.items[store->last];
    size_t low = 0, high = store->modules.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (store->modules.items[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == store->modules.count || pc < store->modules.items[low].start || store->modules.items[low].code_base == 0)
        return NULL;
    store->last = low;
    return &store->modules.items[low];
}

// ---- samples

struct qut_trace_thread *attach_store_slot(struct attach_session *session, struct attach_thread *thread)
{
    if (!thread->slot)
        thread->slot =
            segment_thread_begin(&session->store.segment, (uint32_t)thread->tid, thread->name, session->now_ns);
    return thread->slot;
}

// 0: there is no room; *cut says for what.
static uint32_t frame_node(struct attach_store *store, uint32_t parent, const struct qut_frame *frame,
                           enum qut_trace_cut *cut)
{
    enum { FUNCTION = QUT_FRAME_PYTHON | QUT_FRAME_SCRIPT }; // known by a number
    unsigned bits = (frame->flags & QUT_FRAME_INTERRUPTED ? QUT_TRACE_NODE_EXACT : 0u) |
                    (frame->flags & QUT_FRAME_GUESSED ? QUT_TRACE_NODE_GUESSED : 0u);
    unsigned class = frame->flags & QUT_FRAME_SIGNAL ? QUT_TRACE_CLASS_SIGNAL : QUT_TRACE_CLASS_CODE;
    const struct attach_module *module =
        frame->flags & (QUT_FRAME_DEX | QUT_FRAME_JIT | FUNCTION) ? NULL : module_at(store, frame->lookup_pc);
    uint64_t code = module ? frame->lookup_pc - module->start + module->code_base : 0;
    if (!module) {
        class = frame->flags & (QUT_FRAME_DEX | FUNCTION) ? QUT_TRACE_CLASS_DEX
                : frame->flags & QUT_FRAME_JIT            ? QUT_TRACE_CLASS_JIT
                                                          : QUT_TRACE_CLASS_RAW;
        code = segment_raw(&store->segment, frame->lookup_pc);
        *cut = QUT_TRACE_CUT_RAW;
        if (code == 0)
            return 0;
    }
    *cut = QUT_TRACE_CUT_TREE;
    return segment_child(&store->segment, parent, code, class << QUT_TRACE_CLASS_SHIFT | bits);
}

static uint32_t kernel_node(struct segment *segment, struct qut_trace_writer *writer, uint32_t frame, uint32_t code,
                            bool *is_cut)
{
    enum { KIND = QUT_TRACE_CLASS_KERNEL << QUT_TRACE_CLASS_SHIFT | QUT_TRACE_NODE_EXACT };
    uint32_t node = segment_node(segment, frame, code, KIND);
    if (node)
        return node;
    segment_cut(writer, QUT_TRACE_CUT_TREE);
    *is_cut = true;
    return frame;
}

static uint32_t stack_node(struct attach_session *session, struct qut_trace_writer *writer,
                           const struct attach_sample *sample, bool *is_cut)
{
    struct segment *segment = &session->store.segment;
    const struct qut_end *end = &sample->end;
    uint32_t node = 0;
    *is_cut = end->reason != QUT_END_OUTERMOST;
    if (*is_cut) {
        uint64_t code = 1 + (uint64_t)end->reason + ((uint64_t)end->refusal << 8);
        node = segment_node(segment, 0, code, QUT_TRACE_CLASS_END << QUT_TRACE_CLASS_SHIFT);
        segment_cut(writer, end->reason == QUT_END_LIMIT ? QUT_TRACE_CUT_DEPTH : QUT_TRACE_CUT_WALK);
        if (node == 0) {
            segment_cut(writer, QUT_TRACE_CUT_TREE);
            return 0;
        }
    }
    for (size_t i = sample->frame_count; i-- > 0;) {
        enum qut_trace_cut cut;
        uint32_t child = frame_node(&session->store, node, &session->frames[i], &cut);
        if (child == 0) {
            segment_cut(writer, cut);
            *is_cut = true;
            break;
        }
        node = child;
    }
    return sample->is_in_kernel && !*is_cut ? kernel_node(segment, writer, node, sample->kernel_code, is_cut) : node;
}

static int append(struct attach_session *session, struct attach_thread *thread, struct qut_trace_writer *writer,
                  uint32_t node, bool is_cut, const struct attach_sample *sample)
{
    const struct segment_sample stored = {
        .time_ns = sample->time_ns,
        .cpu_ns = thread->cpu_ns,
        .node = node,
        .kind = sample->kind,
        .flags = (uint16_t)(sample->flags | (is_cut ? QUT_TRACE_SAMPLE_CUT : 0u)),
        .extras = sample->extras,
        .extra_count = sample->extra_count,
    };
    return segment_append(&session->store.segment, thread->slot, writer, &stored);
}

uint32_t attach_store_sample(struct attach_session *session, struct attach_thread *thread,
                             const struct attach_sample *sample)
{
    if (!attach_store_slot(session, thread)) {
        segment_lose_unowned(&session->store.segment, QUT_TRACE_LOST_THREADS);
        session->result->lost++;
        return 0;
    }
    bool is_cut;
    struct qut_trace_writer *writer = segment_begin(thread->slot, 0, 0, 0);
    uint32_t node = stack_node(session, writer, sample, &is_cut);
    bool is_stored = append(session, thread, writer, node, is_cut, sample) != QUT_STORED_NOT;
    segment_end_of(thread->slot);
    session->result->lost += !is_stored;
    session->result->roots += is_stored && sample->end.reason == QUT_END_OUTERMOST;
    return node;
}

void attach_store_node(struct attach_session *session, struct attach_thread *thread, uint32_t node,
                       const struct attach_sample *sample)
{
    if (!thread->slot) {
        segment_lose_unowned(&session->store.segment, QUT_TRACE_LOST_THREADS);
        return;
    }
    struct qut_trace_writer *writer = segment_begin(thread->slot, 0, 0, 0);
    append(session, thread, writer, node, sample->end.reason != QUT_END_OUTERMOST, sample);
    segment_end_of(thread->slot);
}
