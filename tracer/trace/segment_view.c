// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/segment_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TIME_SHIFT_MAX = 20,
    COPY_TRIES = 1000, // a writer that appends as fast as it can is met at rest within a few
};
static const char where[] = "segment header";

static int malformed(struct base_error *error, size_t offset, const char *what, uint64_t value)
{
    return base_fail(error, BASE_ERR_MALFORMED, where, offset, "%s: %" PRIu64, what, value);
}

#define HEADER_AT(FIELD) offsetof(struct qut_trace_header, FIELD)

static bool is_power_of_two(uint64_t value)
{
    return value && !(value & (value - 1));
}

const char *trace_version_refusal(bool is_older)
{
    return is_older ? "made by an older QUT: read it with that one" : "made by a newer QUT: read it with that one";
}

int trace_segment_check_numbers(const struct qut_trace_header *header, struct base_error *error)
{
    if (header->version < QUT_TRACE_VERSION_OLDEST || header->version > QUT_TRACE_VERSION)
        return base_fail(error, BASE_ERR_UNSUPPORTED, where, HEADER_AT(version), "%s",
                         trace_version_refusal(header->version < QUT_TRACE_VERSION_OLDEST));
    if (header->word_bytes != 4 && header->word_bytes != 8)
        return malformed(error, HEADER_AT(word_bytes), "bytes of a word", header->word_bytes);
    if (header->mode > QUT_TRACE_STREAM)
        return malformed(error, HEADER_AT(mode), "mode", header->mode);
    if (header->time_shift > TIME_SHIFT_MAX)
        return malformed(error, HEADER_AT(time_shift), "time shift", header->time_shift);
    if (!header->thread_capacity || header->thread_capacity > QUT_TRACE_THREADS_MAX)
        return malformed(error, HEADER_AT(thread_capacity), "threads", header->thread_capacity);
    if (header->module_capacity > QUT_TRACE_MODULES_MAX)
        return malformed(error, HEADER_AT(module_capacity), "modules", header->module_capacity);
    if (!is_power_of_two(header->raw_capacity) || header->raw_capacity > 1u << QUT_TRACE_RAW_BITS_MAX)
        return malformed(error, HEADER_AT(raw_capacity), "raw pcs", header->raw_capacity);
    if (!is_power_of_two(header->node_capacity) || header->node_capacity > 1u << QUT_TRACE_NODE_BITS_MAX)
        return malformed(error, HEADER_AT(node_capacity), "nodes", header->node_capacity);
    if (!header->chunk_count || header->chunk_count > QUT_TRACE_CHUNKS_MAX)
        return malformed(error, HEADER_AT(chunk_count), "chunks", header->chunk_count);
    if (header->thread_stride_bytes < sizeof(struct qut_trace_thread) || header->thread_stride_bytes % 8)
        return malformed(error, HEADER_AT(thread_stride_bytes), "bytes of a thread", header->thread_stride_bytes);
    return 0;
}

struct sized_section {
    const char *name;
    const struct qut_trace_section *section;
    size_t offset; // in the header, for messages
    uint64_t item_bytes, item_count;
    uint32_t *there; // NULL: all of it must be
};

static int check_section(const struct trace_segment_view *view, const struct sized_section *part, bool *is_cut,
                         struct base_error *error)
{
    uint64_t offset = part->section->offset_bytes, size = part->section->size_bytes, end;
    if (offset % 64 || offset < sizeof(struct qut_trace_header) || __builtin_add_overflow(offset, size, &end) ||
        end > view->header.segment_bytes || size < part->item_bytes * part->item_count)
        return base_fail(error, BASE_ERR_MALFORMED, where, part->offset,
                         "section %s at 0x%" PRIx64 ", 0x%" PRIx64 " bytes: in a segment of 0x%" PRIx64, part->name,
                         offset, size, view->header.segment_bytes);
    uint64_t left = offset < view->size ? view->size - offset : 0;
    if (left < part->item_bytes * part->item_count) {
        *is_cut = true;
        if (!part->there)
            return base_fail(error, BASE_ERR_TRUNCATED, where, part->offset,
                             "section %s ends behind the file's %zu bytes", part->name, view->size);
    }
    if (part->there) {
        uint64_t count = left / part->item_bytes;
        *part->there = (uint32_t)(count < part->item_count ? count : part->item_count);
    }
    return 0;
}

static int check_sections(struct trace_segment_view *view, struct base_error *error)
{
    const struct qut_trace_header *header = &view->header;
    uint32_t string_bytes = 0;
    uint64_t string_size = header->strings.size_bytes < UINT32_MAX ? header->strings.size_bytes : UINT32_MAX;
    uint32_t directory_count = 0, chunk_count = 0;
    const struct sized_section parts[] = {
        {"counters", &header->counters, HEADER_AT(counters), sizeof(struct qut_trace_counters), 1, NULL},
        {"threads", &header->threads, HEADER_AT(threads), header->thread_stride_bytes, header->thread_capacity,
         &view->thread_count},
        {"modules", &header->modules, HEADER_AT(modules), sizeof(struct qut_trace_module), header->module_capacity,
         &view->module_capacity},
        {"strings", &header->strings, HEADER_AT(strings), 1, string_size, &string_bytes},
        {"raw", &header->raw, HEADER_AT(raw), 8, header->raw_capacity, &view->raw_count},
        {"nodes", &header->nodes, HEADER_AT(nodes), 8, header->node_capacity, &view->node_count},
        {"free list", &header->free_list, HEADER_AT(free_list), 4, header->chunk_count, NULL},
        {"directory", &header->directory, HEADER_AT(directory), 8, header->chunk_count, &directory_count},
        {"chunks", &header->chunks, HEADER_AT(chunks), QUT_TRACE_CHUNK_BYTES, header->chunk_count, &chunk_count},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (check_section(view, &parts[i], &view->is_cut, error) != 0)
            return -1;
    view->string_bytes = string_bytes;
    view->chunk_count = chunk_count < directory_count ? chunk_count : directory_count;
    return 0;
}

int trace_segment_view(struct trace_segment_view *view, uint8_t *bytes, size_t size, struct base_error *error)
{
    *view = (struct trace_segment_view){.bytes = bytes, .size = size, .fd = -1};
    if (size < sizeof view->header)
        return base_fail(error, BASE_ERR_TRUNCATED, where, size, "%zu bytes are less than a header", size);
    memcpy(&view->header, bytes, sizeof view->header);
    if (memcmp(view->header.magic, QUT_TRACE_MAGIC, sizeof view->header.magic) != 0)
        return base_fail(error, BASE_ERR_MALFORMED, where, 0, "no segment of a trace");
    if (view->size > view->header.segment_bytes)
        view->size = (size_t)view->header.segment_bytes;
    if (trace_segment_check_numbers(&view->header, error) != 0)
        return -1;
    return check_sections(view, error);
}

int trace_segment_map(struct trace_segment_view *view, int fd, bool writable, struct base_error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return base_fail_errno(error, errno);
    if (status.st_size < (off_t)sizeof(struct qut_trace_header))
        return base_fail(error, BASE_ERR_TRUNCATED, where, 0, "%jd bytes are less than a header",
                         (intmax_t)status.st_size);
    size_t size = (size_t)status.st_size;
    void *bytes = mmap(NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return base_fail(error, BASE_ERR_IO, "", 0, "mmap: %s", strerror(errno));
    struct guard *guard = trace_guard_begin(bytes, size);
    int made = guard ? trace_segment_view(view, bytes, size, error)
                     : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "too many segments are read at once");
    if (made != 0) {
        trace_guard_end(guard);
        munmap(bytes, size);
        return -1;
    }
    view->mapped_bytes = size;
    view->guard = guard;
    view->fd = fd;
    return 0;
}

bool trace_segment_next_words(const struct trace_segment_view *view, const qut_trace_u64 *words, size_t count,
                              size_t *first, size_t *end)
{
    const off_t start = (const uint8_t *)words - view->bytes;
    if (*first >= count)
        return false;
    *end = count;
    const off_t from = start + (off_t)(*first * sizeof *words);
    const off_t data = view->fd >= 0 ? lseek(view->fd, from, SEEK_DATA) : -1;
    if (data < from) // that there is no more is said by ENXIO; all else: it is not known
        return view->fd < 0 || errno != ENXIO;
    *first += (size_t)(data - from) / sizeof *words;
    const off_t hole = lseek(view->fd, data, SEEK_HOLE);
    if (hole > data && (size_t)(hole - start) / sizeof *words < count)
        *end = (size_t)(hole - start) / sizeof *words;
    return *first < *end;
}

void trace_segment_unmap(struct trace_segment_view *view)
{
    trace_guard_end(view->guard);
    if (view->mapped_bytes)
        munmap(view->bytes, view->mapped_bytes);
    *view = (struct trace_segment_view){0};
}

// What a writer takes from others is no longer theirs when the directory says so, and in its commit only later.
static uint64_t samples_in_transit(const struct trace_segment_view *view, uint32_t slot, unsigned level,
                                   const struct qut_trace_commit *commit)
{
    const struct qut_trace_writer *writer = &trace_segment_thread(view, slot)->writers[level];
    uint32_t taking = __atomic_load_n(&writer->taking, __ATOMIC_ACQUIRE);
    if (!taking || taking > view->chunk_count)
        return 0;
    uint64_t word = __atomic_load_n(&trace_segment_directory(view)[taking - 1], __ATOMIC_ACQUIRE);
    bool is_its = trace_chunk_word_state(word) == QUT_TRACE_CHUNK_OPEN && trace_chunk_word_slot(word) == slot &&
                  trace_chunk_word_level(word) == level;
    bool is_told = commit->chunk == taking && commit->chunk_seq == (uint32_t)trace_chunk_word_seq(word);
    return is_its && !is_told ? __atomic_load_n(&writer->taking_samples, __ATOMIC_RELAXED) : 0;
}

// The last chunk that a writer without one can have had. One that it is taking has its number already, or had when
// `seq_next` was read, and will be full and sealed without this state telling of it.
static uint64_t seq_before(const struct trace_segment_view *view, uint32_t slot, unsigned level, uint64_t seq_next)
{
    const qut_trace_u64 *words = trace_segment_directory(view);
    uint32_t taking = __atomic_load_n(&trace_segment_thread(view, slot)->writers[level].taking, __ATOMIC_ACQUIRE);
    uint64_t last = 0;
    if (!taking || taking > view->chunk_count)
        return seq_next - 1;
    for (uint32_t i = 0; i < view->chunk_count; i++) {
        uint64_t word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
        bool is_before = i != taking - 1 && trace_chunk_word_state(word) == QUT_TRACE_CHUNK_SEALED &&
                         trace_chunk_word_slot(word) == slot && trace_chunk_word_level(word) == level;
        if (is_before && trace_chunk_word_seq(word) > last)
            last = trace_chunk_word_seq(word);
    }
    return last;
}

// The innermost level also counts what is nested too deep for any: two counters each, of handlers in handlers.
static uint32_t may_be_under_way(const struct qut_trace_thread *thread, unsigned level)
{
    enum { NESTED_AT_ONCE = 8 };
    uint32_t count = __atomic_load_n(&thread->writers[level].under_way, __ATOMIC_RELAXED) != 0 ||
                     __atomic_load_n(&thread->entry_sp[level], __ATOMIC_RELAXED) != 0;
    return level == QUT_TRACE_LEVELS - 1 && count ? count + NESTED_AT_ONCE : count;
}

// `counts` are no part of a commit: what was not stored has none. Where version and counts are the same before and
// after, no append began or ended meanwhile, and at most one was under way.
static void copy_writer(const struct trace_segment_view *view, unsigned level, struct qut_trace_file_thread *to)
{
    const struct qut_trace_thread *thread = trace_segment_thread(view, to->slot);
    const struct qut_trace_writer *writer = &thread->writers[level];
    struct qut_trace_file_writer *copy = &to->writers[level];
    for (int i = 0; i < COPY_TRIES; i++) {
        uint64_t seq_next = __atomic_load_n(&trace_segment_header(view)->chunk_seq_next, __ATOMIC_ACQUIRE);
        // Pairs with the writer's release: what that version says was written before.
        uint32_t version = __atomic_load_n(&writer->version, __ATOMIC_ACQUIRE);
        memcpy(&copy->commit, &writer->commits[version & 1], sizeof copy->commit);
        memcpy(&copy->counts, &writer->counts, sizeof copy->counts);
        memcpy(copy->totals, writer->totals, sizeof copy->totals);
        copy->version = version;
        copy->overwritten = copy->commit.overwritten + samples_in_transit(view, to->slot, level, &copy->commit);
        copy->under_way = may_be_under_way(thread, level);
        if (!copy->commit.chunk) // it does not say which chunks it had before: none of the later ones
            copy->commit.chunk_seq = (uint32_t)seq_before(view, to->slot, level, seq_next);
        __atomic_thread_fence(__ATOMIC_ACQUIRE); // the copies are made before the words are looked at again
        if (__atomic_load_n(&writer->version, __ATOMIC_RELAXED) == version &&
            memcmp(&writer->counts, &copy->counts, sizeof copy->counts) == 0)
            return;
    }
}

static bool copy_thread_once(const struct trace_segment_view *view, struct qut_trace_file_thread *copy)
{
    const struct qut_trace_thread *thread = trace_segment_thread(view, copy->slot);
    copy->state = __atomic_load_n(&thread->state, __ATOMIC_ACQUIRE);
    copy->uid = __atomic_load_n(&thread->uid, __ATOMIC_RELAXED);
    if (copy->state == QUT_TRACE_THREAD_NONE || copy->state > QUT_TRACE_THREAD_ENDED || !copy->uid)
        return false;
    if (copy->state == QUT_TRACE_THREAD_TAKEN && trace_segment_retired(trace_segment_counters(view))->uid == copy->uid)
        return false;
    copy->tid = thread->tid;
    for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++)
        copy->depth +=
            copy->state == QUT_TRACE_THREAD_LIVE && __atomic_load_n(&thread->entry_sp[level], __ATOMIC_RELAXED);
    copy->start_ns = __atomic_load_n(&thread->start_ns, __ATOMIC_RELAXED);
    copy->end_ns = __atomic_load_n(&thread->end_ns, __ATOMIC_RELAXED);
    memcpy(copy->name, thread->name, sizeof copy->name);
    copy->name[sizeof copy->name - 1] = 0;
    // Inner levels first: they interrupt the outer ones.
    for (unsigned level = QUT_TRACE_LEVELS; level-- > 0;)
        copy_writer(view, level, copy);
    return true;
}

bool trace_segment_copy_thread(const struct trace_segment_view *view, uint32_t slot, struct qut_trace_file_thread *copy)
{
    const struct qut_trace_thread *thread = trace_segment_thread(view, slot);
    // Those behind have never been any thread's: the kernel has no memory for them yet.
    if (slot >= __atomic_load_n(&trace_segment_header(view)->thread_count, __ATOMIC_ACQUIRE))
        return false;
    for (int i = 0; i < COPY_TRIES; i++) {
        *copy = (struct qut_trace_file_thread){.slot = slot};
        if (!copy_thread_once(view, copy))
            return false;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        // Else the slot was given to another thread meanwhile.
        if (__atomic_load_n(&thread->uid, __ATOMIC_RELAXED) == copy->uid &&
            __atomic_load_n(&thread->state, __ATOMIC_RELAXED) == copy->state)
            return true;
    }
    return false;
}

uint64_t trace_segment_overwritten(const struct trace_segment_view *view, bool at_most)
{
    // A thread whose slot is given away meanwhile goes from the slots to `retired`: it is in both or in none.
    uint64_t sum = at_most ? 0 : trace_segment_retired(trace_segment_counters(view))->overwritten;
    for (uint32_t slot = 0; slot < view->thread_count; slot++) {
        struct qut_trace_file_thread copy;
        if (trace_segment_copy_thread(view, slot, &copy))
            for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++)
                sum += copy.writers[level].overwritten;
    }
    if (at_most)
        sum += trace_segment_retired(trace_segment_counters(view))->overwritten;
    return sum;
}

enum segment_copied trace_segment_copy_open(const struct trace_segment_view *view,
                                            const struct qut_trace_file_thread *thread, unsigned level, uint8_t *to)
{
    const struct qut_trace_commit *commit = &thread->writers[level].commit;
    if (!commit->chunk)
        return SEGMENT_COPY_NONE;
    if (commit->chunk > view->chunk_count || commit->used_bytes > CHUNK_RECORD_BYTES)
        return SEGMENT_COPY_BAD;
    uint32_t index = commit->chunk - 1;
    const qut_trace_u64 *word = &trace_segment_directory(view)[index];
    uint64_t before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (trace_chunk_word_state(before) != QUT_TRACE_CHUNK_OPEN || trace_chunk_word_slot(before) != thread->slot ||
        trace_chunk_word_level(before) != level || (uint32_t)trace_chunk_word_seq(before) != commit->chunk_seq)
        return SEGMENT_COPY_NONE;
    memcpy(to, trace_segment_chunk(view, index), sizeof(struct qut_trace_chunk) + commit->used_bytes);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    uint64_t after = __atomic_load_n(word, __ATOMIC_RELAXED);
    // Sealing it changes no record that the commit tells of.
    bool is_same = trace_chunk_word_seq(after) == trace_chunk_word_seq(before) &&
                   trace_chunk_word_state(after) != QUT_TRACE_CHUNK_FREE;
    return is_same ? SEGMENT_COPIED : SEGMENT_COPY_NONE;
}

enum segment_copied trace_segment_copy_sealed(const struct trace_segment_view *view, uint32_t index, uint64_t *word,
                                              uint8_t *to, uint32_t *used_bytes)
{
    const qut_trace_u64 *entry = &trace_segment_directory(view)[index];
    *word = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
    if (trace_chunk_word_state(*word) != QUT_TRACE_CHUNK_SEALED)
        return SEGMENT_COPY_NONE;
    memcpy(to, trace_segment_chunk(view, index), sizeof(struct qut_trace_chunk));
    const struct qut_trace_chunk *header = (const void *)to;
    *used_bytes = header->used_bytes < CHUNK_RECORD_BYTES ? header->used_bytes : CHUNK_RECORD_BYTES;
    memcpy(to + sizeof *header, trace_segment_chunk(view, index) + sizeof *header, *used_bytes);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(entry, __ATOMIC_RELAXED) == *word ? SEGMENT_COPIED : SEGMENT_COPY_NONE;
}

void trace_segment_release(const struct trace_segment_view *view, uint32_t index, uint64_t word)
{
    struct qut_trace_header *header = (void *)view->bytes;
    struct qut_trace_counters *counters = (void *)(view->bytes + view->header.counters.offset_bytes);
    uint32_t *free_list = (void *)(view->bytes + view->header.free_list.offset_bytes);
    // The side that changes the word from SEALED owns the chunk: no other puts it on the list.
    if (!__atomic_compare_exchange_n(&trace_segment_directory(view)[index], &word, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    __atomic_fetch_add(&counters->collected_chunks, 1, __ATOMIC_RELAXED);
    uint64_t head = __atomic_load_n(&header->free_head, __ATOMIC_ACQUIRE);
    uint64_t pushed;
    do {
        __atomic_store_n(&free_list[index], (uint32_t)head, __ATOMIC_RELAXED);
        // The number above the index changes with each change of the list.
        pushed = ((head >> 32) + 1) << 32 | (index + 1);
    } while (
        !__atomic_compare_exchange_n(&header->free_head, &head, pushed, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}
