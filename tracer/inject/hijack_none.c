// SPDX-License-Identifier: Apache-2.0
// Machines on which no code is run in others.
#include "tracer/inject/hijack.h"

#include "tracer/inject/inject.h"

const char *inject_hijack_refusal(const struct inject_program *program)
{
    (void)program;
    return "--inject is not known on this architecture" INJECT_OR_OUTSIDE;
}

bool inject_hijack_find_gadgets(struct inject_program *program)
{
    (void)program;
    return false;
}

enum hijack_place inject_hijack_place_asleep(pid_t pid, pid_t tid)
{
    (void)pid;
    (void)tid;
    return HIJACK_NOWHERE;
}

enum hijack_place inject_hijack_place_stopped(pid_t tid)
{
    (void)tid;
    return HIJACK_NOWHERE;
}

long inject_hijack_call_number(pid_t pid, long number, uint64_t pc)
{
    (void)pid;
    (void)pc;
    return number;
}

void inject_hijack_settle(pid_t pid, pid_t tid)
{
    (void)pid;
    (void)tid;
}

static int refuse(struct base_error *error)
{
    return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "%s", inject_hijack_refusal(NULL));
}

struct hijack *inject_hijack_begin(const struct inject_program *program, pid_t tid, struct base_error *error)
{
    (void)program;
    (void)tid;
    refuse(error);
    return NULL;
}

uint64_t inject_hijack_thread_pointer(const struct hijack *hijack)
{
    (void)hijack;
    return 0;
}

int inject_hijack_map(struct hijack *hijack, uint64_t *block, struct base_error *error)
{
    (void)hijack;
    (void)block;
    return refuse(error);
}

int inject_hijack_unmap(struct hijack *hijack, uint64_t block, struct base_error *error)
{
    (void)hijack;
    (void)block;
    return refuse(error);
}

int inject_hijack_allocate(struct hijack *hijack, uint64_t block, struct base_error *error)
{
    (void)hijack;
    (void)block;
    return refuse(error);
}

int inject_hijack_start(struct hijack *hijack, uint64_t block, const struct hijack_job *job, struct base_error *error)
{
    (void)hijack;
    (void)block;
    (void)job;
    return refuse(error);
}

int inject_hijack_end(struct hijack *hijack, struct base_error *error)
{
    (void)hijack;
    return refuse(error);
}

bool inject_hijack_answer(const struct inject_program *program, uint64_t block, struct inject_hijack_answer *answer)
{
    (void)program;
    (void)block;
    *answer = (struct inject_hijack_answer){0};
    return false;
}

bool inject_hijack_is_block(const uint8_t head[INJECT_PAGE_HEAD_BYTES])
{
    (void)head;
    return false;
}

bool inject_hijack_give(const struct inject_program *program, uint64_t block, const struct inject_owner *owner)
{
    (void)program;
    (void)block;
    (void)owner;
    return false;
}

bool inject_hijack_read_block(const struct inject_program *program, uint64_t block, struct hijack_found *found)
{
    (void)program;
    (void)block;
    (void)found;
    return false;
}
