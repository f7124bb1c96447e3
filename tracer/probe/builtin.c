// SPDX-License-Identifier: Apache-2.0
#include "tracer/probe/builtin.h"

#include <string.h>

// Of calls of one function within another of the same thread, or that one has jumped to, the innermost counts, which
// returns first: sizes are kept with 1 more until then. Memory that realloc gives is new memory, and what it was given
// is free.
static const char before_alloc[] =
    "entry:libc.so*!malloc { @__alloc_size[tid] = arg0 + 1 }"
    "entry:libc.so*!calloc { @__alloc_size[tid] = arg0 * arg1 + 1 }"
    "entry:libc.so*!realloc, entry:libc.so*!aligned_alloc, entry:libc.so*!memalign { @__alloc_size[tid] = arg1 + 1 }"
    "entry:libc.so*!posix_memalign { @__alloc_size[tid] = arg2 + 1; @__alloc_place[tid] = arg0 }";

static const char after_alloc[] =
    "return:libc.so*!malloc, return:libc.so*!calloc, return:libc.so*!realloc, return:libc.so*!aligned_alloc,"
    "return:libc.so*!memalign, return:libc.so*!posix_memalign { @__alloc_size[tid] = 0 }";

// Who waits for a condition gives the lock back, and has it again when it returns.
static const char before_lock[] =
    "entry:libc.so*!pthread_mutex_lock, entry:libc.so*!pthread_mutex_trylock, entry:libc.so*!pthread_mutex_timedlock,"
    "entry:libc.so*!pthread_mutex_clocklock { @__lock_address[tid] = arg0 }"
    "entry:libc.so*!pthread_cond_wait, entry:libc.so*!pthread_cond_timedwait, entry:libc.so*!pthread_cond_clockwait"
    "{ @__lock_address[tid] = arg1 }"
    "return:libc.so*!pthread_mutex_lock, return:libc.so*!pthread_mutex_trylock,"
    "return:libc.so*!pthread_mutex_timedlock, return:libc.so*!pthread_mutex_clocklock"
    "/(retval & 0xffffffff) == 0/ { @__lock_since[@__lock_address[tid]] = time }"
    "return:libc.so*!pthread_cond_wait, return:libc.so*!pthread_cond_timedwait, return:libc.so*!pthread_cond_clockwait"
    "{ @__lock_since[@__lock_address[tid]] = time }";

static const char after_unlock[] =
    "entry:libc.so*!pthread_mutex_unlock { @__lock_since[arg0] = 0 }"
    "entry:libc.so*!pthread_cond_wait, entry:libc.so*!pthread_cond_timedwait, entry:libc.so*!pthread_cond_clockwait"
    "{ @__lock_since[arg1] = 0 }";

// An exception that is caught is its unwinder's head, of 32 bytes. In its first word "GNUCC++" says whose it is, and a
// 1 below that it stands for another one (std::rethrow_exception), whose object is the first word before. Before the
// head are 80 bytes of libstdc++'s, the first word of which is the type, and the last where the object is. The name of
// a type is the second word of what describes it.
#define CAUGHT_IS_OURS "((u64(arg0) & ~1) == 0x474e5543432b2b00)"
#define CAUGHT_TYPE    "(u64((u64(arg0) & 1 ? u64(u64(arg0 - 80) - 112) : u64(arg0 - 80)) + 8))"

const struct probe_builtin probe_builtins[PROBE_BUILTINS] = {
    {"alloc",
     before_alloc,
     after_alloc,
     {{"return:libc.so*!malloc, return:libc.so*!calloc, return:libc.so*!realloc, return:libc.so*!aligned_alloc,"
       "return:libc.so*!memalign",
       "(retval != 0 && @__alloc_size[tid] != 0)",
       {"(@__alloc_size[tid] - 1)", "(retval)", NULL}},
      {"return:libc.so*!posix_memalign",
       "((retval & 0xffffffff) == 0 && @__alloc_size[tid] != 0)",
       {"(@__alloc_size[tid] - 1)", "(u64(@__alloc_place[tid]))", NULL}}},
     2},
    {"free", NULL, NULL, {{"entry:libc.so*!free, entry:libc.so*!realloc", "(arg0 != 0)", {NULL, "(arg0)", NULL}}}, 1},
    {"lock",
     before_lock,
     NULL,
     {{"return:libc.so*!pthread_mutex_lock, return:libc.so*!pthread_mutex_trylock,"
       "return:libc.so*!pthread_mutex_timedlock, return:libc.so*!pthread_mutex_clocklock",
       "((retval & 0xffffffff) == 0)",
       {NULL, "(@__lock_address[tid])", NULL}}},
     1},
    {"unlock",
     before_lock,
     after_unlock,
     {{"entry:libc.so*!pthread_mutex_unlock",
       "(@__lock_since[arg0] != 0)",
       {NULL, "(arg0)", "(time - @__lock_since[arg0])"}},
      {"entry:libc.so*!pthread_cond_wait, entry:libc.so*!pthread_cond_timedwait, entry:libc.so*!pthread_cond_clockwait",
       "(@__lock_since[arg1] != 0)",
       {NULL, "(arg1)", "(time - @__lock_since[arg1])"}}},
     2},
    {"throw",
     NULL,
     NULL,
     {{"entry:libstdc++.so*!__cxa_throw", "(arg1 != 0)", {NULL, "(arg0)", NULL, "(u64(arg1 + 8))"}}},
     1},
    {"catch",
     NULL,
     NULL,
     {{"entry:libstdc++.so*!__cxa_begin_catch", CAUGHT_IS_OURS, {NULL, "(u64(arg0 - 8))", NULL, CAUGHT_TYPE}}},
     1},
};

const char *probe_builtin_value_name(enum probe_builtin_value value)
{
    static const char *const names[PROBE_BUILTIN_VALUES] = {"size", "address", "held", "type"};
    return names[value];
}

const struct probe_builtin *probe_builtin_here(const struct probe_compiler *c)
{
    for (size_t i = 0; i < PROBE_BUILTINS; i++)
        if (probe_is_name(c, probe_builtins[i].name))
            return &probe_builtins[i];
    return NULL;
}

bool probe_is_builtin_value(const struct probe_compiler *c, enum probe_builtin_value *value)
{
    for (*value = 0; *value < PROBE_BUILTIN_VALUES; (*value)++)
        if (probe_is_name(c, probe_builtin_value_name(*value)))
            return true;
    return false;
}

bool probe_source_enter(struct probe_compiler *c, struct probe_source *was, const char *text)
{
    *was = (struct probe_source){.text = c->text,
                                 .length = c->length,
                                 .next = c->next,
                                 .assigned_at = c->assigned_at,
                                 .token = c->token,
                                 .outer = c->outer,
                                 .is_slash_an_end = c->is_slash_an_end};
    c->text = text;
    c->length = (uint32_t)strlen(text);
    c->next = 0;
    c->assigned_at = UINT32_MAX;
    c->is_slash_an_end = false;
    c->outer = was;
    return probe_next(c);
}

void probe_source_leave(struct probe_compiler *c, const struct probe_source *was)
{
    c->text = was->text;
    c->length = was->length;
    c->next = was->next;
    c->assigned_at = was->assigned_at;
    c->token = was->token;
    c->is_slash_an_end = was->is_slash_an_end;
    c->outer = was->outer;
}
