// SPDX-License-Identifier: Apache-2.0
#include "qutc/cache.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/qut_table_name_inline.h"
#include "qutc/table_file.h"

static const char *set_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

// One that is not there will be ours.
static const char *ours(const char *directory)
{
    struct stat status;
    bool is_anothers = directory && stat(directory, &status) == 0 && status.st_uid != geteuid();
    return is_anothers ? NULL : directory;
}

static const char *own_home(void)
{
    const char *home = ours(set_variable("HOME"));
    const struct passwd *user = home ? NULL : getpwuid(geteuid());
    return user ? ours(user->pw_dir) : home;
}

// Beside what versions that took every file's word left there.
static int make_path(char **path, struct base_error *error)
{
    const char *own = set_variable("QUT_CACHE"), *home;
    const char *xdg = ours(set_variable("XDG_CACHE_HOME"));
    int length = -1;
    if (own)
        length = asprintf(path, "%s", own);
    else if (xdg && *xdg == '/') // the XDG specification has relative paths ignored
        length = asprintf(path, "%s/qut/tables", xdg);
    else if ((home = own_home()))
        length = asprintf(path, "%s/.cache/qut/tables", home);
    else
        return base_fail(error, BASE_ERR_IO, "", 0,
                         "no cache directory: none of QUT_CACHE, XDG_CACHE_HOME, HOME is set to one of this user's");
    return length < 0 ? base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path") : 0;
}

int qutc_cache_directory(char **path, struct base_error *error)
{
    *path = NULL;
    if (make_path(path, error) != 0)
        return -1;
    if (qutc_cache_is_safe(*path, error) == 0)
        return 0;
    free(*path);
    *path = NULL;
    return -1;
}

int qutc_cache_is_safe(const char *directory, struct base_error *error)
{
    struct stat status;
    if (stat(directory, &status) != 0)
        return 0;
    if (status.st_uid != 0 && status.st_uid != geteuid())
        return base_fail(error, BASE_ERR_IO, "", 0, "%s belongs to another user (%u), who can put any table there",
                         directory, (unsigned)status.st_uid);
    if (status.st_mode & (S_IWGRP | S_IWOTH))
        return base_fail(error, BASE_ERR_IO, "", 0, "others may put tables into %s (chmod go-w, if nobody did)",
                         directory);
    return 0;
}

enum qutc_cache_proof qutc_cache_proof_by_user(void)
{
    return geteuid() == 0 ? QUTC_CACHE_OWNER : QUTC_CACHE_ITSELF;
}

static int path_below(const char *directory, const char *folder, const char *arch_name, const uint8_t *identity,
                      size_t identity_size, char **path, struct base_error *error)
{
    char name[QUT_TABLE_NAME_MAX];
    qut_table_name(arch_name, identity, (uint32_t)identity_size, name);
    if (asprintf(path, "%s/%s%s", directory, folder, name) >= 0)
        return 0;
    *path = NULL;
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
}

int qutc_cache_path_named(const char *directory, const char *arch_name, const uint8_t *identity, size_t identity_size,
                          char **path, struct base_error *error)
{
    return path_below(directory, "", arch_name, identity, identity_size, path, error);
}

int qutc_cache_path(const char *directory, const struct input_image *image, enum qutc_cache_proof proof, char **path,
                    struct base_error *error)
{
    char folder[32] = "";
    uint32_t owner;
    static_assert((int)INPUT_IDENTITY_MAX == (int)QUT_IDENTITY_MAX, "identities fit names");
    *path = NULL;
    if (proof == QUTC_CACHE_OWNER) {
        if (!input_image_owner(image, &owner))
            return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0,
                             "nothing says whose file it is (others may write it): its table is not for the cache");
        if (owner != 0 && owner != (uint32_t)geteuid())
            snprintf(folder, sizeof folder, "of-%u/", (unsigned)owner);
    }
    return path_below(directory, folder, image->arch->name, image->identity, image->identity_size, path, error);
}

const char *qutc_cache_name(const char *directory, const char *path)
{
    return path + strlen(directory) + 1;
}

int qutc_cache_make_room(const char *path, struct base_error *error)
{
    char *directory = strdup(path), *slash = directory ? strrchr(directory, '/') : NULL;
    int result = directory ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
    if (slash) {
        *slash = '\0';
        result = qutc_make_directories(directory, error);
    }
    free(directory);
    return result;
}

int qutc_cache_holds(const char *path, const struct input_image *image, bool small, bool *holds,
                     struct base_error *error)
{
    struct qutc_table_file file;
    struct base_error why = {0};
    *holds = false;
    if (qutc_table_file_read(path, &file, &why) != 0)
        return why.reason == BASE_ERR_NO_MEMORY ? base_fail_as(error, &why) : 0;
    const struct qut_table_header *header = file.table.header;
    *holds = header->arch == image->arch->id && header->identity_size == image->identity_size &&
             memcmp(header->identity, image->identity, image->identity_size) == 0 &&
             !!(header->flags & QUT_TABLE_SMALL) == small;
    qutc_table_file_free(&file);
    return 0;
}

int qutc_make_directories(const char *path, struct base_error *error)
{
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return 0;
    char *partial = strdup(path);
    if (!partial)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
    int result = 0;
    for (char *at = partial + (*partial != '\0'); result == 0; at++) {
        char separator = *at;
        if (separator != '/' && separator != '\0')
            continue;
        *at = '\0';
        // Another process may be creating the same directories.
        if (mkdir(partial, 0755) != 0 && errno != EEXIST)
            result = base_fail(error, BASE_ERR_IO, "", 0, "cannot create %s: %s", partial, strerror(errno));
        else if (stat(partial, &status) != 0 || !S_ISDIR(status.st_mode))
            result = base_fail(error, BASE_ERR_IO, "", 0, "%s is not a directory", partial);
        *at = separator;
        if (separator == '\0')
            break;
    }
    free(partial);
    return result;
}
