// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/agent/calls/thunks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/calls/calls.h"
#include "agent/calls/inside.h"

enum { BLOCK_BYTES = 65536, PATCHES_MAX = 64, NOPS = THUNKS_NOPS, OPEN_MAX = 4096, CELLS = 64 };

static struct qut_calls_header *header;
static uint8_t *block, *next;
static struct patch {
    uint8_t *at, before[NOPS];
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
    for (uintptr_t away = 1 << 24; block == MAP_FAILED && away < 1 << 30; away += 1 << 24)
        block = mmap((void *)(near - away), BLOCK_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (block == MAP_FAILED)
        abort();
    memcpy(block + QUT_CALLS_BLOCK_ENTER_AT, &header->enter_stub, 8);
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

// Written at `bytes`, executed at `at`.
struct code {
    uint8_t *bytes;
    uint64_t at;
};

static void put(struct code *code, const void *bytes, size_t size)
{
    memcpy(code->bytes, bytes, size);
    code->bytes += size;
    code->at += size;
}

static void put_word(struct code *code, const char *bytes, size_t size, uint32_t word)
{
    put(code, bytes, size);
    put(code, &word, sizeof word);
}
#define PUT_WORD(CODE, BYTES, WORD) put_word(CODE, BYTES, sizeof(BYTES) - 1, WORD)

static void put_jump(struct code *code, uint64_t to)
{
    PUT_WORD(code, "\xe9", (uint32_t)(to - (code->at + 5)));
}

static void put_handover(struct code *code, uint32_t id, uint64_t moved, uint64_t cell)
{
    PUT_WORD(code, "\xc7\x44\x24\xf0", id);
    PUT_WORD(code, "\xc7\x44\x24\xd8", (uint32_t)moved);
    PUT_WORD(code, "\xc7\x44\x24\xdc", (uint32_t)(moved >> 32));
    PUT_WORD(code, "\xff\x25", (uint32_t)(cell - (code->at + 6)));
}

size_t thunks_make(uint8_t bytes[THUNKS_BYTES], uint64_t at, uint64_t block_at, uint64_t function, uint32_t id)
{
    struct code code = {bytes, at};
    put_handover(&code, id, at + 30, block_at + QUT_CALLS_BLOCK_ENTER_AT);
    put_jump(&code, function + NOPS);
    return (size_t)(code.at - at);
}

void thunks_jump(uint8_t bytes[NOPS], uint64_t at, uint64_t to)
{
    struct code code = {bytes, at};
    put_jump(&code, to);
}

static void exchange(uint8_t *at, const void *bytes)
{
    const uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095;
    mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(at, bytes, NOPS);
    mprotect((void *)page, 8192, PROT_READ | PROT_EXEC);
}

static bool has_nops(const uint8_t *at)
{
    static const uint8_t nops[NOPS] = {0x90, 0x90, 0x90, 0x90, 0x90}, long_nop[] = {0x0f, 0x1f, 0x44};
    return memcmp(at, nops, NOPS) == 0 || memcmp(at, long_nop, sizeof long_nop) == 0;
}

static uint8_t *next_thunk(void)
{
    return next += -(uintptr_t)next & (QUT_CALLS_THUNK_ALIGNMENT - 1);
}

static bool divert(uint8_t *at, const uint8_t *thunk)
{
    uint8_t jump[NOPS];
    if (patch_count == PATCHES_MAX)
        return false;
    patches[patch_count].at = at;
    memcpy(patches[patch_count++].before, at, NOPS);
    thunks_jump(jump, (uintptr_t)at, (uintptr_t)thunk);
    exchange(at, jump);
    return true;
}

static uint8_t *behind_landing_pad(void (*function)(void))
{
    uint8_t *at = (uint8_t *)(uintptr_t)function;
    return memcmp(at, "\xf3\x0f\x1e\xfa", 4) == 0 ? at + 4 : at;
}

bool thunks_trace(void (*function)(void), uint32_t id)
{
    uint8_t *at = behind_landing_pad(function), *thunk = next_thunk();
    if (!has_nops(at))
        return false;
    next += thunks_make(thunk, (uintptr_t)thunk, (uintptr_t)block, (uintptr_t)at, id);
    return divert(at, thunk);
}

bool thunks_trace_moved(void (*function)(void), uint32_t id)
{
    uint8_t *at = behind_landing_pad(function), *thunk = next_thunk();
    struct code code = {thunk, (uintptr_t)thunk};
    put_handover(&code, id, code.at + 30, (uintptr_t)block + QUT_CALLS_BLOCK_ENTER_AT);
    put(&code, at, NOPS);
    put_jump(&code, (uintptr_t)at + NOPS);
    next = code.bytes;
    return divert(at, thunk);
}

bool thunks_count(void (*function)(void), uint32_t cell, bool by_stub)
{
    uint8_t *at = behind_landing_pad(function), *thunk = next_thunk();
    struct code code = {thunk, (uintptr_t)thunk};
    uint64_t moved = code.at + 5 + 30;
    if (!has_nops(at))
        return false;
    put(&code, "\x48\x89\x44\x24\xe8", 5);
    if (!by_stub) {
        PUT_WORD(&code, "\x64\x48\x8b\x04\x25", (uint32_t)header->own_tls_offset);
        put(&code, "\x48\x8b\x40\x20\x48\x85\xc0", 7);
        put(&code, "\x74\x11", 2); // over the next 7 + 5 + 5 bytes
        PUT_WORD(&code, "\x48\xff\x80", cell * 8);
        put(&code, "\x48\x8b\x44\x24\xe8", 5);
        moved = code.at;
        put_jump(&code, (uintptr_t)at + NOPS);
    }
    put_handover(&code, cell, moved, (uintptr_t)block + QUT_CALLS_BLOCK_COUNT_AT);
    if (by_stub)
        put_jump(&code, (uintptr_t)at + NOPS);
    next = code.bytes;
    return divert(at, thunk);
}

void thunks_undo(void)
{
    while (patch_count > 0) {
        patch_count--;
        exchange(patches[patch_count].at, patches[patch_count].before);
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
