// SPDX-License-Identifier: Apache-2.0
// How libqut gets a table that is not in the cache. libqut cannot compile; a program that links libqutc passes
// qutc_compile_for_qut (qutc/provide.h), others may bring their own.
#ifndef QUT_COMPILER_H
#define QUT_COMPILER_H

#include <qut/base.h>

QUT_DECLS_BEGIN

// A module as it is mapped. Valid during the call.
struct qut_compile_request {
    const char *path;        // of the file it was mapped from; "" where there is none. May name another file by now
    uint64_t offset_bytes;   // of the ELF image in that file (an APK's entry); else 0
    const void *memory;      // NULL, or the image as it is mapped, laid out as in its file: what lies in no
    size_t memory_size;      // segment (section headers, debug sections) is missing or zero
    const uint8_t *build_id; // as mapped. A file with another build-id is not the one that is wanted
    uint32_t build_id_size;  // 0: it has none
    uint32_t flags;          // enum qut_compile_flag
};

enum qut_compile_flag {
    // `memory` is a symbol file that a just-in-time compiler registered for debuggers (__jit_debug_descriptor), whole,
    // with section headers. Its addresses are those of the process; of a relocatable one, each section's sh_addr is
    // where it was loaded, and its bytes are the relocated ones. The table's addresses are those of the process too.
    QUT_COMPILE_JIT = 1,
    // An OAT file of Android's runtime that has no build-id. In its place build_id is another proof that a file is the
    // mapped one: a hash over parts that are the same in both (libqut/art/oat_identity.h).
    QUT_COMPILE_OAT_IDENTITY = 2,
    // The module is one of another process, which may say of itself what it likes: its build-id may be another file's.
    QUT_COMPILE_OF_ANOTHER = 4,
    // Said by qutc_compile_for_qut to qutc_provide_options.take: the file at `path` is the module's, by its build-id,
    // but
    // no table can be made of it.
    QUT_COMPILE_FILE_IS_HERE = 8,
};

// Makes a table. *table is from malloc, the caller frees it. Returns 0, or -1 where there is none to be had (no unwind
// information, a broken file); `reason` then says why. [not signal-safe, blocks, allocates; called by one thread at a
// time for each qut_start and each target]
typedef int (*qut_compile_fn)(void *context, const struct qut_compile_request *request, void **table,
                              size_t *table_size, char *reason, size_t reason_size);

QUT_DECLS_END

#endif
