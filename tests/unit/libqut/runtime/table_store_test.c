// SPDX-License-Identifier: Apache-2.0
// Tables from a directory and from a compiler: what is taken, and what is not.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/qut_table_name_inline.h"
#include "libqut/os/file.h"
#include "libqut/os/os.h"
#include "libqut/runtime/table_store.h"
#include "tests/support/table_sample_bytes.h"
#include "tests/support/tap.h"

static char directory[128];
static char path[512]; // of the file that write_table wrote last

static const uint8_t build_id[40] = {0x9f, 0x3c, 0, 0xff, 5, 6, 7, 8, 9, 10};
static const char full_name[] = "aarch64-9f3c00ff05060708090a00000000000000000000.qut";

static void sum_up(uint8_t *bytes, size_t size)
{
    struct qut_table_header *header = (void *)bytes;
    const uint8_t *summed = (const uint8_t *)(&header->checksum + 1);
    header->checksum = qut_table_checksum(summed, size - (size_t)(summed - bytes));
}

// The sample with another identity.
static uint8_t *sample(const uint8_t *identity, uint8_t identity_size, uint32_t flags)
{
    uint8_t *bytes = malloc(sizeof sample_table);
    if (!bytes)
        abort();
    memcpy(bytes, sample_table, sizeof sample_table);
    struct qut_table_header *header = (void *)bytes;
    memset(header->identity, 0, sizeof header->identity);
    memcpy(header->identity, identity, identity_size);
    header->identity_size = identity_size;
    header->flags = flags;
    sum_up(bytes, sizeof sample_table);
    return bytes;
}

static bool write_table(const char *name, const void *bytes, size_t size)
{
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    bool written = file && fwrite(bytes, 1, size, file) == size;
    if (file)
        written = fclose(file) == 0 && written;
    return CHECK(written, "%s: %s", path, strerror(errno));
}

static bool reads(const struct arch *arch, uint32_t build_id_size)
{
    struct runtime_stored_table stored;
    memset(&stored, 0x55, sizeof stored);
    int result = runtime_table_store_read(directory, arch, QUT_TABLE_BUILD_ID, build_id, build_id_size, &stored);
    if (result == 0) {
        struct qut_rule rule;
        CHECK(stored.size == sizeof sample_table, "%zu bytes", stored.size);
        CHECK((uintptr_t)stored.bytes % 64 == 0, "at %p", stored.bytes);
        runtime_table_rule(&stored.table, SAMPLE_TEXT + 32, &rule);
        CHECK(rule.kind == QUT_RULE_FRAME, "kind %d", rule.kind);
        runtime_stored_table_free(&stored);
    }
    CHECK(stored.bytes == NULL && stored.size == 0 && stored.table.header == NULL, "left %p, %zu", stored.bytes,
          stored.size);
    return result == 0;
}

TEST(names_are_architecture_and_identity)
{
    char name[QUT_TABLE_NAME_MAX];
    qut_table_name("aarch64", build_id, 20, name);
    CHECK(strcmp(name, full_name) == 0, "%s", name);
    qut_table_name("x86_64", build_id, 0, name);
    CHECK(strcmp(name, "x86_64-.qut") == 0, "%s", name);
    memset(name, 'x', sizeof name);
    qut_table_name("riscv64", build_id, QUT_IDENTITY_MAX, name);
    CHECK(strlen(name) == strlen("riscv64-.qut") + 64, "%zu characters", strlen(name));
}

TEST(reads_the_table_of_a_build_id)
{
    uint8_t *bytes = sample(build_id, 20, QUT_TABLE_BUILD_ID | QUT_TABLE_SMALL);
    CHECK(!reads(&arch_aarch64, 20), "there is none yet");
    if (!write_table(full_name, bytes, sizeof sample_table))
        return;
    CHECK(reads(&arch_aarch64, 20), "%s", path);
    CHECK(!reads(&arch_aarch64, 19), "19 bytes are another build-id");
    CHECK(!reads(&arch_aarch64, 21), "21 bytes are another build-id");
    CHECK(!reads(&arch_aarch64, 0), "no build-id");
    CHECK(!reads(&arch_x86_64, 20), "another architecture");
    unlink(path);
    free(bytes);
}

TEST(long_build_ids_count_by_their_first_bytes)
{
    uint8_t *bytes = sample(build_id, QUT_IDENTITY_MAX, QUT_TABLE_BUILD_ID);
    char name[QUT_TABLE_NAME_MAX];
    qut_table_name("aarch64", build_id, QUT_IDENTITY_MAX, name);
    if (!write_table(name, bytes, sizeof sample_table))
        return;
    CHECK(reads(&arch_aarch64, sizeof build_id), "%s", path);
    CHECK(reads(&arch_aarch64, QUT_IDENTITY_MAX), "%s", path);
    unlink(path);
    free(bytes);
}

TEST(a_table_under_anothers_name_is_refused)
{
    uint8_t other[20] = {0x9f, 0x3c, 1};
    const struct {
        const char *what;
        uint8_t *bytes;
    } wrong[] = {{"another build-id", sample(other, 20, QUT_TABLE_BUILD_ID)},
                 {"a shorter one", sample(build_id, 19, QUT_TABLE_BUILD_ID)},
                 {"a content hash", sample(build_id, 20, 0)}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (write_table(full_name, wrong[i].bytes, sizeof sample_table))
            CHECK(!reads(&arch_aarch64, 20), "%s", wrong[i].what);
        free(wrong[i].bytes);
    }
    // The name says x86_64, the header aarch64.
    uint8_t *bytes = sample(build_id, 20, QUT_TABLE_BUILD_ID);
    unlink(path);
    char name[QUT_TABLE_NAME_MAX];
    qut_table_name("x86_64", build_id, 20, name);
    if (write_table(name, bytes, sizeof sample_table))
        CHECK(!reads(&arch_x86_64, 20), "%s", path);
    unlink(path);
    free(bytes);
}

TEST(unsound_files_are_refused)
{
    uint8_t *bytes = sample(build_id, 20, QUT_TABLE_BUILD_ID);
    const size_t sizes[] = {0, 1, 191, 192, sizeof sample_table - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (write_table(full_name, bytes, sizes[i]))
            CHECK(!reads(&arch_aarch64, 20), "cut off after %zu bytes", sizes[i]);
    bytes[sizeof sample_table / 2] ^= 1;
    if (write_table(full_name, bytes, sizeof sample_table))
        CHECK(!reads(&arch_aarch64, 20), "a spoiled byte");
    unlink(path);
    CHECK(mkdir(path, 0700) == 0, "%s", strerror(errno));
    CHECK(!reads(&arch_aarch64, 20), "a directory");
    rmdir(path);
    CHECK(mkfifo(path, 0600) == 0, "%s", strerror(errno));
    CHECK(!reads(&arch_aarch64, 20), "a pipe that nobody writes to");
    unlink(path);
    free(bytes);
}

TEST(directories_too_long_for_a_path_are_refused)
{
    static char longest[8192];
    struct runtime_stored_table stored;
    memset(longest, '/', sizeof longest - 1);
    CHECK(runtime_table_store_read(longest, &arch_aarch64, QUT_TABLE_BUILD_ID, build_id, 20, &stored) == -1, "read");
}

TEST(adopts_what_a_compiler_made)
{
    struct runtime_stored_table stored;
    uint8_t *bytes = sample(build_id, 20, 0);
    if (!CHECK(runtime_stored_table_adopt(bytes, sizeof sample_table, &arch_aarch64, &stored) == 0, "refused"))
        return;
    CHECK(stored.bytes != bytes, "in the compiler's memory");
    CHECK(memcmp(stored.bytes, sample_table, 16) == 0, "other bytes");
    runtime_stored_table_free(&stored);
    runtime_stored_table_free(&stored); // harmless

    bytes = sample(build_id, 20, 0);
    CHECK(runtime_stored_table_adopt(bytes, sizeof sample_table, &arch_arm, &stored) == -1, "another architecture");
    CHECK(stored.bytes == NULL, "left %p", stored.bytes);
    bytes = sample(build_id, 20, 0);
    CHECK(runtime_stored_table_adopt(bytes, sizeof sample_table - 1, &arch_aarch64, &stored) == -1, "cut off");
    bytes = sample(build_id, 20, 0);
    bytes[200] ^= 1;
    CHECK(runtime_stored_table_adopt(bytes, sizeof sample_table, &arch_aarch64, &stored) == -1, "spoiled");
    CHECK(runtime_stored_table_adopt(NULL, 0, &arch_aarch64, &stored) == -1, "nothing");
    CHECK(runtime_stored_table_adopt(malloc(1), 0, &arch_aarch64, &stored) == -1, "no bytes");
}

TEST(files_are_read_whole_or_not_at_all)
{
    void *pages;
    size_t size;
    if (!write_table("file", "0123456789", 10))
        return;
    CHECK(os_read_file(path, 9, &pages, &size) == -EFBIG, "over the bound");
    int result = os_read_file(path, 10, &pages, &size);
    if (CHECK(result == 0 && size == 10, "%d, %zu bytes", result, size)) {
        CHECK(memcmp(pages, "0123456789", 10) == 0, "other bytes");
        os_free_pages(pages, size);
    }
    unlink(path);
    CHECK(os_read_file(path, 10, &pages, &size) == -ENOENT, "absent");
    CHECK(os_read_file("/dev/null", 10, &pages, &size) == -EINVAL, "a device");
    CHECK(os_read_file(directory, 10, &pages, &size) == -EINVAL, "a directory");
}

TEST(a_table_that_somebody_else_may_have_made_is_refused)
{
    uint8_t *bytes = sample(build_id, 20, QUT_TABLE_BUILD_ID);
    bool is_root = geteuid() == 0;
    if (write_table(full_name, bytes, sizeof sample_table)) {
        CHECK(chmod(path, 0644) == 0 && reads(&arch_aarch64, 20), "one's own");
        CHECK(chmod(path, 0666) == 0 && !reads(&arch_aarch64, 20), "everybody may write it");
        CHECK(chmod(path, 0664) == 0 && reads(&arch_aarch64, 20) == !is_root, "a group may write it");
        CHECK(chmod(path, 0644) == 0 && (!is_root || (chown(path, 65534, 0) == 0 && !reads(&arch_aarch64, 20))),
              "root takes another user's");
        unlink(path);
    }
    free(bytes);
}

int main(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/qut-store-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(directory)) {
        perror(directory);
        return 1;
    }
    RUN(a_table_that_somebody_else_may_have_made_is_refused);
    RUN(names_are_architecture_and_identity);
    RUN(reads_the_table_of_a_build_id);
    RUN(long_build_ids_count_by_their_first_bytes);
    RUN(a_table_under_anothers_name_is_refused);
    RUN(unsound_files_are_refused);
    RUN(directories_too_long_for_a_path_are_refused);
    RUN(adopts_what_a_compiler_made);
    RUN(files_are_read_whole_or_not_at_all);
    rmdir(directory);
    return tap_finish();
}
