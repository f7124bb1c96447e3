// SPDX-License-Identifier: Apache-2.0
// Tables from servers for whoever walks: what they lack is remembered, and who is slow is left alone.
#include <qutc/servers.h>

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock_inline.h"
#include "qutc/cache.h"
#include "qutc/qutc.h"
#include "qutc/shelf/inside.h"

enum { MISSES_MAX = 1024 };
static const uint64_t in_vain_max_ns = 20000000000;

struct miss {
    const struct arch *arch;
    size_t identity_size;
    uint8_t identity[QUT_IDENTITY_MAX];
};

struct qutc_servers {
    struct qutc_servers_options options;
    char *memory; // folder of what servers said; NULL: none
    pthread_mutex_t mutex;
    struct {
        uint64_t in_vain_ns;
        bool is_left_alone;
    } each[SHELF_URLS_MAX];
    struct miss misses[MISSES_MAX]; // the oldest goes
    size_t miss_count;              // ever
};

// ---- open and close

static int check_options(const struct qutc_servers_options *options, struct base_error *error)
{
    if (options->url_count == 0 || options->url_count > SHELF_URLS_MAX)
        return base_fail(error, BASE_ERR_LIMIT, "", 0, "1 to %d servers, not %zu", SHELF_URLS_MAX, options->url_count);
    for (size_t i = 0; i < options->url_count; i++) {
        struct base_error why = {0};
        if (shelf_check_url(options->urls[i], &why) != 0)
            return base_fail(error, why.reason, "", 0, "%s: %s", options->urls[i], why.detail);
    }
    return 0;
}

static struct qutc_servers *make(const struct qutc_servers_options *options)
{
    struct qutc_servers *servers = calloc(1, sizeof *servers);
    if (!servers)
        return NULL;
    servers->options = *options;
    if (options->cache_directory && asprintf(&servers->memory, "%s/servers", options->cache_directory) < 0)
        servers->memory = NULL;
    if ((!options->cache_directory || servers->memory) && pthread_mutex_init(&servers->mutex, NULL) == 0)
        return servers;
    free(servers->memory);
    free(servers);
    return NULL;
}

int qutc_servers_open(const struct qutc_servers_options *options, struct qutc_servers **servers, char *reason,
                      size_t reason_size)
{
    struct qutc_servers_options known = {0};
    struct base_error error = {0};
    memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
    known.timeout_ms = known.timeout_ms ? known.timeout_ms : SHELF_TIMEOUT_MS;
    *servers = NULL;
    if (check_options(&known, &error) == 0 && !(*servers = make(&known)))
        base_fail(&error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    if (!*servers && reason_size)
        snprintf(reason, reason_size, "%s", error.detail);
    return *servers ? 0 : -1;
}

void qutc_servers_close(struct qutc_servers *servers)
{
    if (!servers)
        return;
    pthread_mutex_destroy(&servers->mutex);
    free(servers->memory);
    free(servers);
}

// ---- what is known of them

static bool is_same(const struct miss *miss, const struct shelf_wanted *wanted)
{
    return miss->arch == wanted->arch && miss->identity_size == wanted->identity_size &&
           memcmp(miss->identity, wanted->identity, wanted->identity_size) == 0;
}

static bool is_missed(struct qutc_servers *servers, const struct shelf_wanted *wanted)
{
    bool is_known = false;
    pthread_mutex_lock(&servers->mutex);
    for (size_t i = 0; i < MISSES_MAX && i < servers->miss_count && !is_known; i++)
        is_known = is_same(&servers->misses[i], wanted);
    pthread_mutex_unlock(&servers->mutex);
    return is_known;
}

static void remember_miss(struct qutc_servers *servers, const struct shelf_wanted *wanted)
{
    pthread_mutex_lock(&servers->mutex);
    struct miss *miss = &servers->misses[servers->miss_count++ % MISSES_MAX];
    *miss = (struct miss){.arch = wanted->arch, .identity_size = wanted->identity_size};
    memcpy(miss->identity, wanted->identity, wanted->identity_size);
    pthread_mutex_unlock(&servers->mutex);
}

static bool is_left_alone(struct qutc_servers *servers, size_t server)
{
    pthread_mutex_lock(&servers->mutex);
    bool is_so = servers->each[server].is_left_alone;
    pthread_mutex_unlock(&servers->mutex);
    return is_so;
}

static void count_in_vain(struct qutc_servers *servers, size_t server, uint64_t took_ns, bool is_failure)
{
    pthread_mutex_lock(&servers->mutex);
    servers->each[server].in_vain_ns += took_ns;
    servers->each[server].is_left_alone |= servers->each[server].in_vain_ns >= in_vain_max_ns ||
                                           (is_failure && took_ns >= servers->options.timeout_ms * UINT64_C(1000000));
    pthread_mutex_unlock(&servers->mutex);
}

// ---- a question

// Versions of libcurl whose encryption writes to sockets by itself may cause a SIGPIPE, which ends a program.
struct held_signal {
    sigset_t pipe, mask_before;
    bool was_pending;
};

static void hold_sigpipe(struct held_signal *held)
{
    sigset_t pending;
    sigemptyset(&held->pipe);
    sigaddset(&held->pipe, SIGPIPE);
    held->was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &held->pipe, &held->mask_before);
}

static void release_sigpipe(const struct held_signal *held)
{
    const struct timespec no_time = {0};
    while (!held->was_pending && sigtimedwait(&held->pipe, NULL, &no_time) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &held->mask_before, NULL);
}

static enum shelf_answer ask(struct qutc_servers *servers, size_t server, const struct shelf_wanted *wanted,
                             uint8_t **table, size_t *table_size, struct base_error *error)
{
    const struct shelf_source source = {.urls = &servers->options.urls[server],
                                        .url_count = 1,
                                        .key = servers->options.key,
                                        .memory = servers->memory,
                                        .timeout_ms = servers->options.timeout_ms};
    size_t from;
    struct held_signal held;
    hold_sigpipe(&held);
    const uint64_t begin_ns = base_clock_now_ns();
    enum shelf_answer answer = shelf_take(&source, wanted, table, table_size, &from, error);
    release_sigpipe(&held);
    if (answer != SHELF_TAKEN)
        count_in_vain(servers, server, base_clock_now_ns() - begin_ns, answer == SHELF_REFUSED);
    return answer;
}

// Of several reasons the first is said.
static int ask_all(struct qutc_servers *servers, const struct shelf_wanted *wanted, uint8_t **table, size_t *table_size,
                   struct base_error *error)
{
    const bool was_missed = is_missed(servers, wanted);
    bool is_refused = false;
    struct base_error left = {0};
    for (size_t i = 0; i < servers->options.url_count; i++) {
        struct base_error why = {0};
        enum shelf_answer answer = SHELF_MISSING;
        if (is_left_alone(servers, i))
            base_fail(&left, BASE_ERR_IO, "", 0, "%s: left alone, since it was slow", servers->options.urls[i]);
        else if (!was_missed)
            answer = ask(servers, i, wanted, table, table_size, &why);
        if (answer == SHELF_TAKEN)
            return 0;
        if (answer == SHELF_REFUSED)
            base_fail_as(is_refused ? NULL : error, &why);
        is_refused |= answer == SHELF_REFUSED;
    }
    if (is_refused)
        return -1;
    if (!was_missed)
        remember_miss(servers, wanted);
    return left.reason ? base_fail_as(error, &left) : base_fail(error, BASE_ERR_IO, "", 0, "no server has its table");
}

// Build-ids are not said to be different for different machines. Where a file is not at hand, its head is in memory.
static const struct arch *arch_of(const struct qut_compile_request *request)
{
    const uint8_t *memory = request->memory;
    if (!memory || request->memory_size < sizeof(Elf32_Ehdr) || memcmp(memory, ELFMAG, SELFMAG) != 0)
        return NULL;
    const size_t at = offsetof(Elf32_Ehdr, e_machine);
    return arch_by_elf_machine((uint16_t)(memory[at] | memory[at + 1] << 8));
}

// The file may have changed since who asks has looked at it.
static int open_file(const struct qut_compile_request *request, struct input_image **image, struct base_error *error)
{
    const struct input_image_options options = {.read_files = true};
    if (input_image_open(request->path, NULL, request->offset_bytes, 0, &options, image, error) != 0)
        return -1;
    if ((*image)->identity_kind == INPUT_BUILD_ID && (*image)->identity_size == request->build_id_size &&
        memcmp((*image)->identity, request->build_id, request->build_id_size) == 0)
        return 0;
    input_image_close(*image);
    *image = NULL;
    return base_fail(error, BASE_ERR_MALFORMED, "", 0, "the file has changed");
}

// A table that nobody has signed is not for others.
static void keep(const struct qutc_servers *servers, const struct shelf_wanted *wanted, const void *table, size_t size)
{
    const struct qutc_servers_options *options = &servers->options;
    char *path = NULL;
    if (options->key && options->cache_directory &&
        qutc_cache_path_named(options->cache_directory, wanted->arch->name, wanted->identity, wanted->identity_size,
                              &path, NULL) == 0 &&
        qutc_cache_make_room(path, NULL) == 0)
        qutc_publish(path, table, size, false, NULL);
    free(path);
}

static int take(struct qutc_servers *servers, const struct qut_compile_request *request, uint8_t **table,
                size_t *table_size, struct base_error *error)
{
    struct input_image *image = NULL;
    if (request->build_id_size < 2 || request->build_id_size > QUT_IDENTITY_MAX)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "servers know files by build-ids of 2 to %d bytes",
                         QUT_IDENTITY_MAX);
    if (request->flags & QUT_COMPILE_FILE_IS_HERE && open_file(request, &image, error) != 0)
        return -1;
    const struct shelf_wanted wanted = {.arch = image ? image->arch : arch_of(request),
                                        .identity = request->build_id,
                                        .identity_size = request->build_id_size,
                                        .image = image};
    int result = wanted.arch ? ask_all(servers, &wanted, table, table_size, error)
                             : base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "of what machine it is is not known");
    if (result == 0)
        keep(servers, &wanted, *table, *table_size);
    input_image_close(image);
    return result;
}

int qutc_servers_take(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                      char *reason, size_t reason_size)
{
    struct base_error error = {0};
    uint8_t *taken = NULL;
    *table_size = 0;
    int result = take(context, request, &taken, table_size, &error);
    *table = taken;
    if (result != 0 && reason_size)
        snprintf(reason, reason_size, "%s", error.detail);
    errno = result != 0 && error.reason == BASE_ERR_NO_MEMORY ? ENOMEM : 0;
    return result;
}
