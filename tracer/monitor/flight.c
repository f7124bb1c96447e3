// SPDX-License-Identifier: Apache-2.0
// Processes that run already, and were never prepared: the agent is loaded into them, records into a folder as one that
// was preloaded does, and stays there after us; or is taken out again.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "qutc/include/qutc/provide.h"
#include "qutc/include/qutc/warm_up.h"
#include "tracer/inject/inject.h"
#include "tracer/monitor/inside.h"
#include "tracer/rescue/rescue.h"

static const char debug_root[] = "/usr/lib/debug";

static int fail(struct base_error *error, const char *why)
{
    return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "%s", why);
}

static int check_process(pid_t pid, struct base_error *error)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH
                   ? fail(error, "there is no such process")
                   : base_fail(error, BASE_ERR_IO, "", 0, "it is another user's, or lets nobody look at it: %s",
                               strerror(errno));
    close(fd);
    return 0;
}

// ---- what it records into

// The process's number as it sees it itself; 0: it has ended.
static uint32_t own_number(uint32_t pid)
{
    char path[64], line[256];
    uint32_t number = 0;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/status", pid);
    FILE *file = fopen(path, "re");
    while (file && !number && fgets(line, sizeof line, file))
        if (strncmp(line, "NSpid:", 6) == 0)
            number = (uint32_t)strtoul(strrchr(line, '\t') ? strrchr(line, '\t') : line + 6, NULL, 10);
    if (file)
        fclose(file);
    return number;
}

// "/run/qut/4711-0123456789abcdef": its number, since children of fork have what their parent has mapped.
static bool is_segment(const char *path, uint32_t number)
{
    enum { DIGITS = 16 };
    const char *name = strrchr(path, '/');
    char *end = NULL;
    if (!name || strtoul(name + 1, &end, 10) != number || *end != '-')
        return false;
    return strspn(end + 1, "0123456789abcdef") == DIGITS && (!end[1 + DIGITS] || strchr(" \n", end[1 + DIGITS]));
}

char *monitor_flight_segment(uint32_t pid, bool *has_agent)
{
    char path[64], *line = NULL, *segment = NULL;
    size_t room = 0;
    const uint32_t number = own_number(pid);
    *has_agent = false;
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", pid);
    FILE *file = fopen(path, "re");
    while (file && number && getline(&line, &room, file) > 0) {
        const char *at = strchr(line, '/');
        *has_agent = *has_agent || (at && strstr(at, "libqut-agent"));
        if (at && !segment && is_segment(at, number))
            segment = strndup(at, (size_t)(strrchr(at, '/') - at) + 1 + strcspn(strrchr(at, '/') + 1, " \n"));
    }
    if (file)
        fclose(file);
    free(line);
    return segment;
}

bool monitor_is_injected(uint32_t pid)
{
    struct inject_found found;
    return inject_look((pid_t)pid, &found) && found.state == INJECT_FOUND_AGENT;
}

// ---- the folder

static bool sees_the_same(pid_t pid, const char *path)
{
    char there[PATH_MAX + 64];
    struct stat here, seen;
    snprintf(there, sizeof there, "/proc/%d/root%s", (int)pid, path);
    return stat(path, &here) == 0 && stat(there, &seen) == 0 && here.st_dev == seen.st_dev &&
           here.st_ino == seen.st_ino;
}

static int check_folder(pid_t pid, const char *folder, struct base_error *error)
{
    struct stat status;
    struct statfs system;
    if (stat(folder, &status) != 0 || statfs(folder, &system) != 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "DIR: %s", strerror(errno));
    const uint32_t type = (uint32_t)system.f_type;
    if (!S_ISDIR(status.st_mode))
        return fail(error, "DIR is no folder");
    if (type != TMPFS_MAGIC && type != RAMFS_MAGIC)
        return fail(error, "DIR is on no memory file system (tmpfs), such as those of /run and /dev/shm");
    if (!sees_the_same(pid, folder))
        return fail(error,
                    "DIR is not there for it, or is another folder: it has mounts, or a root, of its own. It has to "
                    "see this folder by this name");
    return 0;
}

// ---- what the agent is told

// Children are not followed: nobody would look after their threads.
static int read_settings(const struct monitor_flight *flight, char text[AGENT_SETTINGS_BYTES],
                         struct agent_settings *settings, struct base_error *error)
{
    static const char known[] = "pbcSg";
    for (const char *at = flight->settings; *at; at += strcspn(at, ";"), at += *at == ';')
        if (!strchr(known, *at))
            return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0,
                             "the setting %c has no effect on an agent that is injected: p, b, c, S and g have", *at);
    const int length = snprintf(text, AGENT_SETTINGS_BYTES, "%s%s%s;F=0", flight->folder, *flight->settings ? ";" : "",
                                flight->settings);
    if (length >= AGENT_SETTINGS_BYTES || agent_settings_read(settings, text) != 0 ||
        (settings->cache[0] && settings->cache[0] != '/'))
        return fail(error, "the settings behind DIR are malformed, such as \"DIR;p=10000000;b=1048576\"");
    return 0;
}

// The vdso's is kept nowhere, and rarely needed: it has no file that says whose it is.
static int count_table(void *context, const struct qutc_warm_up_step *step)
{
    struct monitor_flight_figures *figures = context;
    figures->tables_made += step->outcome == QUTC_WARM_UP_COMPILED;
    figures->tables_failed +=
        (step->outcome == QUTC_WARM_UP_FAILED || step->outcome == QUTC_WARM_UP_TOO_LARGE) && step->name[0] != '[';
    return 0;
}

// Only into the folder that both see: in another root a name may lead anywhere.
static void make_tables(pid_t pid, const char *cache, struct monitor_flight_figures *figures)
{
    const int number = (int)pid;
    const struct qutc_warm_up_options options = {.size = sizeof options,
                                                 .cache_directory = cache,
                                                 .debug_root = debug_root,
                                                 .pids = &number,
                                                 .pid_count = 1,
                                                 .step = count_table,
                                                 .step_context = figures,
                                                 .trust_cache = true};
    struct qutc_warm_up_result result = {.files = 0};
    if (!*cache)
        return;
    if (!sees_the_same(pid, access(cache, F_OK) == 0 ? cache : "/")) {
        snprintf(figures->no_tables, sizeof figures->no_tables, "the process sees another folder by that name");
        return;
    }
    const enum qutc_warm_up_status status =
        qutc_warm_up(&options, &result, figures->no_tables, sizeof figures->no_tables);
    if (status == QUTC_WARM_UP_BUSY)
        snprintf(figures->no_tables, sizeof figures->no_tables, "qutc warm-up fills it just now");
    else if (status != QUTC_WARM_UP_STUCK)
        *figures->no_tables = '\0';
}

// ---- in and out

// As it is once nobody loads it or takes it out any more. False: it has none.
static bool look(pid_t pid, struct inject_found *found)
{
    enum { NAP_US = 20000, NAPS_MAX = 500 };
    for (unsigned i = 0;; i++) {
        if (!inject_look(pid, found))
            return false;
        const bool is_settled = found->state == INJECT_FOUND_AGENT || found->state == INJECT_FOUND_EMPTY;
        if (is_settled || found->owner.pid || i == NAPS_MAX)
            return true;
        usleep(NAP_US);
    }
}

// What an ejection that was killed has left, and what a child of fork has of its parent: an agent that does nothing.
static int remove_remains(pid_t pid, const struct inject_options *how, bool records, struct base_error *error)
{
    struct inject_found found;
    if (!look(pid, &found) || found.owner.pid)
        return 0;
    const bool is_idle = found.state == INJECT_FOUND_EMPTY || (found.state == INJECT_FOUND_AGENT && !records);
    if (!is_idle)
        return 0;
    struct injection *injection = inject_take_over(pid, how, error);
    return injection ? inject_remove(injection, error) : -1;
}

static int load(pid_t pid, const struct inject_options *how, struct monitor_flight_figures *figures,
                struct base_error *error)
{
    struct rescue_figures unused;
    struct inject_figures took;
    bool has_agent;
    if (rescue_process(pid, NULL, how, &unused, error) != 0)
        return -1;
    char *segment = monitor_flight_segment((uint32_t)pid, &has_agent);
    const bool records = segment && has_agent;
    free(segment);
    if (records)
        return fail(error, "it has the agent already, and a segment");
    if (remove_remains(pid, how, records, error) != 0)
        return -1;
    make_tables(pid, how->cache_directory ? how->cache_directory : "", figures);
    struct injection *injection = inject(pid, how, error);
    if (!injection)
        return -1;
    inject_get_figures(injection, &took);
    figures->stopped_ns = took.stopped_ns;
    if (inject_leave(injection, error) == 0)
        return 0;
    inject_remove(injection, error);
    return -1;
}

static struct inject_options options_of(const struct monitor_flight *flight, const char *settings, const char *cache,
                                        struct qutc_provide_options *provide)
{
    *provide =
        (struct qutc_provide_options){.size = sizeof *provide, .cache_directory = cache, .debug_root = debug_root};
    return (struct inject_options){.agent_path = flight->agent_path,
                                   .settings = settings,
                                   .cache_directory = cache,
                                   .compile = qutc_compile_for_qut,
                                   .compile_context = provide};
}

// What is said of qut record is not true here.
static void shorten(struct base_error *error)
{
    char *at = strstr(error->detail, INJECT_OR_OUTSIDE);
    if (at)
        *at = '\0';
}

int monitor_inject(pid_t pid, const struct monitor_flight *flight, struct monitor_flight_figures *figures,
                   struct base_error *error)
{
    char text[AGENT_SETTINGS_BYTES];
    struct agent_settings *settings = malloc(sizeof *settings);
    *figures = (struct monitor_flight_figures){.stopped_ns = 0};
    if (!settings)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "settings");
    int status = check_process(pid, error);
    if (status == 0)
        status = check_folder(pid, flight->folder, error);
    if (status == 0)
        status = read_settings(flight, text, settings, error);
    if (status == 0) {
        struct qutc_provide_options provide;
        const struct inject_options how =
            options_of(flight, text, settings->cache[0] ? settings->cache : NULL, &provide);
        const int watcher = rescue_watch(&how);
        status = load(pid, &how, figures, error);
        rescue_watch_end(watcher);
        snprintf(figures->cache, sizeof figures->cache, "%s", settings->cache);
    }
    free(settings);
    shorten(error);
    return status;
}

static bool is_in(const char *segment, const char *folder)
{
    const char *slash = strrchr(segment, '/');
    const size_t length = slash ? (size_t)(slash - segment) : 0;
    return strlen(folder) == length && memcmp(segment, folder, length) == 0;
}

static int check_found(pid_t pid, const struct monitor_flight *flight, struct base_error *error)
{
    struct inject_found found;
    bool has_agent;
    char *segment = monitor_flight_segment((uint32_t)pid, &has_agent);
    const bool is_elsewhere = segment && flight->folder && !is_in(segment, flight->folder);
    free(segment);
    if (!look(pid, &found))
        return fail(error, has_agent ? "its agent was preloaded, and stays as long as it runs" : "it has no agent");
    if (found.owner.pid)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0,
                         "its agent is of a recording that goes on, by process %" PRIu32, found.owner.pid);
    if (found.state == INJECT_FOUND_BUSY)
        return fail(error, "its agent is being taken out");
    return is_elsewhere ? fail(error, "its agent records into another folder than DIR") : 0;
}

int monitor_eject(pid_t pid, const struct monitor_flight *flight, struct base_error *error)
{
    struct qutc_provide_options provide;
    struct rescue_figures rescued = {.put_back = 0};
    const struct inject_options how = options_of(flight, "", NULL, &provide);
    int status = check_process(pid, error);
    if (status == 0)
        status = rescue_process(pid, NULL, &how, &rescued, error);
    if (status == 0 && !rescued.is_agent_out)
        status = check_found(pid, flight, error);
    if (status == 0 && !rescued.is_agent_out) {
        struct injection *injection = inject_take_over(pid, &how, error);
        status = injection ? inject_remove(injection, error) : -1;
    }
    shorten(error);
    return status;
}
