// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/calls/calls.h"
#include "agent/own/inside.h"
#include "agent/probe_stacks.h"
#include "formats/qut_calls.h"
#include "libqut/host/host.h"

enum { SLOT_BYTES_ALL = 1 << 20 };

struct own_probes own_probes;
const struct qut_calls_header *own_header;

static struct own_place *places; // of the functions that lead to stubs
static size_t place_count;
static uint32_t next_id = 1; // none is used again: a thread may still be in a thunk
static uint64_t enter_stub;

// ---- what is asked for

static bool may_run(const struct qut_probe_image *image, uint32_t programs)
{
    for (uint32_t left = programs; left; left &= left - 1) {
        const uint32_t number = (uint32_t)__builtin_ctz(left);
        if (number >= image->header->program_count)
            return false;
        const enum qut_probe_kind kind = (enum qut_probe_kind)image->programs[number].kind;
        if (!qut_probe_is_inside(kind) || kind == QUT_PROBE_PLACE)
            return false;
    }
    return programs != 0;
}

static int check(const struct qut_own_options *options)
{
    if (!own_machine.place)
        return -ENOSYS;
    if (options->size < sizeof *options || options->function_count == 0 || !options->functions ||
        options->function_count > QUT_CALLS_ID_MAX - next_id ||
        !calls_probe_is_sound(options->image, options->image_bytes))
        return -EINVAL;
    if (places)
        return -EALREADY;
    const struct qut_probe_image image = qut_probe_parts(options->image);
    for (size_t i = 0; i < options->function_count; i++)
        if (!may_run(&image, options->functions[i].programs))
            return -EINVAL;
    return 0;
}

static int find_places(const struct qut_own_options *options, struct own_place *found)
{
    for (size_t i = 0; i < options->function_count; i++) {
        found[i].at = own_machine.place((uint64_t)(uintptr_t)options->functions[i].function);
        if (found[i].at == 0)
            return -ENOTSUP;
    }
    return 0;
}

// ---- memory

static void in_child(void)
{
    own_header = NULL;
    calls_after_fork();
}

// Stubs and shadows stay from the first time on: a thread may be in one at any time.
static int begin_calls(void)
{
    static bool follows_forks;
    const struct calls_options options = {.ring_bytes = QUT_CALLS_RING_BYTES_MIN, .ring_count = 1};
    uint64_t bytes;
    if (own_header)
        return 0;
    const int fd = calls_begin(&options, &bytes);
    if (fd < 0)
        return fd;
    const struct qut_calls_header *mapped = mmap(NULL, sizeof *mapped, PROT_READ, MAP_SHARED, fd, 0);
    const int error = mapped == MAP_FAILED ? os_failed(SYS_mmap) : 0;
    close(fd);
    if (error != 0)
        return error;
    enter_stub = mapped->enter_stub;
    own_header = mapped;
    if (!follows_forks)
        follows_forks = pthread_atfork(NULL, NULL, in_child) == 0;
    return follows_forks ? 0 : -ENOMEM;
}

static int fill_memory(int fd, struct own_probes *probes, const struct qut_own_options *options)
{
    const uint64_t bytes = probes->laid_out.total_bytes, all = bytes + (uint64_t)QUT_PROBE_LIVE_PROCESS_BYTES;
    if (ftruncate(fd, (off_t)all) != 0)
        return os_failed(SYS_ftruncate);
    uint8_t *memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return os_failed(SYS_mmap);
    memcpy(memory, &probes->laid_out, sizeof probes->laid_out);
    memcpy(memory + probes->laid_out.image_offset_bytes, options->image, options->image_bytes);
    probes->live = (struct qut_probe_live *)(void *)memory;
    probes->image = qut_probe_parts(memory + probes->laid_out.image_offset_bytes);
    bytecode_maps_lay_out(&probes->maps, &probes->image);
    probes->maps.memory = (uint64_t *)(void *)(memory + probes->laid_out.maps_offset_bytes);
    probes->slots = (const uint64_t *)(const void *)(memory + probes->laid_out.slots_offset_bytes);
    probes->masks = (uint32_t *)(void *)(memory + bytes);
    for (size_t i = 0; i < options->function_count; i++)
        probes->masks[next_id + i] = options->functions[i].programs;
    const int error = calls_probe_begin(fd, bytes, all);
    if (error != 0)
        munmap(memory, all);
    return error;
}

static int make_memory(struct own_probes *probes, const struct qut_own_options *options)
{
    const struct qut_probe_image image = qut_probe_parts(options->image);
    struct bytecode_maps maps;
    bytecode_maps_lay_out(&maps, &image);
    *probes = (struct own_probes){.live = NULL};
    qut_probe_live_lay_out(&probes->laid_out, &image, maps.words, SLOT_BYTES_ALL);
    probes->laid_out.rate = own_machine.rate();
    probes->laid_out.base_ticks = own_machine.ticks();
    probes->laid_out.base_ns = os_now_ns();
    const int fd = memfd_create("qut-probe", MFD_CLOEXEC);
    if (fd < 0)
        return os_failed(SYS_memfd_create);
    const int error = fill_memory(fd, probes, options);
    close(fd);
    return error;
}

// ---- begin and end

static void forget_last(void)
{
    if (own_probes.live)
        munmap(own_probes.live, own_probes.laid_out.total_bytes + (uint64_t)QUT_PROBE_LIVE_PROCESS_BYTES);
    own_probes.live = NULL;
}

static int begin(const struct qut_own_options *options, struct own_place *found)
{
    struct own_probes probes;
    const uint32_t count = (uint32_t)options->function_count;
    int error = find_places(options, found);
    error = error ? error : begin_calls();
    error = error ? error : own_make_thunks(found, count, next_id, enter_stub);
    if (error != 0)
        return error;
    agent_probe_stacks_begin();
    error = make_memory(&probes, options);
    if (error != 0)
        return error;
    next_id += count;
    forget_last();
    own_probes = probes;
    error = own_lead(found, count);
    if (error != 0)
        calls_probe_leave();
    return error;
}

int qut_own_probes_begin(const struct qut_own_options *options)
{
    int error = check(options);
    if (error != 0)
        return error;
    struct own_place *found = calloc(options->function_count, sizeof *found);
    if (!found)
        return -ENOMEM;
    error = begin(options, found);
    if (error != 0) {
        free(found);
        return error;
    }
    places = found;
    place_count = options->function_count;
    return 0;
}

int qut_own_probes_end(void)
{
    if (!places)
        return -EALREADY;
    calls_probe_leave();
    const int error = own_lead_back(places, place_count);
    if (error != 0)
        return error;
    free(places);
    places = NULL;
    return 0;
}

void qut_own_probes_look(void)
{
    if (places)
        calls_probe_look_for_ended();
}
