// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/record/endpoint.h"
#include "tracer/record/record.h"

static bool is_there(char path[PATH_MAX], const char *format, const char *first, const char *second)
    __attribute__((format(printf, 2, 0)));

static bool is_there(char path[PATH_MAX], const char *format, const char *first, const char *second)
{
    char tried[PATH_MAX], whole[PATH_MAX];
    int length = snprintf(tried, sizeof tried, format, first, second);
    if (length <= 0 || (size_t)length >= sizeof tried ||
        (access(tried, R_OK) != 0 && errno != EPERM && errno != ENOSYS))
        return false;
    // glibc's asks by a call (faccessat2) that old filters deny.
    const char *found = realpath(tried, whole);
    if (!found && errno != EPERM)
        return false;
    snprintf(path, PATH_MAX, "%s", found ? found : tried);
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

// ---- handing it over

// Only root's commands become somebody else, and are still told what to load.
bool record_agent_needs_copy(const char *path)
{
    struct stat status;
    return geteuid() == 0 &&
           (stat(path, &status) != 0 || !(status.st_mode & S_IROTH) || !record_endpoint_is_reached(path));
}

// For all to read, for none to write: it is loaded into programs of every user that the command becomes.
static bool copy(const char *path, const char *to)
{
    char bytes[65536];
    int from_fd = open(path, O_RDONLY | O_CLOEXEC);
    int to_fd = from_fd < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0444);
    ssize_t size = -1;
    while (to_fd >= 0 && (size = read(from_fd, bytes, sizeof bytes)) > 0)
        if (write(to_fd, bytes, (size_t)size) != size) {
            size = -1;
            break;
        }
    bool is_whole = size == 0 && fchmod(to_fd, 0444) == 0; // whatever the umask
    if (to_fd >= 0 && close(to_fd) != 0)
        is_whole = false;
    if (from_fd >= 0)
        close(from_fd);
    if (to_fd >= 0 && !is_whole)
        unlink(to);
    return is_whole;
}

int record_agent_hand_over(const char *path, const char *directory, bool is_for_all, char *link, size_t size,
                           struct base_error *error)
{
    snprintf(link, size, "%s/%s", directory, AGENT_FILE);
    if (is_for_all && copy(path, link))
        return 0;
    if (strpbrk(path, ": ;\n") && directory[0] && symlink(path, link) == 0)
        return 0;
    link[0] = 0;
    return strpbrk(path, ": ;\n")
               ? base_fail(error, BASE_ERR_IO, "", 0, "the agent's path cannot stand in LD_PRELOAD: %s", path)
               : 0;
}
