// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/probe/probe_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/diagnostics.h"

static const char prefix[] = "qut-probe-", lock_name[] = "lock", new_lock_name[] = "lock.new";

static const char *place(void)
{
    const char *temporary = getenv("TMPDIR");
    return temporary && *temporary && strlen(temporary) <= PATH_MAX / 2 ? temporary : "/tmp";
}

// A folder and what is in it: files, and folders of files, of which a recording makes one.
static void remove_folder(int parent_fd, const char *name, unsigned depth)
{
    const int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(directory));) {
        const bool is_itself = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!is_itself && unlinkat(fd, entry->d_name, 0) != 0 && depth > 0)
            remove_folder(fd, entry->d_name, depth - 1);
    }
    closedir(directory);
    unlinkat(parent_fd, name, AT_REMOVEDIR);
}

// One whose lock nobody holds. One without a lock is being made.
static bool is_left(int parent_fd, const char *name)
{
    char lock[NAME_MAX + 16];
    snprintf(lock, sizeof lock, "%.*s/%s", NAME_MAX, name, lock_name);
    const int fd = openat(parent_fd, lock, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    const bool is_free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return is_free;
}

static void remove_left(const char *parent)
{
    DIR *directory = opendir(parent);
    if (!directory)
        return;
    for (const struct dirent *entry; (entry = readdir(directory));)
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 && is_left(dirfd(directory), entry->d_name))
            remove_folder(dirfd(directory), entry->d_name, 1);
    closedir(directory);
}

// It gets its name when it is held.
static int make_lock(const char *directory)
{
    const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int lock_fd = fd < 0 ? -1 : openat(fd, new_lock_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (lock_fd >= 0 && (flock(lock_fd, LOCK_EX | LOCK_NB) != 0 || renameat(fd, new_lock_name, fd, lock_name) != 0)) {
        close(lock_fd);
        lock_fd = -1;
    }
    if (fd >= 0)
        close(fd);
    return lock_fd;
}

bool cli_probe_folder_make(struct probe_folder *folder)
{
    const char *parent = place();
    remove_left(parent);
    snprintf(folder->directory, sizeof folder->directory, "%s/%sXXXXXX", parent, prefix);
    if (!mkdtemp(folder->directory)) {
        cli_report(stderr, parent, "no folder can be made there for the time being; $TMPDIR says another place");
        return false;
    }
    folder->lock_fd =
        make_lock(folder->directory); // without it, all is as it was, but for what is left if we are killed
    snprintf(folder->path, sizeof folder->path, "%s/probe.qtrace", folder->directory);
    return true;
}

void cli_probe_folder_remove(struct probe_folder *folder)
{
    remove_folder(AT_FDCWD, folder->directory, 1);
    if (folder->lock_fd >= 0)
        close(folder->lock_fd);
}
