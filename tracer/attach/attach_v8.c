// SPDX-License-Identifier: Apache-2.0
// Functions of JavaScript: taken of the copy of its stack while a thread stands still, since their objects move, and
// put among the frames of the walk of that copy. The thread that collects asks for names by number, so they are kept
// here.
#include <stdlib.h>
#include <string.h>

#include "formats/qut_trace.h"
#include "libqut/os/os.h"
#include "libqut/script/script.h"
#include "tracer/attach/inside.h"

static_assert(V8_NUMBER_BASE >> QUT_TRACE_NUMBER_SHIFT == QUT_TRACE_NUMBER_SCRIPT, "as readers know it");

enum { SEARCH_EACH_NS = 200000000 }; // it may be loaded later

void attach_v8_open(struct attach_session *session)
{
    pthread_mutex_init(&session->v8.lock, NULL);
    session->v8.stack = script_stack_new();
    attach_v8_new_target(session);
}

void attach_v8_new_target(struct attach_session *session)
{
    struct attach_v8 *v8 = &session->v8;
    v8->base = v8->names.count;
    v8->known = 0;
    v8->is_taken = false;
    v8->is_there = v8->stack && script_look(session->target);
    v8->looked_ns = os_now_ns();
}

void attach_v8_close(struct attach_session *session)
{
    struct attach_v8 *v8 = &session->v8;
    for (size_t i = 0; i < v8->names.count; i++)
        free(v8->names.items[i]);
    base_vector_free(&v8->names.vector);
    script_stack_free(v8->stack);
    v8->stack = NULL;
    pthread_mutex_destroy(&v8->lock);
}

void attach_v8_prepare(struct attach_session *session)
{
    struct attach_v8 *v8 = &session->v8;
    v8->is_taken = false;
    if (!v8->stack || v8->is_there || session->now_ns < v8->looked_ns + SEARCH_EACH_NS)
        return;
    v8->is_there = script_look(session->target);
    v8->looked_ns = os_now_ns();
}

void attach_v8_take(struct attach_session *session)
{
    struct attach_v8 *v8 = &session->v8;
    const struct target_window *piece = &session->taken.copy.pieces[0];
    v8->is_taken = v8->is_there;
    if (v8->is_taken)
        script_take_copy(session->target, piece->bytes, piece->size, piece->start, v8->stack);
}

// Of the functions of the stack that was taken.
static void publish_names(struct attach_session *session)
{
    struct attach_v8 *v8 = &session->v8;
    for (size_t i = 0; i < v8->stack->count; i++) {
        uint32_t number = v8->stack->places[i].function;
        if (number == 0 || (number <= v8->known && v8->names.items[v8->base + number - 1]))
            continue;
        const struct script_function *function = script_function(session->target, number);
        pthread_mutex_lock(&v8->lock);
        for (; v8->known < number && BASE_RESERVE(&v8->names, 1); v8->known++)
            *BASE_ADD(&v8->names) = NULL;
        if (number <= v8->known && function)
            v8->names.items[v8->base + number - 1] = attach_name_in_file(function->name, function->file);
        pthread_mutex_unlock(&v8->lock);
    }
}

bool attach_v8_name(struct attach_v8 *v8, uint64_t address, struct collect_code *code)
{
    uint32_t number = script_number(address);
    bool is_known = false;
    code->start = V8_NUMBER_BASE | (uint64_t)number << V8_LINE_BITS;
    code->end = code->start + (1u << V8_LINE_BITS);
    code->has_lines = true;
    pthread_mutex_lock(&v8->lock);
    if (number > 0 && number <= v8->names.count && v8->names.items[number - 1]) {
        strcpy(code->name, v8->names.items[number - 1]); // made to fit
        is_known = true;
    }
    pthread_mutex_unlock(&v8->lock);
    return is_known;
}

size_t attach_v8_merge(struct attach_session *session, size_t count, struct qut_end *end)
{
    struct attach_v8 *v8 = &session->v8;
    if (!v8->is_taken)
        return count;
    script_name(session->target, v8->stack);
    publish_names(session);
    size_t merged = script_merge(session->target, v8->stack, session->frames, count, ATTACH_FRAMES_MAX, end);
    for (size_t i = 0; v8->base && i < merged; i++) // of the programs before this one
        if (session->frames[i].flags & QUT_FRAME_SCRIPT)
            session->frames[i].lookup_pc += (uint64_t)v8->base << V8_LINE_BITS;
    return merged;
}
