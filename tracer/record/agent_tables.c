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
#include "libqut/arch/arch.h"
#include "qutc/include/qutc/provide.h"
#include "tracer/record/tables_ahead.h"

static const uint64_t memory_bytes_max = 1u << 30; // of an image that is sent

static void let_go(struct tables_job *job)
{
    if (job->client_fd >= 0)
        close(job->client_fd);
    if (job->memory_fd >= 0)
        close(job->memory_fd);
    free(job);
}

static void refuse(struct tables_job *job, const char *reason)
{
    if (job->client_fd >= 0)
        record_server_answer(job->client_fd, reason, -1);
    let_go(job);
}

static void *work(void *context);

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

static bool is_same(const struct tables_job *one, const struct tables_job *other)
{
    const struct agent_channel_table *a = &one->asked, *b = &other->asked;
    return !one->looks && !other->looks && one->uid == other->uid && is_for_all(a) && is_for_all(b) &&
           a->build_id_bytes == b->build_id_bytes && a->flags == b->flags &&
           memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
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
                                                 // Others' machines are asked once, and only of what was asked for.
                                                 .take = job->client_fd >= 0 ? tables->take : NULL,
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

// ---- what is done next

static bool is_being_done(const struct tables *tables, const struct tables_job *job)
{
    for (uint32_t i = 0; i < TABLES_WORKERS; i++)
        if (tables->doing[i] && is_same(tables->doing[i], job))
            return true;
    return false;
}

// The first that is not being made already: what that comes to is kept for this one.
static struct tables_job **find_next(struct tables *tables)
{
    for (struct tables_job **place = &tables->first; *place; place = &(*place)->next)
        if (!is_being_done(tables, *place))
            return place;
    return NULL;
}

static struct tables_job *take_next(struct tables *tables)
{
    struct tables_job **place = find_next(tables), *job;
    if (!place) {
        job = tables->ahead;
        tables->ahead = job ? job->next : NULL;
        return job;
    }
    job = *place;
    *place = job->next;
    if (tables->last == job) {
        tables->last = tables->first;
        while (tables->last && tables->last->next)
            tables->last = tables->last->next;
    }
    tables->waiting_count--;
    return job;
}

// As many workers as are needed at once: mostly none.
static void need_worker(struct tables *tables)
{
    const bool has_ahead = tables->ahead != NULL;
    if (tables->busy_count + tables->waiting_count + has_ahead > tables->worker_count &&
        tables->worker_count < TABLES_WORKERS &&
        pthread_create(&tables->workers[tables->worker_count], NULL, work, tables) == 0)
        tables->worker_count++;
    pthread_cond_broadcast(&tables->changed);
}

static struct tables_job *new_job(const struct agent_channel_table *asked, uint32_t pid, uint32_t uid)
{
    struct tables_job *job = malloc(sizeof *job);
    if (job)
        *job = (struct tables_job){.asked = *asked, .pid = pid, .uid = uid, .memory_fd = -1, .client_fd = -1};
    return job;
}

static bool is_known(const struct tables *tables, const struct tables_job *job)
{
    for (const struct tables_job *other = tables->first; other; other = other->next)
        if (is_same(other, job))
            return true;
    return is_being_done(tables, job) || find_kept(tables, &job->asked, job->uid) >= 0;
}

// Called with the mutex held, which is let go of meanwhile.
static void look_ahead(struct tables *tables, const struct tables_job *look)
{
    struct agent_channel_table *asked;
    pthread_mutex_unlock(&tables->mutex);
    const size_t count = record_tables_ahead(look->pid, tables->cache_directory, &asked);
    pthread_mutex_lock(&tables->mutex);
    struct tables_job **place = &tables->ahead;
    for (size_t i = 0; i < count && !tables->is_ending; i++) {
        struct tables_job *job = new_job(&asked[i], look->pid, look->uid);
        if (!job)
            break;
        if (is_known(tables, job)) {
            free(job);
            continue;
        }
        job->next = *place;
        *place = job;
        place = &job->next;
    }
    free(asked);
    need_worker(tables);
}

// The same.
static void do_job(struct tables *tables, struct tables_job *job)
{
    char reason[128] = "no table";
    const bool is_asked = job->client_fd >= 0;
    int kept = find_kept(tables, &job->asked, job->uid);
    pthread_mutex_unlock(&tables->mutex);
    int fd = kept >= 0 ? kept : make(tables, job, reason, sizeof reason);
    if (is_asked)
        record_server_answer(job->client_fd, fd >= 0 ? NULL : reason, fd);
    pthread_mutex_lock(&tables->mutex);
    tables->made += is_asked && kept < 0 && fd >= 0;
    tables->made_ahead += !is_asked && kept < 0 && fd >= 0;
    tables->refused += is_asked && fd < 0;
    if (kept < 0 && fd >= 0 &&
        (find_kept(tables, &job->asked, job->uid) >= 0 || keep(tables, &job->asked, job->uid, fd) < 0))
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
        struct tables_job *job = take_next(tables), **place = tables->doing;
        if (!job) {
            pthread_cond_wait(&tables->changed, &tables->mutex);
            continue;
        }
        while (*place)
            place++;
        *place = job;
        tables->busy_count++;
        if (job->looks)
            look_ahead(tables, job);
        else
            do_job(tables, job);
        tables->busy_count--;
        *place = NULL;
        let_go(job);
        // Somebody may wait for the very same, or for the end.
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

static void refuse_all(struct tables_job **first, const char *reason)
{
    for (struct tables_job *job = *first, *next; job; job = next) {
        next = job->next;
        refuse(job, reason);
    }
    *first = NULL;
}

void record_tables_stop(struct tables *tables)
{
    pthread_mutex_lock(&tables->mutex);
    tables->is_ending = true;
    pthread_cond_broadcast(&tables->changed);
    refuse_all(&tables->first, "the recording has ended");
    refuse_all(&tables->ahead, "the recording has ended");
    pthread_mutex_unlock(&tables->mutex);
}

bool record_tables_end(struct tables *tables)
{
    enum { PATIENCE_S = 3 }; // the table of a large library takes longer; it is not waited for any more
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    record_tables_stop(tables);
    pthread_mutex_lock(&tables->mutex);
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

// What was to be made ahead of this is made for it.
static void drop_ahead(struct tables *tables, const struct tables_job *asked)
{
    for (struct tables_job **place = &tables->ahead; *place;) {
        struct tables_job *job = *place;
        if (!is_same(job, asked)) {
            place = &job->next;
            continue;
        }
        *place = job->next;
        let_go(job);
    }
}

static void put(struct tables *tables, struct tables_job *job)
{
    drop_ahead(tables, job);
    if (tables->first)
        tables->last->next = job;
    else
        tables->first = job;
    tables->last = job;
    tables->waiting_count++;
    if (tables->looked_pid != job->pid && job->pid && is_for_all(&job->asked)) {
        struct tables_job *look = new_job(&job->asked, job->pid, job->uid);
        tables->looked_pid = job->pid;
        if (look) {
            look->looks = true;
            look->next = tables->ahead;
            tables->ahead = look;
        }
    }
    need_worker(tables);
    need_worker(tables); // what is asked for, and what is ahead
}

void record_tables_expect(struct tables *tables, const struct program *program)
{
    struct agent_channel_table asked = {.build_id_bytes = program->build_id_bytes};
    // Where there are servers, they are asked first, which is done for those who wait.
    if (tables->take || !program->build_id_bytes || strlen(program->image) >= sizeof asked.path ||
        !record_table_is_missing(tables->cache_directory, arch_by_id((enum qut_arch_id)program->arch)->name,
                                 program->build_id, program->build_id_bytes))
        return;
    memcpy(asked.build_id, program->build_id, program->build_id_bytes);
    strcpy(asked.path, program->image);
    struct tables_job *job = new_job(&asked, 0, geteuid());
    if (!job)
        return;
    pthread_mutex_lock(&tables->mutex);
    job->next = tables->ahead;
    tables->ahead = job;
    need_worker(tables);
    pthread_mutex_unlock(&tables->mutex);
}

void record_tables_ask(struct tables *tables, const struct agent_channel_table *table, const struct server_peer *peer,
                       int memory_fd, int client_fd)
{
    struct tables_job *job = new_job(table, peer->pid, peer->uid);
    if (!job) {
        record_server_answer(client_fd, "the recorder has no memory", -1);
        close(client_fd);
        if (memory_fd >= 0)
            close(memory_fd);
        return;
    }
    job->memory_fd = memory_fd;
    job->client_fd = client_fd;
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
        refuse(job, has_room ? "the recorder has no threads" : "the recorder is asked for too many tables");
}
