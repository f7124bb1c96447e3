// SPDX-License-Identifier: Apache-2.0
#include "tracer/elsewhere/elsewhere.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qutc/servers.h>

#include "tracer/names/debuginfod.h"

struct elsewhere {
    struct elsewhere_options options;
    struct qutc_servers *servers; // NULL: none
    pthread_mutex_t mutex;
    struct names_debuginfod *debuginfod; // one question at a time
    atomic_uint tables, files;
};

static int open_servers(struct elsewhere *elsewhere, struct base_error *error)
{
    const struct elsewhere_options *options = &elsewhere->options;
    const struct qutc_servers_options of_tables = {.size = sizeof of_tables,
                                                   .urls = options->urls,
                                                   .url_count = options->url_count,
                                                   .key = options->key,
                                                   .cache_directory = options->cache_directory};
    char reason[sizeof error->detail];
    if (!options->url_count || qutc_servers_open(&of_tables, &elsewhere->servers, reason, sizeof reason) == 0)
        return 0;
    return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "%s", reason);
}

struct elsewhere *elsewhere_open(const struct elsewhere_options *options, struct base_error *error)
{
    struct elsewhere *elsewhere = calloc(1, sizeof *elsewhere);
    if (!elsewhere || pthread_mutex_init(&elsewhere->mutex, NULL) != 0) {
        free(elsewhere);
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
        return NULL;
    }
    elsewhere->options = *options;
    int result = open_servers(elsewhere, error);
    if (result == 0 && options->debuginfod && !(elsewhere->debuginfod = names_debuginfod_open()))
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    if (result == 0)
        return elsewhere;
    elsewhere_close(elsewhere);
    return NULL;
}

void elsewhere_close(struct elsewhere *elsewhere)
{
    if (!elsewhere)
        return;
    names_debuginfod_close(elsewhere->debuginfod);
    qutc_servers_close(elsewhere->servers);
    pthread_mutex_destroy(&elsewhere->mutex);
    free(elsewhere);
}

struct elsewhere_counts elsewhere_counts(struct elsewhere *elsewhere)
{
    return (struct elsewhere_counts){atomic_load(&elsewhere->tables), atomic_load(&elsewhere->files)};
}

// ---- tables

static int take_table(struct elsewhere *elsewhere, const struct qut_compile_request *request, void **table,
                      size_t *table_size, struct base_error *error)
{
    char reason[sizeof error->detail] = "";
    int result = qutc_servers_take(elsewhere->servers, request, table, table_size, reason, sizeof reason);
    if (result != 0)
        return base_fail(error, errno == ENOMEM ? BASE_ERR_NO_MEMORY : BASE_ERR_IO, "", 0, "%s", reason);
    atomic_fetch_add(&elsewhere->tables, 1);
    return 0;
}

// ---- files

static char *find_file(struct elsewhere *elsewhere, enum names_debuginfod_kind kind, const uint8_t *build_id,
                       size_t build_id_bytes, const char **why)
{
    pthread_mutex_lock(&elsewhere->mutex);
    char *path = names_debuginfod_find(elsewhere->debuginfod, kind, build_id, build_id_bytes, why);
    pthread_mutex_unlock(&elsewhere->mutex);
    return path;
}

// Kept in no cache of ours: that the file has the build-id is all that speaks for it, and the client keeps the file.
static int compile_file(struct elsewhere *elsewhere, const struct qut_compile_request *request, void **table,
                        size_t *table_size, struct base_error *error)
{
    const char *why = "";
    char *path = find_file(elsewhere, NAMES_EXECUTABLE, request->build_id, request->build_id_size, &why);
    if (!path)
        return base_fail(error, BASE_ERR_IO, "", 0, "%s", why);
    char reason[sizeof error->detail - sizeof "debuginfod's file: "];
    struct qutc_provide_options provide = {.size = sizeof provide, .debug_root = elsewhere->options.debug_root};
    const struct qut_compile_request of_file = {
        .path = path, .build_id = request->build_id, .build_id_size = request->build_id_size, .flags = request->flags};
    int result = qutc_compile_for_qut(&provide, &of_file, table, table_size, reason, sizeof reason);
    if (result != 0)
        base_fail(error, errno == ENOMEM ? BASE_ERR_NO_MEMORY : BASE_ERR_TABLE, "", 0, "debuginfod's file: %s", reason);
    else
        atomic_fetch_add(&elsewhere->files, 1);
    free(path);
    return result;
}

int elsewhere_take(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                   char *reason, size_t reason_size)
{
    struct elsewhere *elsewhere = context;
    struct base_error of_tables = {0}, of_files = {0};
    int result = -1;
    if (elsewhere->servers)
        result = take_table(elsewhere, request, table, table_size, &of_tables);
    // Its file is the one that is here.
    if (result != 0 && elsewhere->debuginfod && !(request->flags & QUT_COMPILE_FILE_IS_HERE))
        result = compile_file(elsewhere, request, table, table_size, &of_files);
    if (result != 0 && reason_size)
        snprintf(reason, reason_size, "%s%s%s", of_tables.detail, of_tables.reason && of_files.reason ? "; " : "",
                 of_files.detail);
    const bool no_memory = of_tables.reason == BASE_ERR_NO_MEMORY || of_files.reason == BASE_ERR_NO_MEMORY;
    errno = result != 0 && no_memory ? ENOMEM : 0;
    return result;
}

static struct input_image *open_build(const char *path, const uint8_t *build_id, size_t build_id_bytes)
{
    const struct input_image_options options = {.read_files = true};
    struct input_image *image = NULL;
    if (!path || input_image_open(path, NULL, 0, 0, &options, &image, NULL) != 0)
        return NULL;
    const bool is_its = image->identity_kind == INPUT_BUILD_ID && image->identity_size <= build_id_bytes &&
                        memcmp(image->identity, build_id, image->identity_size) == 0;
    if (is_its)
        return image;
    input_image_close(image);
    return NULL;
}

struct input_image *elsewhere_image(struct elsewhere *elsewhere, const uint8_t *build_id, size_t build_id_bytes)
{
    static const enum names_debuginfod_kind kinds[] = {NAMES_DEBUGINFO, NAMES_EXECUTABLE};
    const char *why;
    if (!elsewhere || !elsewhere->debuginfod || build_id_bytes < 2)
        return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char *path = find_file(elsewhere, kinds[i], build_id, build_id_bytes, &why);
        struct input_image *image = open_build(path, build_id, build_id_bytes);
        free(path);
        if (image)
            return image;
    }
    return NULL;
}
