// SPDX-License-Identifier: Apache-2.0
// readelf reads a private copy of the image: the image may be part of another file, or in no file at all.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_io_inline.h"
#include "qutc/check/readelf_listing.h"

extern char **environ;

enum {
    COPY_FD = 3,      // of the copy, in readelf
    FIRST_FREE_FD = 4 // ours stay above, so that arranging readelf's cannot close them
};

static int fail_errno(struct base_error *error, const char *what)
{
    return base_fail(error, BASE_ERR_IO, "", 0, "%s: %s", what, strerror(errno));
}

// Closes `fd` and returns the same file under a number that readelf's own arrangement does not use.
static int out_of_the_way(int fd)
{
    if (fd < 0)
        return -1;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    int saved_errno = errno;
    close(fd);
    errno = saved_errno;
    return higher;
}

// readelf reads what is behind a personality routine only where the routine has a name it knows, and stripped images
// have no names. In the copy such an entry is turned into a compact one that does the same:
//   prel31 routine   | N op op op | ...    becomes
//   0x81 N+1 +8 -4   | -4 op op op | ...   (vsp + 8 - 4 - 4 stays where it was)
static int make_compact(const struct input_image *image, int copy_fd, uint32_t table_entry)
{
    struct base_bytes elf = input_image_elf(image);
    struct base_bytes entry = input_image_at(image, table_entry);
    uintptr_t offset = (uintptr_t)entry.data - (uintptr_t)elf.data;
    if (entry.size < 8 || offset > elf.size || elf.size - offset < 8 || entry.data[7] == 0xff)
        return 0;
    const uint8_t words[8] = {0x40,          0x01, (uint8_t)(entry.data[7] + 1), 0x81, entry.data[4], entry.data[5],
                              entry.data[6], 0x40};
    ssize_t written;
    do {
        written = pwrite(copy_fd, words, sizeof words, (off_t)offset);
    } while (written < 0 && errno == EINTR);
    return written == (ssize_t)sizeof words ? 0 : -1;
}

// The environment, but for the language of the words we are going to read. NULL without memory.
static char **c_locale_environment(void)
{
    static char c_locale[] = "LC_ALL=C";
    size_t count = 0;
    while (environ && environ[count])
        count++;
    char **copy = calloc(count + 2, sizeof *copy);
    if (!copy)
        return NULL;
    size_t kept = 0;
    copy[kept++] = c_locale;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "LC_ALL=", 7) != 0 && strncmp(environ[i], "LANGUAGE=", 9) != 0)
            copy[kept++] = environ[i];
    return copy;
}

static int spawn_readelf(int copy_fd, int output_fd, pid_t *pid, struct base_error *error)
{
    char *argv[] = {(char[]){"readelf"}, (char[]){"-uW"}, (char[]){"/proc/self/fd/3"}, NULL};
    char **environment = c_locale_environment();
    posix_spawn_file_actions_t actions;
    int failure = environment ? posix_spawn_file_actions_init(&actions) : ENOMEM;
    if (!failure) {
        failure = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (!failure)
            failure = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        if (!failure)
            failure = posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
        if (!failure)
            failure = posix_spawn_file_actions_adddup2(&actions, copy_fd, COPY_FD);
        if (!failure)
            failure = posix_spawnp(pid, argv[0], &actions, NULL, argv, environment);
        posix_spawn_file_actions_destroy(&actions);
    }
    free(environment);
    if (failure)
        return base_fail(error, BASE_ERR_IO, "", 0, "cannot run readelf: %s", strerror(failure));
    return 0;
}

// Takes in everything up to the end, also after a failure of ours: readelf must not block on a full pipe.
static int read_lines(FILE *output, const char *section_name, struct check_readelf_listing *listing,
                      struct base_error *error)
{
    char *line = NULL;
    size_t capacity = 0;
    int result = 0;
    while (getline(&line, &capacity, output) >= 0)
        if (!result)
            result = check_readelf_line(listing, section_name, line, error);
    free(line);
    if (!result && ferror(output))
        result = fail_errno(error, "reading readelf's output");
    return result;
}

static int run_once(int copy_fd, const char *section_name, struct check_readelf_listing *listing,
                    struct base_error *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return fail_errno(error, "pipe");
    ends[0] = out_of_the_way(ends[0]);
    ends[1] = out_of_the_way(ends[1]);
    FILE *output = ends[0] >= 0 ? fdopen(ends[0], "r") : NULL;
    pid_t pid = -1;
    int result = output && ends[1] >= 0 ? 0 : fail_errno(error, "pipe");
    if (!result)
        result = spawn_readelf(copy_fd, ends[1], &pid, error);
    if (ends[1] >= 0)
        close(ends[1]);
    if (!result)
        result = read_lines(output, section_name, listing, error);
    if (output)
        fclose(output);
    else if (ends[0] >= 0)
        close(ends[0]);
    if (pid < 0)
        return result;

    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return result ? result : fail_errno(error, "waiting for readelf");
    // Its exit code tells of any flaw it saw anywhere in the file; what matters to us it prints in its place.
    if (!result && WIFSIGNALED(status))
        result = base_fail(error, BASE_ERR_IO, "", 0, "readelf was ended by signal %d", WTERMSIG(status));
    if (!result && WEXITSTATUS(status) == 127 && !listing->section_seen)
        result = base_fail(error, BASE_ERR_IO, "", 0, "cannot run readelf");
    return result;
}

// The second reading, where there are personality routines without a known name.
static int run_again(const struct input_image *image, int copy_fd, const char *section_name,
                     struct check_readelf_listing *listing, struct base_error *error)
{
    size_t nameless_count = 0;
    for (size_t i = 0; i < listing->functions.count; i++) {
        const struct check_readelf_function *function = &listing->functions.items[i];
        if (!function->named_only || !function->table_entry)
            continue;
        nameless_count++;
        if (make_compact(image, copy_fd, function->table_entry))
            return fail_errno(error, "writing readelf's copy");
    }
    if (!nameless_count)
        return 0;
    check_readelf_listing_free(listing);
    return run_once(copy_fd, section_name, listing, error);
}

int check_readelf_run(const struct input_image *image, const char *section_name, struct check_readelf_listing *listing,
                      struct base_error *error)
{
    int copy_fd = out_of_the_way(memfd_create("qutc-readelf", MFD_CLOEXEC));
    if (copy_fd < 0)
        return fail_errno(error, "memfd_create");
    int result = 0;
    const struct base_bytes elf = input_image_elf(image);
    if (base_file_write_all(copy_fd, elf.data, elf.size))
        result = fail_errno(error, "writing readelf's copy");
    if (!result)
        result = run_once(copy_fd, section_name, listing, error);
    if (!result)
        result = run_again(image, copy_fd, section_name, listing, error);
    close(copy_fd);
    return result;
}
