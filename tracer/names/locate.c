// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/locate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/qut_agent.h"
#include "qutc/input/identity.h"
#include "qutc/input/inputs.h"
#include "tracer/names/debuginfod.h"

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *names_locate_path(const struct names_options *options, const char *path, const char **entry)
{
    static const char deleted[] = " (deleted)";
    const char *root = options->system_root ? options->system_root : "";
    if (options->agent_path && strcmp(last_part(path), AGENT_FILE) == 0)
        path = options->agent_path;
    size_t size = strlen(root) + strlen(path) + 1;
    char *made = malloc(size);
    *entry = "";
    if (!made)
        return NULL;
    snprintf(made, size, "%s%s", root, path);
    if (access(made, F_OK) == 0)
        return made;
    size_t length = strlen(made), suffix = sizeof deleted - 1;
    if (length > suffix && strcmp(made + length - suffix, deleted) == 0)
        made[length - suffix] = '\0';
    // "/data/app/base.apk!/lib/arm64/libx.so", "base.apk!libx.so"
    char *mark = strrchr(made, '!');
    if (mark && access(made, F_OK) != 0) {
        *mark = '\0';
        *entry = path + (mark - made) - strlen(root) + 1;
        *entry += **entry == '/';
    }
    return made;
}

static struct input_image_options image_options(const struct names_file *file)
{
    // A file that is truncated while it is read has no names then, and nothing else happens.
    return (struct input_image_options){.debug_root = file->options->debug_root, .read_files = true};
}

static void say(struct names_file *file, const char *why)
{
    if (!*file->why)
        snprintf(file->why, sizeof file->why, "%s", why);
}

static void say_error(struct names_file *file, const struct base_error *error)
{
    char text[NAMES_WHY_MAX];
    file->no_memory |= error->reason == BASE_ERR_NO_MEMORY;
    say(file,
        error->reason == BASE_ERR_IO && !*error->section ? error->detail : base_error_text(error, text, sizeof text));
}

static bool is_same_build(const struct trace_module *module, const struct input_image *image)
{
    size_t size = module->build_id_bytes < INPUT_IDENTITY_MAX ? module->build_id_bytes : INPUT_IDENTITY_MAX;
    return image->identity_kind != INPUT_CONTENT_HASH && image->identity_size == size &&
           memcmp(image->identity, module->build_id, size) == 0;
}

// Closes it where it is another one.
static struct input_image *check_build(struct names_file *file, struct input_image *image)
{
    if (!image || file->module->build_id_bytes == 0 || is_same_build(file->module, image))
        return image;
    say(file, image->identity_kind == INPUT_CONTENT_HASH
                  ? "the file there has no build-id, and the one that ran had one"
                  : "the file there is another build: its build-id is not that of the one that ran");
    input_image_close(image);
    return NULL;
}

static struct input_image *open_part(struct names_file *file, const struct input *input)
{
    const struct input_image_options options = image_options(file);
    struct input_image *image = NULL;
    struct base_error error = {0};
    if (input_open(input, &options, &image, &error) != 0)
        say_error(file, &error);
    return check_build(file, image);
}

static struct input_image *open_vdso(struct names_file *file)
{
    struct input_inputs inputs;
    struct input_image *image = NULL;
    struct base_error error = {0};
    input_inputs_init(&inputs);
    if (file->module->build_id_bytes == 0)
        say(file, "no build-id tells whether it is this kernel's vdso");
    else if (input_inputs_add_vdso(&inputs, &error) == 0 && inputs.count == 1)
        image = open_part(file, &inputs.items[0]);
    else
        say_error(file, &error);
    if (!image && file->module->build_id_bytes)
        snprintf(file->why, sizeof file->why, "the vdso of another kernel");
    input_inputs_free(&inputs);
    return image;
}

static const char *member_of(const struct input *input)
{
    const char *mark = strchr(input->name + strlen(input->path), '!');
    return mark ? mark + 1 : input->name;
}

static bool has_build(struct names_file *file, const struct input *input)
{
    const struct input_image_options options = {.read_files = true, .identity_only = true};
    struct input_image *image = NULL;
    struct base_error error = {0};
    bool is_same = input_open(input, &options, &image, &error) == 0 && is_same_build(file->module, image);
    file->no_memory |= error.reason == BASE_ERR_NO_MEMORY;
    input_image_close(image);
    return is_same;
}

// By its build-id. Where the trace has none: by its path in the archive; by the last part of that, where just one has
// it: there may be one for each architecture.
static const struct input *find_in_archive(struct names_file *file, const struct input_inputs *inputs,
                                           const char *entry)
{
    const struct input *found = NULL;
    size_t count = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        const struct input *input = &inputs->items[i];
        if (file->module->build_id_bytes ? has_build(file, input) : strcmp(member_of(input), entry) == 0)
            return input;
        if (strcmp(last_part(member_of(input)), last_part(entry)) == 0) {
            found = input;
            count++;
        }
    }
    return file->module->build_id_bytes == 0 && count == 1 ? found : NULL;
}

static struct input_image *open_in_archive(struct names_file *file, const struct input_inputs *inputs,
                                           const char *entry)
{
    const struct input *found = find_in_archive(file, inputs, entry);
    if (found)
        return open_part(file, found);
    say(file, file->module->build_id_bytes ? "nothing in the archive has its build-id"
                                           : "the archive has no such library that can be mapped");
    return NULL;
}

// Directories would be searched.
static bool is_file(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

static struct input_image *open_path(struct names_file *file, const char *path, const char *entry)
{
    const struct input_image_options options = image_options(file);
    struct input_image *image = NULL;
    struct base_error error = {0};
    if (!*entry && input_image_open(path, NULL, 0, 0, &options, &image, &error) == 0)
        return check_build(file, image);
    if ((!*entry && error.reason != BASE_ERR_NOT_ELF) || !is_file(path)) {
        base_fail(&error, BASE_ERR_IO, "", 0, "%s", strerror(ENOENT));
        say_error(file, &error);
        return NULL;
    }
    struct input_inputs inputs;
    struct base_error why = {0};
    input_inputs_init(&inputs);
    if (input_inputs_add_path(&inputs, path, &why) == 0)
        image = open_in_archive(file, &inputs, entry);
    else
        say_error(file, &why);
    input_inputs_free(&inputs);
    return image;
}

struct input_image *names_locate_image(struct names_file *file)
{
    const char *path = file->module->path;
    if ((file->module->flags & QUT_TRACE_MODULE_VDSO) || strcmp(path, "[vdso]") == 0)
        return open_vdso(file);
    if (!*path || *path == '[') {
        say(file, "it is in no file");
        return NULL;
    }
    const char *entry;
    char *real = names_locate_path(file->options, path, &entry);
    file->no_memory |= !real;
    struct input_image *image = real ? open_path(file, real, entry) : NULL;
    free(real);
    return image;
}

static struct input_image *open_debug(struct names_file *file, const char *path)
{
    const struct input_image_options options = {.read_files = true};
    struct input_image *image = NULL;
    struct base_error error = {0};
    if (!path || input_image_open(path, NULL, 0, 0, &options, &image, &error) != 0) {
        file->no_memory |= error.reason == BASE_ERR_NO_MEMORY;
        return NULL;
    }
    if (is_same_build(file->module, image))
        return image;
    input_image_close(image);
    return NULL;
}

static struct input_image *open_in_root(struct names_file *file)
{
    const struct trace_module *module = file->module;
    char path[PATH_MAX];
    const struct base_bytes build_id = {module->build_id, module->build_id_bytes};
    return input_debug_path(file->options->debug_root, build_id, path) ? open_debug(file, path) : NULL;
}

struct input_image *names_locate_debug_image(struct names_file *file)
{
    const struct trace_module *module = file->module;
    if (module->build_id_bytes < 2)
        return NULL;
    struct input_image *image = open_in_root(file);
    if (image || !file->options->debuginfod || !file->debuginfod)
        return image;
    const enum names_debuginfod_kind kinds[] = {NAMES_DEBUGINFO, NAMES_EXECUTABLE};
    const char *why = "";
    for (size_t i = 0; i < 2 && !image; i++) {
        char *path = names_debuginfod_find(file->debuginfod, kinds[i], module->build_id, module->build_id_bytes, &why);
        image = open_debug(file, path);
        free(path);
    }
    size_t used = strlen(file->why);
    if (!image && *why)
        snprintf(file->why + used, sizeof file->why - used, "%s%s", used ? "; " : "", why);
    return image;
}
