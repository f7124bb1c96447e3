// SPDX-License-Identifier: Apache-2.0
// Functions of CPython: taken with the stack while a thread stands still, named once it goes on, and put among the
// frames of its walk. The thread that collects asks for names by number, so they are kept here for it.
#include <stdlib.h>
#include <string.h>

#include "libqut/functions/text.h"
#include "libqut/os/os.h"
#include "libqut/script/script.h"
#include "libqut/target/python.h"
#include "tracer/attach/inside.h"

enum {
    LOOK_AGAIN_NS = 10000000,   // for a thread that is not known: most of those run no Python
    LOOK_EACH_NS = 500000000,   // an interpreter more, in a thread that is known
    SEARCH_EACH_NS = 200000000, // where there was no interpreter, one may be loaded
};

void attach_python_open(struct attach_session *session)
{
    pthread_mutex_init(&session->python.lock, NULL);
    session->python.stack = target_python_stack_new();
    attach_python_new_target(session);
}

void attach_python_new_target(struct attach_session *session)
{
    struct attach_python *python = &session->python;
    python->base = python->names.count;
    python->known = 0;
    python->is_taken = false;
    python->is_there = python->stack && target_python_look(session->target);
    python->looked_ns = os_now_ns();
}

void attach_python_close(struct attach_session *session)
{
    struct attach_python *python = &session->python;
    for (size_t i = 0; i < python->names.count; i++)
        free(python->names.items[i]);
    base_vector_free(&python->names.vector);
    target_python_stack_free(python->stack);
    python->stack = NULL;
    pthread_mutex_destroy(&python->lock);
}

void attach_python_prepare(struct attach_session *session, const struct attach_thread *thread)
{
    struct attach_python *python = &session->python;
    python->is_taken = false;
    if (!python->stack)
        return;
    bool is_known = python->is_there && target_python_knows(session->target, thread->inner_tid);
    uint64_t since_ns = session->now_ns > python->looked_ns ? session->now_ns - python->looked_ns : 0;
    if (since_ns < (!python->is_there ? SEARCH_EACH_NS : is_known ? LOOK_EACH_NS : LOOK_AGAIN_NS))
        return;
    python->is_there = target_python_look(session->target);
    python->looked_ns = os_now_ns();
}

void attach_python_take(struct attach_session *session, const struct attach_thread *thread)
{
    struct attach_python *python = &session->python;
    python->is_taken = python->is_there;
    if (python->is_taken)
        target_python_take(session->target, thread->inner_tid, python->stack);
}

// ---- names, for the thread that collects

// "function\nfile". A path that does not fit is known by its end.
char *attach_name_in_file(const char *name, const char *file)
{
    struct collect_code code;
    char *text = name ? malloc(sizeof code.name) : NULL;
    if (text)
        functions_text(name, file ? file : "", text, sizeof code.name);
    return text;
}

static char *text_of(const struct target_python_function *function)
{
    return attach_name_in_file(function->name, function->file);
}

static bool is_published(const struct attach_python *python, uint32_t number)
{
    return number == 0 || number == TARGET_PYTHON_INTERNAL ||
           (number <= python->known && python->names.items[python->base + number - 1]);
}

// Of the functions of the stack that was taken; all of them have names.
static void publish_names(struct attach_session *session)
{
    struct attach_python *python = &session->python;
    const struct target_python_stack *stack = python->stack;
    for (size_t i = 0; i < stack->taken.frame_count; i++) {
        uint32_t number = stack->functions[i];
        if (is_published(python, number))
            continue;
        pthread_mutex_lock(&python->lock);
        for (; python->known < number && BASE_RESERVE(&python->names, 1); python->known++)
            *BASE_ADD(&python->names) = NULL;
        if (number <= python->known)
            python->names.items[python->base + number - 1] = text_of(target_python_function(session->target, number));
        pthread_mutex_unlock(&python->lock);
    }
}

static bool name_function(struct attach_python *python, uint64_t address, struct collect_code *code)
{
    uint32_t number = target_python_number(address);
    bool is_known = number == 0;
    code->start = CPYTHON_NUMBER_BASE | (uint64_t)number << CPYTHON_LINE_BITS;
    code->end = code->start + (1u << CPYTHON_LINE_BITS);
    code->has_lines = true;
    strcpy(code->name, "[unknown function]");
    pthread_mutex_lock(&python->lock);
    if (number > 0 && number <= python->names.count && python->names.items[number - 1]) {
        strcpy(code->name, python->names.items[number - 1]); // made to fit
        is_known = true;
    }
    pthread_mutex_unlock(&python->lock);
    return is_known;
}

bool attach_name_code(void *context, uint64_t address, uint64_t since_ns, struct collect_code *code)
{
    struct attach_naming *naming = context;
    *code = (struct collect_code){0};
    if (v8_is_number(address))
        return attach_v8_name(naming->v8, address, code);
    return cpython_is_number(address) ? name_function(naming->python, address, code)
                                      : collect_name_made_code(&naming->made_code, address, since_ns, code);
}

bool attach_name_past_code(void *context, uint64_t address, uint64_t met_ns, struct collect_code *code)
{
    struct attach_naming *naming = context;
    return collect_name_past_code(&naming->made_code, address, met_ns, code);
}

size_t attach_levels_of_code(void *context, uint64_t address, struct collect_level *levels)
{
    struct attach_naming *naming = context;
    return collect_levels_of_made_code(&naming->made_code, address, levels);
}

// ---- the walk

size_t attach_python_merge(struct attach_session *session, size_t count, struct qut_end *end)
{
    struct attach_python *python = &session->python;
    if (!python->is_taken)
        return count;
    target_python_name(session->target, python->stack);
    publish_names(session);
    size_t merged = target_python_merge(session->target, python->stack, session->frames, count, ATTACH_FRAMES_MAX, end);
    session->result->python += python->stack->merged > 0;
    session->result->python_uncertain += python->stack->reason != NULL;
    if (python->base) // of the programs before this one
        for (size_t i = 0; i < merged; i++)
            if (session->frames[i].flags & QUT_FRAME_PYTHON && target_python_number(session->frames[i].lookup_pc))
                session->frames[i].lookup_pc += (uint64_t)python->base << CPYTHON_LINE_BITS;
    return merged;
}
