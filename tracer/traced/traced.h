// SPDX-License-Identifier: Apache-2.0
// Exact calls of the processes of a recording: what is wanted, and what became of it.
#ifndef TRACER_TRACED_TRACED_H
#define TRACER_TRACED_TRACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_calls_plan.h"
#include "formats/qut_probe.h"

enum {
    TRACED_PATTERN_BYTES = 1024,
    TRACED_PATTERNS_MAX = 256,
    TRACED_LEASTS_MAX = 64,
    TRACED_PLACES_MAX = 64,
    TRACED_SAID_MAX = 8
};

struct traced_probe; // tracer/traced/probe.h

struct traced_options {
    struct traced_probe *probe;  // programs instead of events; NULL: none
    const char *const *patterns; // as calls_patterns_add takes them
    bool is_excluded[TRACED_PATTERNS_MAX];
    bool is_optional[TRACED_PATTERNS_MAX]; // no function need fit it
    bool is_caller[TRACED_PATTERNS_MAX];   // calls are kept within those that such a one fits, if there is one
    bool has_callers;
    uint32_t depth; // of calls that lie in each other; 0: all
    size_t pattern_count;
    bool count_only;
    bool waits_for_room;  // threads whose rings are full
    bool without_running; // calls that run when tracing begins are left out
    bool traps;           // functions with room for a trap only are traced, by traps
    uint64_t budget_hz;   // of one function; 0: none
    uint64_t thin_hz;     // likewise: of those above some calls are recorded; 0: of all functions all
    uint64_t least_ns;    // shorter calls are counted only; 0: none
    // Of functions that a pattern fits, in place of that; of several the last.
    struct traced_least {
        const char *pattern; // ends behind so many bytes
        size_t pattern_bytes;
        uint64_t ns;
    } leasts[TRACED_LEASTS_MAX];
    size_t least_count;
};

// Of one process, or the sums over several.
struct traced_result {
    uint64_t processes, processes_failed;
    char first_failure[256]; // of these
    uint64_t modules, modules_failed;
    char first_module_failure[256];
    uint64_t functions; // traced
    uint64_t kinds[QUT_PLAN_KIND_END];
    uint64_t refusals[QUT_PLAN_REFUSAL_END]; // that patterns fit
    uint64_t others[16];                     // by enum patch_state: what could not be put in
    uint64_t traps, too_many, out_of_reach;  // that could be patched, and were not: by a trap only, ...
    uint64_t traps_refused;                  // of these: though traps were asked for
    uint64_t pattern_matches[TRACED_PATTERNS_MAX], least_matches[TRACED_LEASTS_MAX]; // functions
    uint64_t caller_matches[QUT_PROBE_PROGRAMS_MAX]; // by program of traced_probe.callers
    uint64_t callers_left_out;                       // that had no room: calls out of them do not count
    uint64_t enters, exits, lost_enters, lost_exits, passed, counted, short_calls, running;
    uint64_t over_budget; // functions
    char first_over_budget[128];
    uint64_t thinned; // functions
    char first_thinned[128];
    uint64_t threads, rings_fullest_percent;
    uint64_t stops, begin_stop_ns, end_stop_ns, longest_stop_ns; // how long processes stood still: in all, one time
    uint64_t moved_threads;                                      // that stood where bytes were exchanged
    uint64_t put_back, not_put_back, returns_put_back;
    uint64_t drain_ns;               // processor time of ours
    uint64_t forked;                 // of the processes
    uint64_t unasked;                // functions in which not all programs run that patterns have there: traced_asked
    uint64_t places, places_refused; // within functions
    struct traced_place_seen {
        uint64_t matches;             // functions that the pattern fits, places that the line has
        bool has_file;                // of a line: there is debug information of such a file,
        uint32_t before, after;       // ... in which these lines, the nearest ones, have code; 0: none
    } places_seen[TRACED_PLACES_MAX]; // of traced_probe.places
    char first_place_refused[192];
    uint64_t outside; // calls that were not kept: within no caller, or too deep
    uint64_t swept;   // children of fork that made no events, and whose code was put back
};

// Adds one process's to the sums; of texts the first stays, of what is longest or fullest the greatest.
void traced_result_add(struct traced_result *sums, const struct traced_result *result);
// What a file that was looked through has of a line. 0: none.
void traced_place_saw(struct traced_place_seen *seen, bool has_file, uint32_t before, uint32_t after);

#endif
