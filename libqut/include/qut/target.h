// SPDX-License-Identifier: Apache-2.0
// Walking what is not this process: another process, a core file, a snapshot directory. Of any architecture that QUT
// knows. Every function here: [not signal-safe, blocks, allocates; a target is used by one thread at a time, different
// targets by different threads, except that the threads of a stopped process are controlled by the thread that stopped
// it.]
#ifndef QUT_TARGET_H
#define QUT_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

#include <qut/compiler.h>
#include <qut/frame.h>

QUT_DECLS_BEGIN

struct qut_target; // one of the three

struct qut_target_options {
    size_t size;                 // sizeof(struct qut_target_options)
    const char *cache_directory; // as in struct qut_options
    qut_compile_fn compile;
    void *compile_context;
    const char *sysroot; // directory that stands for "/" when the files of modules are opened; NULL: "/"
    uint64_t pac_mask;   // aarch64: bits of a code address that hold its signature; 0: found out
    bool interrupt;      // of a live process: stop threads also where their system call returns EINTR then
    bool one_by_one;     // of a live process: each thread is stopped by itself, by its walk, not all by qut_target_stop
    bool frame_pointers; // as QUT_START_FRAME_POINTERS
};

// One line about what went wrong: "core.123: not a core file (ELF type 3)".
struct qut_target_error {
    char text[256];
};

// Opens a live process. Nothing is stopped yet; the modules that are mapped now are known when it returns. NULL with
// *error filled: no such process, no permission, ...
QUT_API struct qut_target *qut_target_process(pid_t pid, const struct qut_target_options *options,
                                              struct qut_target_error *error);
// Opens a core file. exe_path may be NULL: the file that the core names.
QUT_API struct qut_target *qut_target_core(const char *core_path, const char *exe_path,
                                           const struct qut_target_options *options, struct qut_target_error *error);
// Opens a directory with maps.txt, regs.txt, stack*.data (further memory: other *.data) and the mapped files by base
// name.
QUT_API struct qut_target *qut_target_snapshot(const char *directory, const struct qut_target_options *options,
                                               struct qut_target_error *error);
// Resumes what is stopped, frees everything.
QUT_API void qut_target_close(struct qut_target *target);

QUT_API const char *qut_target_arch(const struct qut_target *target); // "x86_64", ...
QUT_API unsigned qut_target_word_bytes(const struct qut_target *target);

// A live process only; the others count as stopped from the start. Stops every thread, those that are created meanwhile
// included, and brings the list of modules up to date. If this process dies, the kernel resumes them.
//
// Not stopped, but left asleep, are threads that
// - sleep in a system call that would return because of it (signal(7), "Interruption of system calls ... by stop
//   signals"): epoll_wait, semop, sigtimedwait, io_getevents, io_uring_enter, ioctl; recv, accept, connect with a
//   timeout or MSG_WAITALL; write and send, which would return how much they had written. With options.interrupt they
//   are stopped. On x86 and x86-64 so are those that wait for ever in the first three, and their call begins anew, as
//   does that of a thread that falls asleep within the microseconds between our look at it and its being stopped.
// - cannot be woken: a parent in vfork, a wait for a dead file server.
// With options.one_by_one it stops none: qut_target_walk stops the thread it walks, until qut_target_resume_thread.
// Stacks are then of different moments, and a thread that was created since is not among them.
//
// Of those left asleep only pc and sp are known, and their walk counts as without a stop. If one wakes before it is
// walked, qut_target_walk asks it to stop after all; so it is best to walk the others, and let them go, first.
QUT_API int qut_target_stop(struct qut_target *target, struct qut_target_error *error);
// The longest that a thread stood still because of us, in the last stop; it counts once all are let go. What
// qut_target_stop does before the first is asked to stop costs the process nothing.
QUT_API uint64_t qut_target_stopped_ns(const struct qut_target *target);
// One thread lets go before the others, for instance once it was walked.
QUT_API void qut_target_resume_thread(struct qut_target *target, size_t thread);
QUT_API void qut_target_resume(struct qut_target *target);

// The threads, in ascending order of their ids. A process that is not stopped has those that sleep in a system call;
// their registers are what /proc tells (pc and sp).
QUT_API size_t qut_target_thread_count(struct qut_target *target);
struct qut_thread_info {
    pid_t tid;
    char name[32];     // "" where it is not known
    bool crashed;      // a core file: the thread that the signal was for
    int signal_number; // 0: none
    // NULL: all its registers are known. Else it was not stopped: the name of the system call that would have returned
    // EINTR or the like ("epoll_wait"; lives for ever), or "" where that was not the reason.
    const char *asleep_in;
};
// The id alone; the name of a live process's thread is read when it is asked for, which takes time while the
// process stands still. asleep_in as above, or NULL. 0: there is no such thread.
QUT_API pid_t qut_target_tid(const struct qut_target *target, size_t thread, const char **asleep_in);
QUT_API void qut_target_thread(struct qut_target *target, size_t thread, struct qut_thread_info *info);

// The frames of a thread, innermost first; returns how many (at most max) and why there are no more. Of a process that
// is not stopped, a walk counts only if the thread slept in the same system call, with the same stack, before and
// after: else 0 frames, and the reason is QUT_END_NO_PROGRESS.
QUT_API size_t qut_target_walk(struct qut_target *target, size_t thread, struct qut_frame *frames, size_t max,
                               struct qut_end *end);

// What is mapped at an address.
struct qut_module_info {
    const char *path; // as in the maps: "/usr/lib/libc.so.6", "[vdso]", "base.apk", ... lives as long as the target
    const char *file_path; // the file to open for it (sysroot, snapshot directory); "" where there is none
    uint64_t file_offset;  // of the ELF image in that file
    uint64_t start;        // first address of the module's first mapping
    uint64_t load_bias;    // address = virtual address in the ELF file + load_bias
    const char *soname;    // of an image inside an archive; "" where it is not known
    const uint8_t *build_id;
    uint32_t build_id_size;
    bool is_elf; // else load_bias is start - (offset of the mapping)
    bool deleted;
    const char *table_reason; // NULL, or why it has no table. Of memory that is no ELF image: why the walk that came to
                              // it last found no symbol file. Lives as long as the target
};
QUT_API bool qut_target_module(struct qut_target *target, uint64_t address, struct qut_module_info *info);

// The symbol file that a just-in-time compiler registered for the code at an address (an ELF image, as in struct
// qut_compile_request with QUT_COMPILE_JIT), for names. What a walk went through stays known, also if the process went
// on since and removed it. Its bytes live as long as the target. NULL: there is none.
QUT_API const void *qut_target_jit_symbols(struct qut_target *target, uint64_t address, size_t *size);

// What a virtual machine calls the code at an address. OpenJDK's is read from its memory: "java.lang.String.hashCode",
// or what its stub or interpreter is called; the address may be that of a method's description, which frames of
// interpreted methods have. Of others: what they write into a jitdump or into /tmp/perf-PID.map, if they were asked to.
// As it is now: a machine that lives may unload it, and use the memory again. False: nothing is known. `size` is sizeof
// *code.
struct qut_made_code {
    uint64_t start, end; // of the code with this name
    char name[512];      // cut, if it is longer
};
QUT_API bool qut_target_made_code(struct qut_target *target, uint64_t address, struct qut_made_code *code, size_t size);
// What it was called at a moment that has passed, by the monotonic clock: from a jitdump, which tells when code was
// made. Also when the process has ended, if the file was there when the target was opened.
QUT_API bool qut_target_made_code_of(struct qut_target *target, uint64_t address, uint64_t monotonic_ns,
                                     struct qut_made_code *code, size_t size);

// The methods that a frame of a virtual machine's code stands for, innermost first: those that a compiler has inlined
// where it stands, then the one whose code it is, at the latest what the code there is called. Read from the machine's
// memory as it is now; where that is not what the frame's code_id says, nothing is. Lines are told of OpenJDK's
// methods. Returns how many there are, of which at most `max` are filled, the outermost left out; 0: nothing is known.
// `size` is sizeof *levels.
enum qut_made_flag {
    QUT_MADE_INLINED = 1, // into the next one
    QUT_MADE_NEAR = 2,    // interrupted between two places that the compiler describes, which differ: methods that both
                          // are in are told. The line is the second one's; methods inlined further in may be missing
};
struct qut_made_level {
    uint64_t start, end; // of the code, of all levels of a frame the same
    uint32_t flags;      // enum qut_made_flag
    uint32_t line;       // 0: not known
    char name[512];
    char file[192]; // as the class says; "": not known
};
QUT_API size_t qut_target_made_levels(struct qut_target *target, const struct qut_frame *frame,
                                      struct qut_made_level *levels, size_t max, size_t size);

// The dex file that holds a dex pc, by the list that Android's runtime keeps (__dex_debug_descriptor): true, and where
// in memory it is.
QUT_API bool qut_target_dex_at(struct qut_target *target, uint64_t dex_pc, uint64_t *start, uint64_t *size);

// Memory, up to size bytes; returns how many could be read from the start on.
QUT_API size_t qut_target_read(struct qut_target *target, uint64_t address, void *bytes, size_t size);

QUT_DECLS_END

#endif
