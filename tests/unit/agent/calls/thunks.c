// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/calls/calls.h"
#include "agent/calls/inside.h"
#include "tests/unit/agent/calls/thunks_inside.h"

enum { PATCHES_MAX = 64, OPEN_MAX = 4096, CELLS = 64 };

static struct qut_calls_header *header;
static uint8_t *block, *next;
static struct patch {
    uint8_t *at, before[THUNKS_PATCH_BYTES_MAX];
    size_t size;
} patches[PATCHES_MAX];
static unsigned patch_count;

// Of one ring: calls that are open, in the order of their enters.
struct reader {
    uint64_t position, time_ticks;
    unsigned open_count;
    uint64_t open[OPEN_MAX];
};
static struct reader *readers;

int thunks_begin(uint64_t ring_bytes, uint32_t ring_count)
{
    const struct calls_options options = {.ring_bytes = ring_bytes, .ring_count = ring_count, .cell_count = CELLS};
    uint64_t size;
    int fd = calls_begin(&options, &size);
    if (fd < 0)
        return fd;
    header = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (header == MAP_FAILED || !qut_calls_header_is_sound(header, size))
        abort();
    // Near the program's own code.
    uintptr_t near = (uintptr_t)&thunks_begin & ~(uintptr_t)4095;
    block = MAP_FAILED;
    for (uintptr_t away = 1 << 24; block == MAP_FAILED && away < 1 << 30; away += 1 << 24) {
        block = mmap((void *)(near - away), THUNKS_BLOCK_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (block != MAP_FAILED && (uintptr_t)block != near - away) { // who does not know the flag takes it for a wish
            munmap(block, THUNKS_BLOCK_BYTES);
            block = MAP_FAILED;
        }
    }
    if (block == MAP_FAILED)
        abort();
    memcpy(block + QUT_CALLS_BLOCK_ENTER_AT, &header->enter_stub, 8);
    memcpy(block + QUT_CALLS_BLOCK_PLACE_AT, &header->place_stub, 8);
    memcpy(block + QUT_CALLS_BLOCK_COUNT_AT, &header->count_stub, 8);
    next = block + QUT_CALLS_BLOCK_CODE_AT;
    return 0;
}

void thunks_look_at(struct qut_calls_header *memory)
{
    header = memory;
    free(readers);
    readers = NULL;
}

struct qut_calls_header *thunks_header(void)
{
    return header;
}

struct qut_calls_ring *thunks_ring(uint32_t index)
{
    return (struct qut_calls_ring *)((uint8_t *)header + header->directory_offset_bytes) + index;
}

uint64_t thunks_counted(uint32_t cell)
{
    uint64_t sum = 0;
    const uint64_t *tables = (const uint64_t *)((uint8_t *)header + header->counts_offset_bytes);
    for (uint32_t i = 0; i < header->ring_count; i++)
        sum += tables[(uint64_t)i * header->cell_count + cell];
    return sum;
}

// ---- code

uintptr_t thunks_block(void)
{
    return (uintptr_t)block;
}

uint8_t *thunks_next(void)
{
    return next += -(uintptr_t)next & (QUT_CALLS_THUNK_ALIGNMENT - 1);
}

void thunks_used(uint8_t *end)
{
    __builtin___clear_cache((char *)block, (char *)end);
    next = end;
}

static void exchange(uint8_t *at, const uint8_t *bytes, size_t size)
{
    const uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095;
    mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC | THUNKS_GUARDED);
    memcpy(at, bytes, size);
    mprotect((void *)page, 8192, PROT_READ | PROT_EXEC | THUNKS_GUARDED);
    __builtin___clear_cache((char *)at, (char *)at + size);
}

bool thunks_exchange(uint8_t *at, const uint8_t *bytes, size_t size)
{
    if (patch_count == PATCHES_MAX)
        return false;
    patches[patch_count] = (struct patch){.at = at, .size = size};
    memcpy(patches[patch_count++].before, at, size);
    exchange(at, bytes, size);
    return true;
}

void thunks_undo(void)
{
    while (patch_count > 0) {
        const struct patch *patch = &patches[--patch_count];
        exchange(patch->at, patch->before, patch->size);
    }
}

// ---- rings

static struct thunks_sums sums;

// Calls further in on the same stack are over; stacks are far apart, or not told apart here: of one granule.
static bool is_further_in(uint64_t open, uint64_t slot)
{
    return open < slot && slot - open < 1 << 20;
}

static void read_event(struct reader *reader, const struct qut_calls_event *event)
{
    const uint64_t slot = qut_calls_word_slot(event->word);
    const uint32_t id = qut_calls_word_id(event->word);
    const bool is_exit = qut_calls_word_is_exit(event->word);
    sums.events++;
    if (id == 0 || id > THUNKS_ID_MAX) {
        sums.bad_ids++;
        return;
    }
    (is_exit ? sums.exits : sums.enters)[id]++;
    sums.tails[id] += qut_calls_word_is_tail(event->word);
    sums.backwards += event->time_ticks < reader->time_ticks;
    reader->time_ticks = event->time_ticks;
    unsigned kept = 0;
    bool is_paired = false;
    for (unsigned i = 0; i < reader->open_count; i++) {
        const uint64_t open = qut_calls_word_slot(reader->open[i]);
        if (is_further_in(open, slot))
            continue;
        if (open == slot) {
            is_paired = qut_calls_word_id(reader->open[i]) == id;
            continue;
        }
        reader->open[kept++] = reader->open[i];
    }
    reader->open_count = kept;
    if (is_exit)
        sums.unpaired += !is_paired;
    else if (kept == OPEN_MAX)
        abort();
    else
        reader->open[reader->open_count++] = event->word;
}

static void drain_ring(uint32_t index)
{
    struct reader *reader = &readers[index];
    struct qut_calls_ring *ring = thunks_ring(index);
    uint8_t *events = (uint8_t *)header + header->rings_offset_bytes + index * header->ring_bytes;
    const bool has_ended = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) == QUT_CALLS_RING_ENDED;
    struct qut_calls_event event;
    while (qut_calls_event_take(
        (struct qut_calls_event *)(events + (reader->position * sizeof event & (header->ring_bytes - 1))), &event)) {
        read_event(reader, &event);
        reader->position++;
        __atomic_store_n(&ring->tail_events, reader->position, __ATOMIC_RELEASE);
    }
    if (!has_ended)
        return;
    reader->position = reader->time_ticks = reader->open_count = 0;
    ring->lost_enters = ring->lost_exits = ring->tail_events = 0;
    ring->tid = 0;
    __atomic_store_n(&ring->state, QUT_CALLS_RING_FREE, __ATOMIC_RELEASE);
}

void thunks_drain(void)
{
    if (!readers)
        readers = calloc(header->ring_count, sizeof *readers);
    if (!readers)
        abort();
    for (uint32_t i = 0; i < header->ring_count; i++)
        drain_ring(i);
}

const struct thunks_sums *thunks_sums(void)
{
    sums.open = 0;
    for (uint32_t i = 0; readers && i < header->ring_count; i++)
        sums.open += readers[i].open_count;
    return &sums;
}
