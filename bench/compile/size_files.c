// SPDX-License-Identifier: Apache-2.0
#include "bench/compile/size_files.h"

#include <glob.h>
#include <stddef.h>
#include <string.h>

#define LIB "/usr/lib/x86_64-linux-gnu/"

// C with assembly, C++, assembly, large C++, C, a statically linked program, a garbage-collected runtime twice, and
// code that is mostly vector assembly: what is common, and what is hard.
const struct bench_file bench_files[BENCH_FILES] = {
    {"libc.so.6", "libc6", {LIB "libc.so.6"}},
    {"libstdc++.so.6", "libstdc++6", {LIB "libstdc++.so.6"}},
    {"libcrypto.so.3", "libssl3", {LIB "libcrypto.so.3"}},
    {"libLLVM-14.so.1", "libllvm14", {LIB "libLLVM-14.so.1"}},
    {"libpython3.11.so.1.0", "libpython3.11", {LIB "libpython3.11.so.1.0"}},
    {"gdb", "gdb", {"/usr/bin/gdb"}},
    // Debian's node is a small program around a library; others link it whole.
    {"node", "nodejs", {LIB "libnode.so.*", "/usr/bin/node"}},
    {"libjvm.so",
     "openjdk-17-jre-headless",
     {"/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", "/usr/lib/jvm/*/lib/server/libjvm.so"}},
    {"libx265.so.199", "libx265-199", {LIB "libx265.so.199"}},
};

char *bench_file_find(const struct bench_file *file)
{
    for (unsigned i = 0; i < sizeof file->patterns / sizeof *file->patterns && file->patterns[i]; i++) {
        glob_t found;
        char *path = NULL;
        if (glob(file->patterns[i], 0, NULL, &found) == 0) {
            path = strdup(found.gl_pathv[0]);
            globfree(&found);
        }
        if (path)
            return path;
    }
    return NULL;
}
