// SPDX-License-Identifier: Apache-2.0
#include "qutc/cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/qut_table_name_inline.h"
#include "qutc/table_file.h"

static const char *set_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

int qutc_cache_directory(char **path, struct base_error *error)
{
    const char *own = set_variable("QUT_CACHE");
    const char *xdg = set_variable("XDG_CACHE_HOME");
    const char *home = set_variable("HOME");
    int length = -1;
    if (own)
        length = asprintf(path, "%s", own);
    else if (xdg && *xdg == '/') // the XDG specification has relative paths ignored
        length = asprintf(path, "%s/qut", xdg);
    else if (home)
        length = asprintf(path, "%s/.cache/qut", home);
    else
        return base_fail(error, BASE_ERR_IO, "", 0, "no cache directory: none of QUT_CACHE, XDG_CACHE_HOME, HOME set");
    return length < 0 ? base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path") : 0;
}

int qutc_cache_path(const char *directory, const struct input_image *image, char **path, struct base_error *error)
{
    char name[QUT_TABLE_NAME_MAX];
    static_assert((int)INPUT_IDENTITY_MAX == (int)QUT_IDENTITY_MAX, "identities fit names");
    qut_table_name(image->arch->name, image->identity, image->identity_size, name);
    if (asprintf(path, "%s/%s", directory, name) < 0)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
    return 0;
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
    char *partial = strdup(path);
    if (!partial)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
    int result = 0;
    for (char *at = partial + (*partial != '\0'); result == 0; at++) {
        char separator = *at;
        if (separator != '/' && separator != '\0')
            continue;
        *at = '\0';
        struct stat status;
        // Another process may be creating the same directories.
        if (mkdir(partial, 0777) != 0 && errno != EEXIST)
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
