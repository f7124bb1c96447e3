// SPDX-License-Identifier: Apache-2.0
#include "tracer/traced/scope.h"

enum { STACK_BYTES = 8 << 20 }; // slots that are farther apart are of different stacks

struct traced_scope_call {
    uint64_t slot;
    bool is_caller, is_kept;
};

static void close_one(struct traced_scope *scope, size_t index)
{
    struct traced_scope_call *items = scope->open.items;
    scope->callers -= items[index].is_caller;
    scope->kept -= items[index].is_kept;
    for (size_t i = index + 1; i < scope->open.count; i++)
        items[i - 1] = items[i];
    scope->open.count--;
}

// Calls further in than `slot` on its stack are over.
static void close_inner(struct traced_scope *scope, uint64_t slot)
{
    for (size_t i = scope->open.count; i-- > 0;) {
        const uint64_t inner = scope->open.items[i].slot;
        if (inner < slot && slot - inner < STACK_BYTES)
            close_one(scope, i);
        else if (inner >= slot && inner - slot < STACK_BYTES)
            break;
    }
}

static struct traced_scope_call *find(const struct traced_scope *scope, uint64_t slot)
{
    for (size_t i = scope->open.count; i-- > 0;)
        if (scope->open.items[i].slot == slot)
            return &scope->open.items[i];
    return NULL;
}

// Whether it is kept; *no_memory.
static bool enter(struct traced_scope *scope, const struct traced_scope_options *options, uint64_t word,
                  bool *no_memory)
{
    const uint64_t slot = qut_calls_word_slot(word);
    const uint32_t id = qut_calls_word_id(word);
    struct traced_scope_call call = {.slot = slot, .is_caller = !options->has_callers};
    close_inner(scope, slot);
    struct traced_scope_call *before = find(scope, slot);
    if (before) {
        // What it jumps to returns for it.
        call.is_caller |= before->is_caller && qut_calls_word_is_tail(word);
        close_one(scope, (size_t)(before - scope->open.items));
    }
    call.is_caller |= options->has_callers && options->is_caller(options->context, id);
    call.is_kept = (scope->callers || call.is_caller) && (!options->depth || scope->kept < options->depth);
    struct traced_scope_call *place = BASE_ADD(&scope->open);
    if (!place) {
        *no_memory = true;
        return false;
    }
    *place = call;
    scope->callers += call.is_caller;
    scope->kept += call.is_kept;
    if (!call.is_kept)
        options->left_out(options->context, id);
    return call.is_kept;
}

// One whose entry is not known was within nothing that is.
static bool leave(struct traced_scope *scope, const struct traced_scope_options *options, uint64_t slot)
{
    close_inner(scope, slot);
    struct traced_scope_call *call = find(scope, slot);
    if (!call)
        return !options->has_callers;
    const bool is_kept = call->is_kept;
    close_one(scope, (size_t)(call - scope->open.items));
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
                                         : enter(scope, options, word, &no_memory))
            events[kept++] = events[i];
    }
    return no_memory ? -1 : (ptrdiff_t)kept;
}

void traced_scope_free(struct traced_scope *scope)
{
    base_vector_free(&scope->open.vector);
    *scope = (struct traced_scope){.callers = 0};
}
