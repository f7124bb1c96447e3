// SPDX-License-Identifier: Apache-2.0
// A trace as exports and the report see it: plain data, read whole from a .qtrace file, from a segment, or made
// by a test. Nothing in it is trusted to be sound before trace_read has checked it; afterwards every index in it is.
#ifndef TRACER_TRACE_TRACE_DATA_H
#define TRACER_TRACE_TRACE_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "formats/qut_trace.h"

enum { TRACE_NONE = UINT32_MAX };

// A function at a place in code that was made at run time.
struct trace_level {
    const char *function;
    const char *file; // NULL: not known
    uint32_t line;    // 0: not known
};

struct trace_module {
    uint64_t code_base, code_bytes; // in code space; code_base 0: it has none (JIT, FILE)
    uint64_t start, start_vaddr; // its first byte of code: address in memory, virtual address (or offset) in its file
    uint64_t load_ns, unload_ns; // UINT64_MAX: it stayed
    const char *path;            // or a JIT function's name
    uint32_t flags;              // enum qut_trace_module_flag
    uint32_t build_id_bytes;
    uint8_t build_id[QUT_TRACE_BUILD_ID_BYTES];
    const struct trace_level *levels; // JIT, of one place: innermost first, the last has the code
    uint32_t level_count;             // 0: they are not told
};

// What a module's code is of: its path; of an interpreter's function the source file, "" where none is known.
static inline const char *trace_module_file(const struct trace_module *module)
{
    if (!(module->flags & QUT_TRACE_MODULE_LINES))
        return module->path;
    const char *end = strchr(module->path, '\n');
    return end ? end + 1 : "";
}

struct trace_node {
    uint32_t parent; // index in nodes; 0: the root, which is nodes[0]
    uint8_t kind;    // class << 2 | bits
    uint8_t class_;  // enum qut_trace_class
    uint16_t depth;  // of the root 0, of an outermost frame 1; stays at 65535
    uint32_t
        module;  // index in modules, or TRACE_NONE. Of RAW, JIT and DEX: one that was there at some time of the trace
    uint64_t pc; // with a module: virtual address in its file (FILE: offset); else the address in memory. LABEL: 0.
                 // END, KERNEL: its code, as in the node
    const char *label; // LABEL: the name. END: why, in words ("[no unwind information covers the code]"). KERNEL: what,
                       // in words ("[kernel] write"). Else NULL: the node has an address
};

// Not the program's: what sampling took in its threads.
static inline bool trace_node_is_own(const struct trace_node *node)
{
    return node->class_ == QUT_TRACE_CLASS_KERNEL && node->pc == QUT_TRACE_KERNEL_OWN;
}

// What a collector, or a recorder, knows beside the samples: "ticks-due", "trigger", ...
struct trace_note {
    const char *name;
    const char *text; // NULL: it is a number
    uint64_t value;
};

// One of the files that were put together (tracer/trace/together). Labels are NULL where they were not said.
struct trace_recording {
    const char *path;
    const char *host, *service, *version;
    const char *name; // of its labels, else of its file: "web1,shop", what its processes have behind their commands
    uint8_t identity[16];
    uint64_t began_ns;         // as its own clock had it
    uint64_t start_ns, end_ns; // of the whole trace's clock
    uint64_t hits, present_samples;
    size_t process_count;
    bool is_complete;
    bool has_unticked; // it has threads that ticks were to meet, and none met
};

// One process's part of a trace: the same pid may come more than once (exec ends a part).
struct trace_process {
    uint32_t pid;
    uint32_t parent_pid; // 0: not known
    uint32_t recording;  // index in recordings; 0 where there are none
    const char *command; // "" where it is not known
    uint8_t identity[16];
    uint8_t arch, word_bytes, mode;
    uint8_t end; // enum qut_trace_file_end; 0: not known
    bool has_cpu_time, is_complete;
    uint32_t metric_mask;
    uint64_t start_ns, end_ns;
    // As in struct trace: they add up to that.
    struct qut_trace_counts counts;
    uint64_t stored, merged, under_way;
    uint64_t totals[QUT_TRACE_TOTAL_COUNT];
    uint64_t present_samples, overwritten_samples, damaged_samples;
    size_t first_thread, thread_count; // they stand together
    size_t first_note, note_count;
};

struct trace_thread {
    uint32_t uid, tid; // no two of a trace have the same uid
    uint32_t process;  // index in processes
    char name[QUT_TRACE_NAME_BYTES];
    uint64_t start_ns, end_ns;      // UINT64_MAX: it lived when the trace was taken
    struct qut_trace_counts counts; // summed over levels
    uint64_t stored, merged;
    uint64_t under_way; // appends that had begun and were not finished when the trace was taken
    uint64_t totals[QUT_TRACE_TOTAL_COUNT];
    // Its records, in the order of their time: samples[first_sample], ... and marks[first_mark], ...
    size_t first_sample, sample_count;
    size_t first_mark, mark_count;
    size_t first_gap, gap_count;
};

struct trace_sample {
    uint64_t first_ns, last_ns; // `count` equal samples, the first and the last of them at these times
    uint64_t cpu_ns;            // processor time of the thread at last_ns; 0 where it is not measured
    uint32_t node;              // index in nodes
    uint32_t count;
    uint16_t kind;        // enum qut_trace_kind, or an own one
    uint16_t flags;       // enum qut_trace_sample_flag
    uint32_t first_extra; // index in extras; those of one sample stand together
    uint32_t metrics;     // index in metrics, of QUT_TRACE_METRIC_COUNT values; TRACE_NONE: there are none
    uint8_t extra_count;
    uint8_t level;
    uint16_t is_open; // 1: it begins an interval (QUT_TRACE_SAMPLE_BEGINS) whose end is not here: see trace_open_until
};

// Taken because so much time had gone by.
static inline bool trace_sample_is_tick(const struct trace_sample *sample)
{
    return sample->kind == QUT_TRACE_KIND_CPU || sample->kind == QUT_TRACE_KIND_WALL;
}

struct trace_extra {
    uint32_t key;   // enum qut_trace_extra_key
    uint64_t value; // of RESULT: an int64_t
};

struct trace_mark {
    uint64_t time_ns;
    uint64_t id;
    const char *name; // "" where it has none
    uint32_t kind;    // enum qut_trace_mark_kind
};

// A stretch of a thread's time of which records are missing.
struct trace_gap {
    uint64_t from_ns, to_ns;
    uint64_t lost;   // hits that were lost in it, as far as that is known
    uint32_t reason; // enum trace_gap_reason
};
enum trace_gap_reason {
    TRACE_GAP_LOST,        // no room, nested too deep: counted by the thread that lost them
    TRACE_GAP_OVERWRITTEN, // newer samples took the place of these
    TRACE_GAP_DAMAGED,     // a chunk or a block of the file cannot be read
};

// Of several processes: modules, nodes and names that are equal are one. A module's addresses (start, load_ns) are
// those of the process in which it was found first; the others had it somewhere else. Of several recordings all times
// are CLOCK_REALTIME's, as each one's own clocks tell it.
struct trace {
    // Where it comes from. Of several processes: pid, command, identity, arch, word_bytes and mode are the first one's,
    // is_complete and has_cpu_time say whether all have, or any has; metric_mask is of any.
    char *path;
    uint8_t identity[16];
    uint8_t arch, word_bytes, mode;
    bool has_cpu_time;
    bool is_complete; // closed in an orderly way, and all of it is here
    uint32_t pid;
    const char *command;
    uint64_t start_ns, end_ns, realtime_ns, boottime_ns; // start and end of CLOCK_MONOTONIC; the others: at start
    uint32_t metric_mask;
    const char *kind_names[QUT_TRACE_OWN_KIND_COUNT]; // of kind QUT_TRACE_OWN_KIND_FIRST + i; NULL: not in use

    struct trace_recording *recordings; // in the order in which they were given
    size_t recording_count;             // 0: it is a trace as it was recorded
    struct trace_process *processes;    // in the order in which they began
    size_t process_count;               // 0: made by hand, of one process: see trace_process_of
    struct trace_note *notes; // by process; behind theirs, from first_own_note on, those of the whole recording
    size_t note_count, first_own_note;

    struct trace_module *modules;
    size_t module_count;
    struct trace_node *nodes; // a parent's index is smaller than its children's
    size_t node_count;
    uint32_t unticked_node; // a label: where time is counted of threads that no tick met, where others were to be met;
                            // 0: there are none
    struct trace_thread *threads; // by process, and in the order in which they began
    size_t thread_count;
    struct trace_sample *samples;
    size_t sample_count;
    struct trace_extra *extras;
    size_t extra_count;
    uint64_t (*metrics)[QUT_TRACE_METRIC_COUNT];
    size_t metrics_count;
    struct trace_mark *marks;
    size_t mark_count;
    struct trace_gap *gaps;
    size_t gap_count;

    // Accounting of all threads, those that are gone included: see trace_balance.
    struct qut_trace_counts counts;
    uint64_t stored, merged, under_way;
    uint64_t totals[QUT_TRACE_TOTAL_COUNT];
    uint64_t present_samples;     // in `samples`, with those that were merged
    uint64_t overwritten_samples; // stored or merged, gone since
    uint64_t damaged_samples;     // stored or merged, not here and not overwritten: chunks that could not be read, or
                                  // a file that ends early
    uint64_t damaged_chunks, damaged_blocks;
    // What could not be read, in words, the first ones; for people.
    char **damages;
    size_t damage_count;

    uint64_t file_bytes;  // of the file; of a segment: of all of it
    uint64_t chunk_bytes; // of the chunks that are here, unpacked: headers and records
    size_t chunk_count;

    // Exact calls, one for each process whose functions were traced: tracer/call_events. Their functions have nodes.
    struct call_events **calls;
    size_t calls_count;

    void *memory; // what all of the above stands in
};

// Reads a .qtrace file or a segment (a file in a memory file system, or a copy of one). What is good is kept: damage is
// counted in *trace, and trace->is_complete is false. Returns 0; or -1, *error filled, where nothing can be made of the
// file at all. A segment whose process still runs may be read while it is written.
int trace_read(const char *path, struct trace *trace, struct base_error *error);
int trace_read_fd(int fd, const char *name, struct trace *trace, struct base_error *error);
void trace_free(struct trace *trace);

// "cpu", "lock", ... or an own kind's name. Static, or as long as the trace lives.
const char *trace_kind_name(const struct trace *trace, unsigned kind);
const char *trace_metric_name(unsigned metric); // "minor-faults"
const char *trace_total_name(unsigned total);   // "allocated-bytes"
const char *trace_lost_name(unsigned reason);   // "nested too deep"
const char *trace_cut_name(unsigned reason);    // "tree of frames full"
const char *trace_extra_name(unsigned key);     // "lock"

// Of a sample's extras, the value of a key. False: it has none.
bool trace_extra(const struct trace *trace, const struct trace_sample *sample, uint32_t key, uint64_t *value);

// A thread's process; of a trace made by hand, that has none, one with the trace's pid and command.
struct trace_process trace_process_of(const struct trace *trace, const struct trace_thread *thread);
// Its pid, and its command line ("" where it is not known).
static inline uint32_t trace_pid_of(const struct trace *trace, const struct trace_thread *thread)
{
    return thread->process < trace->process_count ? trace->processes[thread->process].pid : trace->pid;
}
static inline const char *trace_command_of(const struct trace *trace, const struct trace_thread *thread)
{
    const char *command =
        thread->process < trace->process_count ? trace->processes[thread->process].command : trace->command;
    return command ? command : "";
}
// The number of a process's note, or the whole recording's (process TRACE_NONE). False: there is none.
bool trace_note_number(const struct trace *trace, uint32_t process, const char *name, uint64_t *value);
// The sum over all processes and the whole recording.
uint64_t trace_note_sum(const struct trace *trace, const char *name);

// Used processor time, and no tick met it.
bool trace_thread_is_unticked(const struct trace *trace, const struct trace_thread *thread);

// Until when an interval that did not end is taken to have lasted: the next sample of its thread, or the end of that.
uint64_t trace_open_until(const struct trace *trace, const struct trace_thread *thread,
                          const struct trace_sample *sample);
// Sets is_open in all samples. trace_read has done so.
bool trace_find_open(struct trace *trace);

// Whether hits = stored + merged + throttled + lost + under way, and stored + merged = present + overwritten + damaged.
// The differences; both 0 where it holds.
struct trace_balance {
    int64_t hits_missing, samples_missing;
};
struct trace_balance trace_balance(const struct trace *trace);

#endif
