// SPDX-License-Identifier: Apache-2.0
#include "tracer/patch/patch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libqut/target/live.h"
#include "tracer/patch/inside.h"

const char *patch_state_text(enum patch_state state)
{
    static const char *const texts[PATCH_STATES] = {
        [PATCH_OUT] = "not patched",
        [PATCH_IN] = "patched",
        [PATCH_ANOTHERS] = "another tool has patched it",
        [PATCH_NOT_MAPPED] = "no code is mapped there",
        [PATCH_OVERLAPS] = "overlaps with another that is patched",
        [PATCH_OCCUPIED] = "a thread that cannot be moved is in it",
        [PATCH_OVERWRITTEN] = "another tool has patched it since: left as it is",
        [PATCH_UNLOADED] = "its module was unloaded",
    };
    return state < PATCH_STATES ? texts[state] : "";
}

struct patch_process *patch_open(pid_t pid, struct base_error *error)
{
    struct patch_process *process = calloc(1, sizeof *process);
    if (!process) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
        return NULL;
    }
    const struct qut_target_options options = {.size = sizeof options};
    struct qut_target_error why;
    char path[64];
    process->pid = pid;
    process->memory_fd = process->pages_fd = -1;
    process->target = qut_target_process(pid, &options, &why);
    if (!process->target) {
        base_fail(error, BASE_ERR_IO, "", 0, "%s", why.text);
        patch_close(process);
        return NULL;
    }
    process->target->restart_calls = true;
    const struct target_live *live = process->target->source;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)live->memory_tid);
    process->memory_fd = open(path, O_RDWR | O_CLOEXEC);
    if (process->memory_fd < 0) {
        base_fail(error, BASE_ERR_IO, "", 0, "%d: its memory cannot be opened for writing: %s", (int)pid,
                  strerror(errno));
        patch_close(process);
        return NULL;
    }
    snprintf(path, sizeof path, "/proc/%d/pagemap", (int)live->memory_tid);
    process->pages_fd = open(path, O_RDONLY | O_CLOEXEC);
    return process;
}

void patch_let_go(struct patch_process *process)
{
    if (!process)
        return;
    qut_target_close(process->target);
    process->target = NULL;
    if (process->memory_fd >= 0)
        close(process->memory_fd);
    if (process->pages_fd >= 0)
        close(process->pages_fd);
    process->memory_fd = process->pages_fd = -1;
}

void patch_close(struct patch_process *process)
{
    if (!process)
        return;
    patch_let_go(process);
    base_vector_free(&process->installed.vector);
    base_vector_free(&process->past.vector);
    base_vector_free(&process->leaving.vector);
    base_vector_free(&process->inner.vector);
    free(process->cache_directory);
    free(process->stack);
    free(process);
}

void patch_set_stub(struct patch_process *process, const struct patch_stub *stub)
{
    process->stub = *stub;
    if (process->stub.exit_end == 0)
        process->stub.exit_end = process->stub.end;
}

int patch_allow_walks(struct patch_process *process, const char *cache_directory, qut_compile_fn compile,
                      void *compile_context, struct base_error *error)
{
    free(process->cache_directory);
    process->cache_directory = cache_directory ? strdup(cache_directory) : NULL;
    process->compile = compile;
    process->compile_context = compile_context;
    return cache_directory && !process->cache_directory ? base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory") : 0;
}

size_t patch_site_count(const struct patch_process *process)
{
    return process->installed.count;
}

const struct patch_site *patch_site(const struct patch_process *process, size_t index)
{
    return &process->installed.items[index].site;
}
