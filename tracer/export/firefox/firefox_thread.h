// SPDX-License-Identifier: Apache-2.0
// One thread of Firefox Profiler's processed profile: its tables, as columns.
#ifndef TRACER_EXPORT_FIREFOX_THREAD_H
#define TRACER_EXPORT_FIREFOX_THREAD_H

#include "tracer/export/export.h"
#include "tracer/export/sink/sink.h"

enum firefox_category { FIREFOX_OTHER, FIREFOX_USER, FIREFOX_NATIVE, FIREFOX_KERNEL, FIREFOX_JAVA };

struct firefox {
    const struct selection *selection;
    const struct names *names;
    const struct export_options *options;
    struct sink *sink;
    struct intervals waits;  // of all kinds, of the whole trace, by thread
    size_t next_wait;        // the first of the next thread
    uint32_t whole_thread;   // index of the last one in the whole trace
    uint32_t *lib_of_module; // index in the profile's libs; TRACE_NONE: no file
};

// -1: no memory.
int export_firefox_thread(struct firefox *firefox, const struct trace_thread *thread);

#endif
