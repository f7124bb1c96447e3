// SPDX-License-Identifier: Apache-2.0
// libqutc, for programs that walk with libqut: makes the tables that are not in the cache.
//
//     struct qutc_provide_options provide = {.size = sizeof provide, .cache_directory = directory};
//     options.compile = qutc_compile_for_qut;
//     options.compile_context = &provide;
#ifndef QUTC_PROVIDE_H
#define QUTC_PROVIDE_H

#include <stdbool.h>

#include <qut/compiler.h>

QUT_DECLS_BEGIN

struct qutc_provide_options {
    size_t size;                 // sizeof(struct qutc_provide_options)
    const char *cache_directory; // where tables are put for the next process; created where missing; NULL: nowhere
    const char *debug_root;      // "/usr/lib/debug": separate debug files describe more code; NULL: not looked for
    bool small;                  // fewer bytes for a slightly slower lookup
    // Asked for the table of a module whose file is not at hand, or is (QUT_COMPILE_FILE_IS_HERE) but has no unwind
    // information or cannot be compiled: after request->path, before request->memory, which lacks what only files have.
    // By the same thread, so never while a walk waits for it; it may ask other machines (qutc/servers.h). What it makes
    // is taken if it is a sound table of request->build_id, and kept nowhere. Not asked for this process's vdso. NULL:
    // nobody is asked.
    qut_compile_fn take;
    void *take_context;
};

// A qut_compile_fn. `context` is a const struct qutc_provide_options, or NULL: all of them zero.
//
// Takes the file at request->path if its build-id is request->build_id, else what options.take makes, else what is in
// request->memory. The same with the identity of an OAT file (QUT_COMPILE_OAT_IDENTITY), for which nobody is asked;
// made of memory, such a table lacks what only the file has, and is put into no cache. Where the mapped module has
// neither, nothing proves that a file is the one it was mapped from: then the memory comes first, and the file is taken
// only where there is no memory and it has no build-id either.
//
// Of another process's module (QUT_COMPILE_OF_ANOTHER), which states what it likes, a table is put into the cache for
// all that state the same only where the file is root's or this user's and nobody else may write it; of another user's
// file below the cache, as "of-UID/...", where it is found for files of that user.
//
// A symbol file of a just-in-time compiler (QUT_COMPILE_JIT) is in memory only, and its table is put into no cache: the
// next process has other code there.
//
// A file that is changed or cut off meanwhile makes it fail, and raises no signal. A table that cannot be put into the
// cache is returned all the same. errno is ENOMEM afterwards where it was memory that there was none of. [not
// signal-safe, blocks, allocates; any threads]
QUT_API int qutc_compile_for_qut(void *context, const struct qut_compile_request *request, void **table,
                                 size_t *table_size, char *reason, size_t reason_size);

QUT_DECLS_END

#endif
