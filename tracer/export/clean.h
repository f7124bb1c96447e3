// SPDX-License-Identifier: Apache-2.0
// Names in formats that are lines of text.
#ifndef TRACER_EXPORT_CLEAN_H
#define TRACER_EXPORT_CLEAN_H

#include "tracer/export/sink/sink.h"
#include "tracer/trace/trace_data.h"

// The text as UTF-8 in one line: what is none becomes U+FFFD, control characters become blanks, `taken` (0: none),
// which the format uses itself, becomes `instead`. The empty text becomes "[no name]".
void export_clean_text(struct sink *sink, const char *text, char taken, char instead);

// A thread's name; "thread 1234" where it has none.
enum { CLEAN_THREAD_NAME_BYTES = 32 };
const char *export_clean_thread_name(const struct trace_thread *thread, char text[CLEAN_THREAD_NAME_BYTES]);

// The name of a thread's process: its command's first word, without folders; "process 1234" where that is not known.
enum { CLEAN_PROCESS_NAME_BYTES = 64 };
const char *export_clean_process_name(const struct trace *trace, const struct trace_thread *thread,
                                      char text[CLEAN_PROCESS_NAME_BYTES]);

#endif
