// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/command_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "libqut/arch/native.h"
#include "tracer/record/file_says.h"

// ---- finding it

static bool is_executable(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return false;
    if (!S_ISREG(status.st_mode)) {
        errno = S_ISDIR(status.st_mode) ? EISDIR : EACCES;
        return false;
    }
    // Filters deny the question with these; exec has the answer.
    return access(path, X_OK) == 0 || errno == EPERM || errno == ENOSYS;
}

// What execvp tries, in its order. What is there and may not be executed is only the answer where nothing else is.
static int search(const char *name, char path[PATH_MAX])
{
    char standard[256] = "";
    const char *directories = getenv("PATH");
    int answer = ENOENT;
    if (!directories) {
        confstr(_CS_PATH, standard, sizeof standard);
        directories = standard;
    }
    for (const char *from = directories;; from++) {
        size_t length = strcspn(from, ":");
        int written = snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, from, length ? "/" : "./", name);
        if (written > 0 && written < PATH_MAX) {
            if (is_executable(path))
                return 0;
            if (errno != ENOENT && errno != ENOTDIR)
                answer = errno;
        }
        from += length;
        if (!*from)
            return answer;
    }
}

static int find(const char *name, char path[PATH_MAX])
{
    if (!*name)
        return ENOENT;
    if (!strchr(name, '/'))
        return search(name, path);
    if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
        return ENAMETOOLONG;
    return is_executable(path) ? 0 : errno;
}

// ---- what the kernel makes of it

// "#! INTERPRETER ARGUMENT": false: it is no script.
static bool script_interpreter(const char *path, char interpreter[PATH_MAX])
{
    char start[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd >= 0 ? read(fd, start, sizeof start - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (size < 2 || start[0] != '#' || start[1] != '!')
        return false;
    start[size] = 0;
    const char *from = start + 2 + strspn(start + 2, " \t");
    int length = (int)strcspn(from, " \t\r\n");
    snprintf(interpreter, PATH_MAX, "%.*s", length, from);
    return length > 0;
}

static void look_inside(struct program *program)
{
    struct file_says says;
    if (!record_file_says(program->image, &says))
        return;
    program->is_known = true;
    program->is_64 = says.is_64;
    program->arch = says.arch->id;
    memcpy(program->interpreter, says.interpreter, sizeof program->interpreter);
    program->build_id_bytes = says.build_id_bytes;
    memcpy(program->build_id, says.build_id, sizeof program->build_id);
}

// Whether the kernel tells the loader to trust no environment.
static bool is_privileged(const char *path)
{
    struct stat status;
    char capabilities[64];
    if (stat(path, &status) != 0)
        return false;
    bool changes_group = (status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != getgid();
    return ((status.st_mode & S_ISUID) && status.st_uid != getuid()) || changes_group ||
           (geteuid() != 0 && getxattr(path, "security.capability", capabilities, sizeof capabilities) > 0);
}

static void follow_scripts(struct program *program)
{
    enum { DEEPEST = 5 }; // the kernel's bound
    char interpreter[PATH_MAX];
    snprintf(program->image, sizeof program->image, "%s", program->path);
    for (int i = 0; i < DEEPEST && script_interpreter(program->image, interpreter); i++)
        memcpy(program->image, interpreter, sizeof interpreter);
}

int record_program_find(struct program *program, const char *name, struct base_error *error)
{
    *program = (struct program){0};
    int failed = find(name, program->path);
    if (failed) {
        base_fail(error, BASE_ERR_IO, "", 0, "%s", failed == ENOENT ? "command not found" : strerror(failed));
        return failed == ENOENT || failed == ENOTDIR ? PROGRAM_NOT_FOUND : PROGRAM_NOT_EXECUTABLE;
    }
    follow_scripts(program);
    look_inside(program);
    program->is_privileged = is_privileged(program->image);
    return 0;
}

// Of the first object that is loaded: the program.
static int take_own_interpreter(struct dl_phdr_info *info, size_t size, void *context)
{
    struct program *program = context;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_INTERP)
            snprintf(program->interpreter, sizeof program->interpreter, "%s",
                     (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
    return 1;
}

void record_program_self(struct program *program)
{
    *program =
        (struct program){.is_known = true, .is_64 = sizeof(void *) == sizeof(uint64_t), .arch = arch_native_arch.id};
    dl_iterate_phdr(take_own_interpreter, program);
}

const char *record_program_refuses_agent(const struct program *program, const struct program *self)
{
    if (!program->is_known)
        return NULL; // a script without a first line, or what only the kernel knows: it is tried
    if (program->is_64 != self->is_64)
        return program->is_64 ? "it is a 64-bit program, and this qut is not"
                              : "it is a 32-bit program, and this qut is not";
    if (program->arch != self->arch)
        return "it is a program of another machine";
    if (!program->interpreter[0])
        return "it is static: nothing can be preloaded into it";
    const char *left = strrchr(program->interpreter, '/'), *right = strrchr(self->interpreter, '/');
    if (!left || !right || strcmp(left, right) != 0)
        return "it has another C library than this qut";
    return program->is_privileged ? "it runs with other rights than its user has: nothing can be preloaded into it"
                                  : NULL;
}
