// SPDX-License-Identifier: Apache-2.0
// What the tables of `qut info` are printed with, and words that several of them have.
#ifndef TRACER_INFO_PRINTER_H
#define TRACER_INFO_PRINTER_H

#include <stdio.h>

#include "base/json.h"
#include "tracer/analysis/selection.h"
#include "tracer/call_events/events.h"
#include "tracer/names/names.h"

struct printer {
    const struct selection *selection;
    const struct trace *trace; // the selection's
    const struct names *names;
    size_t rows;
    bool show_agent;
    unsigned columns;       // as in struct info_wanted
    FILE *output;           // text
    struct base_json *json; // or this
};

enum { INFO_STACK_BYTES = 512, INFO_THREAD_BYTES = 128 };
// "read < fill < main": the innermost functions. Returns text.
const char *info_stack_text(const struct printer *printer, uint32_t node, char text[INFO_STACK_BYTES]);
// "worker (1234)"; with several processes "cc1/worker (1234)". Not always in text.
const char *info_thread_text(const struct trace *trace, uint32_t index, char text[INFO_THREAD_BYTES]);
// The last words of a line.
void info_print_end(const struct printer *printer, const char *text);

// by_thread.c: a row for each thread. -1: no memory.
int info_print_by_thread(const struct printer *printer);

// calls.c, calls_slowest.c: exact calls. -1: no memory.
int info_print_calls(const struct printer *printer);
int info_print_slowest(const struct printer *printer, const char *function, double share);
// A traced function's name; never empty.
const struct name *info_call_name(const struct printer *printer, const struct call_events *calls, uint32_t function);

#endif
