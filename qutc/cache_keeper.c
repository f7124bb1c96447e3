// SPDX-License-Identifier: Apache-2.0
#include "qutc/cache_keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "qutc/cache.h"

static const char lock_name[] = "warm-up.lock";

enum { LOCK_TEXT_MAX_BYTES = 1 << 16 };
static const int64_t temporary_max_age_ns = (int64_t)24 * 3600 * 1000000000;

static int64_t in_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t end_size = strlen(end);
    return size > end_size && memcmp(text + size - end_size, end, end_size) == 0;
}

// "x86_64-9f3c.qut.PID-N.tmp", as qutc_publish calls them. Its process may be alive where we cannot see it: in another
// container, say. Then a rename fails there, and a table is made again.
static bool is_abandoned(const char *name, const struct stat *status)
{
    const char *pid_at = strstr(name, ".qut.");
    char *end;
    long pid = pid_at ? strtol(pid_at + 5, &end, 10) : 0;
    if (pid <= 0 || pid > INT32_MAX || *end != '-')
        return false;
    bool is_gone = kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    return is_gone || (int64_t)base_clock_ns(CLOCK_REALTIME) - in_ns(status->st_mtim) > temporary_max_age_ns;
}

static int append(struct qutc_keeper *keeper, const char *name, uint64_t bytes, int64_t used_ns,
                  struct base_error *error)
{
    char *copy = strdup(name);
    struct qutc_kept *table = copy ? BASE_ADD(&keeper->tables) : NULL;
    if (!table) {
        free(copy);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "list of tables");
    }
    *table = (struct qutc_kept){.name = copy, .bytes = bytes, .used_ns = used_ns};
    keeper->bytes += bytes;
    return 0;
}

static int by_age(const void *left, const void *right)
{
    const struct qutc_kept *a = left, *b = right;
    return a->used_ns != b->used_ns ? (a->used_ns > b->used_ns) - (a->used_ns < b->used_ns) : strcmp(a->name, b->name);
}

static int list_tables(struct qutc_keeper *keeper, struct base_error *error)
{
    int fd = fcntl(keeper->directory_fd, F_DUPFD_CLOEXEC, 0);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) {
        base_fail(error, BASE_ERR_IO, "", 0, "cannot list the cache: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int result = 0;
    for (const struct dirent *entry; result == 0 && (entry = readdir(directory));) {
        struct stat status;
        const char *name = entry->d_name;
        size_t size = strlen(name);
        bool is_table = ends_with(name, size, ".qut");
        if ((!is_table && !ends_with(name, size, ".tmp")) ||
            fstatat(keeper->directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
            continue;
        if (is_table)
            result = append(keeper, name, (uint64_t)status.st_size, in_ns(status.st_mtim), error);
        else if (is_abandoned(name, &status))
            unlinkat(keeper->directory_fd, name, 0);
    }
    closedir(directory);
    if (keeper->tables.count)
        qsort(keeper->tables.items, keeper->tables.count, sizeof *keeper->tables.items, by_age);
    return result;
}

// A line for each file. What is in it is not trusted: at worst a file comes last that need not.
static void read_suspects(struct qutc_keeper *keeper)
{
    char *text = malloc(LOCK_TEXT_MAX_BYTES + 1), *rest = NULL;
    ssize_t got = text ? pread(keeper->lock_fd, text, LOCK_TEXT_MAX_BYTES, 0) : -1;
    if (got > 0) {
        text[got] = '\0';
        for (char *line = strtok_r(text, "\n", &rest); line && keeper->suspect_count < QUTC_SUSPECTS_MAX;
             line = strtok_r(NULL, "\n", &rest)) {
            char *copy = qutc_keeper_suspects(keeper, line) ? NULL : strdup(line);
            if (copy)
                keeper->suspects[keeper->suspect_count++] = copy;
        }
    }
    free(text);
}

static int open_files(struct qutc_keeper *keeper, const char *path, bool *is_busy, struct base_error *error)
{
    keeper->directory_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (keeper->directory_fd < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "cannot open %s: %s", path, strerror(errno));
    keeper->lock_fd = openat(keeper->directory_fd, lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (keeper->lock_fd < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "cannot write %s/%s: %s", path, lock_name, strerror(errno));
    if (flock(keeper->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    *is_busy = errno == EWOULDBLOCK;
    return base_fail(error, BASE_ERR_IO, "", 0, *is_busy ? "another warm-up fills %s" : "cannot lock %s", path);
}

int qutc_keeper_open(struct qutc_keeper *keeper, const char *directory, bool *is_busy, struct base_error *error)
{
    *keeper = (struct qutc_keeper){.directory_fd = -1, .lock_fd = -1};
    *is_busy = false;
    if (qutc_make_directories(directory, error) != 0 || open_files(keeper, directory, is_busy, error) != 0 ||
        list_tables(keeper, error) != 0) {
        qutc_keeper_close(keeper);
        return -1;
    }
    read_suspects(keeper);
    return 0;
}

void qutc_keeper_close(struct qutc_keeper *keeper)
{
    for (size_t i = 0; i < keeper->tables.count; i++)
        free(keeper->tables.items[i].name);
    base_vector_free(&keeper->tables.vector);
    for (unsigned i = 0; i < keeper->suspect_count; i++)
        free(keeper->suspects[i]);
    if (keeper->lock_fd >= 0)
        close(keeper->lock_fd);
    if (keeper->directory_fd >= 0)
        close(keeper->directory_fd);
    *keeper = (struct qutc_keeper){.directory_fd = -1, .lock_fd = -1};
}

// Mapped tables live on until they are unmapped: only the name goes.
static void drop(struct qutc_keeper *keeper, struct qutc_kept *table)
{
    if (unlinkat(keeper->directory_fd, table->name, 0) != 0 && errno != ENOENT)
        return;
    keeper->dropped++;
    keeper->dropped_bytes += table->bytes;
    keeper->bytes -= table->bytes;
    table->bytes = 0;
    *table->name = '\0';
}

void qutc_keeper_drop_older(struct qutc_keeper *keeper, int64_t used_ns)
{
    for (size_t i = 0; i < keeper->tables.count; i++)
        if (!keeper->tables.items[i].is_needed && *keeper->tables.items[i].name &&
            keeper->tables.items[i].used_ns < used_ns)
            drop(keeper, &keeper->tables.items[i]);
}

bool qutc_keeper_make_room(struct qutc_keeper *keeper, uint64_t more_bytes, uint64_t budget_bytes)
{
    if (more_bytes > budget_bytes)
        return false;
    uint64_t droppable = 0;
    for (size_t i = 0; i < keeper->tables.count; i++)
        droppable += keeper->tables.items[i].is_needed ? 0 : keeper->tables.items[i].bytes;
    if (keeper->bytes - droppable > budget_bytes - more_bytes)
        return false; // not for nothing
    for (size_t i = 0; i < keeper->tables.count && keeper->bytes > budget_bytes - more_bytes; i++)
        if (!keeper->tables.items[i].is_needed && *keeper->tables.items[i].name)
            drop(keeper, &keeper->tables.items[i]);
    return keeper->bytes <= budget_bytes - more_bytes;
}

int qutc_keeper_need(struct qutc_keeper *keeper, const char *name, struct base_error *error)
{
    utimensat(keeper->directory_fd, name, NULL, 0);
    struct stat status;
    if (fstatat(keeper->directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return 0; // another process removed it
    uint64_t bytes = (uint64_t)status.st_size;
    size_t at = 0;
    while (at < keeper->tables.count && strcmp(keeper->tables.items[at].name, name) != 0)
        at++;
    if (at == keeper->tables.count && append(keeper, name, bytes, in_ns(status.st_mtim), error) != 0)
        return -1;
    struct qutc_kept *table = &keeper->tables.items[at];
    keeper->bytes += bytes - table->bytes;
    table->bytes = bytes;
    table->is_needed = true;
    return 0;
}

void qutc_keeper_works_on(struct qutc_keeper *keeper, const char *name)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return;
    if (name && !qutc_keeper_suspects(keeper, name))
        fprintf(stream, "%s\n", name);
    for (unsigned i = 0; i < keeper->suspect_count; i++)
        fprintf(stream, "%s\n", keeper->suspects[i]);
    // Half of it, where the disk is full or we are killed between the two, only makes an order worse.
    if (fclose(stream) == 0 && ftruncate(keeper->lock_fd, 0) == 0 && size && pwrite(keeper->lock_fd, text, size, 0) < 0)
        (void)!ftruncate(keeper->lock_fd, 0);
    free(text);
}

void qutc_keeper_did(struct qutc_keeper *keeper, const char *name)
{
    for (unsigned i = 0; i < keeper->suspect_count; i++) {
        if (strcmp(keeper->suspects[i], name) != 0)
            continue;
        free(keeper->suspects[i]);
        keeper->suspects[i] = keeper->suspects[--keeper->suspect_count];
    }
}

bool qutc_keeper_suspects(const struct qutc_keeper *keeper, const char *name)
{
    for (unsigned i = 0; i < keeper->suspect_count; i++)
        if (strcmp(keeper->suspects[i], name) == 0)
            return true;
    return false;
}
