// SPDX-License-Identifier: Apache-2.0
// Real files, changed at random: opened, compiled both ways, and every row visited. Nothing may crash, hang or fail
// without a reason. The changes depend on nothing but their number: `mutate_test [COUNT [FIRST]]`, or QUT_MUTATIONS.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "qutc/input/file_map.h"
#include "tests/support/rows.h"

enum { COUNT_DEFAULT = 1000, CHANGES_MAX = 8, PARTS_MAX = 16, LARGE_BYTES = 256 << 10, LARGE_EVERY = 16 };

// A default run stops here, however slow the machine and the sanitizers are; one mutation never takes so long.
static const double total_seconds_max = 120, single_seconds_max = 10;

static const char *const files[] = {
    "/lib/x86_64-linux-gnu/libdl.so.2",
    "/lib/x86_64-linux-gnu/libutil.so.1",
    "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/bin/true",
    "/bin/cat",
    "/bin/sleep",
    "/usr/aarch64-linux-gnu/lib/libgcc_s.so.1",
    "/usr/arm-linux-gnueabihf/lib/libgcc_s.so.1",
    "/usr/riscv64-linux-gnu/lib/libdl.so.2",
    "/usr/i686-linux-gnu/lib/libdl.so.2",
    "QUT_SHARED/corpus/oat/art_137/137-cfi_arm.odex",
    "QUT_SHARED/corpus/oat/art_137/137-cfi_x86.odex",
    "QUT_SHARED/corpus/oat/android8.1_arm/boot.oat",
    "QUT_SHARED/corpus/oat/android8.1_arm64/boot.oat",
    "QUT_SHARED/corpus/oat/art11_boot_x86/boot-hello.oat",
    "QUT_SHARED/corpus/snapshots/jit_debug_arm/jit4.data",
};
enum { FILES_MAX = sizeof files / sizeof *files };

struct part {
    size_t offset, size;
};

struct subject {
    char path[1024];
    struct input_file_map map;
    struct part parts[PARTS_MAX]; // where a change matters most
    unsigned part_count;
};

static uint64_t random_state;

static uint64_t random_below(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 16) % below;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void add_part(struct subject *subject, uint64_t offset, uint64_t size)
{
    if (subject->part_count == PARTS_MAX || offset >= subject->map.bytes.size || size == 0)
        return;
    if (size > subject->map.bytes.size - offset)
        size = subject->map.bytes.size - offset;
    subject->parts[subject->part_count++] = (struct part){(size_t)offset, (size_t)size};
}

static void find_parts(struct subject *subject, const struct input_image *image)
{
    const uint8_t *bytes = subject->map.bytes.data;
    add_part(subject, 0, subject->map.bytes.size);
    add_part(subject, 0, 512); // headers of the file and its segments
    uint64_t sections_at = 0;
    memcpy(&sections_at, bytes + (image->is_64 ? 40 : 32), image->is_64 ? 8 : 4);
    add_part(subject, sections_at, 64 * 40);
    struct base_bytes elf = input_image_elf(image);
    for (unsigned i = 0; i < image->frame_count; i++) {
        const uint8_t *frame = image->frame[i].bytes.data;
        if (frame >= elf.data && frame < elf.data + elf.size) {
            add_part(subject, (uint64_t)(frame - elf.data), image->frame[i].bytes.size);
            add_part(subject, (uint64_t)(frame - elf.data), 256);
        }
    }
}

static bool open_subject(struct subject *subject, const char *name)
{
    const char *prefix = "QUT_SHARED", *shared = getenv(prefix);
    struct input_image *image = NULL;
    bool is_shared = strncmp(name, prefix, strlen(prefix)) == 0;
    *subject = (struct subject){.part_count = 0};
    snprintf(subject->path, sizeof subject->path, "%s%s", is_shared ? shared ? shared : "" : "",
             is_shared ? name + strlen(prefix) : name);
    if (input_file_map_open(&subject->map, subject->path, 0, 0, INPUT_FILE_MAPPED, NULL) != 0)
        return false;
    if (input_image_open_memory(subject->map.bytes, name, NULL, &image, NULL) != 0) {
        input_file_map_close(&subject->map);
        return false;
    }
    find_parts(subject, image);
    input_image_close(image);
    return true;
}

static void change(const struct subject *subject, uint8_t *bytes, size_t *size)
{
    static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, 4, 8};
    uint64_t changes = 1 + random_below(CHANGES_MAX);
    for (uint64_t i = 0; i < changes; i++) {
        const struct part *part = &subject->parts[random_below(subject->part_count)];
        size_t at = part->offset + random_below(part->size);
        switch (random_below(4)) {
        case 0: bytes[at] ^= (uint8_t)(1u << random_below(8)); break;
        case 1: bytes[at] = (uint8_t)random_below(256); break;
        case 2:
            for (uint64_t end = at + 1 + random_below(8); at < end && at < *size; at++)
                bytes[at] = telling[end % sizeof telling];
            break;
        default: // a piece of the file somewhere else
            for (size_t from = random_below(*size), left = 1 + random_below(64); left && from < *size && at < *size;
                 left--)
                bytes[at++] = bytes[from++];
        }
    }
    if (random_below(32) == 0)
        *size = random_below(*size);
}

struct counts {
    uint64_t opened, compiled, refused, oversized;
};

static void try_file(struct base_bytes file, struct counts *counts)
{
    struct input_image_options options = {.unpack_max_bytes = 64 << 20};
    struct input_image *image = NULL;
    struct base_error error = {0};
    if (input_image_open_memory(file, "mutated", &options, &image, &error) != 0) {
        if (error.reason == BASE_OK)
            abort();
        counts->refused++;
        return;
    }
    counts->opened++;
    // A changed header can claim gigabytes of text, which take their time to walk block by block.
    const uint64_t text_bytes_max = 64 << 20;
    if (image->exec_count && image->exec[image->exec_count - 1].end - image->exec[0].start > text_bytes_max)
        counts->oversized++;
    else if (rows_visit(image, false, &error) >= 0 && rows_visit(image, true, &error) >= 0)
        counts->compiled++;
    input_image_close(image);
}

static uint64_t argument(int argument_count, char **arguments, int index, const char *variable, uint64_t otherwise)
{
    const char *text = argument_count > index ? arguments[index] : variable ? getenv(variable) : NULL;
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

int main(int argument_count, char **arguments)
{
    static struct subject subjects[FILES_MAX];
    size_t subject_count = 0;
    for (size_t i = 0; i < FILES_MAX; i++)
        subject_count += open_subject(&subjects[subject_count], files[i]);
    if (subject_count == 0) {
        printf("SKIP: none of the files to change is here\n");
        return 77;
    }
    uint64_t count = argument(argument_count, arguments, 1, "QUT_MUTATIONS", COUNT_DEFAULT);
    uint64_t first = argument(argument_count, arguments, 2, NULL, 0);
    bool bounded = count <= COUNT_DEFAULT;
    struct counts counts = {0};
    double start = seconds();
    uint64_t done = 0;
    for (; done < count && (!bounded || seconds() - start < total_seconds_max); done++) {
        uint64_t number = first + done;
        random_state = (number + 1) * 0x9e3779b97f4a7c15u;
        const struct subject *subject = &subjects[random_below(subject_count)];
        while (subject->map.bytes.size > LARGE_BYTES && random_below(LARGE_EVERY))
            subject = &subjects[random_below(subject_count)];
        size_t size = subject->map.bytes.size;
        uint8_t *bytes = malloc(size);
        if (!bytes)
            return 1;
        memcpy(bytes, subject->map.bytes.data, size);
        change(subject, bytes, &size);
        double before = seconds();
        fprintf(stderr, "mutation %" PRIu64 " of %s\n", number, subject->path); // so that a crash has a name
        alarm(60);                                                              // and a hang ends as a crash does
        try_file((struct base_bytes){bytes, size}, &counts);
        free(bytes);
        if (seconds() - before > single_seconds_max) {
            printf("mutation %" PRIu64 " of %s took %.0f s\n", number, subject->path, seconds() - before);
            return 1;
        }
    }
    printf("%" PRIu64 " mutations of %zu files in %.1f s: %" PRIu64 " opened, %" PRIu64 " compiled, %" PRIu64
           " refused, %" PRIu64 " with too much text\n",
           done, subject_count, seconds() - start, counts.opened, counts.compiled, counts.refused, counts.oversized);
    return counts.compiled == 0;
}
