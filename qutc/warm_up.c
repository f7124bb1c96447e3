// SPDX-License-Identifier: Apache-2.0
#include <qutc/warm_up.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "qutc/cache.h"
#include "qutc/cache_keeper.h"
#include "qutc/qutc.h"
#include "qutc/warm_up_order.h"

// What compiling takes, as measured: 3 MiB for a small file, 3.3 to 3.8 bytes for each byte of frame sections
// (libLLVM-14, node, gdb), and what was unpacked.
enum { MEMORY_PER_FRAME_BYTE = 4, MEMORY_BASE_BYTES = 4 << 20 };

struct warm_up {
    const struct qutc_warm_up_options *options;
    struct qutc_warm_up_result *result;
    struct base_error *error; // why the run cannot go on
    const char *directory;
    struct qutc_keeper keeper;
    struct input_inputs inputs;
    size_t done;
    bool is_ended;
};

static void tell(struct warm_up *w, struct qutc_warm_up_step *step)
{
    w->result->outcomes[step->outcome]++;
    step->done = ++w->done;
    step->total = (size_t)w->result->files;
    if (w->options->step && w->options->step(w->options->step_context, step) != 0)
        w->is_ended = true;
}

static void tell_failure(struct warm_up *w, const char *name, const struct base_error *error)
{
    char reason[256];
    w->result->files++;
    struct qutc_warm_up_step step = {
        .name = name, .outcome = QUTC_WARM_UP_FAILED, .reason = base_error_text(error, reason, sizeof reason)};
    tell(w, &step);
}

// ---- what there is to do

static int find_inputs(struct warm_up *w, size_t *mapped_count)
{
    const struct qutc_warm_up_options *options = w->options;
    for (size_t i = 0; i < options->pid_count && !w->is_ended; i++) {
        struct base_error error = {0};
        char name[32];
        snprintf(name, sizeof name, "process %d", options->pids[i]);
        if (input_inputs_add_process(&w->inputs, options->pids[i], &error) != 0)
            tell_failure(w, name, &error);
    }
    *mapped_count = w->inputs.count;
    for (size_t i = 0; i < options->path_count && !w->is_ended; i++) {
        struct base_error error = {0};
        if (input_inputs_add_path(&w->inputs, options->paths[i], &error) != 0)
            tell_failure(w, options->paths[i], &error);
    }
    struct base_error error = {0};
    if (options->system && !w->is_ended && input_inputs_add_system(&w->inputs, &error) != 0)
        tell_failure(w, "system", &error);
    w->result->files += w->inputs.count;
    w->result->unreadable = w->inputs.skipped_unreadable;
    return w->inputs.count || w->is_ended ? 0 : base_fail(w->error, BASE_ERR_NOT_ELF, "", 0, "no ELF files to compile");
}

// ---- one file

static uint64_t expected_memory(const struct input_image *image)
{
    uint64_t frames = 0;
    for (unsigned i = 0; i < image->frame_count; i++)
        frames += image->frame[i].bytes.size;
    return MEMORY_BASE_BYTES + frames * MEMORY_PER_FRAME_BYTE + image->unpacked_bytes;
}

static struct input_image_options image_options(const struct warm_up *w)
{
    return (struct input_image_options){
        .debug_root = w->options->debug_root, .unpack_max_bytes = w->options->memory_bytes, .read_files = true};
}

static int need(struct warm_up *w, const char *path)
{
    return qutc_keeper_need(&w->keeper, qutc_cache_name(w->directory, path), w->error);
}

// What the cache has is found out by the identity alone: nothing is unpacked for it.
static int find_in_cache(struct warm_up *w, const struct input *input, char **path, bool *is_there,
                         struct base_error *error)
{
    struct input_image_options options = image_options(w);
    options.identity_only = true;
    struct input_image *image;
    *path = NULL;
    *is_there = false;
    if (input_open(input, &options, &image, error) != 0)
        return -1;
    int result = qutc_cache_path(w->directory, image, qutc_cache_proof_by_user(), path, error);
    if (result == 0 && w->options->trust_cache)
        *is_there = access(*path, R_OK) == 0;
    else if (result == 0)
        result = qutc_cache_holds(*path, image, w->options->small, is_there, error);
    input_image_close(image);
    return result;
}

// 0; 1: there is no room left for it; -1: nothing can be written. Then w->error says why.
static int publish(struct warm_up *w, const char *path, const uint8_t *table, size_t size,
                   struct qutc_warm_up_step *step)
{
    uint64_t budget = w->options->budget_bytes;
    if (budget && !qutc_keeper_make_room(&w->keeper, size, budget)) {
        base_fail(w->error, BASE_ERR_LIMIT, "", 0, "%ju bytes of tables are needed already",
                  (uintmax_t)w->keeper.bytes);
        return 1; // what would come now is needed less
    }
    if (qutc_cache_make_room(path, w->error) != 0 || qutc_publish(path, table, size, false, w->error) != 0 ||
        need(w, path) != 0)
        return -1;
    step->outcome = QUTC_WARM_UP_COMPILED;
    step->table_bytes = size;
    w->result->compiled_bytes += size;
    return 0;
}

static int compile(struct warm_up *w, const struct input_image *image, const char *path, struct qutc_warm_up_step *step,
                   struct base_error *error)
{
    uint64_t memory = expected_memory(image), bound = w->options->memory_bytes;
    step->outcome = QUTC_WARM_UP_FAILED;
    if (bound && memory > bound) {
        step->outcome = QUTC_WARM_UP_TOO_LARGE;
        base_fail(error, BASE_ERR_LIMIT, "", 0, "takes about %ju MiB", (uintmax_t)(memory >> 20));
        return 0;
    }
    const struct qutc_compile_options options = {.small = w->options->small, .fill = CODE_FILL_BOUNDED};
    uint8_t *table;
    size_t size;
    if (qutc_compile(image, &options, &table, &size, NULL, error) != 0)
        return 0;
    int result = 0;
    if (input_image_is_whole(image))
        result = publish(w, path, table, size, step);
    else
        base_fail(error, BASE_ERR_IO, "", 0, "the file is cut off, or changed while it was read");
    free(table);
    return result;
}

static int compile_input(struct warm_up *w, const struct input *input, const char *path, struct qutc_warm_up_step *step,
                         struct base_error *error)
{
    struct input_image_options options = image_options(w);
    struct input_image *image;
    step->outcome = QUTC_WARM_UP_FAILED;
    if (input_open(input, &options, &image, error) != 0)
        return 0;
    int result = compile(w, image, path, step, error);
    input_image_close(image);
    return result;
}

// 0; 1: it was not done, and the run is at its end; -1: nor can the run go on.
static int do_one(struct warm_up *w, const struct input *input)
{
    struct base_error error = {0};
    struct qutc_warm_up_step step = {.name = input->name, .outcome = QUTC_WARM_UP_FAILED, .reason = ""};
    uint64_t start_ns = base_clock_now_ns();
    char *path;
    bool is_there;
    int result = 0;
    qutc_keeper_works_on(&w->keeper, input->name);
    if (find_in_cache(w, input, &path, &is_there, &error) == 0) {
        if (is_there) {
            step.outcome = QUTC_WARM_UP_KEPT;
            result = need(w, path);
        } else {
            result = compile_input(w, input, path, &step, &error);
        }
    }
    free(path);
    if (result != 0)
        return result;
    qutc_keeper_did(&w->keeper, input->name);
    char reason[256];
    if (step.outcome == QUTC_WARM_UP_FAILED && error.reason == BASE_ERR_NO_UNWIND)
        step.outcome = QUTC_WARM_UP_NO_UNWIND;
    if (error.reason != BASE_OK)
        step.reason = base_error_text(&error, reason, sizeof reason);
    step.time_ns = base_clock_now_ns() - start_ns;
    tell(w, &step);
    return 0;
}

// ---- all of them

// The processor's, not the clock's: what the disk took was no burden.
static void pause_after(const struct warm_up *w, uint64_t cpu_time_ns)
{
    uint64_t share = w->options->cpu_share_percent;
    if (share == 0 || share >= 100)
        return;
    uint64_t pause_ns = cpu_time_ns * (100 - share) / share;
    struct timespec pause = {(time_t)(pause_ns / 1000000000u), (long)(pause_ns % 1000000000u)};
    nanosleep(&pause, NULL);
}

static int do_all(struct warm_up *w, const size_t *order)
{
    int result = 0;
    size_t next = 0;
    while (next < w->inputs.count && result == 0 && !w->is_ended) {
        uint64_t cpu_ns = base_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        result = do_one(w, &w->inputs.items[order[next]]);
        next += result == 0;
        if (next < w->inputs.count && result == 0 && !w->is_ended)
            pause_after(w, base_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
    }
    w->result->left = w->inputs.count - next;
    if (result >= 0)
        qutc_keeper_works_on(&w->keeper, NULL);
    return result < 0 ? -1 : 0;
}

static int run(struct warm_up *w)
{
    size_t mapped_count = 0;
    if (find_inputs(w, &mapped_count) != 0)
        return -1;
    size_t *order = qutc_warm_up_order(&w->inputs, mapped_count, &w->keeper);
    int result = order ? do_all(w, order) : base_fail(w->error, BASE_ERR_NO_MEMORY, "", 0, "list of inputs");
    free(order);
    return result;
}

// After the work: what was needed now is not old.
static void drop_stale(struct warm_up *w)
{
    const struct qutc_warm_up_options *options = w->options;
    uint64_t age_ns = options->max_age_seconds < INT64_MAX / 1000000000 ? options->max_age_seconds * 1000000000u : 0;
    // A run that has not looked at all files does not know what is needed.
    if (age_ns && w->result->left == 0)
        qutc_keeper_drop_older(&w->keeper, (int64_t)base_clock_ns(CLOCK_REALTIME) - (int64_t)age_ns);
    if (options->budget_bytes)
        qutc_keeper_make_room(&w->keeper, 0, options->budget_bytes);
    w->result->cache_bytes = w->keeper.bytes;
    w->result->dropped = w->keeper.dropped;
    w->result->dropped_bytes = w->keeper.dropped_bytes;
}

static enum qutc_warm_up_status status_of(const struct warm_up *w, int result)
{
    const uint64_t *outcomes = w->result->outcomes;
    if (result != 0)
        return QUTC_WARM_UP_STUCK;
    bool whole = outcomes[QUTC_WARM_UP_FAILED] + outcomes[QUTC_WARM_UP_TOO_LARGE] + w->result->left == 0 &&
                 w->result->unreadable == 0;
    return whole && !w->is_ended ? QUTC_WARM_UP_WHOLE : QUTC_WARM_UP_PARTIAL;
}

static enum qutc_warm_up_status warm_up(struct warm_up *w)
{
    bool is_busy;
    if (qutc_keeper_open(&w->keeper, w->directory, &is_busy, w->error) != 0)
        return is_busy ? QUTC_WARM_UP_BUSY : QUTC_WARM_UP_STUCK;
    input_inputs_init(&w->inputs);
    int result = run(w);
    if (result == 0)
        drop_stale(w);
    enum qutc_warm_up_status status = status_of(w, result);
    input_inputs_free(&w->inputs);
    qutc_keeper_close(&w->keeper);
    return status;
}

enum qutc_warm_up_status qutc_warm_up(const struct qutc_warm_up_options *options, struct qutc_warm_up_result *result,
                                      char *reason, size_t reason_size)
{
    struct qutc_warm_up_options known = {0}; // older callers know fewer
    memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
    *result = (struct qutc_warm_up_result){0};
    struct base_error error = {0};
    struct warm_up w = {.options = &known, .result = result, .error = &error, .directory = known.cache_directory};
    char *own_directory = NULL;
    uint64_t start_ns = base_clock_now_ns(), start_cpu_ns = base_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    enum qutc_warm_up_status status = QUTC_WARM_UP_STUCK;
    if (w.directory || qutc_cache_directory(&own_directory, &error) == 0) {
        w.directory = w.directory ? w.directory : own_directory;
        status = warm_up(&w);
    }
    free(own_directory);
    result->time_ns = base_clock_now_ns() - start_ns;
    result->cpu_time_ns = base_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu_ns;
    if (reason_size)
        *reason = '\0';
    if (reason_size && error.reason != BASE_OK)
        base_error_text(&error, reason, (unsigned)reason_size);
    return status;
}
