// SPDX-License-Identifier: Apache-2.0
// A program whose code is changed while it runs: subject MODE [THREADS].
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/calls/calls.h"
#include "tests/unit/tracer/patch/subject.h"

enum { PAGE = 4096, BLOCK_PAGES = 16, NEAR_BYTES = 64 << 20, EPOLL_MS = 100000 };

// Their first instructions are known to the test. subject_work waits between its own, so that threads are often met
// there: 3x + 7. subject_many_0 and so on: x + 1.
__asm__(".text\n"
        ".globl subject_work, subject_fault, subject_read, subject_read_end, subject_many_0\n"
        "subject_work: push %rbx; pause; mov %rdi, %rbx; lea (%rbx,%rbx,2), %rax; add $7, %rax; pop %rbx; ret\n"
        "subject_fault: push %rbx; mov (%rdi), %rax; mov %rax, %rbx; lea 1(%rbx), %rax; pop %rbx; ret\n"
        "subject_read: xor %eax, %eax; syscall; nop; ret\n"
        "subject_read_end: push %rbx; xor %eax, %eax; syscall; pop %rbx; ret\n"
        ".p2align 7\n"
        "subject_many_0:\n"
        ".rept 1000\n"
        "push %rbx; mov %rdi, %rbx; lea 1(%rbx), %rax; pop %rbx; ret\n"
        ".p2align 7\n"
        ".endr\n");
uint64_t subject_work(uint64_t x);
uint64_t subject_fault(const uint64_t *at);
int64_t subject_read(int fd, void *bytes, size_t size);
int64_t subject_read_end(int fd, void *bytes, size_t size);
uint64_t subject_many_0(uint64_t x);

// The test takes the 64 bytes from its entry on for the function.
#define APART  __attribute__((noinline, aligned(128)))
#define TRACED APART __attribute__((patchable_function_entry(5)))

static struct subject_state *state;
static uint64_t *guarded;
static int pipe_fds[2];

static void *run_work(void *context)
{
    _Atomic uint64_t *calls = context;
    for (uint64_t x = 1; !state->stop; x++) {
        if (subject_work(x) != 3 * x + 7)
            state->wrong++;
        ++*calls;
    }
    return NULL;
}

static void *run_many(void *context)
{
    _Atomic uint64_t *calls = context;
    for (uint64_t x = 0; !state->stop; x++) {
        uint64_t (*function)(uint64_t);
        uint64_t address = (uint64_t)(uintptr_t)subject_many_0 + x % SUBJECT_MANY * SUBJECT_MANY_STRIDE;
        memcpy(&function, &address, sizeof function);
        if (function(x) != x + 1)
            state->wrong++;
        ++*calls;
    }
    return NULL;
}

TRACED static void handle(int number)
{
    (void)number;
    state->is_inside = 1;
    while (!state->release)
        sched_yield();
    mprotect(guarded, PAGE, PROT_READ | PROT_WRITE);
}

APART static void once_in_handler(int flags)
{
    static char other_stack[65536];
    const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    const struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
    guarded = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *guarded = 41;
    mprotect(guarded, PAGE, PROT_NONE);
    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
    state->ready = 1;
    state->result = (int64_t)subject_fault(guarded);
    state->calls[0]++;
}

static void once_reading(int64_t (*function)(int fd, void *bytes, size_t size))
{
    char bytes[8];
    state->ready = 1;
    state->result = function(pipe_fds[0], bytes, sizeof bytes);
    state->calls[0]++;
}

static void *await_release(void *unused)
{
    while (!state->release)
        usleep(1000);
    if (write(pipe_fds[1], "abc", 3) != 3)
        abort();
    return unused;
}

static void once_in_epoll(void)
{
    int fd = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(fd, EPOLL_CTL_ADD, pipe_fds[0], &event);
    state->ready = 1;
    state->result = epoll_wait(fd, &event, 1, EPOLL_MS);
    state->calls[0]++;
}

// The child runs in the same memory.
static void once_in_vfork(void)
{
    state->ready = 1;
    pid_t child = vfork();
    if (child == 0) {
        state->is_inside = 1;
        while (!state->release)
            usleep(1000);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    state->calls[0]++;
}

static void once_mapping(void)
{
    int fd = memfd_create("code", 0);
    char *page = calloc(1, PAGE);
    void *code;
    memcpy(page, (const void *)(uintptr_t)subject_work, 32);
    if (write(fd, page, PAGE) != PAGE)
        abort();
    code =
        mmap((void *)(uintptr_t)(state->block + BLOCK_PAGES * PAGE), PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    state->mapped = (uint64_t)(uintptr_t)code;
    state->shared = (uint64_t)(uintptr_t)mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    state->ready = 1;
    while (!state->stop) {
        if (state->command == SUBJECT_MAP_AGAIN)
            mmap(code, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
        else if (state->command == SUBJECT_UNMAP)
            munmap(code, PAGE);
        state->command = SUBJECT_NOTHING;
        usleep(100);
    }
}

// ---- traced

// The test takes the 64 bytes from its entry on for the function.
#define APART  __attribute__((noinline, aligned(128)))
#define TRACED APART __attribute__((patchable_function_entry(5)))
enum { FIB_OF = 12, FIB_IS = 144, RING_BYTES = 1 << 18, RINGS = 16, COROUTINE_BYTES = 65536 };

TRACED static uint64_t fib(unsigned n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static _Thread_local ucontext_t outside, inside;

// Is left in the middle, for as long as one round of the thread takes.
TRACED static void coroutine(void)
{
    for (;;)
        swapcontext(&inside, &outside);
}

APART static void begin_coroutine(void)
{
    coroutine();
}

APART static void *run_traced(void *context)
{
    _Atomic uint64_t *calls = context;
    char *stack = mmap(NULL, COROUTINE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = COROUTINE_BYTES;
    makecontext(&inside, begin_coroutine, 0);
    while (!state->stop) {
        swapcontext(&outside, &inside);
        if (fib(FIB_OF) != FIB_IS)
            state->wrong++;
        ++*calls;
    }
    return NULL;
}

TRACED static int64_t inner(int64_t x)
{
    state->is_inside = 1;
    while (!state->release)
        usleep(1000);
    return x + 1;
}

TRACED static int64_t outer(int64_t x)
{
    return 2 * inner(x) + 1;
}

APART static void *run_outer(void *context)
{
    _Atomic uint64_t *calls = context;
    state->result = outer(3);
    ++*calls;
    return NULL;
}

static void begin_traced(void)
{
    const struct calls_options options = {.ring_bytes = RING_BYTES, .ring_count = RINGS};
    uint64_t memory_bytes;
    state->fib = (uint64_t)(uintptr_t)fib;
    state->coroutine = (uint64_t)(uintptr_t)coroutine;
    state->outer = (uint64_t)(uintptr_t)outer;
    state->inner = (uint64_t)(uintptr_t)inner;
    state->calls_fd = calls_begin(&options, &memory_bytes);
    if (state->calls_fd < 0)
        abort();
}

static void obey(void)
{
    while (!state->stop) {
        if (state->command == SUBJECT_UNMAP_BLOCK)
            munmap((void *)(uintptr_t)state->block, state->block_bytes);
        else if (state->command == SUBJECT_SHADOW && calls_shadow(state->stack_begin, state->stack_end) != 0)
            abort();
        state->command = SUBJECT_NOTHING;
        usleep(100);
    }
}

static void run_threads(void *(*run)(void *), int count)
{
    pthread_t threads[SUBJECT_THREADS_MAX];
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, run, (void *)&state->calls[i]);
    state->ready = 1;
    obey();
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void map_block(void)
{
    uint64_t near = ((uint64_t)(uintptr_t)subject_work & ~(uint64_t)(PAGE - 1)) - NEAR_BYTES;
    char *block = mmap((void *)(uintptr_t)near, (BLOCK_PAGES + 1) * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(block + PAGE, BLOCK_PAGES * PAGE, PROT_READ | PROT_EXEC);
    state->counters = (uint64_t)(uintptr_t)block;
    state->block = state->counters + PAGE;
    state->block_bytes = BLOCK_PAGES * PAGE;
}

int main(int argc, char **argv)
{
    const char *mode = argv[1];
    pthread_t releaser;
    state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, SUBJECT_FD, 0);
    if (state == MAP_FAILED || pipe(pipe_fds) != 0)
        return 2;
    state->work = (uint64_t)(uintptr_t)subject_work;
    state->fault = (uint64_t)(uintptr_t)subject_fault;
    state->read = (uint64_t)(uintptr_t)subject_read;
    state->read_end = (uint64_t)(uintptr_t)subject_read_end;
    state->many = (uint64_t)(uintptr_t)subject_many_0;
    map_block();
    pthread_create(&releaser, NULL, await_release, NULL);
    if (strcmp(mode, "work") == 0 || strcmp(mode, "many") == 0)
        run_threads(*mode == 'w' ? run_work : run_many, argc > 2 ? atoi(argv[2]) : 1);
    else if (strcmp(mode, "traced") == 0) {
        begin_traced();
        run_threads(run_traced, atoi(argv[2]));
    } else if (strcmp(mode, "running") == 0) {
        begin_traced();
        run_threads(run_outer, 1);
    } else if (strcmp(mode, "traced_handler") == 0) {
        begin_traced();
        state->handler = (uint64_t)(uintptr_t)handle;
        state->ready = 1;
        while (state->command != SUBJECT_GO)
            usleep(100);
        once_in_handler(SA_NODEFER);
    } else if (strcmp(mode, "handler") == 0)
        once_in_handler(SA_NODEFER);
    else if (strcmp(mode, "handler_stack") == 0)
        once_in_handler(SA_NODEFER | SA_ONSTACK);
    else if (strcmp(mode, "read") == 0)
        once_reading(subject_read);
    else if (strcmp(mode, "read_end") == 0)
        once_reading(subject_read_end);
    else if (strcmp(mode, "epoll") == 0)
        once_in_epoll();
    else if (strcmp(mode, "vfork") == 0)
        once_in_vfork();
    else if (strcmp(mode, "mapped") == 0)
        once_mapping();
    state->release = 1;
    pthread_join(releaser, NULL);
    while (!state->stop)
        usleep(1000);
    return 0;
}
