// SPDX-License-Identifier: Apache-2.0
#include <qutc/provide.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/cache.h"
#include "qutc/qutc.h"
#include "qutc/table_file.h"

struct job {
    struct qutc_provide_options options;
    const struct qut_compile_request *request;
    uint8_t *table;
    size_t table_size;
    bool has_file; // the file at the path is the module's
};

// Older callers know fewer options.
static struct qutc_provide_options known_options(const void *context)
{
    struct qutc_provide_options options = {.size = sizeof options};
    if (context) {
        size_t size;
        memcpy(&size, context, sizeof size);
        memcpy(&options, context, size < sizeof options ? size : sizeof options);
    }
    return options;
}

static bool is_wanted(const struct job *job, const struct input_image *image)
{
    enum input_identity_kind kind =
        job->request->flags & QUT_COMPILE_OAT_IDENTITY ? INPUT_OAT_IDENTITY : INPUT_BUILD_ID;
    size_t size = job->request->build_id_size;
    if (size == 0)
        return image->identity_kind != INPUT_BUILD_ID;
    size = size < INPUT_IDENTITY_MAX ? size : INPUT_IDENTITY_MAX;
    return image->identity_kind == kind && image->identity_size == size &&
           memcmp(image->identity, job->request->build_id, size) == 0;
}

static int open_file(const struct job *job, struct input_image **image, struct base_error *error)
{
    const struct input_image_options options = {.debug_root = job->options.debug_root, .read_files = true};
    return input_image_open(job->request->path, NULL, job->request->offset_bytes, 0, &options, image, error);
}

static bool is_jit(const struct job *job)
{
    return job->request->flags & QUT_COMPILE_JIT;
}

// Separate debug files are for what was linked.
static int open_memory(const struct job *job, struct input_image **image, struct base_error *error)
{
    const struct input_image_options options = {.debug_root = is_jit(job) ? NULL : job->options.debug_root,
                                                .read_files = true,
                                                .as_mapped = !is_jit(job),
                                                .jit = is_jit(job)};
    struct base_bytes elf = {job->request->memory, job->request->memory_size};
    return input_image_open_memory(elf, job->request->path, &options, image, error);
}

static enum qutc_cache_proof proof_of(const struct job *job)
{
    return job->request->flags & QUT_COMPILE_OF_ANOTHER ? QUTC_CACHE_OWNER : QUTC_CACHE_ITSELF;
}

// Who asks has looked for the identity already, but not among the tables of another user's files.
static bool find_filed(struct job *job, const struct input_image *image)
{
    char *path = NULL;
    struct qutc_table_file file;
    if (!job->options.cache_directory || is_jit(job) || proof_of(job) == QUTC_CACHE_ITSELF ||
        qutc_cache_path(job->options.cache_directory, image, QUTC_CACHE_OWNER, &path, NULL) != 0)
        return false;
    // Memory that is missing here is missing for the compiler next, which says so.
    bool is_filed = false;
    if (strchr(qutc_cache_name(job->options.cache_directory, path), '/'))
        qutc_cache_holds(path, image, job->options.small, &is_filed, NULL);
    is_filed = is_filed && qutc_table_file_read(path, &file, NULL) == 0;
    if (is_filed) {
        job->table = file.bytes;
        job->table_size = file.size;
    }
    free(path);
    return is_filed;
}

// The next process finds it. This one has its table in any case.
static void publish(const struct job *job, const struct input_image *image, bool is_memory)
{
    char *path = NULL;
    // What it would be found by.
    bool has_name =
        image->identity_kind == INPUT_BUILD_ID || (image->identity_kind == INPUT_OAT_IDENTITY && !is_memory);
    // The cache is for whole files: what one of them lost may be there again tomorrow.
    if (!job->options.cache_directory || is_jit(job) || !has_name || image->damage_count)
        return;
    if (qutc_cache_path(job->options.cache_directory, image, proof_of(job), &path, NULL) == 0 &&
        qutc_cache_make_room(path, NULL) == 0)
        // Not synced: a disk takes longer for that than the compiler did. What a crash leaves half is no sound table,
        // and made anew.
        qutc_publish(path, job->table, job->table_size, false, NULL);
    free(path);
}

static int compile(struct job *job, const struct input_image *image, bool is_memory, struct base_error *error)
{
    bool is_oat = job->request->flags & QUT_COMPILE_OAT_IDENTITY;
    // Memory of an OAT file is what its identity was taken from.
    if (!is_jit(job) && !(is_oat && is_memory) && !is_wanted(job, image))
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "%s than was mapped",
                         is_oat ? "another OAT file" : "the build-id is another one");
    job->has_file |= !is_memory;
    if (!is_memory && find_filed(job, image))
        return 0;
    // Without sections data passes for code, and a just-in-time compiler's file may be without its code. And the
    // process that waits here has no file mapped: libLLVM's code, read to fill a few holes, takes it 0.7 s and 70 MB.
    const struct qutc_compile_options options = {.small = job->options.small,
                                                 .fill = is_memory ? CODE_FILL_NOTHING : CODE_FILL_IF_MUCH};
    if (qutc_compile(image, &options, &job->table, &job->table_size, NULL, error) != 0)
        return -1;
    if (input_image_is_whole(image)) {
        publish(job, image, is_memory);
        return 0;
    }
    free(job->table);
    job->table = NULL;
    return base_fail(error, BASE_ERR_IO, "", 0, "the file is cut off, or changed while it was read");
}

static int compile_from(struct job *job, bool memory, struct base_error *error)
{
    struct input_image *image;
    *error = (struct base_error){0};
    int result = memory ? open_memory(job, &image, error) : open_file(job, &image, error);
    if (result == 0) {
        result = compile(job, image, memory, error);
        input_image_close(image);
    }
    return result;
}

// Somebody else's: believed to be a table once that is proven, and to be the module's because of its identity.
static int adopt(struct job *job, void *theirs, size_t size, struct base_error *error)
{
    struct qut_table table;
    job->table = qutc_alloc_aligned(size);
    if (!job->table)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "table");
    memcpy(job->table, theirs, size);
    int result = qutc_table_attach(&table, job->table, size, error);
    if (result == 0 && (table.header->identity_size != job->request->build_id_size ||
                        memcmp(table.header->identity, job->request->build_id, job->request->build_id_size) != 0))
        result = base_fail(error, BASE_ERR_TABLE, "", 0, "it is of another file");
    job->table_size = size;
    if (result != 0) {
        free(job->table);
        job->table = NULL;
    }
    return result;
}

// The vdso of this process: it never had a file, and memory has all of it.
static bool is_memory_alone(const struct qut_compile_request *request)
{
    return request->memory && !(request->path && *request->path) && !(request->flags & QUT_COMPILE_OF_ANOTHER);
}

// A server that another machine's owner runs learns of a build only if no table can be made of what is here.
static bool asks_others(const struct job *job)
{
    return job->options.take && job->request->build_id_size && !is_memory_alone(job->request) &&
           !(job->request->flags & (QUT_COMPILE_JIT | QUT_COMPILE_OAT_IDENTITY));
}

static int take(struct job *job, struct base_error *error)
{
    char reason[sizeof error->detail] = "";
    void *theirs = NULL;
    size_t size = 0;
    struct qut_compile_request request = *job->request;
    request.flags |= job->has_file ? QUT_COMPILE_FILE_IS_HERE : 0;
    errno = 0;
    int result = job->options.take(job->options.take_context, &request, &theirs, &size, reason, sizeof reason);
    if (result != 0)
        base_fail(error, errno == ENOMEM ? BASE_ERR_NO_MEMORY : BASE_ERR_IO, "", 0, "%s", reason);
    else
        result = adopt(job, theirs, size, error);
    free(theirs);
    return result;
}

// What others said comes first: there may be little room, and the user named them.
static void say_why(const struct base_error *here, const struct base_error *elsewhere, char *reason, size_t size)
{
    size_t length = 0;
    if (elsewhere->reason)
        length = (size_t)snprintf(reason, size, "%s; ", elsewhere->detail);
    if (length < size)
        base_error_text(here, reason + length, (unsigned)(size - length));
}

int qutc_compile_for_qut(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                         char *reason, size_t reason_size)
{
    struct job job = {.options = known_options(context), .request = request};
    struct base_error error = {0};
    bool has_file = request->path && *request->path && !is_jit(&job);
    bool has_memory = request->memory && request->memory_size;
    int result = -1;
    if (has_file && (request->build_id_size || !has_memory))
        result = compile_from(&job, false, &error);
    struct base_error elsewhere = {0};
    if (result != 0 && asks_others(&job) && error.reason != BASE_ERR_NO_MEMORY)
        result = take(&job, &elsewhere);
    // What is in memory has no sections that the loader did not map: it is for files that are gone, not for want of
    // memory.
    if (result != 0 && has_memory && error.reason != BASE_ERR_NO_MEMORY)
        result = compile_from(&job, true, &error);
    if (result != 0 && !has_file && !has_memory)
        base_fail(&error, BASE_ERR_IO, "", 0, "neither a file nor memory to compile");
    *table = job.table;
    *table_size = result == 0 ? job.table_size : 0;
    if (result != 0 && reason_size)
        say_why(&error, &elsewhere, reason, reason_size);
    errno = result != 0 && (error.reason == BASE_ERR_NO_MEMORY || elsewhere.reason == BASE_ERR_NO_MEMORY) ? ENOMEM : 0;
    return result;
}
