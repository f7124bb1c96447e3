// SPDX-License-Identifier: Apache-2.0
// Functions of libc that no walk may call, replaced: calling one while a walk of the same thread runs ends the
// process. The program's definitions come before libc's for libc's own callers, too, where they go by symbol.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <qut/trace.h>

#include "libqut/runtime/tiers.h"
#include "tests/support/discipline.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define INTERPOSING 1
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef INTERPOSING
#endif
#endif

#ifdef INTERPOSING
static _Thread_local __attribute__((tls_model("initial-exec"))) int watching;
#endif
static _Atomic uint64_t calls;

void discipline_watch(bool on)
{
#ifdef INTERPOSING
    watching += on ? 1 : -1;
#else
    (void)on;
#endif
}

uint64_t discipline_watched_calls(void)
{
    return calls;
}

size_t discipline_walk(const void *ucontext, uintptr_t *pcs, size_t max, struct qut_end *end, bool *errno_kept)
{
    int saved = errno;
    errno = 4711;
    discipline_watch(true);
    size_t count = ucontext ? qut_backtrace_context(ucontext, pcs, max, end) : qut_backtrace(pcs, max, end);
    discipline_watch(false);
    *errno_kept = errno == 4711;
    errno = saved;
    return count;
}

size_t discipline_walk_every_way(const void *ucontext, uintptr_t *pcs, size_t max, struct qut_end *end,
                                 bool *errno_kept)
{
    static const uint32_t tiers[] = {0, RUNTIME_TIER_LINKED, RUNTIME_TIERS_ALL, RUNTIME_TIERS_ALL};
    size_t count = 0;
    *errno_kept = true;
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++) {
        bool kept;
        atomic_store_explicit(&runtime_tiers, tiers[i], memory_order_relaxed);
        count = discipline_walk(ucontext, pcs, max, end, &kept);
        *errno_kept &= kept;
    }
    return count;
}

int discipline_store(const void *ucontext, bool *errno_kept)
{
    static uint64_t time_ns = 1000000000;
    static const struct qut_extra extras[] = {{.key = QUT_EXTRA_LOCK, .value = 7}};
    static const uintptr_t pcs[] = {0x1234, 0x5678};
    int saved = errno, lost = 0;
    struct qut_trace_counters_now counts;
    struct qut_event event = {.time_ns = time_ns += 1000000, .cpu_ns = 1, .kind = QUT_SAMPLE_CPU};
    errno = 4711;
    discipline_watch(true);
    for (int i = 0; i < 3; i++)
        lost += qut_trace_sample(ucontext, &event) < 0;
    event.extras = extras;
    event.extra_count = 1;
    lost += qut_trace_append(pcs, 2, NULL, QUT_STACK_INTERRUPTED, &event) < 0;
    event.extra_count = 0;
    uint32_t node = qut_trace_node(qut_trace_label_node(0, "task"), 0x4321, 0);
    lost += qut_trace_append_node(node, &event) < 0;
    lost += qut_trace_mark(QUT_MARK_BEGIN, 1, "request") < 0;
    qut_trace_skip();
    qut_trace_add(QUT_TOTAL_LOCK_WAITS, 1);
    qut_trace_get_counts(&counts, sizeof counts);
    lost += qut_trace_fd() < 0;
    discipline_watch(false);
    *errno_kept = errno == 4711;
    errno = saved;
    return lost;
}

#ifdef INTERPOSING

bool discipline_watching_works(void)
{
    return true;
}

static void called(const char *name)
{
    calls++;
    if (!watching)
        return;
    static const char text[] = "a walk called ";
    ssize_t written = write(2, text, sizeof text - 1) + write(2, name, strlen(name)) + write(2, "\n", 1);
    (void)written;
    abort();
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *old);

void *malloc(size_t size)
{
    called("malloc");
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    called("calloc");
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    called("realloc");
    return __libc_realloc(old, size);
}

void free(void *old)
{
    called("free");
    __libc_free(old);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    called("posix_memalign");
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    called("aligned_alloc");
    return __libc_memalign(alignment, size);
}

// The rest goes on to what comes next by that name; found before any walk.
static struct {
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    int (*munmap)(void *, size_t);
    int (*mutex_lock)(pthread_mutex_t *);
    int (*mutex_unlock)(pthread_mutex_t *);
    int (*once)(pthread_once_t *, void (*)(void));
    int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    int (*getattr)(pthread_t, pthread_attr_t *);
} next;

static void *find(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        abort();
    return function;
}

__attribute__((constructor)) static void find_all(void)
{
    // With 64-bit file offsets on a 32-bit machine the headers give mmap this name.
    *(void **)&next.mmap = find(sizeof(off_t) > sizeof(long) ? "mmap64" : "mmap");
    *(void **)&next.munmap = find("munmap");
    *(void **)&next.mutex_lock = find("pthread_mutex_lock");
    *(void **)&next.mutex_unlock = find("pthread_mutex_unlock");
    *(void **)&next.once = find("pthread_once");
    *(void **)&next.iterate = find("dl_iterate_phdr");
    *(void **)&next.getattr = find("pthread_getattr_np");
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    called("mmap");
    return next.mmap(address, size, protection, flags, fd, offset);
}

int munmap(void *address, size_t size)
{
    called("munmap");
    return next.munmap(address, size);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    called("pthread_mutex_lock");
    return next.mutex_lock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    called("pthread_mutex_unlock");
    return next.mutex_unlock(mutex);
}

int pthread_once(pthread_once_t *once, void (*function)(void))
{
    called("pthread_once");
    return next.once(once, function);
}

int dl_iterate_phdr(int (*function)(struct dl_phdr_info *, size_t, void *), void *context)
{
    called("dl_iterate_phdr");
    return next.iterate(function, context);
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    called("pthread_getattr_np");
    return next.getattr(thread, attributes);
}

#else

bool discipline_watching_works(void)
{
    return false;
}

#endif
