// SPDX-License-Identifier: Apache-2.0
// Which mappings are caches of ART's JIT, and what is remembered of their frames.
#include <string.h>
#include <sys/mman.h>

#include "libqut/modules/art_memo.h"
#include "libqut/modules/machine_code.h"
#include "tests/support/tap.h"

static struct modules_art_reading reading;

static void see(uintptr_t start, uintptr_t end, const char *how, uint64_t inode, const char *path)
{
    // As in memory: the next line follows at once.
    static char text[256];
    size_t bytes = strlen(path);
    memcpy(text, path, bytes);
    strcpy(text + bytes, "\n43000000-45000000 r-xs 0 0:1 7 /memfd:jit-cache (deleted)\n");
    struct os_map_line line = {.start = start,
                               .end = end,
                               .inode = inode,
                               .is_readable = how[0] == 'r',
                               .is_executable = how[2] == 'x',
                               .path = text,
                               .path_bytes = bytes};
    modules_art_see(&reading, &line);
}

TEST(caches_are_found_by_their_names)
{
    if (!art_jit_knows(&arch_native_arch))
        SKIP("code of this architecture is not known");
    reading = (struct modules_art_reading){0};
    see(0x1000, 0x2000, "r--p", 5, "/usr/bin/program");
    see(0x2000, 0x3000, "r-xp", 5, "/usr/bin/program");
    see(0x10000, 0x20000, "rw-p", 0, "");
    see(0x20000, 0x30000, "r-xp", 0, ""); // no memory of ours: it cannot begin as a space does
    see(0x40000, 0x50000, "r--s", 7, "/memfd:jit-cache (deleted)");
    see(0x50000, 0x58000, "r-xs", 7, "/memfd:jit-cache (deleted)");
    see(0x58000, 0x60000, "r-xs", 7, "/memfd:jit-cache (deleted)");
    see(0x70000, 0x80000, "rw-s", 7, "/memfd:jit-cache (deleted)");
    see(0x90000, 0xa0000, "r-xs", 7, "/memfd:jit-cache (deleted)"); // nothing before it
    CHECK(reading.count == 1, "%zu", reading.count);
    CHECK(reading.items[0].data_start == 0x40000 && reading.items[0].code_start == 0x50000 &&
              reading.items[0].code_end == 0x60000,
          "%llx %llx %llx", (unsigned long long)reading.items[0].data_start,
          (unsigned long long)reading.items[0].code_start, (unsigned long long)reading.items[0].code_end);
    for (uintptr_t at = 0x100000; at < 0x1000000; at += 0x100000) {
        see(at, at + 0x1000, "r--s", 7, "/memfd:jit-cache (deleted)");
        see(at + 0x1000, at + 0x2000, "r-xs", 7, "/memfd:jit-cache (deleted)");
    }
    CHECK(reading.count == MODULES_ART_CACHES_MAX, "no more than there is room for: %zu", reading.count);
}

TEST(what_is_remembered_is_proven)
{
    enum { BYTES = 8192, INFO = 64, START = 4096 + 128, CALL = 40 };
    uint8_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t base = (uintptr_t)memory, pc = base + START + CALL;
    struct art_jit_method method = {.start = base + START, .info_address = base + INFO};
    struct art_jit_frame frame = {.cfa_bytes = 64, .saved = 0x10000, .core_mask = 0x10008}, seen;
    for (unsigned i = 0; i < BYTES; i++)
        memory[i] = (uint8_t)(i * 7);
    CHECK(!modules_art_recall(pc, &seen), "before");
    modules_art_remember(pc, &method, &frame);
    CHECK(modules_art_recall(pc, &seen) && memcmp(&seen, &frame, sizeof seen) == 0, "what was");
    CHECK(!modules_art_recall(pc + 1, &seen), "another place");
    static const unsigned proofs[] = {
        START - ART_JIT_CHUNK_AT, START - ART_JIT_HEADER_AT, START - 4, START - 1, INFO, INFO + 7, START + CALL - 4};
    for (size_t i = 0; i < sizeof proofs / sizeof *proofs; i++) {
        memory[proofs[i]] ^= 1;
        CHECK(!modules_art_recall(pc, &seen), "byte %u is another", proofs[i]);
        memory[proofs[i]] ^= 1;
        CHECK(modules_art_recall(pc, &seen), "byte %u is what it was", proofs[i]);
    }
    munmap(memory, BYTES);
    CHECK(!modules_art_recall(pc, &seen), "memory that has gone");
    modules_art_remember(pc, &method, &frame);
    CHECK(!modules_art_recall(pc, &seen), "nothing is remembered of it");
}

int main(void)
{
    RUN(caches_are_found_by_their_names);
    RUN(what_is_remembered_is_proven);
    return tap_finish();
}
