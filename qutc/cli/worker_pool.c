// SPDX-License-Identifier: Apache-2.0
#include "qutc/cli/worker_pool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qutc/cli/options.h"

enum {
    REPLY_TEXT_MAX_BYTES = 1 << 28, // a worker may have been overrun by its input: not all it says is true
    EXIT_NO_MEMORY = 12,            // of a worker that could not hold what there was to say
};

struct reply {
    uint64_t output_bytes;
    uint64_t error_bytes;
    struct cli_tally tally;
};

struct worker {
    pid_t pid; // 0: none
    int fd;
    size_t index;
    bool is_busy;
    struct reply reply;
    size_t reply_got; // bytes, of reply and then of text
    char *text;
};

struct run {
    const struct cli_pool *pool;
    struct worker workers[CLI_JOBS_MAX];
    unsigned worker_count;
    struct cli_pool_result **results;    // that wait for their turn
    size_t next_index, next_taken, done; // next_index counts turns: pool->order has the piece
    bool is_stopped;
};

static bool send_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool is_whole(FILE *memory)
{
    bool has_failed = ferror(memory);
    return fclose(memory) == 0 && !has_failed;
}

// 0, or the status to exit with.
static int do_one(const struct cli_pool *pool, int fd, size_t index)
{
    char *texts[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    FILE *output = open_memstream(&texts[0], &sizes[0]);
    FILE *errors = open_memstream(&texts[1], &sizes[1]);
    if (!output || !errors)
        return EXIT_NO_MEMORY;
    struct reply reply = {0};
    pool->work(pool->context, index, output, errors, &reply.tally);
    bool all = is_whole(output);
    all = is_whole(errors) && all;
    // glibc's streams can also fail to hand over what they hold, without a word.
    if (!all || !texts[0] || !texts[1])
        return EXIT_NO_MEMORY;
    reply.output_bytes = sizes[0];
    reply.error_bytes = sizes[1];
    bool ok =
        send_all(fd, &reply, sizeof reply) && send_all(fd, texts[0], sizes[0]) && send_all(fd, texts[1], sizes[1]);
    free(texts[0]);
    free(texts[1]);
    return ok ? 0 : 1;
}

static _Noreturn void be_worker(const struct cli_pool *pool, int fd)
{
    for (;;) {
        uint64_t index;
        ssize_t got = recv(fd, &index, sizeof index, MSG_WAITALL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != (ssize_t)sizeof index)
            _exit(0); // the parent is done, or gone
        int status = do_one(pool, fd, (size_t)index);
        if (status != 0)
            _exit(status);
    }
}

static bool start_worker(struct run *run, struct worker *worker)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return false;
    pid_t pid = fork();
    if (pid < 0) {
        int saved = errno;
        close(fds[0]);
        close(fds[1]);
        errno = saved;
        return false;
    }
    if (pid == 0) {
        // The others' ends too: they must see it when the parent goes.
        for (unsigned i = 0; i < run->worker_count; i++)
            if (run->workers[i].pid)
                close(run->workers[i].fd);
        close(fds[0]);
        be_worker(run->pool, fds[1]);
    }
    close(fds[1]);
    *worker = (struct worker){.pid = pid, .fd = fds[0]};
    return true;
}

static void end_worker(struct worker *worker, char *death, size_t death_size)
{
    int status = 0;
    close(worker->fd);
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (death && WIFSIGNALED(status))
        snprintf(death, death_size, "crashed: signal %d", WTERMSIG(status));
    else if (death && WEXITSTATUS(status) == EXIT_NO_MEMORY)
        snprintf(death, death_size, "%s", base_reason_name(BASE_ERR_NO_MEMORY));
    else if (death)
        snprintf(death, death_size, "crashed: exit status %d", WEXITSTATUS(status));
    free(worker->text);
    *worker = (struct worker){0};
}

static void free_result(struct cli_pool_result *result)
{
    if (!result)
        return;
    free(result->output);
    free(result->errors);
    free(result);
}

static void take_in_order(struct run *run)
{
    const struct cli_pool *pool = run->pool;
    while (run->next_taken < pool->count && run->results[run->next_taken]) {
        struct cli_pool_result *result = run->results[run->next_taken];
        run->results[run->next_taken++] = NULL;
        if (!run->is_stopped && !pool->take(pool->context, result))
            run->is_stopped = true;
        free_result(result);
    }
}

static bool finish(struct run *run, struct worker *worker, bool has_died)
{
    struct cli_pool_result *result = calloc(1, sizeof *result);
    if (!result)
        return false;
    result->index = worker->index;
    result->has_died = has_died;
    if (has_died) {
        end_worker(worker, result->death, sizeof result->death);
    } else {
        result->tally = worker->reply.tally;
        result->output = strndup(worker->text, (size_t)worker->reply.output_bytes);
        result->errors = strdup(worker->text + worker->reply.output_bytes);
        free(worker->text);
        worker->text = NULL;
        worker->is_busy = false;
        if (!result->output || !result->errors) {
            free_result(result);
            return false;
        }
    }
    run->results[result->index] = result;
    run->done++;
    if (run->pool->step)
        run->pool->step(run->pool->context, run->done, result->index);
    take_in_order(run);
    return true;
}

static void dispatch(struct run *run, struct worker *worker)
{
    size_t turn = run->next_index++;
    worker->index = run->pool->order ? run->pool->order[turn] : turn;
    worker->is_busy = true;
    worker->reply_got = 0;
    uint64_t index = worker->index;
    // Where it has died between two pieces, reading from it will say so.
    send_all(worker->fd, &index, sizeof index);
}

enum read { READ_GOOD, READ_DEAD, READ_NO_MEMORY }; // dead: or it talks nonsense

// Reads what has come.
static enum read read_some(struct worker *worker)
{
    char *target = (char *)&worker->reply + worker->reply_got;
    size_t wanted = sizeof worker->reply - worker->reply_got;
    if (worker->reply_got >= sizeof worker->reply) {
        size_t text_got = worker->reply_got - sizeof worker->reply;
        target = worker->text + text_got;
        wanted = (size_t)(worker->reply.output_bytes + worker->reply.error_bytes) - text_got;
    }
    ssize_t got = recv(worker->fd, target, wanted, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return READ_GOOD;
    if (got <= 0)
        return READ_DEAD;
    worker->reply_got += (size_t)got;
    if (worker->reply_got != sizeof worker->reply || worker->text)
        return READ_GOOD;
    if (worker->reply.output_bytes > REPLY_TEXT_MAX_BYTES || worker->reply.error_bytes > REPLY_TEXT_MAX_BYTES)
        return READ_DEAD;
    size_t text_bytes = (size_t)(worker->reply.output_bytes + worker->reply.error_bytes);
    worker->text = malloc(text_bytes + 1);
    if (!worker->text)
        return READ_NO_MEMORY;
    worker->text[text_bytes] = '\0';
    return READ_GOOD;
}

static bool is_complete(const struct worker *worker)
{
    return worker->reply_got >= sizeof worker->reply &&
           worker->reply_got - sizeof worker->reply == worker->reply.output_bytes + worker->reply.error_bytes;
}

// Gives every idle worker something to do; replaces those that died. -1 where no worker is left.
static int keep_busy(struct run *run)
{
    unsigned busy = 0;
    for (unsigned i = 0; i < run->worker_count; i++) {
        struct worker *worker = &run->workers[i];
        bool is_needed = !run->is_stopped && run->next_index < run->pool->count;
        if (!worker->is_busy && is_needed && (worker->pid || start_worker(run, worker)))
            dispatch(run, worker);
        busy += worker->is_busy;
    }
    if (busy == 0 && !run->is_stopped && run->next_index < run->pool->count)
        return -1;
    return (int)busy;
}

static bool wait_for_some(struct run *run)
{
    struct pollfd polls[CLI_JOBS_MAX];
    for (unsigned i = 0; i < run->worker_count; i++)
        polls[i] = (struct pollfd){.fd = run->workers[i].is_busy ? run->workers[i].fd : -1, .events = POLLIN};
    if (poll(polls, run->worker_count, -1) < 0)
        return errno == EINTR;
    for (unsigned i = 0; i < run->worker_count; i++) {
        struct worker *worker = &run->workers[i];
        if (polls[i].fd < 0 || !polls[i].revents)
            continue;
        enum read got = read_some(worker);
        if (got == READ_NO_MEMORY)
            return false;
        bool is_alive = got == READ_GOOD;
        if (!is_alive && worker->pid)
            kill(worker->pid, SIGKILL); // nonsense; harmless to one that is dead
        if ((!is_alive || is_complete(worker)) && !finish(run, worker, !is_alive))
            return false;
    }
    return true;
}

int cli_pool_run(const struct cli_pool *pool)
{
    struct run *run = calloc(1, sizeof *run);
    struct cli_pool_result **results = calloc(pool->count + 1, sizeof *results);
    int result = -1;
    if (run && results) {
        run->pool = pool;
        run->results = results;
        run->worker_count = pool->jobs < pool->count ? pool->jobs : (unsigned)pool->count;
        fflush(stdout);
        int busy;
        while ((busy = keep_busy(run)) > 0 && wait_for_some(run))
            continue;
        result = busy == 0 ? 0 : -1;
        int saved = errno;
        for (unsigned i = 0; i < run->worker_count; i++)
            if (run->workers[i].pid)
                end_worker(&run->workers[i], NULL, 0);
        for (size_t i = 0; i < pool->count; i++)
            free_result(results[i]);
        errno = saved;
    }
    free(run);
    free(results);
    return result;
}
