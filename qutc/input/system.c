// SPDX-License-Identifier: Apache-2.0
// The libraries and programs of this system, as the dynamic linker and the shell would find them.
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "qutc/input/inputs_list.h"

enum {
    INCLUDE_DEPTH_MAX = 8,
    CACHE_HEADER_BYTES = 48,
    CACHE_ENTRY_BYTES = 24,
    OLD_CACHE_HEADER_BYTES = 16,
    OLD_CACHE_ENTRY_BYTES = 12,
};

static const char cache_path[] = "/etc/ld.so.cache";
static const char cache_magic[] = "glibc-ld.so.cache1.1";
static const char old_cache_magic[] = "ld.so-1.7.0";
static const char conf_path[] = "/etc/ld.so.conf";
static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Links are followed, as the linker and the shell follow them, and files are called by their own name, not the link's.
static int add_linked(struct input_inputs *inputs, const char *path, struct base_error *error)
{
    char *own_path = realpath(path, NULL);
    struct stat status;
    if (!own_path && errno == ENOMEM)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
    if (!own_path || stat(own_path, &status)) {
        inputs->skipped_unreadable++;
        free(own_path);
        return 0;
    }
    struct input_file file = {.path = own_path, .name = own_path};
    int result = S_ISREG(status.st_mode) ? input_inputs_add_found(inputs, &file, true, error) : 0;
    free(own_path);
    return result;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

// One level only. A directory that does not exist is no news: search paths name many such.
static int add_flat_directory(struct input_inputs *inputs, const char *directory, struct base_error *error)
{
    struct dirent **entries = NULL;
    int count = scandir(directory, &entries, NULL, by_name);
    if (count < 0 && errno == ENOMEM)
        return base_fail_errno(error, errno);
    if (count < 0 && errno != ENOENT && errno != ENOTDIR)
        inputs->skipped_unreadable++;
    int result = 0;
    for (int i = 0; i < count; i++) {
        char *path = NULL;
        if (result == 0 && asprintf(&path, "%s/%s", directory, entries[i]->d_name) < 0) {
            path = NULL;
            result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
        }
        if (result == 0)
            result = add_linked(inputs, path, error);
        free(path);
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int add_cache_entries(struct input_inputs *inputs, struct base_bytes cache, struct base_error *error)
{
    struct base_cursor cursor = base_cursor(cache);
    base_cursor_seek(&cursor, sizeof cache_magic - 1);
    uint32_t count = base_read_u32(&cursor);
    if (count > (cache.size - CACHE_HEADER_BYTES) / CACHE_ENTRY_BYTES)
        return base_fail(error, BASE_ERR_TRUNCATED, "", 0, "%s: %u entries", cache_path, count);
    for (uint32_t i = 0; i < count; i++) {
        base_cursor_seek(&cursor, CACHE_HEADER_BYTES + (uint64_t)i * CACHE_ENTRY_BYTES + 8);
        base_cursor_seek(&cursor, base_read_u32(&cursor));
        const char *path = base_read_string(&cursor);
        if (cursor.failed)
            return base_fail(error, BASE_ERR_MALFORMED, "", 0, "%s: path of entry %u", cache_path, i);
        if (path[0] == '/' && add_linked(inputs, path, error))
            return -1;
    }
    return 0;
}

// Old systems put the old format's table first; string offsets count from the new one's header.
static struct base_bytes new_cache(struct base_bytes cache)
{
    if (cache.size > OLD_CACHE_HEADER_BYTES && memcmp(cache.data, old_cache_magic, sizeof old_cache_magic - 1) == 0) {
        struct base_cursor cursor = base_cursor(cache);
        base_cursor_seek(&cursor, 12);
        uint64_t count = base_read_u32(&cursor);
        base_cursor_seek(&cursor, (OLD_CACHE_HEADER_BYTES + count * OLD_CACHE_ENTRY_BYTES + 7) & ~(uint64_t)7);
        cache = (struct base_bytes){cursor.at, base_cursor_left(&cursor)};
    }
    if (cache.size < CACHE_HEADER_BYTES || memcmp(cache.data, cache_magic, sizeof cache_magic - 1) != 0)
        cache.size = 0;
    return cache;
}

// Not every system has a cache, or one of glibc's kind; the directories hold the same libraries.
static int add_cache(struct input_inputs *inputs, struct base_error *error)
{
    struct input_file_map map;
    struct base_error reason = {0};
    int result = 0;
    if (input_file_map_open(&map, cache_path, 0, 0, INPUT_FILE_MAPPED, &reason) == 0) {
        struct base_bytes cache = new_cache(map.bytes);
        if (cache.size)
            result = add_cache_entries(inputs, cache, &reason);
        if (result && reason.reason == BASE_ERR_NO_MEMORY)
            base_fail_as(error, &reason);
        else if (result || !cache.size)
            inputs->skipped_unreadable++;
    }
    input_file_map_close(&map);
    return reason.reason == BASE_ERR_NO_MEMORY ? -1 : 0;
}

static int add_conf(struct input_inputs *inputs, const char *path, unsigned depth, struct base_error *error);

#ifdef __ANDROID__
// It has no such file; and no glob before 9.
static int add_included(struct input_inputs *inputs, const char *pattern, unsigned depth, struct base_error *error)
{
    (void)inputs, (void)pattern, (void)depth, (void)error, (void)add_conf;
    return 0;
}
#else
static int add_included(struct input_inputs *inputs, const char *pattern, unsigned depth, struct base_error *error)
{
    glob_t matches;
    char *absolute = NULL;
    // ldconfig reads patterns relative to the file they stand in, which is in /etc.
    if (asprintf(&absolute, "%s%s", pattern[0] == '/' ? "" : "/etc/", pattern) < 0)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
    int result = 0;
    int found = depth < INCLUDE_DEPTH_MAX ? glob(absolute, 0, NULL, &matches) : GLOB_NOMATCH;
    if (found == GLOB_NOSPACE) {
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "%s", absolute);
    } else if (found == 0) {
        for (size_t i = 0; i < matches.gl_pathc && result == 0; i++)
            result = add_conf(inputs, matches.gl_pathv[i], depth + 1, error);
        globfree(&matches);
    }
    free(absolute);
    return result;
}
#endif

static int add_conf_line(struct input_inputs *inputs, char *line, unsigned depth, struct base_error *error)
{
    static const char blank[] = " \t\r\n";
    line[strcspn(line, "#")] = 0;
    char *rest = NULL;
    int result = 0;
    char *word = strtok_r(line, blank, &rest);
    if (word && strcmp(word, "include") == 0) {
        while (result == 0 && (word = strtok_r(NULL, blank, &rest)))
            result = add_included(inputs, word, depth, error);
        return result;
    }
    if (word && word[0] == '/')
        result = add_flat_directory(inputs, word, error);
    return result;
}

static int add_conf(struct input_inputs *inputs, const char *path, unsigned depth, struct base_error *error)
{
    char *line = NULL;
    size_t line_bytes = 0;
    int result = 0;
    FILE *conf = fopen(path, "re");
    if (!conf)
        return errno == ENOMEM ? base_fail_errno(error, errno) : 0;
    while (result == 0 && getline(&line, &line_bytes, conf) >= 0)
        result = add_conf_line(inputs, line, depth, error);
    if (result == 0 && !feof(conf) && errno == ENOMEM)
        result = base_fail_errno(error, errno);
    free(line);
    fclose(conf);
    return result;
}

static int add_search_path(struct input_inputs *inputs, struct base_error *error)
{
    const char *value = getenv("PATH");
    char *path = strdup(value && *value ? value : default_path);
    char *rest = NULL;
    int result = path ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "PATH");
    for (char *word = path ? strtok_r(path, ":", &rest) : NULL; word && result == 0; word = strtok_r(NULL, ":", &rest))
        if (word[0] == '/') // what a relative one means changes with the working directory
            result = add_flat_directory(inputs, word, error);
    free(path);
    return result;
}

int input_inputs_add_system(struct input_inputs *inputs, struct base_error *error)
{
#ifdef __ANDROID__
    // Boot images are in system/framework until 11, ART's libraries and images in its module since 10.
    static const char *const directories[] = {"/system/lib64",
                                              "/system/lib",
                                              "/vendor/lib64",
                                              "/vendor/lib",
                                              "/system/bin",
                                              "/apex/com.android.runtime/bin",
                                              "/apex/com.android.runtime/lib64",
                                              "/apex/com.android.runtime/lib",
                                              "/apex/com.android.runtime/lib64/bionic",
                                              "/apex/com.android.runtime/lib/bionic",
                                              "/apex/com.android.art/lib64",
                                              "/apex/com.android.art/lib",
                                              "/apex/com.android.art/javalib/arm64",
                                              "/apex/com.android.art/javalib/arm",
                                              "/apex/com.android.art/javalib/x86_64",
                                              "/apex/com.android.art/javalib/x86",
                                              "/system/framework/arm64",
                                              "/system/framework/arm",
                                              "/system/framework/x86_64",
                                              "/system/framework/x86"};
#else
    static const char *const directories[] = {"/lib", "/usr/lib", "/lib64", "/usr/lib64", "/lib32", "/usr/lib32"};
#endif
    if (add_cache(inputs, error) || add_conf(inputs, conf_path, 0, error))
        return -1;
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        if (add_flat_directory(inputs, directories[i], error))
            return -1;
    if (add_search_path(inputs, error))
        return -1;
    struct base_error no_vdso = {0};
    if (input_inputs_add_vdso(inputs, &no_vdso) && no_vdso.reason == BASE_ERR_NO_MEMORY)
        return base_fail_as(error, &no_vdso);
    return 0;
}
