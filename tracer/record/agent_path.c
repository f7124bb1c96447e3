// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/record/record.h"

static bool is_there(char path[PATH_MAX], const char *format, const char *first, const char *second)
    __attribute__((format(printf, 2, 0)));

static bool is_there(char path[PATH_MAX], const char *format, const char *first, const char *second)
{
    char tried[PATH_MAX], whole[PATH_MAX];
    int length = snprintf(tried, sizeof tried, format, first, second);
    if (length <= 0 || (size_t)length >= sizeof tried || access(tried, R_OK) != 0 || !realpath(tried, whole))
        return false;
    memcpy(path, whole, sizeof whole);
    return true;
}

int record_find_agent(char path[PATH_MAX], struct base_error *error)
{
    const char *told = getenv("QUT_AGENT_PATH");
    char self[PATH_MAX];
    if (told && *told)
        return is_there(path, "%s%s", told, "")
                   ? 0
                   : base_fail(error, BASE_ERR_IO, "", 0, "$QUT_AGENT_PATH: %s: %s", told, strerror(errno));
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    if (is_there(path, "%s/../agent/%s", self, AGENT_FILE) ||
        is_there(path, "%s/../" QUT_AGENT_DIR "/%s", self, AGENT_FILE) ||
        is_there(path, "%s/%s", QUT_AGENT_PREFIX "/" QUT_AGENT_DIR, AGENT_FILE))
        return 0;
    return base_fail(error, BASE_ERR_IO, "", 0,
                     "is neither beside this program nor installed: set QUT_AGENT_PATH to where it is");
}
