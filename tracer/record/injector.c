// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/injector.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/record/loop.h"
#include "tracer/rescue/rescue.h"

static void change(struct injector *injector, enum injector_state state)
{
    // Release: a thread that sees it sees what was written before.
    atomic_store_explicit(&injector->state, state, memory_order_release);
    record_loop_event_set(injector->changed_fd);
}

// One that has ended meanwhile is no failure.
static void remove_from_children(struct injector *injector, const struct injection *parent)
{
    for (size_t i = 0; i < injector->child_count; i++) {
        struct base_error error = {0};
        struct injection *injection = inject_in_child(parent, injector->children[i], &injector->options, &error);
        if (injection ? inject_remove(injection, &error) == 0 : kill(injector->children[i], 0) != 0)
            continue;
        if (!injector->children_left++)
            injector->child_error = error;
    }
}

static void *run(void *context)
{
    struct injector *injector = context;
    struct injection *injection = NULL;
    struct rescue_figures unused;
    // A tool that was killed may have left its agent there, and functions exchanged.
    if (rescue_process(injector->pid, NULL, &injector->options, &unused, &injector->error) == 0)
        injection = inject(injector->pid, &injector->options, &injector->error);
    if (injection) {
        injector->was_loaded = true;
        change(injector, INJECTOR_RUNS);
        struct pollfd told = {.fd = injector->remove_fd, .events = POLLIN};
        while (poll(&told, 1, -1) < 0 && errno == EINTR)
            continue;
        inject_get_figures(injection, &injector->figures);
        remove_from_children(injector, injection);
        inject_remove(injection, &injector->error);
    }
    change(injector, INJECTOR_DONE);
    return NULL;
}

struct inject_options record_injector_options(const struct record_options *options, const char *settings,
                                              struct qutc_provide_options *provide)
{
    const char *cache = *options->settings.cache ? options->settings.cache : NULL;
    *provide = (struct qutc_provide_options){.size = sizeof *provide,
                                             .cache_directory = cache,
                                             .debug_root = "/usr/lib/debug",
                                             .take = options->take,
                                             .take_context = options->take_context};
    return (struct inject_options){.agent_path = options->agent_path,
                                   .settings = settings,
                                   .cache_directory = cache,
                                   .compile = qutc_compile_for_qut,
                                   .compile_context = provide};
}

int record_injector_begin(struct injector *injector, pid_t pid, const struct inject_options *options, int changed_fd,
                          struct base_error *error)
{
    sigset_t all, before;
    *injector = (struct injector){.pid = pid,
                                  .options = *options,
                                  .remove_fd = record_loop_event(),
                                  .changed_fd = changed_fd,
                                  .state = INJECTOR_LOADS};
    if (injector->remove_fd < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "eventfd: %s", strerror(errno));
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&injector->thread, NULL, run, injector);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        return 0;
    close(injector->remove_fd);
    injector->state = INJECTOR_NONE;
    return base_fail(error, BASE_ERR_IO, "", 0, "pthread_create: %s", strerror(failed));
}

void record_injector_remove(struct injector *injector, pid_t *children, size_t child_count)
{
    injector->children = children;
    injector->child_count = child_count;
    record_loop_event_set(injector->remove_fd);
}

void record_injector_join(struct injector *injector)
{
    pthread_join(injector->thread, NULL);
    close(injector->remove_fd);
    free(injector->children);
    injector->children = NULL;
    atomic_store_explicit(&injector->state, INJECTOR_NONE, memory_order_relaxed);
}
