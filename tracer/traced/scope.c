// SPDX-License-Identifier: Apache-2.0
#include "tracer/traced/scope.h"

static void note_closed(void *context, const struct traced_open_call *call)
{
    struct traced_scope *scope = context;
    scope->callers -= call->is_caller;
    scope->kept -= call->is_kept;
}

// Whether it is kept; *no_memory.
static bool enter(struct traced_scope *scope, const struct traced_scope_options *options,
                  const struct qut_calls_event *event, bool *no_memory)
{
    const uint64_t slot = qut_calls_word_slot(event->word);
    const uint32_t id = qut_calls_word_id(event->word);
    bool is_caller = !options->has_callers || options->is_caller(options->context, id);
    traced_open_close_inner(&scope->open, slot, note_closed, scope);
    struct traced_open_call *before = traced_open_at(&scope->open, slot);
    if (before) {
        // What it jumps to returns for it.
        is_caller |= before->is_caller && qut_calls_word_is_tail(event->word);
        traced_open_drop(&scope->open, before, note_closed, scope);
    }
    struct traced_open_call *call = traced_open_add(&scope->open, event);
    if (!call) {
        *no_memory = true;
        return false;
    }
    call->is_caller = is_caller;
    call->is_kept = (scope->callers || is_caller) && (!options->depth || scope->kept < options->depth);
    scope->callers += call->is_caller;
    scope->kept += call->is_kept;
    if (!call->is_kept)
        options->left_out(options->context, id);
    return call->is_kept;
}

// One whose entry is not known was within nothing that is.
static bool leave(struct traced_scope *scope, const struct traced_scope_options *options, uint64_t slot)
{
    traced_open_close_inner(&scope->open, slot, note_closed, scope);
    struct traced_open_call *call = traced_open_at(&scope->open, slot);
    if (!call)
        return !options->has_callers;
    const bool is_kept = call->is_kept;
    traced_open_drop(&scope->open, call, note_closed, scope);
    return is_kept;
}

ptrdiff_t traced_scope(struct traced_scope *scope, const struct traced_scope_options *options,
                       struct qut_calls_event *events, size_t count)
{
    size_t kept = 0;
    bool no_memory = false;
    for (size_t i = 0; i < count; i++) {
        const uint64_t word = events[i].word;
        if (qut_calls_word_is_exit(word) ? leave(scope, options, qut_calls_word_slot(word))
                                         : enter(scope, options, &events[i], &no_memory))
            events[kept++] = events[i];
    }
    return no_memory ? -1 : (ptrdiff_t)kept;
}

void traced_scope_free(struct traced_scope *scope)
{
    base_vector_free(&scope->open.vector);
    *scope = (struct traced_scope){.callers = 0};
}
