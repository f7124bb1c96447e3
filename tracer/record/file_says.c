// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/file_says.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qutc/input/elf_file.h"
#include "qutc/input/identity.h"

// Linkers put all of it at the file's beginning.
enum { START_BYTES = 4096 };

// False: it has one, which is not in these bytes.
static bool take_interpreter(struct file_says *says, const struct input_elf *elf)
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        if (elf->segments[i].type != PT_INTERP)
            continue;
        const struct base_bytes bytes = input_elf_segment_bytes(elf, &elf->segments[i]);
        const size_t length = bytes.size ? strnlen((const char *)bytes.data, bytes.size) : 0;
        if (bytes.size < elf->segments[i].file_bytes)
            return false;
        if (length < sizeof says->interpreter)
            memcpy(says->interpreter, bytes.data, length);
    }
    return true;
}

// False: some of it may stand elsewhere in the file.
static bool take(struct file_says *says, const struct input_elf *elf)
{
    const struct base_bytes id = input_build_id(elf);
    says->arch = elf->arch;
    says->is_64 = elf->is_64;
    if (id.size <= sizeof says->build_id) {
        says->build_id_bytes = (uint32_t)id.size;
        memcpy(says->build_id, id.data, id.size);
    }
    return take_interpreter(says, elf) && id.size;
}

static bool take_of_start(struct file_says *says, const char *path)
{
    uint8_t start[START_BYTES];
    struct stat status;
    struct input_elf elf;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const bool is_file = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    const ssize_t size = is_file ? pread(fd, start, sizeof start, 0) : -1;
    if (fd >= 0)
        close(fd);
    if (size <= 0 || input_elf_read(&elf, (struct base_bytes){start, (size_t)size}, NULL) != 0)
        return false;
    says->file_bytes = (uint64_t)status.st_size;
    const bool is_all = take(says, &elf);
    input_elf_free(&elf);
    return is_all;
}

bool record_file_says(const char *path, struct file_says *says)
{
    struct input_file_map map;
    struct input_elf elf;
    *says = (struct file_says){0};
    if (take_of_start(says, path))
        return true;
    *says = (struct file_says){0};
    if (input_file_map_open(&map, path, 0, 0, INPUT_FILE_READ, NULL) != 0)
        return false;
    const bool is_elf = input_elf_read_file(&elf, &map, NULL) == 0;
    if (is_elf) {
        says->file_bytes = map.bytes.size;
        take(says, &elf);
        input_elf_free(&elf);
    }
    input_file_map_close(&map);
    return is_elf;
}
