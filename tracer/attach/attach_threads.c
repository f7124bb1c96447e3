// SPDX-License-Identifier: Apache-2.0
// Which threads there are, and which of them run: what /proc says, without a stop.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libqut/os/os.h"
#include "libqut/os/process.h"
#include "tracer/attach/inside.h"

enum { LINE_BYTES = 128 };

// ---- the list

static struct attach_thread *find(struct attach_session *session, pid_t tid)
{
    for (size_t i = 0; i < session->threads.count; i++)
        if (session->threads.items[i].tid == tid && !session->threads.items[i].is_gone)
            return &session->threads.items[i];
    return NULL;
}

static int open_task(const struct attach_session *session, pid_t tid, const char *name)
{
    int fd = os_open_task_file(attach_live(session)->tasks_fd, tid, name);
    return fd < 0 ? -1 : fd;
}

// The last of NSpid is what the process itself calls the thread; the first, what we do.
static pid_t inner_tid(const struct attach_session *session, pid_t tid)
{
    char text[4096], path[64];
    if (!session->has_namespace)
        return tid;
    snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool got = fd >= 0 && os_read_line(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    char *at = got ? strstr(text, "\nNSpid:") : NULL;
    long number = tid;
    if (at)
        for (char *end = at += 7; *at && *at != '\n'; at = end) {
            long next = strtol(at, &end, 10);
            if (end == at)
                break;
            number = next;
        }
    return (pid_t)number;
}

static int add(void *context, pid_t tid)
{
    struct attach_session *session = context;
    const struct attach_options *options = session->options;
    if ((options->tid && tid != options->tid) || find(session, tid))
        return 0;
    struct attach_thread *thread = BASE_ADD(&session->threads);
    if (!thread)
        return -1;
    bool is_main = tid == attach_live(session)->pid;
    *thread = (struct attach_thread){
        .tid = tid,
        .inner_tid = inner_tid(session, tid),
        .is_main = is_main,
        .was_running = true, // it may be
        .schedstat_fd = open_task(session, tid, "schedstat"),
        .syscall_fd = open_task(session, tid, "syscall"),
        .pace_ns = is_main && options->main_period_ns ? options->main_period_ns : options->period_ns,
        .first_ns = session->now_ns,
        .next_ns = session->now_ns,
    };
    session->result->threads++;
    bool moved;
    if (!attach_look(session, thread, &moved)) {
        attach_forget_thread(session, thread);
        return 0;
    }
    // All that a thread did before it was seen is not ours; of one that was born meanwhile, all is.
    thread->first_cpu_ns = session->known_links ? 0 : thread->cpu_ns;
    attach_read_name(session, thread);
    attach_store_slot(session, thread);
    return 0;
}

// A task directory has two links, and one for each thread.
static uint64_t links_of(const struct attach_session *session)
{
    struct stat status;
    return fstat(attach_live(session)->tasks_fd, &status) == 0 ? status.st_nlink : 0;
}

static void drop_gone(struct attach_session *session)
{
    size_t kept = 0;
    for (size_t i = 0; i < session->threads.count; i++)
        if (!session->threads.items[i].is_gone || session->threads.items[i].is_asked)
            session->threads.items[kept++] = session->threads.items[i];
    session->threads.count = kept;
}

void attach_list_threads(struct attach_session *session)
{
    uint64_t links = links_of(session);
    if (links == 0 || links == session->known_links)
        return;
    drop_gone(session);
    target_live_each_tid(attach_live(session)->pid, add, session);
    session->known_links = links;
    session->result->threads_now = session->threads.count;
}

void attach_forget_thread(struct attach_session *session, struct attach_thread *thread)
{
    if (thread->is_gone)
        return;
    attach_sleep_ends(session, thread);
    thread->is_gone = true;
    if (thread->slot)
        segment_thread_end(&session->store.segment, thread->slot, session->now_ns);
    thread->slot = NULL;
    if (thread->schedstat_fd >= 0)
        close(thread->schedstat_fd);
    if (thread->syscall_fd >= 0)
        close(thread->syscall_fd);
    thread->schedstat_fd = thread->syscall_fd = -1;
    session->known_links = 1; // as many may have been born: the list is made anew

    // What was due: with wall by the time it lived, else by the processor time that it used.
    uint64_t used_ns =
        session->options->wall ? session->now_ns - thread->first_ns : thread->cpu_ns - thread->first_cpu_ns;
    uint64_t due = thread->pace_ns ? used_ns / thread->pace_ns : 0,
             met = thread->taken + thread->covered + thread->missed;
    session->result->due += due > met ? due : met;
    session->result->missed_asleep += due > met ? due - met : 0;
}

void attach_free_threads(struct attach_session *session)
{
    for (size_t i = 0; i < session->threads.count; i++)
        attach_forget_thread(session, &session->threads.items[i]);
    base_vector_free(&session->threads.vector);
}

// ---- one of them

static bool read_line(const struct attach_session *session, const struct attach_thread *thread, int fd,
                      const char *name, char *text, size_t size)
{
    if (fd >= 0)
        return os_read_line(fd, text, size);
    // There were no descriptors left.
    fd = open_task(session, thread->tid, name);
    bool got = fd >= 0 && os_read_line(fd, text, size);
    if (fd >= 0)
        close(fd);
    return got;
}

bool attach_look(struct attach_session *session, struct attach_thread *thread, bool *moved)
{
    char text[LINE_BYTES], *at = text;
    *moved = false;
    if (!read_line(session, thread, thread->schedstat_fd, "schedstat", text, sizeof text))
        return false;
    uint64_t cpu_ns = strtoull(at, &at, 10);
    uint64_t delay_ns = strtoull(at, &at, 10);
    uint64_t slices = strtoull(at, &at, 10);
    *moved = cpu_ns != thread->cpu_ns || slices != thread->slices;
    thread->cpu_ns = cpu_ns;
    thread->slices = slices;
    thread->delay_ns = delay_ns;
    return true;
}

bool attach_state(struct attach_session *session, struct attach_thread *thread, struct target_sleep *sleep, bool *runs)
{
    if (!read_line(session, thread, thread->syscall_fd, "syscall", sleep->text, sizeof sleep->text))
        return false;
    *runs = strncmp(sleep->text, "running", 7) == 0;
    return *runs || target_live_parse_sleep(sleep);
}

bool attach_read_stat(const struct attach_session *session, const struct attach_thread *thread, char *text, size_t size)
{
    return read_line(session, thread, -1, "stat", text, size);
}

void attach_read_name(struct attach_session *session, struct attach_thread *thread)
{
    char name[LINE_BYTES];
    if (!read_line(session, thread, -1, "comm", name, sizeof name))
        return;
    name[strcspn(name, "\n")] = 0;
    if (strncmp(name, thread->name, sizeof thread->name - 1) == 0)
        return;
    memcpy(thread->name, name, sizeof thread->name - 1);
    if (thread->slot)
        segment_thread_rename(thread->slot, thread->name);
}
