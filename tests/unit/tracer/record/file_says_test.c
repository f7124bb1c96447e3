// SPDX-License-Identifier: Apache-2.0
// What a file says is the same whether its first page has it or not. Usage: file_says_test PROGRAM (with a build-id)
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libqut/arch/native.h"
#include "tests/support/tap.h"
#include "tracer/record/file_says.h"

static const char *program;

static uint8_t *read_all(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0 && (bytes = malloc(*size = (size_t)ftell(file)))) {
        rewind(file);
        *size = fread(bytes, 1, *size, file);
    }
    if (file)
        fclose(file);
    return bytes;
}

static bool write_all(const char *path, const uint8_t *bytes, size_t size, const uint8_t *more, size_t more_bytes)
{
    FILE *file = fopen(path, "wb");
    const bool is_written =
        file && fwrite(bytes, 1, size, file) == size && fwrite(more, 1, more_bytes, file) == more_bytes;
    return file && fclose(file) == 0 && is_written;
}

TEST(of_its_first_page)
{
    struct file_says says;
    CHECK(record_file_says(program, &says), "it is one");
    CHECK(says.arch->id == arch_native_arch.id && says.is_64 == (sizeof(void *) == 8), "of this machine");
    CHECK(says.build_id_bytes >= 16 && strstr(says.interpreter, "ld"), "%u, %s", says.build_id_bytes, says.interpreter);
}

// Its program headers at its end: nothing that is asked for can be found without them.
TEST(of_all_of_it)
{
    char path[] = "/tmp/file-says-XXXXXX";
    struct file_says says, moved;
    size_t size = 0;
    uint8_t *bytes = read_all(program, &size);
    const int fd = mkstemp(path);
    if (!CHECK(bytes && size > sizeof(ElfW(Ehdr)) && fd >= 0, "it can be read, and a copy made")) {
        free(bytes);
        return;
    }
    close(fd);
    ElfW(Ehdr) *head = (void *)bytes;
    const size_t headers_bytes = (size_t)head->e_phnum * head->e_phentsize;
    const ElfW(Off) headers = head->e_phoff;
    head->e_phoff = size;
    if (CHECK(write_all(path, bytes, size, bytes + headers, headers_bytes), "a copy")) {
        CHECK(record_file_says(program, &says) && record_file_says(path, &moved), "both are");
        CHECK(moved.file_bytes == says.file_bytes + headers_bytes, "%ju bytes", (uintmax_t)moved.file_bytes);
        CHECK(moved.build_id_bytes == says.build_id_bytes &&
                  memcmp(moved.build_id, says.build_id, says.build_id_bytes) == 0,
              "its build-id");
        CHECK(strcmp(moved.interpreter, says.interpreter) == 0, "%s", moved.interpreter);
    }
    unlink(path);
    free(bytes);
}

TEST(of_what_is_no_program)
{
    struct file_says says;
    CHECK(!record_file_says("/dev/null", &says) && !record_file_says("/", &says) &&
              !record_file_says("/missing", &says),
          "nothing");
}

int main(int argument_count, char *arguments[])
{
    if (argument_count != 2)
        return 1;
    program = arguments[1];
    RUN(of_its_first_page);
    RUN(of_all_of_it);
    RUN(of_what_is_no_program);
    return tap_finish();
}
