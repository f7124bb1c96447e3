// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/probe/probe_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock_inline.h"
#include "tracer/top/growing.h"

static const uint64_t look_every_ns = 500000000;
enum { REST_TIMES = 20 }; // as long as it took: names of large programs are read for seconds

struct probe_stack {
    uint64_t number;
    uint32_t node;
};

bool cli_probe_takes_stacks(const struct probe_script *script)
{
    const struct qut_probe_image image = qut_probe_parts(script->image);
    for (uint32_t i = 0; i < image.header->instruction_count; i++)
        if (image.instructions[i].opcode == QUT_PROBE_OP_CALL && image.instructions[i].immediate == QUT_PROBE_STACK)
            return true;
    return false;
}

// ---- frames

static void forget_frames(struct probe_stacks_known *known)
{
    for (size_t i = 0; i < known->frames.count; i++)
        free((char *)(uintptr_t)known->frames.items[i]);
    known->frames.count = 0;
}

// A name is the file's: characters that a terminal would obey are shown as such.
static char *frame_text(const struct name *name)
{
    const bool has_module = name->is_known && name->module[0];
    const size_t bytes = strlen(name->function) + strlen(name->module) + 4;
    char *text = malloc(bytes);
    if (!text)
        return NULL;
    snprintf(text, bytes, has_module ? "%s (%s)" : "%s", name->function, name->module);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    return text;
}

static bool add_frame(struct probe_stacks_known *known, const struct name *name)
{
    char *text = frame_text(name);
    const char **place = text ? BASE_ADD(&known->frames) : NULL;
    if (place)
        *place = text;
    else
        free(text);
    return place != NULL;
}

static int by_number(const void *a, const void *b)
{
    const struct probe_stack *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static size_t find(struct probe_stacks *stacks, uint64_t number, const char *const **frames)
{
    struct probe_stacks_known *known = (struct probe_stacks_known *)(void *)stacks;
    const struct probe_stack wanted = {.number = number};
    const struct probe_stack *stack =
        known->all.count ? bsearch(&wanted, known->all.items, known->all.count, sizeof wanted, by_number) : NULL;
    forget_frames(known);
    for (uint32_t node = stack ? stack->node : 0; node != 0; node = known->trace.nodes[node].parent)
        for (size_t i = 0; i < names_count(known->names, node); i++)
            if (!add_frame(known, names_at(known->names, node, i)))
                return 0;
    *frames = known->frames.items;
    return known->frames.count;
}

// ---- the recording

static int take_all(struct probe_stacks_known *known)
{
    for (size_t i = 0; i < known->trace.sample_count; i++) {
        const struct trace_sample *sample = &known->trace.samples[i];
        uint64_t number;
        if (!trace_extra(&known->trace, sample, QUT_PROBE_STACK_EXTRA, &number))
            continue;
        struct probe_stack *stack = BASE_ADD(&known->all);
        if (!stack)
            return -1;
        *stack = (struct probe_stack){number, sample->node};
    }
    if (known->all.count)
        qsort(known->all.items, known->all.count, sizeof *known->all.items, by_number);
    return 0;
}

typedef int read_trace(const char *path, struct trace *trace, struct base_error *error);

static int read_with(read_trace *read, struct probe_stacks_known *known, const char *path, struct base_error *error)
{
    static const struct names_options options = {.inlined = true};
    *known = (struct probe_stacks_known){.stacks = {find}};
    if (read(path, &known->trace, error) != 0)
        return -1;
    known->is_read = true;
    known->names = names_of(&known->trace, &options, error);
    if (!known->names)
        return -1;
    return take_all(known) == 0 ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for stacks");
}

int cli_probe_stacks_read(struct probe_stacks_known *known, const char *path, struct base_error *error)
{
    return read_with(trace_read, known, path, error);
}

void cli_probe_stacks_free(struct probe_stacks_known *known)
{
    forget_frames(known);
    base_vector_free(&known->frames.vector);
    base_vector_free(&known->all.vector);
    if (known->names)
        names_free(known->names);
    if (known->is_read)
        trace_free(&known->trace);
    *known = (struct probe_stacks_known){.names = NULL};
}

// ---- while it is going on

// What is there cannot always be read: then that is known which was before.
static void look(struct probe_stacks_live *live)
{
    struct probe_stacks_known now;
    struct base_error unused = {0};
    const uint64_t begin_ns = base_clock_now_ns();
    if (read_with(top_growing_read, &now, live->path, &unused) == 0) {
        cli_probe_stacks_free(&live->known);
        live->known = now;
    } else {
        cli_probe_stacks_free(&now);
    }
    const uint64_t end_ns = base_clock_now_ns(), rest_ns = (end_ns - begin_ns) * REST_TIMES;
    live->next_ns = end_ns + (rest_ns > look_every_ns ? rest_ns : look_every_ns);
}

static size_t find_known(struct probe_stacks_live *live, uint64_t number, const char *const **frames)
{
    return live->known.is_read ? find(&live->known.stacks, number, frames) : 0;
}

static size_t find_live(struct probe_stacks *stacks, uint64_t number, const char *const **frames)
{
    struct probe_stacks_live *live = (struct probe_stacks_live *)(void *)stacks;
    const size_t count = find_known(live, number, frames);
    if (count || base_clock_now_ns() < live->next_ns)
        return count;
    pthread_mutex_lock(&live->lock);
    if (!live->is_stopped)
        look(live);
    pthread_mutex_unlock(&live->lock);
    return find_known(live, number, frames);
}

void cli_probe_stacks_live_begin(struct probe_stacks_live *live, const char *path)
{
    *live = (struct probe_stacks_live){.stacks = {find_live}, .path = path, .lock = PTHREAD_MUTEX_INITIALIZER};
}

void cli_probe_stacks_live_stop(struct probe_stacks_live *live)
{
    pthread_mutex_lock(&live->lock);
    live->is_stopped = true;
    pthread_mutex_unlock(&live->lock);
}

void cli_probe_stacks_live_end(struct probe_stacks_live *live)
{
    cli_probe_stacks_free(&live->known);
    pthread_mutex_destroy(&live->lock);
}
