// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/endpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "formats/qut_table_name_inline.h"

enum { BACKLOG = 1024 };

int record_dup_cloexec(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

int record_endpoint_token(char token[AGENT_TOKEN_BYTES], struct base_error *error)
{
    uint8_t random[(AGENT_TOKEN_BYTES - 1) / 2];
    ssize_t size;
    do
        size = getrandom(random, sizeof random, 0);
    while (size < 0 && errno == EINTR);
    if (size != (ssize_t)sizeof random)
        return base_fail(error, BASE_ERR_IO, "", 0, "getrandom: %s", strerror(errno));
    qut_hex(random, sizeof random, token);
    return 0;
}

// Whether no recorder listens there any more: it was killed. One that is just being made has no socket yet.
static bool is_abandoned(const char *directory)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", directory);
    if (length <= 0 || (size_t)length >= sizeof address.sun_path || lstat(directory, &status) != 0 ||
        !S_ISDIR(status.st_mode) || status.st_uid != geteuid() || lstat(address.sun_path, &status) != 0 ||
        !S_ISSOCK(status.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool refused =
        fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return refused;
}

// What killed recorders left behind.
static void tidy(const char *place)
{
    DIR *directory = opendir(place);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char path[PATH_MAX], inside[PATH_MAX + 32];
        if (strncmp(entry->d_name, "qut-", 4) != 0 || strlen(entry->d_name) != strlen("qut-XXXXXX") ||
            snprintf(path, sizeof path, "%s/%s", place, entry->d_name) >= (int)sizeof path || !is_abandoned(path))
            continue;
        snprintf(inside, sizeof inside, "%s/socket", path);
        unlink(inside);
        snprintf(inside, sizeof inside, "%s/" AGENT_FILE, path);
        unlink(inside);
        rmdir(path);
    }
    if (directory)
        closedir(directory);
}

void record_endpoint_directory(char *path, size_t size)
{
    const char *of_user = getenv("XDG_RUNTIME_DIR"), *of_all = getenv("TMPDIR");
    const char *const places[] = {of_user, of_all, "/tmp"};
    const size_t room = sizeof((struct sockaddr_un *)0)->sun_path - sizeof "/socket";
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        // What stands in the settings ends at a semicolon.
        if (!places[i] || places[i][0] != '/' || strpbrk(places[i], ";\n"))
            continue;
        tidy(places[i]);
        int length = snprintf(path, size, "%s/qut-XXXXXX", places[i]);
        if (length > 0 && (size_t)length < size && (size_t)length < room && mkdtemp(path))
            return;
    }
    path[0] = 0;
}

void record_endpoint_remove(const char *directory)
{
    rmdir(directory);
}

static int listen_at(const struct sockaddr_un *address, size_t path_bytes)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_bytes);
    if (bind(fd, (const struct sockaddr *)(const void *)address, size) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

int record_endpoint_abstract(const char *token)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "qut-%s", token);
    return listen_at(&address, 1 + (size_t)length);
}

int record_endpoint_in(const char *directory, char *path, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(path, size, "%s/socket", directory);
    int fd = -1;
    if (length > 0 && (size_t)length < size && (size_t)length < sizeof address.sun_path) {
        memcpy(address.sun_path, path, (size_t)length + 1);
        fd = listen_at(&address, (size_t)length + 1);
    }
    if (fd < 0)
        path[0] = 0;
    return fd;
}
