// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/patch/session.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/calls/thunk.h"

enum { POLL_US = 500, POLLS_MAX = 40000, THUNK_BYTES = 64, JUMP_BYTES = 5, COUNT_BYTES = 8, SOME_CALLS = 100 };

struct session session_begin(const char *program, const char *mode, const char *threads)
{
    struct session session = {0};
    struct base_error error = {0};
    char text[256];
    int fd = memfd_create("subject", 0);
    ck_assert(fd >= 0 && ftruncate(fd, sizeof *session.state) == 0);
    session.state = mmap(NULL, sizeof *session.state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(session.state != MAP_FAILED);
    session.pid = fork();
    ck_assert(session.pid >= 0);
    if (session.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (dup2(fd, SUBJECT_FD) == SUBJECT_FD)
            execl(program, program, mode, threads, NULL);
        _exit(127);
    }
    close(fd);
    for (unsigned i = 0; !session.state->ready && i < POLLS_MAX; i++)
        usleep(POLL_US);
    ck_assert_msg(session.state->ready, "the program does not run");
    session.process = patch_open(session.pid, &error);
    ck_assert_msg(session.process, "%s", base_error_text(&error, text, sizeof text));
    session.next_thunk = session.state->block;
    return session;
}

void session_end(struct session *session)
{
    int status;
    patch_close(session->process);
    session->state->stop = 1;
    ck_assert_int_eq(waitpid(session->pid, &status, 0), session->pid);
    ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_uint_eq(session->state->wrong, 0);
    munmap(session->state, sizeof *session->state);
}

void session_await(const struct session *session, const _Atomic uint64_t *number, uint64_t least)
{
    for (unsigned i = 0; *number < least && i < POLLS_MAX; i++)
        usleep(POLL_US);
    ck_assert_msg(*number >= least, "%d does not go on", (int)session->pid);
}

void session_await_sleep(const struct session *session)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)session->pid);
    for (unsigned i = 0; i < POLLS_MAX; i++) {
        FILE *file = fopen(path, "re");
        ck_assert_ptr_nonnull(file);
        const char *line = fgets(text, sizeof text, file);
        fclose(file);
        if (line && strncmp(line, "running", 7) != 0 && strncmp(line, "-1", 2) != 0)
            return;
        usleep(POLL_US);
    }
    ck_abort_msg("%d does not sleep", (int)session->pid);
}

static void read_memory(const struct session *session, uint64_t address, void *bytes, size_t size)
{
    const struct iovec here = {bytes, size}, there = {(void *)(uintptr_t)address, size};
    ck_assert_int_eq(process_vm_readv(session->pid, &here, 1, &there, 1, 0), (ssize_t)size);
}

uint64_t session_read_u64(const struct session *session, uint64_t address)
{
    uint64_t value;
    read_memory(session, address, &value, sizeof value);
    return value;
}

static size_t put_jump(uint8_t *bytes, uint64_t from, uint64_t to)
{
    int32_t distance = (int32_t)(to - from - JUMP_BYTES);
    ck_assert(from + JUMP_BYTES + (uint64_t)(int64_t)distance == to);
    bytes[0] = 0xe9;
    memcpy(bytes + 1, &distance, sizeof distance);
    return JUMP_BYTES;
}

struct patch_site session_site(struct session *session, uint64_t address, const uint8_t *ends, unsigned count)
{
    struct base_error error = {0};
    struct patch_site site = {.address = address,
                              .function = address,
                              .function_end = address + 32,
                              .size = JUMP_BYTES,
                              .boundary_count = (uint8_t)(count + 1),
                              .thunk = session->next_thunk};
    uint8_t thunk[THUNK_BYTES] = {0xf0, 0x48, 0xff, 0x05}, moved_bytes = ends[count - 1];
    int32_t counter = (int32_t)(session->state->counters - (site.thunk + COUNT_BYTES));
    memcpy(thunk + 4, &counter, sizeof counter);
    site.restart_end = site.thunk + 1; // what is counted is counted
    site.moved = site.thunk + COUNT_BYTES;
    read_memory(session, address, thunk + COUNT_BYTES, moved_bytes);
    size_t size = COUNT_BYTES + moved_bytes;
    size += put_jump(thunk + size, site.thunk + size, address + moved_bytes);
    site.thunk_end = site.thunk + size;
    for (unsigned i = 0; i < count; i++)
        site.boundaries[i + 1] = (struct patch_boundary){ends[i], ends[i]};
    memcpy(site.original, thunk + COUNT_BYTES, JUMP_BYTES);
    put_jump(site.patched, address, site.thunk);
    ck_assert_int_eq(patch_write(session->process, site.thunk, thunk, size, &error), 0);
    session->next_thunk += THUNK_BYTES;
    ck_assert_uint_le(session->next_thunk, session->state->block + session->state->block_bytes);
    return site;
}

struct patch_site session_traced_site(struct session *session, uint64_t address, const uint8_t *ends, unsigned count,
                                      uint32_t id)
{
    struct base_error error = {0};
    struct qut_plan_function function = {.entry_vaddr = address,
                                         .kind = QUT_PLAN_JUMP,
                                         .patch_bytes = JUMP_BYTES,
                                         .moved_bytes = ends[count - 1],
                                         .code_bytes = ends[count - 1],
                                         .instruction_count = (uint8_t)count};
    const struct calls_thunk_place place = {
        .thunk_address = session->next_thunk, .block_address = session->state->block, .function_id = id};
    struct calls_thunk thunk;
    struct calls_patch patch;
    read_memory(session, address, function.code, function.code_bytes);
    for (unsigned i = 0; i < count; i++)
        function.instructions[i].length = (uint8_t)(ends[i] - (i ? ends[i - 1] : 0));
    ck_assert(calls_thunk_make(&function, &place, &thunk) && calls_patch_make(&function, &place, &patch));
    struct patch_site site = {.address = address,
                              .moved = place.thunk_address + thunk.moved_at,
                              .thunk = place.thunk_address,
                              .restart_end = place.thunk_address + thunk.moved_at,
                              .thunk_end = place.thunk_address + thunk.size_bytes,
                              .function = address,
                              .function_end = address + 64,
                              .id = id,
                              .size = patch.pieces[0].size_bytes,
                              .boundary_count = thunk.boundary_count};
    memcpy(site.original, patch.pieces[0].original, site.size);
    memcpy(site.patched, patch.pieces[0].bytes, site.size);
    for (unsigned i = 0; i < thunk.boundary_count; i++)
        site.boundaries[i] =
            (struct patch_boundary){thunk.boundaries[i].from, (uint8_t)(thunk.boundaries[i].to - thunk.moved_at)};
    ck_assert_int_eq(patch_write(session->process, site.thunk, thunk.bytes, thunk.size_bytes, &error), 0);
    session->next_thunk += 2 * THUNK_BYTES;
    return site;
}

const struct qut_calls_header *session_map_calls(struct session *session)
{
    struct base_error error = {0};
    struct stat status;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)session->pid, (int)session->state->calls_fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert(fd >= 0 && fstat(fd, &status) == 0);
    const struct qut_calls_header *header =
        mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    ck_assert(header != MAP_FAILED && qut_calls_header_is_sound(header, (uint64_t)status.st_size));
    const struct patch_stub stub = {.start = header->stub_begin,
                                    .end = header->stub_end,
                                    .exit_return = header->exit_return,
                                    .exit_end = header->exit_end,
                                    .shadow_distance = header->shadow_distance,
                                    .words_distance = header->words_distance,
                                    .granules_address = header->granules_address};
    patch_set_stub(session->process, &stub);
    ck_assert_int_eq(patch_write(session->process, session->state->block + QUT_CALLS_BLOCK_ENTER_AT,
                                 &header->enter_stub, sizeof header->enter_stub, &error),
                     0);
    session->next_thunk = session->state->block + QUT_CALLS_BLOCK_CODE_AT;
    return header;
}

void session_count_calls(const struct qut_calls_header *header, uint64_t *enters, uint64_t *exits)
{
    const uint8_t *memory = (const uint8_t *)header;
    *enters = header->lost_enters;
    *exits = header->lost_exits;
    for (uint32_t i = 0; i < header->rings_used; i++) {
        const struct qut_calls_ring *ring =
            (const void *)(memory + header->directory_offset_bytes + i * sizeof(struct qut_calls_ring));
        const struct qut_calls_event *events =
            (const void *)(memory + header->rings_offset_bytes + i * header->ring_bytes);
        *enters += ring->lost_enters;
        *exits += ring->lost_exits;
        for (uint64_t e = 0; e < header->ring_bytes / sizeof *events && events[e].word; e++)
            ++*(qut_calls_word_is_exit(events[e].word) ? exits : enters);
    }
}

void session_put_in(struct session *session, struct patch_site *sites, size_t count, struct patch_figures *figures)
{
    struct base_error error = {0};
    char text[256];
    ck_assert_msg(patch_put_in(session->process, sites, count, figures, &error) == 0, "%s",
                  base_error_text(&error, text, sizeof text));
}

void session_take_out(struct session *session, struct patch_figures *figures)
{
    struct base_error error = {0};
    char text[256];
    ck_assert_msg(patch_take_out(session->process, NULL, 0, figures, &error) == 0, "%s",
                  base_error_text(&error, text, sizeof text));
}

void session_each_goes_on(const struct session *session, unsigned threads)
{
    for (unsigned i = 0; i < threads; i++)
        session_await(session, &session->state->calls[i], session->state->calls[i] + SOME_CALLS);
}

void session_command(const struct session *session, enum subject_command what)
{
    session->state->command = what;
    while (session->state->command != SUBJECT_NOTHING)
        usleep(100);
}
