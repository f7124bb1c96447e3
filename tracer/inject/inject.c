// SPDX-License-Identifier: Apache-2.0
#include "tracer/inject/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libqut/os/os.h"
#include "libqut/os/process.h"
#include "tracer/inject/arena.h"
#include "tracer/inject/hijack.h"
#include "tracer/inject/victim.h"

static const uint64_t patience_ns = 10000000000;
enum { NAP_US = 200 };

struct injection {
    struct inject_program program;
    char *begin_symbol, *end_symbol;
    uint64_t timeout_ns, block, handle;
    uint64_t arena_offset, arena; // 0: not found
    struct inject_figures figures;
};

void inject_get_figures(const struct injection *injection, struct inject_figures *figures)
{
    *figures = injection->figures;
}

void inject_abandon(struct injection *injection)
{
    if (!injection)
        return;
    inject_program_close(&injection->program);
    free(injection->begin_symbol);
    free(injection->end_symbol);
    free(injection);
}

// A process's end is seen in many ways.
static bool has_ended(const struct injection *injection)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)injection->program.pid);
    FILE *file = fopen(path, "re");
    int first = file ? fgetc(file) : EOF;
    if (file)
        fclose(file);
    return first == EOF;
}

// ---- with a thread

struct step {
    struct hijack_job *job; // NULL: unmap
    struct base_error *error;
};

// One that has allocated nothing yet has none: the thread that is to load for us would get one of its own.
static int find_arena(struct injection *injection, struct hijack *hijack, struct base_error *error)
{
    const uint64_t thread_pointer = inject_hijack_thread_pointer(hijack);
    for (unsigned i = 0; i < 2; i++) {
        if (inject_arena_find(&injection->program, thread_pointer, &injection->arena_offset, &injection->arena))
            return 0;
        injection->arena_offset = injection->arena = 0;
        if (i == 0 && injection->program.allocate && inject_hijack_allocate(hijack, injection->block, error) != 0)
            return -1;
    }
    return 0;
}

static int carry_out(struct injection *injection, struct hijack *hijack, const struct step *step)
{
    if (!step->job) {
        int result = inject_hijack_unmap(hijack, injection->block, step->error);
        injection->block = 0;
        return result;
    }
    if (injection->block == 0 && inject_hijack_map(hijack, &injection->block, step->error) != 0)
        return -1;
    if (injection->arena == 0 && find_arena(injection, hijack, step->error) != 0)
        return -1;
    char settings[HIJACK_SETTINGS_BYTES];
    size_t length = strlen(step->job->settings);
    if (injection->arena && step->job->action == HIJACK_LOAD &&
        (size_t)snprintf(settings, sizeof settings, "%s%sa=%lld,%llx", step->job->settings,
                         length && step->job->settings[length - 1] == ';' ? "" : ";",
                         (long long)injection->arena_offset, (unsigned long long)injection->arena) < sizeof settings)
        step->job->settings = settings;
    step->job->arena_offset = injection->arena_offset;
    step->job->arena = injection->arena;
    return inject_hijack_start(hijack, injection->block, step->job, step->error);
}

static int with_a_thread(struct injection *injection, const struct step *step)
{
    struct victim victim = {0};
    struct victim_figures figures = {0};
    int result =
        inject_victim_find(&injection->program, os_now_ns() + injection->timeout_ns, &victim, &figures, step->error);
    if (result == 0) {
        struct hijack *hijack = inject_hijack_begin(&injection->program, victim.tid, step->error);
        result = hijack ? carry_out(injection, hijack, step) : -1;
        if (hijack && inject_hijack_end(hijack, step->error) != 0)
            result = -1;
        inject_victim_let_go(&injection->program, &victim, &figures);
    }
    qut_target_resume(injection->program.target);
    struct inject_figures *sum = &injection->figures;
    sum->stops += figures.looked_at;
    sum->rounds += figures.rounds;
    sum->threads_unsuitable += figures.looked_at - (result == 0 && figures.looked_at > 0);
    if (figures.stopped_ns > sum->stopped_ns)
        sum->stopped_ns = figures.stopped_ns;
    return result;
}

// ---- the new thread

// As the process sees it: the last of the numbers that its namespaces give it.
static bool has_number(pid_t pid, const char *tid, uint32_t number)
{
    char path[300], line[256];
    snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid, tid);
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        const char *last = strrchr(line, '\t');
        found = last && strtoul(last, NULL, 10) == number;
    }
    if (file)
        fclose(file);
    return found;
}

static bool is_there(pid_t pid, uint32_t number)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    bool found = false;
    for (const struct dirent *entry; tasks && !found && (entry = readdir(tasks));)
        found = entry->d_name[0] != '.' && has_number(pid, entry->d_name, number);
    if (tasks)
        closedir(tasks);
    return found;
}

static int say_what_failed(const struct inject_hijack_answer *answer, struct base_error *error)
{
    switch (answer->stage) {
    case HIJACK_WELL: return 0;
    case HIJACK_AT_OPEN: return base_fail(error, BASE_ERR_IO, "", 0, "the agent cannot be loaded: %s", answer->text);
    case HIJACK_AT_SYMBOL: return base_fail(error, BASE_ERR_IO, "", 0, "no agent of this version: %s", answer->text);
    case HIJACK_AT_AGENT:
        return base_fail(error, BASE_ERR_IO, "", 0, "the agent says: %s",
                         answer->result == -EPROTONOSUPPORT ? "it is of another version of QUT: use its own recorder"
                         : answer->result < 0               ? strerror(-answer->result)
                                                            : "not now");
    default: return base_fail(error, BASE_ERR_IO, "", 0, "the agent could not be unloaded");
    }
}

// Until it is through and has gone: its stack is ours.
static int await(struct injection *injection, struct inject_hijack_answer *answer, struct base_error *error)
{
    uint64_t start_ns = os_now_ns();
    for (;;) {
        if (!inject_hijack_answer(&injection->program, injection->block, answer))
            return base_fail(error, BASE_ERR_IO, "", 0, "it has ended");
        if (answer->done && !is_there(injection->program.pid, answer->tid))
            break;
        if (os_now_ns() - start_ns > injection->timeout_ns)
            return base_fail(error, BASE_ERR_LIMIT, "", 0,
                             "the thread that loads and unloads for us has waited for %llu ms, for the loader or "
                             "the agent; it is left there",
                             (unsigned long long)(injection->timeout_ns / 1000000));
        os_sleep_us(NAP_US);
    }
    injection->figures.load_ns = os_now_ns() - start_ns;
    return say_what_failed(answer, error);
}

static int unmap(struct injection *injection, struct base_error *error)
{
    const struct step step = {NULL, error};
    return injection->block == 0 || has_ended(injection) ? 0 : with_a_thread(injection, &step);
}

// ---- the agent's file

// -1: the process sees it as we do. Else a descriptor of it.
static int agent_file(pid_t pid, const char *path)
{
    char there[4200];
    struct stat here, seen;
    snprintf(there, sizeof there, "/proc/%d/root%s", (int)pid, path);
    if (stat(path, &here) == 0 && stat(there, &seen) == 0 && here.st_ino == seen.st_ino && here.st_dev == seen.st_dev &&
        seen.st_mode & S_IROTH)
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC);
}

static struct injection *begin(pid_t pid, const struct inject_options *options, bool has_agent,
                               struct base_error *error)
{
    struct injection *injection = calloc(1, sizeof *injection);
    const struct qut_target_options target_options = {.size = sizeof target_options,
                                                      .cache_directory = options->cache_directory,
                                                      .compile = options->compile,
                                                      .compile_context = options->compile_context,
                                                      .one_by_one = true};
    if (!injection) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
        return NULL;
    }
    injection->timeout_ns = options->timeout_ns ? options->timeout_ns : patience_ns;
    injection->begin_symbol = strdup(options->begin_symbol ? options->begin_symbol : "qut_agent_inject");
    injection->end_symbol = strdup(options->end_symbol ? options->end_symbol : "qut_agent_eject");
    struct qut_target_error why;
    struct qut_target *target = qut_target_process(pid, &target_options, &why);
    if (!target) {
        base_fail(error, BASE_ERR_IO, "", 0, "%s", why.text);
        inject_abandon(injection);
        return NULL;
    }
    if (inject_program_open(&injection->program, pid, target, has_agent, error) != 0) {
        inject_abandon(injection);
        return NULL;
    }
    return injection;
}

struct injection *inject(pid_t pid, const struct inject_options *options, struct base_error *error)
{
    if (access(options->agent_path, R_OK) != 0) {
        base_fail(error, BASE_ERR_IO, "", 0, "%s: %s", options->agent_path, strerror(errno));
        return NULL;
    }
    struct injection *injection = begin(pid, options, false, error);
    if (!injection)
        return NULL;
    struct inject_hijack_answer answer;
    struct hijack_job job = {.action = HIJACK_LOAD,
                             .path = options->agent_path,
                             .symbol = injection->begin_symbol,
                             .settings = options->settings,
                             .file = agent_file(pid, options->agent_path)};
    const struct step step = {&job, error};
    int result = with_a_thread(injection, &step);
    if (result == 0) {
        result = await(injection, &answer, error);
        injection->handle = answer.handle;
        // One that is not through uses the block.
        if (result != 0 && answer.done)
            unmap(injection, error);
    } else if (injection->block) {
        // The thread that was to start it may be on its way still: the block stays.
        result = -1;
    }
    if (job.file >= 0)
        close(job.file);
    if (result == 0)
        return injection;
    inject_abandon(injection);
    return NULL;
}

int inject_leave(struct injection *injection, struct base_error *error)
{
    const struct inject_owner nobody = {.pid = 0};
    if (!inject_hijack_give(&injection->program, injection->block, &nobody))
        return base_fail(error, BASE_ERR_IO, "", 0, "its memory cannot be written");
    inject_abandon(injection);
    return 0;
}

struct injection *inject_in_child(const struct injection *parent, pid_t child, const struct inject_options *options,
                                  struct base_error *error)
{
    struct injection *injection = begin(child, options, true, error);
    if (!injection)
        return NULL;
    injection->block = parent->block;
    injection->handle = parent->handle;
    injection->arena_offset = parent->arena_offset;
    injection->arena = parent->arena;
    return injection;
}

struct found_block {
    const struct inject_program *program;
    struct hijack_found found;
    uint64_t address; // 0: none
};

static bool is_block(void *context, uint64_t address, const uint8_t head[INJECT_PAGE_HEAD_BYTES])
{
    struct found_block *block = context;
    if (!inject_hijack_is_block(head) || !inject_hijack_read_block(block->program, address, &block->found))
        return false;
    block->address = address;
    return true;
}

static struct found_block find_block(const struct inject_program *program)
{
    struct found_block block = {.program = program};
    inject_each_code_page(program->pid, is_block, &block);
    return block;
}

static enum inject_found_state state_of(pid_t pid, const struct found_block *block)
{
    if (!block->address)
        return INJECT_FOUND_NONE;
    if (!block->found.is_done)
        return block->found.tid ? INJECT_FOUND_BUSY : INJECT_FOUND_BEGUN;
    if (is_there(pid, block->found.tid)) // on a stack in the block
        return INJECT_FOUND_BUSY;
    return block->found.handle ? INJECT_FOUND_AGENT : INJECT_FOUND_EMPTY;
}

bool inject_look(pid_t pid, struct inject_found *found)
{
    const struct inject_program program = {.pid = pid};
    const struct found_block block = find_block(&program);
    *found = (struct inject_found){state_of(pid, &block), block.found.owner};
    return found->state != INJECT_FOUND_NONE;
}

struct injection *inject_take_over(pid_t pid, const struct inject_options *options, struct base_error *error)
{
    const struct inject_program program = {.pid = pid};
    const struct found_block block = find_block(&program);
    struct injection *injection = begin(pid, options, block.found.handle != 0, error);
    if (!injection)
        return NULL;
    injection->block = block.address;
    injection->handle = block.found.handle;
    injection->arena_offset = block.found.arena_offset;
    injection->arena = block.found.arena;
    return injection;
}

int inject_remove(struct injection *injection, struct base_error *error)
{
    struct inject_hijack_answer answer = {0};
    struct hijack_job job = {.action = HIJACK_UNLOAD,
                             .path = "",
                             .symbol = injection->end_symbol,
                             .settings = "",
                             .file = -1,
                             .handle = injection->handle};
    const struct step step = {&job, error};
    // One that was taken over may have nothing but the block.
    int result = injection->handle ? with_a_thread(injection, &step) : 0;
    if (result == 0 && injection->handle)
        result = await(injection, &answer, error);
    if (result == 0 || answer.done)
        if (unmap(injection, error) != 0)
            result = -1;
    if (result != 0 && has_ended(injection))
        result = 0;
    inject_abandon(injection);
    return result;
}
