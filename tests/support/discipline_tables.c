// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/discipline.h"

extern char **environ;

bool discipline_has_compiler(void)
{
    const char *command = getenv("QUT_TEST_QUTC");
    return command && access(command, X_OK) == 0;
}

static int read_file(const char *path, void **bytes, size_t *size)
{
    int fd = open(path, O_RDONLY);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        return -1;
    *size = (size_t)status.st_size;
    size_t done = 0;
    if (posix_memalign(bytes, 64, *size ? *size : 1) != 0)
        return -1;
    while (done < *size) {
        ssize_t got = read(fd, (char *)*bytes + done, *size - done);
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    close(fd);
    return done == *size ? 0 : -1;
}

// The mapped image as a file: what has no path, or only one that leads elsewhere.
static int write_memory(const char *path, const struct qut_compile_request *request)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return -1;
    size_t written = fwrite(request->memory, 1, request->memory_size, file);
    return fclose(file) == 0 && written == request->memory_size ? 0 : -1;
}

static int run(const char *input, const char *output)
{
    const char *command = getenv("QUT_TEST_QUTC");
    char *arguments[] = {(char *)command, "compile", "--quiet", "-o", (char *)output, (char *)input, NULL};
    pid_t child;
    int status;
    if (posix_spawn(&child, command, NULL, NULL, arguments, environ) != 0)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int discipline_compile(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                       char *reason, size_t reason_size)
{
    (void)context;
    const char *sysroot = getenv("QUT_TEST_SYSROOT");
    char input[1024], output[64], copy[64];
    snprintf(reason, reason_size, "no compiler, or it refused");
    if (!discipline_has_compiler())
        return -1;
    snprintf(output, sizeof output, "/tmp/qut-discipline-%d.qut", (int)getpid());
    snprintf(copy, sizeof copy, "/tmp/qut-discipline-%d.elf", (int)getpid());
    // Under emulation the sysroot's files hide the host's.
    snprintf(input, sizeof input, "%s%s", sysroot ? sysroot : "", request->path);
    if (!*request->path || access(input, R_OK) != 0)
        snprintf(input, sizeof input, "%s", request->path);
    if (!*request->path || access(input, R_OK) != 0) {
        if (!request->memory || write_memory(copy, request) != 0)
            return -1;
        snprintf(input, sizeof input, "%s", copy);
    }
    int result = run(input, output) == 0 ? read_file(output, table, table_size) : -1;
    unlink(output);
    unlink(copy);
    return result;
}

bool discipline_start(void)
{
    struct qut_options options = {.size = sizeof options, .compile = discipline_compile};
    return qut_start(&options) == 0 && qut_wait(120000) == 0;
}
