// SPDX-License-Identifier: Apache-2.0
#include "qutc/table_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

enum { MEMORY_ALIGN = 64 }; // a cache line: timings do not depend on where malloc put the table
enum { LARGE_BYTES = 2 << 20 };

static const uint64_t table_max_bytes = UINT32_MAX; // sections have 32-bit offsets

void *qutc_alloc_aligned(size_t size)
{
    if (size > SIZE_MAX - MEMORY_ALIGN)
        return NULL;
    size_t whole = (size + MEMORY_ALIGN - 1) & ~(size_t)(MEMORY_ALIGN - 1);
    if (whole >= LARGE_BYTES) // aligned to its huge pages
        return base_array_malloc(whole);
    void *memory; // aligned_alloc came to Android with 9
    return posix_memalign(&memory, MEMORY_ALIGN, whole ? whole : MEMORY_ALIGN) == 0 ? memory : NULL;
}

// Reads up to `size` bytes; less only at the end of the file.
static ssize_t read_fully(int fd, uint8_t *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(fd, bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int read_open_file(int fd, uint64_t max_bytes, uint8_t **bytes, size_t *size, struct base_error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return base_fail_errno(error, errno);
    if (!S_ISREG(status.st_mode))
        return base_fail(error, BASE_ERR_IO, "", 0, "not a regular file");
    if ((uint64_t)status.st_size > max_bytes)
        return base_fail(error, BASE_ERR_LIMIT, "", 0, "%jd bytes", (intmax_t)status.st_size);
    size_t wanted = (size_t)status.st_size;
    *bytes = qutc_alloc_aligned(wanted);
    if (!*bytes)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "%zu bytes", wanted);
    ssize_t got = read_fully(fd, *bytes, wanted);
    if (got < 0) {
        int saved = errno;
        free(*bytes);
        *bytes = NULL;
        return base_fail_errno(error, saved);
    }
    *size = (size_t)got;
    return 0;
}

int qutc_read_file(const char *path, uint64_t max_bytes, uint8_t **bytes, size_t *size, struct base_error *error)
{
    *bytes = NULL;
    *size = 0;
    // A pipe in a table's place must not block us.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return base_fail_errno(error, errno);
    int result = read_open_file(fd, max_bytes, bytes, size, error);
    close(fd);
    return result;
}

int qutc_table_attach(struct qut_table *table, const void *bytes, size_t size, struct base_error *error)
{
    uint64_t offset = 0;
    enum qut_table_fault fault = runtime_table_attach(table, bytes, size, &offset);
    if (fault == QUT_TABLE_OK)
        return 0;
    return base_fail(error, BASE_ERR_TABLE, "", offset, "%s: at 0x%" PRIx64, qut_table_fault_name(fault), offset);
}

int qutc_table_file_read(const char *path, struct qutc_table_file *file, struct base_error *error)
{
    *file = (struct qutc_table_file){0};
    if (qutc_read_file(path, table_max_bytes, &file->bytes, &file->size, error) != 0)
        return -1;
    if (qutc_table_attach(&file->table, file->bytes, file->size, error) == 0)
        return 0;
    qutc_table_file_free(file);
    return -1;
}

void qutc_table_file_free(struct qutc_table_file *file)
{
    free(file->bytes);
    *file = (struct qutc_table_file){0};
}
