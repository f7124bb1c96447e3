// SPDX-License-Identifier: Apache-2.0
#include "agent/traced_calls.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/calls/calls.h"
#include "agent/hide.h"
#include "agent/inside.h"
#include "agent/start.h"
#include "agent/tell.h"
#include "agent/thread_start.h"
#include "libqut/host/host.h"

enum {
    CONNECT_PATIENCE_S = 5,
    LOOK_MS = 50, // threads that are gone, and whether this one shall go
    START_PATIENCE_MS = 60000,
    ASK_MS = 500, // whether the tool is there, without a connection
    RINGS = 1024,
    CELLS = 1 << 16,
    PAGE_BYTES = 4096,
};
static const uint64_t reach_bytes = (UINT64_C(2) << 30) - (64 << 10); // of a jump, and some
static const uint64_t apart_bytes = 16 << 20; // what the program's break has for itself above a file

static struct os_thread *thread;
static enum agent_channel_begin begun_how;
static uint32_t tid_before;
static _Atomic uint32_t thread_tid, is_over;
enum { COMES_UP, IS_MADE, IS_TOLD, IS_LET_GO };
static _Atomic uint32_t stage;

// ---- room for thunks

struct room {
    uint64_t low, high; // what can be reached from everywhere
    uint64_t size, above, below, begin, end;
    uint64_t last; // end of the mapping before
};

// The one next below the code, else the one next above it, at some distance: the break grows there.
static int look_between(void *context, const struct os_map_line *line)
{
    struct room *room = context;
    uint64_t from = room->last < room->low ? room->low : room->last;
    uint64_t to = line->start < room->high ? line->start : room->high;
    room->last = line->end;
    if (to > from && to - from >= room->size + 2 * PAGE_BYTES && to <= room->begin)
        room->below = to - room->size - PAGE_BYTES;
    if (from >= room->end && !room->above && to > from && to - from >= room->size + 2 * apart_bytes)
        room->above = from + apart_bytes;
    return 0;
}

static int map_at(uint64_t at, uint64_t size)
{
    void *wanted = (void *)(uintptr_t)at;
    void *got =
        mmap(wanted, (size_t)size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED)
        return -errno;
    if (got == wanted)
        return 0;
    munmap(got, (size_t)size);
    return -EEXIST;
}

static struct blocks {
    struct block {
        uint64_t begin, end;
    } * items;
    size_t count, room;
} blocks;

static bool has_room_for_block(void)
{
    if (blocks.count < blocks.room)
        return true;
    const size_t room = blocks.room ? 2 * blocks.room : 64;
    struct block *items = realloc(blocks.items, room * sizeof *items);
    if (!items)
        return false;
    blocks.items = items;
    blocks.room = room;
    return true;
}

static int map_near(const struct agent_channel_map *question, uint64_t *address)
{
    enum { LOWEST = 1 << 20 };
    struct room room = {.begin = question->begin, .end = question->end, .size = question->size_bytes};
    if (room.begin >= room.end || room.end - room.begin >= reach_bytes || room.size == 0 ||
        room.size % PAGE_BYTES != 0 || room.size >= reach_bytes || room.end >> 47 != 0)
        return -EINVAL;
    if (!has_room_for_block())
        return -ENOMEM;
    room.low = room.end > reach_bytes + LOWEST ? room.end - reach_bytes : LOWEST;
    room.high = room.begin + reach_bytes;
    int error = os_each_mapping(look_between, &room);
    const uint64_t places[] = {room.below, room.above};
    if (error == 0)
        error = -ENOMEM;
    for (unsigned i = 0; i < 2 && error != 0; i++) {
        if (places[i] == 0)
            continue;
        error = map_at(places[i], room.size);
        *address = error == 0 ? places[i] : 0;
    }
    if (error == 0)
        blocks.items[blocks.count++] = (struct block){*address, *address + room.size};
    return error;
}

static int unmap_block(size_t index)
{
    const struct block block = blocks.items[index];
    if (munmap((void *)(uintptr_t)block.begin, (size_t)(block.end - block.begin)) != 0)
        return -errno;
    blocks.items[index] = blocks.items[--blocks.count];
    return 0;
}

static int unmap(const struct agent_channel_map *question)
{
    for (size_t i = 0; i < blocks.count; i++)
        if (blocks.items[i].begin == question->begin && blocks.items[i].end == question->end)
            return unmap_block(i);
    return -EINVAL;
}

static int take_traps(const struct agent_channel_map *question)
{
    if (!agent_hide_takes_traps())
        return -ENOTSUP;
    for (size_t i = 0; i < blocks.count; i++)
        if (blocks.items[i].begin <= question->begin && question->end <= blocks.items[i].end)
            return calls_traps_add(question->begin, question->end);
    return -EINVAL;
}

// ---- the connection

static int tell(int error, int memory_fd, uint64_t memory_bytes)
{
    struct agent_channel_calls calls = {.pid = (uint32_t)getpid(),
                                        .begin = begun_how,
                                        .error = error,
                                        .failed_call = agent_tell_failed_call(error),
                                        .memory_bytes = memory_bytes};
    agent_tell_fill_head(&calls.head, AGENT_CHANNEL_CALLS);
    int fd = agent_tell_connect(CONNECT_PATIENCE_S);
    if (fd < 0)
        return fd;
    int result = agent_tell_send(fd, &calls, sizeof calls, memory_fd);
    if (result == 0)
        return fd;
    close(fd);
    return result;
}

static int do_as_asked(int fd, const struct agent_channel_map *question, int passed_fd)
{
    struct agent_channel_mapped mapped = {.number = question->number, .error = -EINVAL};
    agent_tell_fill_head(&mapped.head, AGENT_CHANNEL_MAPPED);
    if (memcmp(question->head.token, mapped.head.token, sizeof mapped.head.token) != 0)
        return -EPROTO;
    if (question->head.type == AGENT_CHANNEL_MAP)
        mapped.error = map_near(question, &mapped.address);
    else if (question->head.type == AGENT_CHANNEL_UNMAP)
        mapped.error = unmap(question);
    else if (question->head.type == AGENT_CHANNEL_TRAPS)
        mapped.error = take_traps(question);
    else if (question->head.type == AGENT_CHANNEL_PROBE && passed_fd >= 0)
        mapped.error = calls_probe_begin(passed_fd, question->begin, question->end);
    else if (question->head.type == AGENT_CHANNEL_SHADOW)
        mapped.error = calls_shadow(question->begin, question->end);
    return agent_tell_send(fd, &mapped, sizeof mapped, -1);
}

static void reach(uint32_t now)
{
    atomic_store_explicit(&stage, now, memory_order_release);
    os_wake(&stage);
}

// 0: go on.
static int take_packet(int fd)
{
    union {
        uint32_t version;
        struct agent_channel_head head;
        struct agent_channel_map map;
        struct agent_channel_answer answer;
    } packet;
    int passed_fd;
    const ssize_t got = agent_tell_receive(fd, &packet, sizeof packet, MSG_DONTWAIT, &passed_fd);
    if (got < 0)
        return got == -EAGAIN || got == -EINTR ? 0 : (int)got;
    if (got == 0)
        return -ECONNRESET;
    int result = -EPROTO;
    if (packet.version == AGENT_VERSION && got == sizeof packet.map)
        result = do_as_asked(fd, &packet.map, passed_fd);
    if (passed_fd >= 0)
        close(passed_fd);
    if (got == sizeof packet.map || packet.version != AGENT_VERSION)
        return result;
    if (got != sizeof packet.answer)
        return -EPROTO;
    reach(IS_LET_GO);
    return 0;
}

static void serve(int fd)
{
    int result = 0;
    while (result == 0 && !atomic_load_explicit(&is_over, memory_order_acquire)) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, LOOK_MS) > 0)
            result = take_packet(fd);
        else
            calls_look_for_ended();
        calls_probe_look_for_ended();
        calls_probe_look();
    }
}

// A tool that is killed cannot say so. One that goes on closes the connection, too, where it was not answered in time:
// then it is asked whether it is there. Filters for system calls may kill a process that asks.
static bool is_tool_gone(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0 ? agent_recorder_is_gone() : !agent_tell_is_heard();
}

static void look_for_end_of_tool(void)
{
    while (calls_probe_is_on() && !atomic_load_explicit(&is_over, memory_order_acquire)) {
        if (is_tool_gone())
            calls_probe_leave();
        else
            os_wait(&is_over, 0, ASK_MS);
    }
}

// Its descriptors are its own, and close with it.
static void run(void *unused)
{
    (void)unused;
    agent_thread.is_agents = 1;
    calls_thread_is_agents();
    atomic_store_explicit(&thread_tid, agent_tid(), memory_order_relaxed);
    agent_threads_set_own_tid(tid_before);
    const struct calls_options options = {
        .ring_bytes = agent_settings.call_ring_bytes, .ring_count = RINGS, .cell_count = CELLS};
    uint64_t memory_bytes = 0;
    int memory_fd = calls_begin(&options, &memory_bytes);
    reach(IS_MADE);
    int fd = tell(memory_fd < 0 ? memory_fd : 0, memory_fd < 0 ? -1 : memory_fd, memory_bytes);
    reach(IS_TOLD);
    if (memory_fd >= 0)
        close(memory_fd);
    if (fd >= 0 && memory_fd >= 0)
        serve(fd);
    if (fd >= 0)
        close(fd);
    reach(IS_LET_GO);
    look_for_end_of_tool();
}

// ---- beginning and end

void agent_traced_calls_begin(enum agent_channel_begin how)
{
    if (agent_settings.call_ring_bytes == 0 || thread)
        return;
    begun_how = how;
    tid_before = agent_threads_own_tid();
    atomic_store_explicit(&is_over, 0, memory_order_relaxed);
    atomic_store_explicit(&stage, COMES_UP, memory_order_relaxed);
    const int error = os_thread_start(&thread, run, NULL);
    if (error != 0) {
        thread = NULL;
        const int fd = tell(error, -1, 0);
        if (fd >= 0)
            close(fd);
        return;
    }
    const uint64_t until_ns = os_now_ns() + START_PATIENCE_MS * UINT64_C(1000000);
    // A child of fork has its calls traced from its first one on, since the code is its parent's. It may end at once:
    // then the tracer has its memory.
    const uint32_t awaited = how == AGENT_BEGAN_BY_EXEC ? IS_LET_GO : how == AGENT_BEGAN_BY_FORK ? IS_TOLD : IS_MADE;
    uint32_t now;
    while ((now = atomic_load_explicit(&stage, memory_order_acquire)) < awaited && os_now_ns() < until_ns)
        os_wait(&stage, now, LOOK_MS);
}

uint32_t agent_traced_calls_leave(void)
{
    if (!thread)
        return 0;
    atomic_store_explicit(&is_over, 1, memory_order_release);
    os_wake(&is_over);
    os_thread_join(thread);
    thread = NULL;
    return atomic_exchange_explicit(&thread_tid, 0, memory_order_relaxed);
}

void agent_traced_calls_after_fork(void)
{
    if (thread)
        os_thread_forget(thread);
    thread = NULL;
    calls_after_fork();
}

bool agent_traced_calls_end(void)
{
    agent_traced_calls_leave();
    if (calls_end() != 0)
        return false;
    while (blocks.count > 0 && unmap_block(blocks.count - 1) == 0)
        continue;
    free(blocks.items);
    blocks = (struct blocks){.items = NULL};
    return true;
}
