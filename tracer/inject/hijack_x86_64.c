// SPDX-License-Identifier: Apache-2.0
// What a hijacked thread is made to do.
#include "tracer/inject/hijack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <elf.h>

#include "tracer/inject/control_x86_64.h"
#include "tracer/inject/inject.h"
#include "tracer/inject/stub_x86_64.h"

const char *inject_hijack_refusal(const struct inject_program *program)
{
    if (program->target->arch->id != QUT_ARCH_X86_64)
        return "--inject is for 64-bit x86 programs only" INJECT_OR_OUTSIDE;
    return NULL;
}

static bool find_bytes(const struct inject_program *program, const char *bytes, size_t size, uint64_t *address)
{
    enum { PIECE = 65536 };
    uint8_t *piece = malloc(PIECE);
    for (size_t i = 0; piece && i < program->target->range_count && !*address; i++) {
        const struct target_code_range *range = &program->target->ranges[i];
        for (uint64_t at = range->start; range->image == program->libc && at < range->end; at += PIECE - size) {
            size_t length = range->end - at < PIECE ? (size_t)(range->end - at) : PIECE;
            if (!inject_read(program, at, piece, length))
                break;
            const uint8_t *found = memmem(piece, length, bytes, size);
            if (found) {
                *address = at + (uint64_t)(found - piece);
                break;
            }
        }
    }
    free(piece);
    return *address != 0;
}

bool inject_hijack_find_gadgets(struct inject_program *program)
{
    return find_bytes(program, "\x0f\x05\xc3", 3, &program->call_gadget) &&
           find_bytes(program, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9, &program->return_gadget);
}

int inject_hijack_map(struct hijack *hijack, uint64_t *block, struct base_error *error)
{
    int64_t result;
    const uint64_t map[6] = {0, HIJACK_BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
    if (inject_hijack_call(hijack, SYS_mmap, map, &result, error) != 0)
        return -1;
    if (result < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "no memory can be mapped in it: %s", strerror((int)-result));
    *block = (uint64_t)result;
    const struct inject_owner self = inject_owner_self();
    const uint64_t protect[6] = {*block, STUB_CODE_BYTES, PROT_READ | PROT_EXEC};
    if (!inject_write(hijack->program, *block + STUB_CODE, inject_stub_code,
                      (size_t)(inject_stub_code_end - inject_stub_code)) ||
        !inject_write(hijack->program, *block + STUB_OWNER, &self, sizeof self))
        return base_fail(error, BASE_ERR_IO, "", 0, "its memory cannot be written");
    if (inject_hijack_call(hijack, SYS_mprotect, protect, &result, error) != 0)
        return -1;
    if (result < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "it may have no new code: %s", strerror((int)-result));
    return 0;
}

int inject_hijack_unmap(struct hijack *hijack, uint64_t block, struct base_error *error)
{
    int64_t result;
    const uint64_t unmap[6] = {block, HIJACK_BLOCK_BYTES};
    return inject_hijack_call(hijack, SYS_munmap, unmap, &result, error);
}

// The agent's bytes, in a file that exists in the process only.
static int hand_over(struct hijack *hijack, uint64_t block, int file, int64_t *number, struct base_error *error)
{
    static const char name[] = "libqut-agent";
    char path[64], bytes[16384];
    const uint64_t create[6] = {block + STUB_SYMBOL, 1}; // MFD_CLOEXEC
    if (!inject_write(hijack->program, block + STUB_SYMBOL, name, sizeof name) ||
        inject_hijack_call(hijack, SYS_memfd_create, create, number, error) != 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)hijack->program->pid, (int)*number);
    int to = *number < 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
    ssize_t size = to < 0 ? -1 : 0;
    for (off_t at = 0; to >= 0 && (size = pread(file, bytes, sizeof bytes, at)) > 0; at += size)
        if (write(to, bytes, (size_t)size) != size)
            break;
    if (to >= 0)
        close(to);
    return size == 0 ? 0
                     : base_fail(error, BASE_ERR_IO, "", 0,
                                 "the agent's file is not there for it, and its bytes cannot be handed over");
}

static bool write_text(const struct inject_program *program, uint64_t address, const char *text, size_t size_max)
{
    size_t size = strlen(text) + 1;
    return size <= size_max && inject_write(program, address, text, size);
}

// The stopped thread's part of the code, to its end.
static int run_create(struct hijack *hijack, uint64_t block, const struct stub_talk *talk, struct base_error *error)
{
    if (!inject_write(hijack->program, block + STUB_TALK, talk, sizeof *talk) ||
        !inject_hijack_write_frame(hijack, block + STUB_FRAME, block + STUB_FRAME + 512))
        return base_fail(error, BASE_ERR_IO, "", 0, "its memory cannot be written");
    const uint64_t argument[6] = {block + STUB_TALK, block + STUB_FRAME};
    uint64_t entry = block + STUB_CODE + (uint64_t)(inject_stub_create - inject_stub_code);
    uint64_t end = block + STUB_CODE + (uint64_t)(inject_stub_return - inject_stub_code);
    if (!inject_hijack_enter(hijack, entry, block + STUB_CALL_STACK_TOP, argument, 0))
        return inject_hijack_lose(hijack, HIJACK_EVENT_STOP, error);
    // Until it is about to return from the signal that never was.
    for (;;) {
        enum hijack_event event = inject_hijack_run(hijack, PTRACE_SYSCALL);
        struct user_regs_struct now;
        size_t size = sizeof now;
        if (event == HIJACK_EVENT_CRASH || event == HIJACK_EVENT_GONE || event == HIJACK_EVENT_LATE)
            return inject_hijack_lose(hijack, event, error);
        if (event == HIJACK_EVENT_ENTRY && inject_hijack_get_set(hijack->tid, NT_PRSTATUS, &now, &size) &&
            now.orig_rax == SYS_rt_sigreturn && now.rip >= end && now.rip < end + 32)
            break;
    }
    hijack->in_call = true;
    return 0;
}

static struct stub_talk begin_talk(const struct inject_program *program)
{
    struct stub_talk talk = {.created = -1,
                             .mask = ~((uint64_t)1 << (CANCEL_SIGNAL - 1) | (uint64_t)1 << (SETXID_SIGNAL - 1))};
    memcpy(talk.function, program->function, sizeof talk.function);
    return talk;
}

// The same code with other functions: in place of setstack(&attributes, stack, size) posix_memalign(&attributes, 16,
// 16), and nothing that matters in place of the others.
int inject_hijack_allocate(struct hijack *hijack, uint64_t block, struct base_error *error)
{
    struct stub_talk talk = begin_talk(hijack->program);
    talk.stack = talk.stack_bytes = 16;
    talk.function[INJECT_ATTR_SETSTACK] = hijack->program->allocate;
    talk.function[INJECT_ATTR_SETDETACHSTATE] = talk.function[INJECT_CREATE] = talk.function[INJECT_ATTR_INIT];
    return run_create(hijack, block, &talk, error);
}

int inject_hijack_start(struct hijack *hijack, uint64_t block, const struct hijack_job *job, struct base_error *error)
{
    const struct inject_program *program = hijack->program;
    char own_path[64];
    const char *path = job->path;
    int64_t file = -1;
    if (job->file >= 0) {
        if (hand_over(hijack, block, job->file, &file, error) != 0)
            return -1;
        snprintf(own_path, sizeof own_path, "/proc/self/fd/%d", (int)file);
        path = own_path;
    }
    struct stub_talk talk = begin_talk(program);
    talk.stack = block + STUB_STACK;
    talk.stack_bytes = STUB_STACK_BYTES;
    talk.entry = block + STUB_CODE + (uint64_t)(inject_stub_thread - inject_stub_code);
    talk.handle = job->handle;
    talk.action = job->action;
    talk.arena_offset = job->arena_offset;
    talk.arena = job->arena;
    talk.path = block + STUB_PATH;
    talk.symbol = block + STUB_SYMBOL;
    talk.settings = block + STUB_SETTINGS;
    talk.text = block + STUB_TEXT;
    talk.file_to_close = (uint32_t)(file + 1);
    const char nothing = '\0';
    if (!write_text(program, talk.path, path, HIJACK_PATH_BYTES) ||
        !write_text(program, talk.symbol, job->symbol, HIJACK_TEXT_BYTES) ||
        !write_text(program, talk.settings, job->settings, HIJACK_SETTINGS_BYTES) ||
        !inject_write(program, talk.text, &nothing, 1))
        return base_fail(error, BASE_ERR_IO, "", 0, "its memory cannot be written");
    if (run_create(hijack, block, &talk, error) != 0)
        return -1;
    int32_t created = -1;
    inject_read(program, block + STUB_TALK + offsetof(struct stub_talk, created), &created, sizeof created);
    return created == 0 ? 0
                        : base_fail(error, BASE_ERR_IO, "", 0, "no thread can be started in it: %s", strerror(created));
}

bool inject_hijack_answer(const struct inject_program *program, uint64_t block, struct inject_hijack_answer *answer)
{
    struct stub_talk talk;
    *answer = (struct inject_hijack_answer){0};
    if (!inject_read(program, block + STUB_TALK, &talk, sizeof talk) ||
        !inject_read(program, block + STUB_TEXT, answer->text, sizeof answer->text))
        return false;
    answer->text[sizeof answer->text - 1] = '\0';
    answer->done = talk.state == 2;
    answer->stage = talk.stage;
    answer->tid = talk.tid;
    answer->result = talk.result;
    answer->handle = talk.handle;
    return true;
}

bool inject_hijack_is_block(const uint8_t head[INJECT_PAGE_HEAD_BYTES])
{
    return inject_stub_code_end - inject_stub_code >= INJECT_PAGE_HEAD_BYTES &&
           memcmp(head, inject_stub_code, INJECT_PAGE_HEAD_BYTES) == 0;
}

bool inject_hijack_give(const struct inject_program *program, uint64_t block, const struct inject_owner *owner)
{
    return inject_write(program, block + STUB_OWNER, owner, sizeof *owner);
}

bool inject_hijack_read_block(const struct inject_program *program, uint64_t block, struct hijack_found *found)
{
    struct stub_talk talk;
    *found = (struct hijack_found){0};
    if (!inject_read(program, block + STUB_TALK, &talk, sizeof talk) ||
        !inject_read(program, block + STUB_OWNER, &found->owner, sizeof found->owner))
        return false;
    found->handle = talk.handle;
    found->arena_offset = talk.arena_offset;
    found->arena = talk.arena;
    found->is_done = talk.state == 2;
    found->tid = talk.tid;
    return true;
}
