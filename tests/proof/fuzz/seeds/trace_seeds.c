// SPDX-License-Identifier: Apache-2.0
// Seeds of the fuzzer of traces: the golden trace as a file, as the blocks of one, and what of its segment finds room
// in the fuzzer's. Their first byte is what fuzz_trace takes them for.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/proof/fuzz/seeds/seeds.h"
#include "tests/support/elf_builder.h"
#include "tests/support/golden/golden.h"
#include "tests/support/golden/segment.h"
#include "tracer/collect/collect.h"
#include "tracer/trace/file_blocks.h"
#include "tracer/trace/segment_view.h"

enum { AS_IT_IS, AS_SEGMENT, AS_FILE, COLLECT_WAYS = 32 };

// In the order in which fuzz_trace.c takes them: 4 chunks, 64 nodes, 64 raw pcs, two threads, four modules.
static void segment_seed(const char *name, const struct trace_segment_view *view)
{
    enum { CHUNKS = 4, NODES = 64, RAW = 64, THREADS = 2, MODULES = 4, STRING_BYTES = 256, RINGS = 64 };
    struct build_buffer seed = {0};
    const uint8_t rings[RINGS] = {0};
    build_add(&seed, trace_segment_directory(view), CHUNKS * 8);
    build_add(&seed, trace_segment_nodes(view), NODES * 8);
    build_add(&seed, trace_segment_raw(view), RAW * 8);
    for (uint32_t slot = 0; slot < THREADS; slot++) {
        build_add(&seed, trace_segment_thread(view, slot), sizeof(struct qut_trace_thread));
        build_add(&seed, rings, sizeof rings);
    }
    build_add(&seed, trace_segment_chunk(view, 0), CHUNKS * QUT_TRACE_CHUNK_BYTES);
    build_add(&seed, trace_segment_modules(view), MODULES * sizeof(struct qut_trace_module));
    build_add(&seed, trace_segment_counters(view), sizeof(struct qut_trace_counters));
    build_add(&seed, view->bytes + view->header.strings.offset_bytes, STRING_BYTES);
    write_seed("trace", name, AS_SEGMENT, seed.data, seed.size);
    for (int way = 0; way < COLLECT_WAYS; way++) {
        char with[64];
        snprintf(with, sizeof with, "%s-%d", name, way);
        write_seed("collect", with, way, seed.data, seed.size);
    }
    free(seed.data);
}

// A type, two bytes of size, the contents: for each block.
static void blocks_seed(const char *name, const uint8_t *bytes, size_t size)
{
    struct file_room room;
    struct trace_memory *memory = trace_memory_new();
    struct image image = trace_image_new(memory);
    struct file_blocks found;
    struct build_buffer seed = {0};
    if (!trace_file_room_make(&room) || trace_file_blocks_find(&image, bytes, size, &found, NULL) != 0)
        abort();
    const struct file_block *blocks = found.blocks.items;
    for (size_t i = 0; i < found.blocks.count; i++) {
        struct base_bytes contents;
        if (!trace_file_block_contents(&blocks[i], &room, &contents, NULL) || contents.size > UINT16_MAX)
            continue;
        const uint8_t head[] = {(uint8_t)blocks[i].type, (uint8_t)contents.size, (uint8_t)(contents.size >> 8)};
        build_add(&seed, head, sizeof head);
        build_add(&seed, contents.data, contents.size);
    }
    write_seed("trace", name, AS_FILE, seed.data, seed.size);
    free(seed.data);
    trace_file_room_free(&room);
    trace_memory_free(memory);
}

static const struct trace_note *make_notes(void *context, size_t *count)
{
    static const struct trace_note notes[] = {{.name = "ticks-due", .value = 7}, {.name = "trigger", .text = "clock"}};
    (void)context;
    *count = sizeof notes / sizeof *notes;
    return notes;
}

static int memory_file(void)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    if (fd < 0)
        abort();
    return fd;
}

static void file_seed(const char *name, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        abort();
    size_t size = (size_t)status.st_size;
    uint8_t *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        abort();
    write_seed("trace", name, AS_IT_IS, bytes, size);
    char blocks[64];
    snprintf(blocks, sizeof blocks, "%s-blocks", name);
    blocks_seed(blocks, bytes, size);
    munmap(bytes, size);
}

// As a recorder writes it: of one process; of two that have everything in common, and notes of the recording.
static void file_seeds(const char *name, int segment_fd)
{
    int file_fd = memory_file(), parts_fd = memory_file();
    const struct collect_options options = {
        .segment_fd = segment_fd, .file_fd = file_fd, .stop_fd = -1, .process_fd = -1, .notes = make_notes};
    struct collect_result result;
    const struct trace_note note = {.name = "processes-not-followed", .value = 2};
    if (collect(&options, &result, NULL) != 0 || collect_append(parts_fd, file_fd, NULL) != 0 ||
        collect_append(parts_fd, file_fd, NULL) != 0 || collect_append_notes(parts_fd, &note, 1, NULL) != 0)
        abort();
    char parts[64];
    snprintf(parts, sizeof parts, "%s-parts", name);
    file_seed(name, file_fd);
    file_seed(parts, parts_fd);
    close(file_fd);
    close(parts_fd);
}

void trace_seeds(void)
{
    struct trace golden;
    golden_trace(&golden);
    golden_tell(&golden);
    for (int closes = 0; closes < 2; closes++) {
        char path[64];
        const char *name = closes ? "closed" : "left";
        snprintf(path, sizeof path, "/dev/shm/qut-seeds.%d", (int)getpid());
        if (golden_write(&golden, path, closes) != 0)
            break; // no memory file system
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        unlink(path);
        struct trace_segment_view view;
        if (trace_segment_map(&view, fd, false, NULL) != 0)
            abort();
        segment_seed(closes ? "closed-segment" : "left-segment", &view);
        trace_segment_unmap(&view);
        file_seeds(name, fd);
        close(fd);
    }
    golden_free(&golden);
}
