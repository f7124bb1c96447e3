// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

// A file whose identity alone is wanted costs the few pages that say it; one that is read from end to end is read by
// larger pieces.
enum { CHUNK_BYTES = 1 << 12, PIECE_CHUNKS = 16, PIECE_BYTES = PIECE_CHUNKS * CHUNK_BYTES };

static int map_window(struct input_file_map *map, int fd, uint64_t offset_bytes, uint64_t size_bytes)
{
    uint64_t in_page = offset_bytes % (uint64_t)sysconf(_SC_PAGESIZE);
    size_t base_bytes = (size_t)(size_bytes + in_page);
    void *base = mmap(NULL, base_bytes, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset_bytes - in_page));
    if (base == MAP_FAILED)
        return -1;
    map->base = base;
    map->base_bytes = base_bytes;
    map->bytes = (struct base_bytes){(const uint8_t *)base + in_page, (size_t)size_bytes};
    return 0;
}

// Address space only: a page becomes memory when it is read into.
static int reserve_window(struct input_file_map *map, int fd, uint64_t offset_bytes, uint64_t size_bytes)
{
    void *base =
        mmap(NULL, (size_t)size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return -1;
    map->base = base;
    map->base_bytes = (size_t)size_bytes;
    map->bytes = (struct base_bytes){base, (size_t)size_bytes};
    map->offset_bytes = offset_bytes;
    map->present = calloc((size_t)(size_bytes / CHUNK_BYTES + 1), 1);
    map->fd = map->present ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    return map->fd < 0 ? -1 : 0;
}

// FUSE: what any user may mount.
static bool is_claimed(int fd)
{
    enum { FUSE_MAGIC = 0x65735546 };
    struct statfs system;
    return fstatfs(fd, &system) != 0 || (uint32_t)system.f_type == FUSE_MAGIC;
}

static int open_window(struct input_file_map *map, int fd, uint64_t offset_bytes, uint64_t size_bytes,
                       enum input_file_way way, struct base_error *error)
{
    if (fstat(fd, &map->opened))
        return base_fail_errno(error, errno);
    if (!S_ISREG(map->opened.st_mode))
        return base_fail(error, BASE_ERR_IO, "", 0, "not a regular file");
    uint64_t file_bytes = (uint64_t)map->opened.st_size;
    if (offset_bytes > file_bytes || size_bytes > file_bytes - offset_bytes)
        return base_fail(error, BASE_ERR_TRUNCATED, "file", offset_bytes, "0x%jx bytes wanted, the file has 0x%jx",
                         (uintmax_t)size_bytes, (uintmax_t)file_bytes);
    if (size_bytes == 0)
        size_bytes = file_bytes - offset_bytes;
    map->device = (uint64_t)map->opened.st_dev;
    map->inode = (uint64_t)map->opened.st_ino;
    map->is_claimed = is_claimed(fd);
    if (size_bytes == 0)
        return 0;
    int result = way == INPUT_FILE_READ ? reserve_window(map, fd, offset_bytes, size_bytes)
                                        : map_window(map, fd, offset_bytes, size_bytes);
    return result ? base_fail_errno(error, errno) : 0;
}

int input_file_map_open(struct input_file_map *map, const char *path, uint64_t offset_bytes, uint64_t size_bytes,
                        enum input_file_way way, struct base_error *error)
{
    *map = (struct input_file_map){.bytes = {(const uint8_t *)"", 0}, .fd = -1};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return base_fail_errno(error, errno);
    int result = open_window(map, fd, offset_bytes, size_bytes, way, error);
    close(fd);
    if (result)
        input_file_map_close(map);
    return result;
}

static bool read_chunks(struct input_file_map *map, size_t from, size_t end)
{
    while (from < end) {
        ssize_t got = pread(map->fd, (uint8_t *)map->base + from, end - from, (off_t)(map->offset_bytes + from));
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        from += got > 0 ? (size_t)got : 0;
    }
    return true;
}

bool input_file_map_need(struct input_file_map *map, uint64_t from, uint64_t size)
{
    if (!map->present || from >= map->bytes.size || size == 0)
        return !map->lost;
    uint64_t left = map->bytes.size - from;
    size_t last = (size_t)((from + (size < left ? size : left) - 1) / CHUNK_BYTES);
    for (size_t chunk = (size_t)from / CHUNK_BYTES; chunk <= last && !map->lost; chunk++) {
        size_t end = chunk;
        while (end <= last && !map->present[end])
            map->present[end++] = 1;
        size_t end_bytes = end * CHUNK_BYTES < map->bytes.size ? end * CHUNK_BYTES : map->bytes.size;
        if (end > chunk)
            map->lost = !read_chunks(map, chunk * CHUNK_BYTES, end_bytes);
        chunk = end;
    }
    return !map->lost;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool input_file_map_is_whole(const struct input_file_map *map)
{
    struct stat now;
    if (!map->present)
        return true;
    return !map->lost && fstat(map->fd, &now) == 0 && now.st_size == map->opened.st_size &&
           same_time(now.st_mtim, map->opened.st_mtim);
}

void input_file_map_each(struct input_file_map *map, void (*piece)(void *context, struct base_bytes bytes),
                         void *context)
{
    size_t size = map->bytes.size;
    for (size_t at = 0; map->present && at < size; at += PIECE_BYTES) {
        size_t piece_bytes = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;
        size_t chunks = (piece_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
        bool was_present = memchr(map->present + at / CHUNK_BYTES, 1, chunks) != NULL;
        input_file_map_need(map, at, piece_bytes);
        piece(context, (struct base_bytes){map->bytes.data + at, piece_bytes});
        if (was_present)
            continue;
        madvise((uint8_t *)map->base + at, piece_bytes, MADV_DONTNEED);
        memset(map->present + at / CHUNK_BYTES, 0, chunks);
    }
    if (map->present || !map->base)
        return;
    piece(context, map->bytes);
    madvise(map->base, map->base_bytes, MADV_DONTNEED);
}

void input_file_map_close(struct input_file_map *map)
{
    if (map->base)
        munmap(map->base, map->base_bytes);
    free(map->present);
    if (map->base && map->fd >= 0)
        close(map->fd);
    *map = (struct input_file_map){.bytes = {(const uint8_t *)"", 0}, .fd = -1};
}
