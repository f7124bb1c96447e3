// SPDX-License-Identifier: Apache-2.0
// Every system call and every service of libc that libqut's local part needs, in one place. What may be called while a
// walk runs is marked signal-safe: those keep errno and are plain system calls or pure computation.
#ifndef QUT_OS_OS_H
#define QUT_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Only libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

// ---- what was denied

// The system call that an error of ours was last due to: its number << 16 | errno. 0: none was. An -errno alone does
// not say which call a filter denied; this is for words, and decides nothing.
extern _Atomic uint32_t os_last_failure;
// Returns -errno, or -error. Signal-safe.
int os_failed(long number);
int os_failed_with(long number, int error);
// 0, or -errno of a call without which threads cannot be: before the first of ours is started in a program of one.
int os_may_have_threads(void);

// ---- memory

// Copies size bytes of this process's own memory; returns how many could be read from the start on. Never faults,
// whatever the address. Signal-safe. (process_vm_readv on itself; where that is forbidden, through a memfd.)
size_t os_read_self(uintptr_t address, void *bytes, size_t size);

// Copies several parts side by side, with one system call where that is to be had. How many bytes: less than the sum of
// the parts where one cannot be read whole; those before it were. Signal-safe.
struct os_part {
    uintptr_t address;
    size_t size;
};
size_t os_read_parts(const struct os_part *parts, unsigned count, void *bytes);

// Whether an aligned word of this process's memory is what it was; false too where it cannot be read. A system call
// that takes a fraction of the time of those above, and reads no more than that. Signal-safe. (A futex that nobody
// waits for.)
bool os_is_word(uintptr_t address, uint32_t value);

// As os_read_self, 64 pages with each system call instead of one: for images of modules. Not signal-safe, and not for
// walks: it takes more than 1 KiB of stack.
size_t os_copy_self(uintptr_t address, void *bytes, size_t size);

// For tests: whether the way through a memfd is taken. Found out by itself.
void os_set_read_by_memfd(bool by_memfd);

// Zeroed pages, or NULL. Pages are there (pre-faulted) if `touch`.
void *os_pages(size_t size, bool touch);
void os_free_pages(void *pages, size_t size);

// Makes those be there that are not yet, where the kernel can do that at once.
void os_touch_pages(void *pages, size_t size);

// Zeroed pages of which each is there once it is touched, and takes no memory before; or NULL.
void *os_reserve(size_t size);
// A zeroed page that is zero again in a child after any kind of fork, where the kernel can do that; or NULL.
void *os_wiped_page(void);
// Puts zeroed pages of this process's own in place of what is mapped there. False: it is as it was.
bool os_replace_pages(void *pages, size_t size);

// ---- threads

// Bounds of the calling thread's stack: it may grow down to limit; what lies between its sp and high can be read. False
// where they cannot be had. Not signal-safe.
bool os_stack_bounds(uintptr_t *limit, uintptr_t *high);

// Data of the program's stacks is read as it is, whatever a sanitizer thinks of its place.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define OS_SANITIZED 1
#endif
#endif
#ifdef OS_SANITIZED
#define OS_AS_IT_IS                                                                                                    \
    __attribute__((noinline, unused, no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#else
#define OS_AS_IT_IS __attribute__((always_inline)) inline
#endif
static OS_AS_IT_IS uintptr_t os_load(uintptr_t address)
{
    typedef uintptr_t __attribute__((may_alias, aligned(1))) any_word;
    return *(const any_word *)address;
}

// Two neighbouring words. In memory of the caller's: how such a vector is returned depends on the processor.
typedef uintptr_t os_word_pair
    __attribute__((vector_size(2 * sizeof(uintptr_t)), aligned(sizeof(uintptr_t)), may_alias));
static OS_AS_IT_IS void os_load_pair(uintptr_t address, os_word_pair *pair)
{
    *pair = *(const os_word_pair *)address;
}

// The alternate signal stack that this thread runs on now. False if it does not. Signal-safe.
bool os_alternate_stack(uintptr_t *low, uintptr_t *high);

// Starts a detached-from-signals thread (all blocked) that runs body(argument). 0 or -errno.
struct os_thread;
// What each of them calls first and last, where it is set before they start.
struct os_thread_hooks {
    void (*begins)(void), (*ends)(void);
};
extern struct os_thread_hooks os_thread_hooks;
int os_thread_start(struct os_thread **thread, void (*body)(void *), void *argument);
void os_thread_join(struct os_thread *thread);
void os_thread_forget(struct os_thread *thread); // in a child after fork, where it does not exist

// Waits while *word == value, at most timeout_ms (< 0: for ever). Signal-safe to wake.
void os_wait(_Atomic uint32_t *word, uint32_t value, int timeout_ms);
void os_wake(_Atomic uint32_t *word);

// A lock is a word that is 0 while it is free. Not signal-safe. A child after fork may set it to 0.
void os_lock(_Atomic uint32_t *lock);
bool os_try_lock(_Atomic uint32_t *lock); // whether it was free, and is held now. Signal-safe
void os_unlock(_Atomic uint32_t *lock);

// Calls function(value) when the calling thread ends, if value is not NULL then. The same function in every call; NULL
// takes the thread's call back. 0 or -errno.
int os_at_thread_end(void (*function)(void *), void *value);

// As pthread_atfork. 0 or -errno.
int os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

uint64_t os_now_ns(void); // CLOCK_MONOTONIC. Signal-safe

// An asymmetric pair of fences: the light one costs (next to) nothing and is for walks; the heavy one makes
// it as if every running thread had executed a full fence where its light one stands. Light: signal-safe.
bool os_fences_init(void);
extern bool os_light_fence_is_full; // where membarrier is not to be had, and under ThreadSanitizer
#if defined(__SANITIZE_THREAD__)
#define OS_FENCES_ARE_FULL 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OS_FENCES_ARE_FULL 1
#endif
#endif
#ifdef OS_FENCES_ARE_FULL
extern uint32_t os_fence_word; // ThreadSanitizer does not know fences, but atomic operations
static inline void os_fence_light(void)
{
    __atomic_fetch_add(&os_fence_word, 1, __ATOMIC_SEQ_CST);
}
#else
static inline void os_fence_light(void)
{
    if (__builtin_expect(os_light_fence_is_full, 0))
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
#endif
void os_fence_heavy(void);

// riscv64: whether this thread may use instructions for vectors; elsewhere false. Signal-safe.
bool os_vectors_are_on(void);

// ---- the dynamic loader

// Words of the loader's that change with every module that it adds or removes, and what they were. Looking at them is
// signal-safe and needs no lock.
struct os_generation {
    uint32_t is_known; // 0: there are none here, modules must be confirmed one by one (os_confirm_module)
    uint32_t word_count;
    struct os_word {
        uintptr_t address, value;
    } words[16];
};

static inline bool os_is_unchanged(const struct os_word *word)
{
    return __atomic_load_n((const uintptr_t *)word->address, __ATOMIC_RELAXED) == word->value;
}

// Whether the loader has added and removed nothing since.
static inline bool os_is_generation(const struct os_generation *generation)
{
    const struct os_word *word = generation->words, *end = word + generation->word_count;
    if (__builtin_expect(generation->word_count == 2, 1)) // as glibc has: each walk asks
        return os_is_unchanged(word) && os_is_unchanged(word + 1) && generation->is_known;
    while (word != end && os_is_unchanged(word))
        word++;
    return word == end && generation->is_known;
}

// Whether the object at pc is, now, the one that was seen with this base and link map. Signal-safe, no lock
// (_dl_find_object). Where the loader cannot be asked: true if it never unloads (static programs, musl), and on
// Android, where the bytes of the build-id at its address must do; else false.
bool os_confirm_module(uintptr_t pc, uintptr_t map_start, uintptr_t link_map);

struct os_module {
    const char *path; // "" for the program itself until it is found out; lives during the call
    uint64_t load_bias;
    const void *program_headers; // ElfW(Phdr)[], as mapped
    unsigned program_header_count;
    uintptr_t link_map, map_start; // as os_confirm_module wants them; 0 where unknown
    bool is_program, is_loader;    // the program itself, or its dynamic loader
};

// Every loaded module, under the loader's lock: not signal-safe, and for one thread at a time. *generation is one from
// before: if it still is, then nothing was added or removed since they were told.
int os_each_module(int (*each)(void *context, const struct os_module *module), void *context,
                   struct os_generation *generation);

// Returns when the loader's lock can be had; in a child after fork, never if another thread had it then.
void os_await_loader(void);

// Virtual addresses, in its file, of the two 64-bit words in which Android's linker counts the modules that it added
// and removed. False: the file has no symbols of that name. Not signal-safe.
bool os_linker_counters(const char *path, uint64_t vaddrs[2]);

// What /proc/self/maps says of an address. 0 or -errno. Not signal-safe.
struct os_mapping {
    uintptr_t start, end;
    uint64_t offset_bytes; // of start in the file
    bool is_file;
    bool is_there;   // path still names the very file that is mapped
    char path[4096]; // "" where there is none
};
int os_mapping_at(uintptr_t address, struct os_mapping *mapping);
// A line of it.
struct os_map_line {
    uintptr_t start, end;
    uint64_t offset_bytes, device, inode; // inode 0: it is no file's
    bool is_readable, is_executable;
    const char *path; // as it stands there, up to path_bytes; "" where there is none
    size_t path_bytes;
};
// Calls each for every mapping, ascending, until it returns non-zero; returns that, 0 or -errno. Not signal-safe.
int os_each_mapping(int (*each)(void *context, const struct os_map_line *line), void *context);
// A path as it stands in maps, made what the file is called: the kernel writes a line feed as \012, and nothing else
// that way.
void os_maps_unescape(char *path);

#pragma GCC visibility pop

#endif
