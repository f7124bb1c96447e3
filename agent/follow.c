// SPDX-License-Identifier: Apache-2.0
// Files are read like the kernel reads them: "#! INTERPRETER", ELF, its loader. Runs in children of vfork as well, on
// the program's stack: no allocation, little room.
#include "agent/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/inside.h"
#include "formats/elf_wide_inline.h"

enum { NAME_BYTES = 256, PATH_ROOM_BYTES = 1024 };

// Our own file's, put here by the linker: which class and machine the loader must be of.
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static const char separators[] = ": "; // of LD_PRELOAD

// ---- what the file says

static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
    return pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// The loader's name, "" where there is none: the program is static. False: it cannot be said.
static bool find_loader(int fd, const unsigned char *identity, char name[NAME_BYTES])
{
    enum { SEGMENTS_MAX = 64 };
    const bool is_64 = identity[EI_CLASS] == ELFCLASS64;
    uint8_t bytes[sizeof(Elf64_Ehdr)];
    const size_t segment_bytes = elf_segment_bytes(is_64);
    if (!read_at(fd, bytes, elf_header_bytes(is_64), 0))
        return false;
    const Elf64_Ehdr header = elf_wide_header(bytes, is_64);
    name[0] = 0;
    for (unsigned i = 0; i < header.e_phnum && i < SEGMENTS_MAX; i++) {
        if (!read_at(fd, bytes, segment_bytes, header.e_phoff + i * segment_bytes))
            return false;
        const Elf64_Phdr segment = elf_wide_segment(bytes, is_64);
        if (segment.p_type != PT_INTERP)
            continue;
        const size_t size = (size_t)segment.p_filesz;
        if (size == 0 || size > NAME_BYTES || !read_at(fd, name, size, segment.p_offset))
            return false;
        name[size - 1] = 0;
        return true;
    }
    return header.e_phnum <= SEGMENTS_MAX;
}

// "": not known.
static const char *own_loader(void)
{
    const ElfW(Phdr) *segments = (const void *)getauxval(AT_PHDR); // NOLINT: it is an address
    const size_t count = segments ? getauxval(AT_PHNUM) : 0;
    uintptr_t bias = 0;
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_PHDR)
            bias = (uintptr_t)segments - segments[i].p_vaddr;
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_INTERP)
            return (const char *)(bias + segments[i].p_vaddr);
    return "";
}

// Whether the kernel tells the loader to trust no environment: its effective user will differ from its real one, be it
// by the file or by now.
static bool is_privileged(int fd)
{
    struct stat status;
    struct statvfs system;
    char capabilities[64];
    uid_t user = geteuid();
    gid_t group = getegid();
    const bool may_change = fstat(fd, &status) == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 &&
                            fstatvfs(fd, &system) == 0 && !(system.f_flag & ST_NOSUID);
    if (may_change && (status.st_mode & S_ISUID))
        user = status.st_uid;
    if (may_change && (status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
        group = status.st_gid;
    return user != getuid() || group != getgid() ||
           (may_change && user != 0 && fgetxattr(fd, "security.capability", capabilities, sizeof capabilities) > 0);
}

static const char *value_of(char *const environment[], const char *name)
{
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

bool agent_follow_is_unreadable(char *const environment[])
{
    const size_t size = sizeof AGENT_FILE - 1;
    char path[PATH_ROOM_BYTES];
    const char *preload = value_of(environment, "LD_PRELOAD");
    for (size_t length; preload && *preload; preload += length + (preload[length] != 0)) {
        length = strcspn(preload, separators);
        if (length < size || length >= sizeof path || memcmp(preload + length - size, AGENT_FILE, size) != 0)
            continue;
        memcpy(path, preload, length);
        path[length] = 0;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd >= 0)
            close(fd);
        return fd < 0 && (errno == EACCES || errno == EPERM || errno == ENOENT || errno == ENOTDIR);
    }
    return false;
}

static enum agent_left judge(int fd, const char *path, const unsigned char *identity, char *const environment[])
{
    Elf32_Half kind[2]; // e_type, e_machine: at the same place in both classes
    char loader[NAME_BYTES];
    const unsigned char *ours = __ehdr_start.e_ident;
    if (identity[EI_DATA] != ours[EI_DATA])
        return AGENT_LEFT_MACHINE; // under an emulator
    if (!read_at(fd, kind, sizeof kind, EI_NIDENT) || !find_loader(fd, identity, loader))
        return AGENT_LEFT_NOT;
    if (!loader[0]) // a loader that is executed has none itself
        return strncmp(last_part(path), "ld-", 3) == 0 || strncmp(last_part(path), "ld.", 3) == 0 ? AGENT_LEFT_NOT
                                                                                                  : AGENT_LEFT_STATIC;
    if (identity[EI_CLASS] != ours[EI_CLASS] || kind[1] != __ehdr_start.e_machine)
        return AGENT_LEFT_MACHINE;
    const char *own = own_loader(), *preload = value_of(environment, "LD_PRELOAD");
    if (own[0] && strcmp(last_part(own), last_part(loader)) != 0)
        return AGENT_LEFT_LIBC;
    if (is_privileged(fd))
        return AGENT_LEFT_PRIVILEGED;
    if (!preload || !strstr(preload, AGENT_FILE) || !value_of(environment, AGENT_VARIABLE))
        return AGENT_LEFT_ENVIRONMENT;
    return agent_follow_is_unreadable(environment) ? AGENT_LEFT_UNREADABLE : AGENT_LEFT_NOT;
}

// ---- finding it

// A fifo or a device is not to be opened. The path may be no pointer at all, which the kernel finds out: for the
// program, too.
static int open_file(int directory, const char *path, int flags)
{
    enum { HOW = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };
    struct stat status;
    char link[32];
    if (fstatat(directory, path, &status, flags) != 0 || !S_ISREG(status.st_mode))
        return -1;
    int fd = openat(directory, path, HOW);
    if (fd >= 0 || !(flags & AT_EMPTY_PATH))
        return fd;
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    return open(link, HOW);
}

// "#! INTERPRETER ARGUMENT" in its first `size` bytes.
static bool take_interpreter(const char *head, size_t size, char path[NAME_BYTES])
{
    if (size < 2 || head[0] != '#' || head[1] != '!')
        return false;
    size_t from = 2, to;
    while (from < size && (head[from] == ' ' || head[from] == '\t'))
        from++;
    for (to = from; to < size && !memchr(" \t\r\n", head[to], 4) && head[to];)
        to++;
    memcpy(path, head + from, to - from);
    path[to - from] = 0;
    return true;
}

enum agent_left agent_follow_look(int directory, const char *path, int flags, char *const environment[])
{
    enum { DEEPEST = 5 }; // the kernel's bound
    char head[NAME_BYTES - 1], interpreter[NAME_BYTES];
    for (int i = 0; i < DEEPEST; i++) {
        int fd = open_file(directory, path, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
        if (fd < 0)
            return AGENT_LEFT_NOT;
        ssize_t size = pread(fd, head, sizeof head, 0);
        bool is_elf = size >= EI_NIDENT && memcmp(head, ELFMAG, SELFMAG) == 0;
        enum agent_left left = is_elf ? judge(fd, path, (const unsigned char *)head, environment) : AGENT_LEFT_NOT;
        close(fd);
        if (is_elf || size < 0 || !take_interpreter(head, (size_t)size, interpreter))
            return left;
        directory = AT_FDCWD;
        flags = 0;
        path = interpreter;
    }
    return AGENT_LEFT_NOT;
}

// As execvp goes through PATH: the first that can be executed.
enum agent_left agent_follow_search(const char *file, char *const environment[])
{
    char path[PATH_ROOM_BYTES];
    const char *directories = getenv("PATH");
    if (strchr(file, '/'))
        return agent_follow_look(AT_FDCWD, file, 0, environment);
    const size_t size = strlen(file);
    for (const char *from = directories ? directories : "/bin:/usr/bin"; size; from++) {
        size_t length = strcspn(from, ":");
        if (length + size + 2 <= sizeof path) {
            memcpy(path, from, length);
            path[length] = '/';
            memcpy(path + length + (length != 0), file, size + 1);
            if (access(path, X_OK) == 0)
                return agent_follow_look(AT_FDCWD, path, 0, environment);
        }
        from += length;
        if (!*from)
            break;
    }
    return AGENT_LEFT_NOT;
}

// ---- the environment of what cannot load us

static const char preload_name[] = "LD_PRELOAD=";

size_t agent_follow_room(enum agent_left left, char *const environment[])
{
    size_t count = 0;
    const bool would_complain = left == AGENT_LEFT_MACHINE || left == AGENT_LEFT_UNREADABLE;
    const char *preload = would_complain ? value_of(environment, "LD_PRELOAD") : NULL;
    if (!preload || !strstr(preload, AGENT_FILE))
        return 0;
    while (environment[count])
        count++;
    return (count + 1) * sizeof *environment + sizeof preload_name + strlen(preload);
}

// What else is in the list stays. False: nothing is.
static bool copy_others(char *to, const char *preload)
{
    const size_t size = sizeof AGENT_FILE - 1;
    size_t used = sizeof preload_name - 1;
    memcpy(to, preload_name, used);
    for (size_t length; *preload; preload += length + (preload[length] != 0)) {
        length = strcspn(preload, separators);
        if (length == 0 || (length >= size && memcmp(preload + length - size, AGENT_FILE, size) == 0))
            continue;
        if (used >= sizeof preload_name)
            to[used++] = ':';
        memcpy(to + used, preload, length);
        used += length;
    }
    to[used] = 0;
    return used >= sizeof preload_name;
}

char *const *agent_follow_environment(char **room, char *const environment[])
{
    const char *preload = value_of(environment, "LD_PRELOAD");
    size_t count = 0, kept = 0;
    while (environment[count])
        count++;
    char *others = (char *)(room + count + 1);
    const bool has_others = copy_others(others, preload);
    for (size_t i = 0; i < count; i++)
        if (environment[i] != preload - (sizeof preload_name - 1))
            room[kept++] = environment[i];
        else if (has_others)
            room[kept++] = others;
    room[kept] = NULL;
    return room;
}
