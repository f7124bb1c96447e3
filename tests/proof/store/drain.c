// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/store/drain.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "qut/trace.h"

void tally_add(struct tally *to, const struct tally *from)
{
    for (int i = 0; i < DRAIN_PLACES; i++)
        to->samples[i] += from->samples[i];
    to->extra_hash += from->extra_hash;
    to->marks += from->marks;
    to->mark_hash += from->mark_hash;
}

uint64_t tally_samples(const struct tally *tally)
{
    uint64_t sum = 0;
    for (int i = 0; i < DRAIN_PLACES; i++)
        sum += tally->samples[i];
    return sum;
}

struct drain *drain_create(const char *name)
{
    void *memory = mmap(NULL, sizeof(struct drain), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    struct drain *drain = memory;
    snprintf(drain->path, sizeof drain->path, "/dev/shm/qut-%s-%d", name, (int)getpid());
    return drain;
}

void drain_destroy(struct drain *drain)
{
    unlink(drain->path);
    munmap(drain, sizeof *drain);
}

bool drain_nodes(struct drain *drain)
{
    for (uint32_t i = 0; i < DRAIN_PLACES; i++) {
        char name[32];
        snprintf(name, sizeof name, "thread %u", i / (DRAIN_DEPTHS * DRAIN_VARIETIES));
        uint32_t parent = qut_trace_label_node(0, name);
        snprintf(name, sizeof name, "place %u", i);
        drain->nodes[i] = qut_trace_label_node(parent, name);
        if (drain->nodes[i] == 0)
            return false;
    }
    return true;
}

struct visit {
    struct drain *drain;
    struct decoder decoder;
    uint32_t uid_of[DRAIN_THREADS]; // as it shows in the nodes
};

static void visit_record(void *context, const struct decoded_record *record)
{
    struct visit *visit = context;
    struct drain *drain = visit->drain;
    if (record->is_mark) {
        char name[32];
        drain->tally.marks++;
        drain->tally.mark_hash += drain_hash(record->id);
        if (!decoder_string(&visit->decoder, record->string, name, sizeof name) || strcmp(name, "storm") != 0)
            decoder_fault(&visit->decoder, "a mark's name");
        return;
    }
    uint32_t place = 0;
    while (place < DRAIN_PLACES && drain->nodes[place] != record->node)
        place++;
    if (place == DRAIN_PLACES) {
        decoder_fault(&visit->decoder, "node %u is no sample's", record->node);
        return;
    }
    uint32_t *uid = &visit->uid_of[place / (DRAIN_DEPTHS * DRAIN_VARIETIES)];
    if (*uid == 0)
        *uid = record->thread_uid;
    if (*uid != record->thread_uid)
        decoder_fault(&visit->decoder, "node %u, of thread %u, at thread %u", record->node, *uid, record->thread_uid);
    if (record->kind != QUT_TRACE_KIND_CPU || record->flags != QUT_TRACE_SAMPLE_ON_CPU)
        decoder_fault(&visit->decoder, "kind %u, flags %u", record->kind, record->flags);
    drain->tally.samples[place] += record->count;
    drain->level_samples[record->level] += record->count;
    for (uint32_t i = 0; i < record->extra_count; i++)
        if (record->extras[i].key == DRAIN_EXTRA)
            drain->tally.extra_hash += drain_hash(record->extras[i].value);
}

static uint8_t *map(struct drain *drain, size_t *size)
{
    struct stat status;
    int fd = open(drain->path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        snprintf(drain->fault, sizeof drain->fault, "cannot open %s", drain->path);
        return NULL;
    }
    *size = (size_t)status.st_size;
    void *memory = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

static void give_back(const struct decoder *decoder, uint8_t *bytes, uint32_t index)
{
    struct qut_trace_header *header = (void *)bytes;
    uint32_t *next = (void *)(bytes + decoder->header.free_list.offset_bytes);
    uint64_t head = __atomic_load_n(&header->free_head, __ATOMIC_ACQUIRE), changed;
    do {
        __atomic_store_n(&next[index], (uint32_t)head, __ATOMIC_RELAXED);
        changed = ((head >> 32) + 1) << 32 | (index + 1);
    } while (
        !__atomic_compare_exchange_n(&header->free_head, &head, changed, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE));
}

// One look at all chunks. The word decides which side owns a chunk; no writer gets it before it is given back.
static uint32_t take_sealed(struct visit *visit, uint8_t *bytes)
{
    const struct qut_trace_header *h = &visit->decoder.header;
    qut_trace_u64 *directory = (void *)(bytes + h->directory.offset_bytes);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < h->chunk_count; i++) {
        uint64_t word = __atomic_load_n(&directory[i], __ATOMIC_ACQUIRE);
        if ((word & 3) != QUT_TRACE_CHUNK_SEALED ||
            !__atomic_compare_exchange_n(&directory[i], &word, QUT_TRACE_CHUNK_FREE, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        int64_t samples =
            decoder_chunk(&visit->decoder, bytes + h->chunks.offset_bytes + (size_t)i * 4096, visit_record, visit);
        if (samples > 0)
            visit->drain->samples_drained += (uint64_t)samples;
        visit->drain->chunks_drained++;
        give_back(&visit->decoder, bytes, i);
        taken++;
    }
    return taken;
}

static int drain_all(struct drain *drain)
{
    static struct visit visit;
    size_t size = 0;
    visit.drain = drain;
    uint8_t *bytes = map(drain, &size);
    if (!bytes || !decoder_open(&visit.decoder, bytes, size))
        return 1;
    for (bool was_over = false; !was_over;) {
        was_over = drain->is_over;
        struct timespec pause = {.tv_nsec = 300000};
        if (take_sealed(&visit, bytes) == 0)
            nanosleep(&pause, NULL);
    }
    if (visit.decoder.fault_count)
        snprintf(drain->fault, sizeof drain->fault, "%s", visit.decoder.fault);
    return visit.decoder.fault_count != 0;
}

bool drain_start(struct drain *drain)
{
    drain->is_over = false;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(drain_all(drain));
    drain->pid = pid;
    return pid > 0;
}

bool drain_stop(struct drain *drain)
{
    int status;
    drain->is_over = true;
    pid_t pid = waitpid(drain->pid, &status, 0);
    if (pid == drain->pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (!drain->fault[0])
        snprintf(drain->fault, sizeof drain->fault, "the process that drains (%d, %d) ended with %#x", (int)drain->pid,
                 (int)pid, (unsigned)status);
    return false;
}

bool drain_rest(struct drain *drain, struct decoded_totals *totals)
{
    static struct visit visit;
    size_t size = 0;
    memset(&visit, 0, sizeof visit);
    visit.drain = drain;
    uint8_t *bytes = map(drain, &size);
    if (!bytes)
        return false;
    bool is_fine = decoder_open(&visit.decoder, bytes, size) &&
                   decoder_all(&visit.decoder, drain->samples_drained, visit_record, &visit, totals) &&
                   visit.decoder.fault_count == 0;
    if (!is_fine)
        snprintf(drain->fault, sizeof drain->fault, "%s", visit.decoder.fault);
    munmap(bytes, size);
    return is_fine;
}
