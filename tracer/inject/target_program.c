// SPDX-License-Identifier: Apache-2.0
#include "tracer/inject/target_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "libqut/elf/dynamic_symbol.h"
#include "qutc/input/image.h"
#include "tracer/inject/hijack.h"
#include "tracer/inject/inject.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_library(const struct target_image *image, const char *name, const char *old_name)
{
    const char *base = base_name(image->path);
    return image->is_elf && (strcmp(base, name) == 0 || begins(base, old_name));
}

bool inject_read(const struct inject_program *program, uint64_t address, void *bytes, size_t size)
{
    const struct iovec here = {bytes, size}, there = {(void *)(uintptr_t)address, size};
    return process_vm_readv(program->pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

bool inject_write(const struct inject_program *program, uint64_t address, const void *bytes, size_t size)
{
    const struct iovec here = {(void *)(uintptr_t)bytes, size}, there = {(void *)(uintptr_t)address, size};
    return process_vm_writev(program->pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static size_t read_some(void *context, uint64_t address, void *bytes, size_t size)
{
    return inject_read(context, address, bytes, size) ? size : 0;
}

uint64_t inject_symbol(const struct inject_program *program, const struct target_image *image, const char *name)
{
    const struct elf_art_memory memory = {
        .read = read_some, .context = (void *)(uintptr_t)program, .arch = program->target->arch};
    if (!image || !image->head || image->head->dynamic.file_size == 0)
        return 0;
    return elf_art_find_symbol(&memory, image->load_bias, image->load_bias + image->head->dynamic.vaddr, name);
}

const struct target_image *inject_image_at(const struct inject_program *program, uint64_t pc)
{
    for (size_t i = 0; i < program->target->range_count; i++)
        if (pc >= program->target->ranges[i].start && pc < program->target->ranges[i].end)
            return program->target->ranges[i].image;
    return NULL;
}

// What the kernel says of the process that forbids it.
static int refuse_state(pid_t pid, struct base_error *error)
{
    char path[64], line[512];
    const char *why = NULL;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (begins(line, "Seccomp:") && strtol(line + 8, NULL, 10) != 0)
            why = "its system calls are filtered (seccomp), and what we need there could end it";
        else if (begins(line, "State:\tT"))
            why = "it is stopped; kill -CONT lets it go on";
        else if (begins(line, "State:\tZ"))
            why = "it has ended";
        else if (begins(line, "x86_Thread_features:") && strstr(line, "shstk"))
            why = "it has a shadow stack (CET)";
    }
    if (file)
        fclose(file);
    return why ? base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "%s" INJECT_OR_OUTSIDE, why) : 0;
}

static void find_images(struct inject_program *program, const struct target_image **threads,
                        const struct target_image **loading, const char **agent, bool *is_musl)
{
    for (size_t i = 0; i < program->target->range_count; i++) {
        const struct target_image *image = program->target->ranges[i].image;
        if (is_library(image, "libc.so.6", "libc-2."))
            program->libc = image;
        else if (is_library(image, "libpthread.so.0", "libpthread-2."))
            *threads = image;
        else if (is_library(image, "libdl.so.2", "libdl-2."))
            *loading = image;
        else if (begins(base_name(image->path), "ld-musl"))
            *is_musl = true;
        else if (begins(base_name(image->path), "ld-linux") || begins(base_name(image->path), "ld-2."))
            program->linker = image;
        if (begins(base_name(image->path), "libqut-agent") || strstr(image->path, "memfd:libqut-agent"))
            *agent = image->path;
    }
}

static int find_functions(struct inject_program *program, const struct target_image *threads,
                          const struct target_image *loading, struct base_error *error)
{
    static const char *const names[INJECT_FUNCTIONS] = {
        [INJECT_ATTR_INIT] = "pthread_attr_init",
        [INJECT_ATTR_SETSTACK] = "pthread_attr_setstack",
        [INJECT_ATTR_SETDETACHSTATE] = "pthread_attr_setdetachstate",
        [INJECT_CREATE] = "pthread_create",
        [INJECT_DLOPEN] = "dlopen",
        [INJECT_DLSYM] = "dlsym",
        [INJECT_DLCLOSE] = "dlclose",
        [INJECT_DLERROR] = "dlerror",
        [INJECT_ERRNO] = "__errno_location",
    };
    // Before glibc 2.34 they are in libraries of their own; libc has some of the names as stubs.
    for (unsigned i = 0; i < INJECT_FUNCTIONS; i++) {
        const struct target_image *own = i >= INJECT_DLOPEN && i <= INJECT_DLERROR ? loading : threads;
        uint64_t address = i == INJECT_ERRNO ? 0 : inject_symbol(program, own, names[i]);
        program->function[i] = address ? address : inject_symbol(program, program->libc, names[i]);
        if (program->function[i] == 0)
            return base_fail(
                error, BASE_ERR_UNSUPPORTED, "", 0,
                "its libc has no %s (older than 2.34, and the program is not linked with %s)" INJECT_OR_OUTSIDE,
                names[i], own == loading ? "libdl" : "libpthread");
    }
    return 0;
}

// A program may have an allocator of its own: then libc's is left alone.
static void find_allocator(struct inject_program *program)
{
    const struct target_image *last = NULL;
    for (size_t i = 0; i < program->target->range_count; i++) {
        const struct target_image *image = program->target->ranges[i].image;
        if (image != last && image != program->libc && image != program->linker &&
            inject_symbol(program, image, "malloc"))
            return;
        last = image;
    }
    program->allocate = inject_symbol(program, program->libc, "posix_memalign");
}

static void read_symbols(struct inject_program *program)
{
    struct input_image *image = NULL;
    struct base_error ignored = {0};
    const struct input_image_options options = {0};
    const char *path = program->libc->file_path;
    if (path && input_image_open(path, path, 0, 0, &options, &image, &ignored) == 0)
        program->symbols = symbols_read(image, 0, &ignored);
}

int inject_program_open(struct inject_program *program, pid_t pid, struct qut_target *target, bool has_agent,
                        struct base_error *error)
{
    const struct target_image *threads = NULL, *loading = NULL;
    const char *agent = NULL;
    bool is_musl = false;
    *program = (struct inject_program){.pid = pid, .target = target};
    if (inject_hijack_refusal(program))
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "%s", inject_hijack_refusal(program));
    if (refuse_state(pid, error) != 0)
        return -1;
    find_images(program, &threads, &loading, &agent, &is_musl);
    const char *why = NULL;
    if (has_agent && !agent)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "the agent is not there any more");
    if (agent && !has_agent)
        why = "an agent of QUT is loaded there already, of a recording that goes on or was killed, or of qut monitor";
    else if (is_musl)
        why = "its libc is musl, the agent is for glibc";
    else if (!program->linker && !program->libc)
        why = "a static program: it can load nothing";
    else if (!program->libc)
        why = "it has no libc that we know (libc.so.6)";
    if (why)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "%s" INJECT_OR_OUTSIDE, why);
    if (find_functions(program, threads, loading, error) != 0)
        return -1;
    if (!inject_hijack_find_gadgets(program))
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "its libc is one that we cannot use");
    find_allocator(program);
    read_symbols(program);
    return 0;
}

void inject_program_close(struct inject_program *program)
{
    symbols_free(program->symbols);
    if (program->target)
        qut_target_close(program->target);
    *program = (struct inject_program){0};
}
