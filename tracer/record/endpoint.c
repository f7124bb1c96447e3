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
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "formats/qut_table_name_inline.h"
#include "tracer/record/left_alone.h"

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

// Of a recorder that ended before what it recorded: the agent's file comes after the socket, and stays longer.
static bool has_only_agent(const char *directory)
{
    char path[PATH_MAX];
    struct stat status;
    return snprintf(path, sizeof path, "%s/" AGENT_FILE, directory) < (int)sizeof path && lstat(path, &status) == 0;
}

// Whether no recorder listens there any more: it was killed. One that is just being made has no socket yet.
static bool is_abandoned(const char *directory)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", directory);
    if (length <= 0 || (size_t)length >= sizeof address.sun_path || lstat(directory, &status) != 0 ||
        !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
        return false;
    if (lstat(address.sun_path, &status) != 0)
        return errno == ENOENT && has_only_agent(directory);
    if (!S_ISSOCK(status.st_mode))
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
        record_left_read_notes(path, "", NULL);
        rmdir(path);
    }
    if (directory)
        closedir(directory);
}

static bool has_mode(const struct stat *status, mode_t bits)
{
    return (status->st_mode & bits) == bits;
}

// Each directory above `path`, from the root on.
static bool each_above(const char *path, bool (*is_good)(const struct stat *status))
{
    char above[PATH_MAX];
    struct stat status;
    if (path[0] != '/' || strlen(path) >= sizeof above || stat("/", &status) != 0 || !is_good(&status))
        return false;
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        memcpy(above, path, (size_t)(slash - path));
        above[slash - path] = 0;
        if (stat(above, &status) != 0 || !is_good(&status))
            return false;
    }
    return true;
}

static bool is_open_to_all(const struct stat *status)
{
    return has_mode(status, S_IXOTH);
}

bool record_endpoint_is_reached(const char *path)
{
    return each_above(path, is_open_to_all);
}

// Others may not write to it; or only make what is theirs, as in /tmp.
static bool is_ours_or_roots(const struct stat *status)
{
    return (status->st_uid == 0 || status->st_uid == geteuid()) &&
           (!(status->st_mode & (S_IWGRP | S_IWOTH)) || has_mode(status, S_ISVTX));
}

bool record_endpoint_is_safe(const char *path)
{
    return each_above(path, is_ours_or_roots);
}

// The place without links, and what is in it.
static bool is_place_for_all(const char *place)
{
    char whole[PATH_MAX], inside[PATH_MAX + 2];
    struct statvfs system;
    if (!realpath(place, whole) || strcmp(whole, place) != 0)
        return false;
    snprintf(inside, sizeof inside, "%s/x", whole);
    return statvfs(whole, &system) == 0 && !(system.f_flag & ST_NOEXEC) && record_endpoint_is_reached(inside) &&
           record_endpoint_is_safe(inside);
}

static bool make_directory(const char *place, char *path, size_t size)
{
    const size_t room = sizeof((struct sockaddr_un *)0)->sun_path - sizeof "/socket";
    // What stands in the settings ends at a semicolon, and in LD_PRELOAD at a colon or a space.
    if (!place || place[0] != '/' || strpbrk(place, ";: \n"))
        return false;
    tidy(place);
    int length = snprintf(path, size, "%s/qut-XXXXXX", place);
    return length > 0 && (size_t)length < size && (size_t)length < room && mkdtemp(path);
}

bool record_endpoint_directory(char *path, size_t size, bool is_for_all)
{
    const char *const places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    enum { USUAL = 3, ALL = sizeof places / sizeof *places };
    for (size_t i = 0; is_for_all && i < ALL; i++)
        if (places[i] && is_place_for_all(places[i]) && make_directory(places[i], path, size)) {
            if (chmod(path, 0711) == 0)
                return true;
            rmdir(path);
        }
    for (size_t i = 0; i < USUAL; i++)
        if (make_directory(places[i], path, size))
            return false;
    path[0] = 0;
    return false;
}

void record_endpoint_remove(const char *directory)
{
    rmdir(directory);
}

static int listen_at(const struct sockaddr_un *address, size_t path_bytes, struct base_error *error)
{
    const char *call = "socket";
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_bytes);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)(const void *)address, size) != 0)
        call = "bind";
    else if (fd >= 0 && listen(fd, BACKLOG) == 0)
        return fd;
    else if (fd >= 0)
        call = "listen";
    base_fail(error, BASE_ERR_IO, "", 0, "no socket for the agents: %s: %s", call, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

int record_endpoint_abstract(const char *token, struct base_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "qut-%s", token);
    return listen_at(&address, 1 + (size_t)length, error);
}

int record_endpoint_in(const char *directory, char *path, size_t size, struct base_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(path, size, "%s/socket", directory);
    int fd = -1;
    if (length > 0 && (size_t)length < size && (size_t)length < sizeof address.sun_path) {
        memcpy(address.sun_path, path, (size_t)length + 1);
        fd = listen_at(&address, (size_t)length + 1, error);
    }
    if (fd < 0)
        path[0] = 0;
    return fd;
}
