// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/agent_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file_io_inline.h"
#include "qutc/include/qutc/provide.h"

static const uint64_t memory_bytes_max = 1u << 30; // of an image that is sent

struct tables_job {
    struct tables_job *next;
    struct agent_channel_table asked;
    uint32_t pid, uid;
    int memory_fd, client_fd;
};

static void answer(struct tables_job *job, const char *reason, int fd)
{
    record_server_answer(job->client_fd, reason, fd);
    close(job->client_fd);
    if (job->memory_fd >= 0)
        close(job->memory_fd);
    free(job);
}

// ---- what was made before

// What was made for JIT code holds for one process only; what has no identity may be another file.
static bool is_for_all(const struct agent_channel_table *asked)
{
    return asked->build_id_bytes && !(asked->flags & QUT_COMPILE_JIT);
}

static int find_kept(const struct tables *tables, const struct agent_channel_table *asked, uint32_t uid)
{
    for (uint32_t i = 0; i < tables->kept_count && is_for_all(asked); i++) {
        const struct tables_kept *kept = &tables->kept[i];
        if (kept->uid == uid && kept->build_id_bytes == asked->build_id_bytes && kept->flags == asked->flags &&
            memcmp(kept->build_id, asked->build_id, asked->build_id_bytes) == 0)
            return kept->fd;
    }
    return -1;
}

// Takes fd over. Returns it, or -1 where the caller has to close it.
static int keep(struct tables *tables, const struct agent_channel_table *asked, uint32_t uid, int fd)
{
    if (!is_for_all(asked) || tables->kept_count == TABLES_KEPT_MAX)
        return -1;
    if (!tables->kept)
        tables->kept = calloc(TABLES_KEPT_MAX, sizeof *tables->kept);
    if (!tables->kept)
        return -1;
    struct tables_kept *place = &tables->kept[tables->kept_count++];
    *place = (struct tables_kept){.uid = uid, .build_id_bytes = asked->build_id_bytes, .flags = asked->flags, .fd = fd};
    memcpy(place->build_id, asked->build_id, asked->build_id_bytes);
    return fd;
}

// ---- making one

// The image's bytes, copied: the sender of the descriptor may cut it short meanwhile.
static void *copy_memory(const struct tables_job *job)
{
    struct stat status;
    uint64_t size = job->asked.memory_bytes;
    if (job->memory_fd < 0 || !size || size > memory_bytes_max || fstat(job->memory_fd, &status) != 0 ||
        !S_ISREG(status.st_mode) || (uint64_t)status.st_size < size)
        return NULL;
    uint8_t *bytes = malloc((size_t)size);
    for (uint64_t at = 0; bytes && at < size;) {
        ssize_t got = pread(job->memory_fd, bytes + at, (size_t)(size - at), (off_t)at);
        if (got > 0) {
            at += (uint64_t)got;
        } else if (got == 0 || errno != EINTR) {
            free(bytes);
            bytes = NULL;
        }
    }
    return bytes;
}

// Its path, as it is found from here. In a container, or another root, a file of the same name here may be another one.
static void find_file(const struct tables_job *job, char *path, size_t size)
{
    struct stat here, there;
    snprintf(path, size, "/proc/%" PRIu32 "/root%s", job->pid, job->asked.path);
    bool is_there = job->pid && job->asked.path[0] == '/' && stat(path, &there) == 0 && access(path, R_OK) == 0;
    bool is_same =
        is_there && stat(job->asked.path, &here) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino;
    if (!is_there || is_same)
        snprintf(path, size, "%s", job->asked.path);
}

static int seal(const void *bytes, size_t size)
{
    int fd = memfd_create("qut-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && base_file_write_all(fd, bytes, size) != 0) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0)
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    return fd;
}

// -1: `reason` says why.
static int make(const struct tables *tables, const struct tables_job *job, char *reason, size_t reason_size)
{
    char path[sizeof job->asked.path + 32];
    find_file(job, path, sizeof path);
    void *memory = copy_memory(job), *table = NULL;
    size_t table_size = 0;
    const struct qutc_provide_options provide = {.size = sizeof provide,
                                                 .cache_directory = tables->cache_directory,
                                                 .debug_root = "/usr/lib/debug",
                                                 .take = tables->take,
                                                 .take_context = tables->take_context};
    const struct qut_compile_request request = {.path = path,
                                                .offset_bytes = job->asked.offset_bytes,
                                                .memory = memory,
                                                .memory_size = memory ? (size_t)job->asked.memory_bytes : 0,
                                                .build_id = job->asked.build_id,
                                                .build_id_size = job->asked.build_id_bytes,
                                                .flags = job->asked.flags | QUT_COMPILE_OF_ANOTHER};
    int fd = -1;
    if (qutc_compile_for_qut((void *)&provide, &request, &table, &table_size, reason, reason_size) == 0) {
        fd = seal(table, table_size);
        if (fd < 0)
            snprintf(reason, reason_size, "the recorder has no memory for the table");
    }
    free(table);
    free(memory);
    return fd;
}

// Called with the mutex held, which is let go of meanwhile.
static void do_job(struct tables *tables, struct tables_job *job)
{
    char reason[128] = "no table";
    int kept = find_kept(tables, &job->asked, job->uid);
    pthread_mutex_unlock(&tables->mutex);
    int fd = kept >= 0 ? kept : make(tables, job, reason, sizeof reason);
    const struct agent_channel_table asked = job->asked;
    const uint32_t uid = job->uid;
    answer(job, fd >= 0 ? NULL : reason, fd);
    pthread_mutex_lock(&tables->mutex);
    tables->made += kept < 0 && fd >= 0;
    tables->refused += fd < 0;
    if (kept < 0 && fd >= 0 && (find_kept(tables, &asked, uid) >= 0 || keep(tables, &asked, uid, fd) < 0))
        close(fd);
}

static void *work(void *context)
{
    struct tables *tables = context;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_mutex_lock(&tables->mutex);
    while (!tables->is_ending) {
        struct tables_job *job = tables->first;
        if (!job) {
            pthread_cond_wait(&tables->changed, &tables->mutex);
            continue;
        }
        tables->first = job->next;
        tables->waiting_count--;
        tables->busy_count++;
        do_job(tables, job);
        tables->busy_count--;
        if (tables->is_ending)
            pthread_cond_broadcast(&tables->changed);
    }
    pthread_mutex_unlock(&tables->mutex);
    return NULL;
}

// ---- from outside

int record_tables_begin(struct tables *tables, const char *cache_directory, qut_compile_fn take, void *take_context,
                        struct base_error *error)
{
    *tables = (struct tables){.cache_directory = cache_directory ? strdup(cache_directory) : NULL,
                              .take = take,
                              .take_context = take_context};
    if (cache_directory && !tables->cache_directory)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    int failed = pthread_mutex_init(&tables->mutex, NULL);
    if (!failed)
        failed = pthread_cond_init(&tables->changed, NULL);
    return failed ? base_fail(error, BASE_ERR_IO, "", 0, "pthread: %s", strerror(failed)) : 0;
}

bool record_tables_end(struct tables *tables)
{
    enum { PATIENCE_S = 3 }; // the table of a large library takes longer; it is not waited for any more
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&tables->mutex);
    tables->is_ending = true;
    pthread_cond_broadcast(&tables->changed);
    for (struct tables_job *job = tables->first, *next; job; job = next) {
        next = job->next;
        answer(job, "the recording has ended", -1);
    }
    tables->first = NULL;
    for (int failed = 0; tables->busy_count && !failed;)
        failed = pthread_cond_timedwait(&tables->changed, &tables->mutex, &until);
    bool is_left = tables->busy_count != 0;
    pthread_mutex_unlock(&tables->mutex);
    for (uint32_t i = 0; i < tables->worker_count; i++)
        if (is_left)
            pthread_detach(tables->workers[i]);
        else
            pthread_join(tables->workers[i], NULL);
    if (is_left)
        return false;
    for (uint32_t i = 0; i < tables->kept_count; i++)
        close(tables->kept[i].fd);
    free(tables->kept);
    pthread_cond_destroy(&tables->changed);
    pthread_mutex_destroy(&tables->mutex);
    free(tables->cache_directory);
    return true;
}

static void put(struct tables *tables, struct tables_job *job)
{
    if (tables->first)
        tables->last->next = job;
    else
        tables->first = job;
    tables->last = job;
    tables->waiting_count++;
    // As many workers as are needed at once: mostly none.
    if (tables->busy_count + tables->waiting_count > tables->worker_count && tables->worker_count < TABLES_WORKERS &&
        pthread_create(&tables->workers[tables->worker_count], NULL, work, tables) == 0)
        tables->worker_count++;
    pthread_cond_signal(&tables->changed);
}

void record_tables_ask(struct tables *tables, const struct agent_channel_table *table, const struct server_peer *peer,
                       int memory_fd, int client_fd)
{
    struct tables_job *job = malloc(sizeof *job);
    if (!job) {
        record_server_answer(client_fd, "the recorder has no memory", -1);
        close(client_fd);
        if (memory_fd >= 0)
            close(memory_fd);
        return;
    }
    *job = (struct tables_job){
        .asked = *table, .pid = peer->pid, .uid = peer->uid, .memory_fd = memory_fd, .client_fd = client_fd};
    pthread_mutex_lock(&tables->mutex);
    tables->asked++;
    bool has_room = tables->waiting_count < TABLES_WAITING_MAX;
    if (has_room)
        put(tables, job);
    bool has_worker = tables->worker_count > 0;
    if (has_room && !has_worker) { // no thread to be had: it is the only one that waits
        tables->first = NULL;
        tables->waiting_count = 0;
    }
    pthread_mutex_unlock(&tables->mutex);
    if (!has_room || !has_worker)
        answer(job, has_room ? "the recorder has no threads" : "the recorder is asked for too many tables", -1);
}
