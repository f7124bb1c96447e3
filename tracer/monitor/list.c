// SPDX-License-Identifier: Apache-2.0
// Processes whose environment has the agent and a folder for it, and whether they have a segment there; and those into
// which the agent was injected.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/monitor/inside.h"

enum { PATH_BYTES = 48, COMMAND_BYTES = 64 };

struct lister {
    int proc;
    char *const *folders;
    size_t folder_count;
    void (*each)(void *context, const struct monitor_process *process);
    void *context;
    struct monitor_listed *listed;
};

static FILE *open_of(const struct lister *lister, uint32_t pid, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%" PRIu32 "/%s", pid, name);
    const int fd = openat(lister->proc, path, O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file && fd >= 0)
        close(fd);
    return file;
}

// "/run/qut" of "QUT_AGENT=/run/qut;p=1000000": freed by the caller. NULL: it has none, or may not be asked.
static char *folder_of(const struct lister *lister, uint32_t pid)
{
    static const char variable[] = AGENT_VARIABLE "=/";
    FILE *file = open_of(lister, pid, "environ");
    char *entry = NULL, *folder = NULL;
    size_t room = 0;
    errno = file ? 0 : errno;
    while (file && !folder && getdelim(&entry, &room, '\0', file) > 0)
        if (strncmp(entry, variable, sizeof variable - 1) == 0) {
            const char *value = entry + sizeof variable - 2;
            folder = strndup(value, strcspn(value, ";"));
        }
    lister->listed->hidden += !folder && (errno == EACCES || errno == EPERM);
    if (file)
        fclose(file);
    free(entry);
    return folder;
}

static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

static enum monitor_preloaded state_of(const struct lister *lister, uint32_t pid, const char *folder)
{
    enum monitor_preloaded state = MONITOR_NO_AGENT;
    FILE *file = open_of(lister, pid, "maps");
    char *line = NULL;
    size_t room = 0;
    while (file && state != MONITOR_SAMPLES && getline(&line, &room, file) > 0) {
        const char *path = strchr(line, '/');
        if (path && is_below(path, folder))
            state = MONITOR_SAMPLES;
        else if (path && strstr(path, AGENT_FILE))
            state = MONITOR_NO_SEGMENT;
    }
    if (file)
        fclose(file);
    free(line);
    return state;
}

static void command_of(const struct lister *lister, uint32_t pid, char command[COMMAND_BYTES])
{
    FILE *file = open_of(lister, pid, "comm");
    const size_t size = file ? fread(command, 1, COMMAND_BYTES - 1, file) : 0;
    if (file)
        fclose(file);
    command[size] = '\0';
    command[strcspn(command, "\n")] = '\0';
}

static bool is_wanted(const struct lister *lister, const char *folder)
{
    bool is_one = !lister->folder_count;
    for (size_t i = 0; i < lister->folder_count && !is_one; i++) {
        char *path = realpath(lister->folders[i], NULL);
        is_one = strcmp(folder, lister->folders[i]) == 0 || (path && strcmp(folder, path) == 0);
        free(path);
    }
    return is_one;
}

// The folder of its segment; freed by the caller. NULL: no agent was injected.
static char *folder_of_injected(uint32_t pid)
{
    bool has_agent;
    char *segment = monitor_flight_segment(pid, &has_agent);
    if (segment && has_agent && monitor_is_injected(pid)) {
        *strrchr(segment, '/') = '\0';
        return segment;
    }
    free(segment);
    return NULL;
}

static void look_at(const struct lister *lister, uint32_t pid)
{
    char command[COMMAND_BYTES];
    char *folder = folder_of_injected(pid);
    const bool is_injected = folder != NULL;
    if (!folder)
        folder = folder_of(lister, pid);
    if (folder && is_wanted(lister, folder)) {
        const struct monitor_process process = {.pid = pid,
                                                .folder = folder,
                                                .command = command,
                                                .state =
                                                    is_injected ? MONITOR_INJECTED : state_of(lister, pid, folder)};
        command_of(lister, pid, command);
        lister->listed->of[process.state]++;
        lister->each(lister->context, &process);
    }
    free(folder);
}

int monitor_list(char *const *folders, size_t count, void (*each)(void *context, const struct monitor_process *process),
                 void *context, struct monitor_listed *listed, struct base_error *error)
{
    DIR *stream = opendir("/proc");
    *listed = (struct monitor_listed){.hidden = 0};
    if (!stream)
        return base_fail_errno(error, errno);
    const struct lister lister = {dirfd(stream), folders, count, each, context, listed};
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        const uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (pid)
            look_at(&lister, pid);
    }
    closedir(stream);
    return 0;
}
