// SPDX-License-Identifier: Apache-2.0
#include "tracer/probing/probing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tracer/probing/inside.h"
#include "tracer/traced/clock.h"

enum { SLOT_BYTES_ALL = 4 << 20, LOOK_NS = 5000000 };

// ---- memory

static void lay_out(struct probing *probing)
{
    const struct probe_script *script = probing->options.script;
    struct qut_probe_live *live = &probing->laid_out;
    qut_probe_live_lay_out(live, &probing->image, probing->maps.words, SLOT_BYTES_ALL);
    const uint64_t second_ns = 1000000000;
    live->rate = (uint64_t)(4294967296.0 * (double)second_ns / (double)traced_ticks_of(second_ns));
    live->base_ticks = traced_ticks();
    live->base_ns = base_clock_now_ns();
    live->budget_permille = probing->options.budget_permille;
    live->flags = (probing->options.interprets ? (uint32_t)QUT_PROBE_LIVE_INTERPRETS : 0) |
                  (probing->options.tells_calls ? (uint32_t)QUT_PROBE_LIVE_TELLS_CALLS : 0);
    for (size_t i = 0; i < script->places.count; i++)
        if (script->places.items[i].caller)
            live->called_programs |= UINT32_C(1) << script->places.items[i].program;
}

// It may not become smaller: that would end whoever reads it.
static int make_memory(struct probing *probing, struct base_error *error)
{
    lay_out(probing);
    const uint64_t bytes = probing->laid_out.total_bytes;
    const int fd = memfd_create("qut-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "memfd_create: %s", strerror(errno));
    probing->memory.memory_fd = fd;
    probing->memory.end_bytes = bytes;
    if (ftruncate(fd, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "no memory for %llu bytes of maps and records: %s",
                         (unsigned long long)bytes, strerror(errno));
    char *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return base_fail(error, BASE_ERR_IO, "", 0, "mmap: %s", strerror(errno));
    probing->live = (struct qut_probe_live *)(void *)memory;
    *probing->live = probing->laid_out;
    memcpy(memory + probing->laid_out.image_offset_bytes, probing->options.script->image,
           probing->laid_out.image_bytes);
    probing->memory.live = probing->live;
    probing->maps.memory = (uint64_t *)(void *)(memory + probing->laid_out.maps_offset_bytes);
    probing->slots = (uint64_t *)(void *)(memory + probing->laid_out.slots_offset_bytes);
    return 0;
}

static void forget(struct probing *probing)
{
    if (probing->live)
        munmap(probing->live, (size_t)probing->laid_out.total_bytes);
    if (probing->memory.memory_fd >= 0)
        close(probing->memory.memory_fd);
    pthread_mutex_destroy(&probing->memory.lock);
    probing_track_free(&probing->track, probing->options.script);
    base_vector_free(&probing->noted.vector);
    free(probing->due_ns);
    free(probing);
}

// ---- as long as it goes on

static void run_timers(struct probing *probing)
{
    const struct probe_script *script = probing->options.script;
    const uint64_t now_ns = base_clock_now_ns();
    for (size_t i = 0; i < script->places.count; i++) {
        const struct probe_place *place = &script->places.items[i];
        if (place->kind != QUT_PROBE_TIMER || now_ns < probing->due_ns[i])
            continue;
        probing_run(probing, place->program);
        // One that could not be kept up with is left out.
        probing->due_ns[i] += place->period_ns * (1 + (now_ns - probing->due_ns[i]) / place->period_ns);
    }
}

static void look_for_over(struct probing *probing)
{
    const struct qut_probe_live *live = probing->live;
    if (probing->is_over_told || !probing->options.budget_permille ||
        __atomic_load_n(&live->over, __ATOMIC_ACQUIRE) != QUT_PROBE_LIVE_OVER)
        return;
    const double probes_ns = (double)__atomic_load_n(&live->over_probes_ns, __ATOMIC_RELAXED),
                 cpu_ns = (double)__atomic_load_n(&live->over_cpu_ns, __ATOMIC_RELAXED);
    const struct probing_over over = {.pid = (uint32_t)__atomic_load_n(&live->over_pid, __ATOMIC_RELAXED),
                                      .percent = cpu_ns > 0 ? 100 * probes_ns / cpu_ns : 0,
                                      .cpu_s = cpu_ns / 1e9};
    probing->is_over_told = true;
    probing->options.say_over(&over);
}

static void look_at_values(struct probing *probing)
{
    struct track *track = &probing->track;
    const uint64_t every_ns = probing->options.every_ns, now_ns = base_clock_now_ns();
    if (!every_ns || !probing_track_is_open(track))
        return;
    probing_track_early(track);
    if (now_ns < track->due_ns)
        return;
    probing_track_values(track, probing->options.script, &probing->maps, probing->options.live, false);
    track->due_ns =
        track->due_ns ? track->due_ns + every_ns * (1 + (now_ns - track->due_ns) / every_ns) : now_ns + every_ns;
}

static void *run(void *context)
{
    struct probing *probing = context;
    const struct timespec nap = {.tv_nsec = LOOK_NS};
    while (!atomic_load_explicit(&probing->is_over, memory_order_acquire)) {
        probing_drain(probing);
        run_timers(probing);
        look_for_over(probing);
        look_at_values(probing);
        fflush(probing->options.out);
        nanosleep(&nap, NULL);
    }
    return NULL;
}

// Signals are for the recorder; that nobody reads what we write does not end us before all is put back.
static int start_thread(struct probing *probing, struct base_error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int failed = pthread_create(&probing->thread, NULL, run, probing);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? base_fail(error, BASE_ERR_IO, "", 0, "pthread_create: %s", strerror(failed)) : 0;
}

struct probing *probing_begin(const struct probing_options *options, struct base_error *error)
{
    const struct probe_script *script = options->script;
    struct probing *probing = calloc(1, sizeof *probing);
    if (!probing) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
        return NULL;
    }
    probing->options = *options;
    probing->running = options->form == PROBING_PROMETHEUS ? options->said : options->out;
    probing->memory.memory_fd = -1;
    probing->memory.tells_calls = options->tells_calls;
    pthread_mutex_init(&probing->memory.lock, NULL);
    probing_stacks_begin(probing);
    probing->image = qut_probe_parts(script->image);
    bytecode_maps_lay_out(&probing->maps, &probing->image);
    probing->due_ns = calloc(script->places.count + 1, sizeof *probing->due_ns);
    int status =
        probing->due_ns ? make_memory(probing, error) : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    for (size_t i = 0; status == 0 && i < script->places.count; i++)
        probing->due_ns[i] = probing->laid_out.base_ns + script->places.items[i].period_ns;
    if (status == 0) {
        probing_run_all(probing, QUT_PROBE_BEGIN);
        status = start_thread(probing, error);
    }
    if (status == 0)
        return probing;
    forget(probing);
    return NULL;
}

struct traced_probe *probing_memory(struct probing *probing)
{
    return &probing->memory;
}

int probing_collect(struct probing *probing, int file_fd, struct base_error *error)
{
    return probing_track_open(&probing->track, probing->options.script, file_fd, error);
}

static struct probing_track_result end_track(struct probing *probing, struct probe_stacks *stacks)
{
    if (probing_track_is_open(&probing->track))
        probing_track_values(&probing->track, probing->options.script, &probing->maps, stacks, true);
    return probing_track_close(&probing->track, probing->options.script);
}

struct probing_result probing_end(struct probing *probing, struct probe_stacks *stacks)
{
    atomic_store_explicit(&probing->is_over, true, memory_order_release);
    pthread_join(probing->thread, NULL);
    probing_drain(probing);
    look_for_over(probing);
    probing_stacks_tell(probing, stacks);
    probing_run_all(probing, QUT_PROBE_END);
    const struct probing_track_result track = end_track(probing, stacks);
    probing_show_all(probing);
    const struct probing_result result = {
        .track = track,
        .is_whole = fflush(probing->options.out) == 0 && !ferror(probing->options.out) && !probing->has_failed,
        .is_over = probing->is_over_told,
        .interpreted = __atomic_load_n(&probing->live->interpreted, __ATOMIC_RELAXED),
        .interpreted_error = (int)__atomic_load_n(&probing->live->interpreted_error, __ATOMIC_RELAXED),
        .lost_records = __atomic_load_n(&probing->live->lost, __ATOMIC_RELAXED) + probing->skipped,
        .unlisted_calls = __atomic_load_n(&probing->live->unlisted, __ATOMIC_RELAXED),
        .untold_stacks = probing->noted.untold,
        .unknown_stacks = probing->noted.unknown};
    forget(probing);
    return result;
}
