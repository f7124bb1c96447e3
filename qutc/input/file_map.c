// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int map_descriptor(struct qutc_file_map *map, int fd, uint64_t offset_bytes, uint64_t size_bytes,
                          struct qutc_error *error)
{
    struct stat status;
    if (fstat(fd, &status))
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "%s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "not a regular file");
    uint64_t file_bytes = (uint64_t)status.st_size;
    if (offset_bytes > file_bytes || size_bytes > file_bytes - offset_bytes)
        return qutc_fail(error, QUTC_ERR_TRUNCATED, "file", offset_bytes, "0x%jx bytes wanted, the file has 0x%jx",
                         (uintmax_t)size_bytes, (uintmax_t)file_bytes);
    if (size_bytes == 0)
        size_bytes = file_bytes - offset_bytes;
    map->device = (uint64_t)status.st_dev;
    map->inode = (uint64_t)status.st_ino;
    if (size_bytes == 0)
        return 0;
    uint64_t in_page = offset_bytes % (uint64_t)sysconf(_SC_PAGESIZE);
    size_t base_bytes = (size_t)(size_bytes + in_page);
    void *base = mmap(NULL, base_bytes, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset_bytes - in_page));
    if (base == MAP_FAILED)
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "%s", strerror(errno));
    map->base = base;
    map->base_bytes = base_bytes;
    map->bytes = (struct qutc_bytes){(const uint8_t *)base + in_page, (size_t)size_bytes};
    return 0;
}

int qutc_file_map_open(struct qutc_file_map *map, const char *path, uint64_t offset_bytes, uint64_t size_bytes,
                       struct qutc_error *error)
{
    *map = (struct qutc_file_map){.bytes = {(const uint8_t *)"", 0}};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "%s", strerror(errno));
    int result = map_descriptor(map, fd, offset_bytes, size_bytes, error);
    close(fd);
    return result;
}

void qutc_file_map_rest(const struct qutc_file_map *map)
{
    if (map->base)
        madvise(map->base, map->base_bytes, MADV_DONTNEED);
}

void qutc_file_map_close(struct qutc_file_map *map)
{
    if (map->base)
        munmap(map->base, map->base_bytes);
    *map = (struct qutc_file_map){.bytes = {(const uint8_t *)"", 0}};
}
