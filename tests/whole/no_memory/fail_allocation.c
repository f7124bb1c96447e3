// SPDX-License-Identifier: Apache-2.0
// To be preloaded: one allocation of a program and of its workers fails, the one with the number that the state file
// names; or all from there on. Programs that it starts allocate as they like.
//
//     NO_MEMORY_STATE   a file of one struct fail_state
#include <assert.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FRAMES_MAX = 12 };

// Shared by all workers, so that exactly one of them fails. no_memory_test.py reads and writes the same.
struct fail_state {
    _Atomic uint64_t count;  // allocations so far
    uint64_t fail_at;        // 1: the first; 0: none
    uint64_t all_from_there; // not only this one
    _Atomic uint64_t failed; // how many did
    uint64_t where;          // 1: say on standard error who asked
};
static_assert(sizeof(struct fail_state) == 40, "as no_memory_test.py has it");

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

static struct fail_state *state;

static void say_where(void)
{
    void *frames[FRAMES_MAX];
    backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), STDERR_FILENO);
}

static int fails(void)
{
    // One more of anything is as good as another: nothing is ordered by these counts.
    if (!state)
        return 0;
    uint64_t number = atomic_fetch_add_explicit(&state->count, 1, memory_order_relaxed) + 1;
    if (!state->fail_at || number < state->fail_at || (number > state->fail_at && !state->all_from_there))
        return 0;
    atomic_fetch_add_explicit(&state->failed, 1, memory_order_relaxed);
    if (state->where && number == state->fail_at)
        say_where();
    errno = ENOMEM;
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("NO_MEMORY_STATE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    unsetenv("NO_MEMORY_STATE");
    unsetenv("LD_PRELOAD");
    if (mapped == MAP_FAILED)
        return;
    void *frames[1];
    backtrace(frames, 1); // loads what it needs, now
    state = mapped;
}

void *malloc(size_t bytes)
{
    return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return fails() ? NULL : __libc_realloc(old, bytes);
}

void *reallocarray(void *old, size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, all);
}

void *memalign(size_t alignment, size_t bytes)
{
    return fails() ? NULL : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    void *made = memalign(alignment, bytes);
    if (!made)
        return ENOMEM;
    *memory = made;
    return 0;
}

// What base/array.c takes for large arrays. The one of a file is no allocation.
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if ((flags & MAP_ANONYMOUS) && fails())
        return MAP_FAILED;
    long made = syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
    return made == -1 ? MAP_FAILED : (void *)made; // NOLINT: an address
}
