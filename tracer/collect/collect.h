// SPDX-License-Identifier: Apache-2.0
// Takes a segment's chunks to a .qtrace file, once or as long as its process goes on. Never writes to what belongs to a
// writer: of a STREAM segment it gives chunks back that are in the file, of others it copies them before newer samples
// take their place.
#ifndef TRACER_COLLECT_COLLECT_H
#define TRACER_COLLECT_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "formats/qut_trace_file.h"
#include "tracer/trace/trace_data.h"

// Code that was made at run time, as its process calls it.
struct collect_code {
    uint64_t start, end;
    bool has_lines; // as QUT_TRACE_MODULE_LINES
    bool may_move;  // other code may be put there: each address in it is asked for
    char name[512];
};

// A function at a place of such code.
struct collect_level {
    uint32_t line; // 0: not known
    char function[512];
    char file[192]; // "": not known
};
enum {
    COLLECT_LEVELS_MAX = 64,
    COLLECT_ADDRESS_BITS = 48, // more than an address: where in a method that is interpreted
};

struct collect_options {
    int segment_fd;
    int file_fd;          // a regular file, empty
    bool follow;          // until the trace is closed, its process ends, or `stop_fd` can be read
    uint32_t interval_ms; // between two looks; 0: 100
    bool live;            // somebody reads the file meanwhile: it is never older than half a second, and larger
    int stop_fd;          // -1: none
    int process_fd;       // of pidfd_open, can be read when the process has ended; -1: only the segment says so
    void (*progress)(void *context, uint64_t chunk_count, uint64_t file_bytes);
    void *progress_context;
    // What goes into the file beside the samples, asked for once, at the end, in the thread that collects; it may wait
    // for the process that tells them (one that has just ended, say). Returns the notes, *count of them, which stay
    // until collect() is back. NULL: none.
    const struct trace_note *(*notes)(void *context, size_t *count);
    void *notes_context;
    // When all is in the file and *result, with what collect() is about to return: what is left to be done then is to
    // give back memory, for which nobody needs to wait. NULL: not told.
    void (*ended)(void *context, int status);
    void *ended_context;
    bool prepares_end; // what the end takes is made ready while the process runs: memory, for time at the end
    // What the process calls the code at an address that is in no module; false: it does not say. Asked in the thread
    // that collects, soon after the address was first sampled, and not before since_ns. NULL: nobody knows.
    bool (*name_code)(void *context, uint64_t address, uint64_t since_ns, struct collect_code *code);
    // ... asked once more at the end of those it did not say, which is when some machines have written it down: what
    // the code was called when it was sampled. NULL: not asked.
    bool (*name_past_code)(void *context, uint64_t address, uint64_t met_ns, struct collect_code *code);
    // The functions at an address of code that has a name so: those that are inlined there, innermost first, then the
    // one that has the code, with their lines. How many, at most COLLECT_LEVELS_MAX; 0: no more is known than the name.
    // NULL: never.
    size_t (*levels_of_code)(void *context, uint64_t address, struct collect_level *levels);
    void *name_context;
};

struct collect_result {
    enum qut_trace_file_end end;
    uint64_t chunk_count, sample_count, node_count, file_bytes, unpacked_bytes;
    uint64_t failed_writes;          // times that the file could not be written; then the chunks stayed where they were
    struct base_error first_failure; // of these
    uint64_t code_names_left;        // names of code that had no room in the file
    bool has_trailer;                // false: the file ends early, and says so to its readers
};

// 0; or -1, *error filled, where nothing could be made of the segment at all. That the file could not be written is in
// *result.
int collect(const struct collect_options *options, struct collect_result *result, struct base_error *error);

// One file may hold several traces, one behind the other, as they were collected. Adds a whole file's bytes (fd) at the
// end of another one (to_fd). Where they cannot be written, to_fd is cut back to what it was. 0, or -1 with *error
// filled.
int collect_append(int to_fd, int fd, struct base_error *error);
// Adds notes of the whole recording: what belongs to no process ("processes-not-followed").
int collect_append_notes(int to_fd, const struct trace_note *notes, size_t count, struct base_error *error);

#endif
