// SPDX-License-Identifier: Apache-2.0
// Queries that are ready. Each runs in SQLite and in DuckDB and has one order of rows, so that its results can be
// compared. Samples are summed up by stack before they are joined: that is fast, since SQLite gets them in that order.
#include <string.h>

#include "tracer/query/query.h"

#define BY_STACK_OF(key, trace, measure, where)                                                                        \
    "WITH by_stack AS (\n"                                                                                             \
    "  SELECT " trace ", stack, sum(" measure ") AS n\n"                                                               \
    "  FROM samples WHERE own = 0" where "\n"                                                                          \
    "  GROUP BY " key ")\n"
// A stack has one number in all traces, and says the same in each: one of them is enough.
#define BY_STACK(measure, where)           BY_STACK_OF("stack", "min(trace) AS trace", measure, where)
#define BY_TRACE_AND_STACK(measure, where) BY_STACK_OF("trace, stack", "trace", measure, where)
#define JOIN_INNERMOST                                                                                                 \
    "FROM by_stack AS b\n"                                                                                             \
    "  JOIN stacks AS k ON k.trace = b.trace AND k.stack = b.stack AND k.depth = 0\n"                                  \
    "  JOIN frames AS f ON f.trace = k.trace AND f.frame = k.frame\n"
// The same of all frames of a stack: there are many more of these, and far fewer places than of them.
#define BY_FRAME                                                                                                       \
    ", by_frame AS (\n"                                                                                                \
    "  SELECT k.trace AS trace, k.frame AS frame, sum(b.n) AS n\n"                                                     \
    "  FROM by_stack AS b\n"                                                                                           \
    "    JOIN stacks AS k ON k.trace = b.trace AND k.stack = b.stack AND k.repeated = 0\n"                             \
    "  WHERE b.n > 0\n"                                                                                                \
    "  GROUP BY k.trace, k.frame)\n"
#define JOIN_FRAMES                                                                                                    \
    "FROM by_frame AS b\n"                                                                                             \
    "  JOIN frames AS f ON f.trace = b.trace AND f.frame = b.frame\n"
#define JOIN_TRACES "  JOIN traces AS t ON t.trace = b.trace\n"

const struct query_ready query_ready[] = {
    {"hottest", "Functions by the processor time that they took themselves.",
     BY_STACK("cpu_ns", "") "SELECT f.function, f.module, round(sum(b.n) / 1e6, 3) AS self_ms\n" JOIN_INNERMOST
                            "WHERE b.n > 0\n"
                            "GROUP BY f.function, f.module ORDER BY self_ms DESC, f.function, f.module LIMIT 30"},
    {"total", "Functions by the processor time that they and what they call took, recursion counted once.",
     BY_STACK("cpu_ns", "") BY_FRAME
     "SELECT f.function, f.module, round(sum(b.n) / 1e6, 3) AS total_ms\n" JOIN_FRAMES
     "GROUP BY f.function, f.module ORDER BY total_ms DESC, f.function, f.module LIMIT 30"},
    {"modules", "Processor time by file: programs and libraries.",
     BY_STACK("cpu_ns", "") "SELECT f.module, f.build_id, round(sum(b.n) / 1e6, 3) AS self_ms\n" JOIN_INNERMOST
                            "WHERE b.n > 0\n"
                            "GROUP BY f.module, f.build_id ORDER BY self_ms DESC, f.module, f.build_id LIMIT 30"},
    {"threads", "Processor time, time blocked and samples by thread's name.",
     "SELECT thread, round(sum(cpu_ns) / 1e6, 3) AS cpu_ms, round(sum(blocked_ns) / 1e6, 3) AS blocked_ms,\n"
     "  sum(count) AS samples\n"
     "FROM samples GROUP BY thread ORDER BY cpu_ms DESC, blocked_ms DESC, thread LIMIT 30"},
    {"by-version", "The hottest functions of each version, as shares of its processor time.",
     BY_TRACE_AND_STACK("cpu_ns", "") ", self AS (\n"
                                      "  SELECT t.version, f.function, sum(b.n) AS n\n" JOIN_INNERMOST JOIN_TRACES
                                      "  GROUP BY t.version, f.function), total AS (\n"
                                      "  SELECT version, sum(n) AS n FROM self GROUP BY version)\n"
                                      "SELECT self.version, function, "
                                      "round(100.0 * self.n / total.n, 2) AS percent\n"
                                      "FROM self JOIN total ON total.version = self.version\n"
                                      "WHERE total.n > 0 AND 1000 * self.n >= total.n\n"
                                      "ORDER BY self.version, percent DESC, function"},
    {"by-host", "Processor time of each host and service, and the function that takes most of it.",
     BY_TRACE_AND_STACK(
         "cpu_ns",
         "") ", self AS (\n"
             "  SELECT t.host AS host, t.service AS service, f.function AS function, sum(b.n) AS n\n" JOIN_INNERMOST
                 JOIN_TRACES "  GROUP BY t.host, t.service, f.function), ranked AS (\n"
             "  SELECT host, service, function, sum(n) OVER (PARTITION BY host, service) AS all_n, n,\n"
             "    row_number() OVER (PARTITION BY host, service ORDER BY n DESC, function) AS place\n"
             "  FROM self)\n"
             "SELECT host, service, round(all_n / 1e6, 3) AS cpu_ms, function,\n"
             "  round(100.0 * n / all_n, 2) AS percent\n"
             "FROM ranked WHERE place = 1 AND all_n > 0 ORDER BY cpu_ms DESC, host, service"},
    {"regressions",
     "What has another share of processor time in the last version than in the first, by the versions' names.",
     BY_TRACE_AND_STACK(
         "cpu_ns",
         "") ", ends AS (\n"
             "  SELECT min(version) AS old, max(version) AS new FROM traces), self AS (\n"
             "  SELECT f.function, sum(CASE WHEN t.version = ends.old THEN b.n ELSE 0 END) AS old_n,\n"
             "    sum(CASE WHEN t.version = ends.new THEN b.n ELSE 0 END) AS new_n\n" JOIN_INNERMOST JOIN_TRACES
             "  CROSS JOIN ends\n"
             "  GROUP BY f.function), total AS (\n"
             "  SELECT sum(old_n) AS old_n, sum(new_n) AS new_n FROM self)\n"
             "SELECT function, "
             "round(100.0 * self.old_n / total.old_n, 2) AS old_percent,\n"
             "  round(100.0 * self.new_n / total.new_n, 2) AS new_percent,\n"
             "  round(100.0 * self.new_n / total.new_n - "
             "100.0 * self.old_n / total.old_n, 2) AS change\n"
             "FROM self CROSS JOIN total\n"
             "WHERE total.old_n > 0 AND total.new_n > 0\n"
             "ORDER BY change DESC, function LIMIT 30"},
    {"lock-waits", "Where threads waited for locks and conditions, how often and how long.",
     "WITH by_stack AS (\n"
     "  SELECT min(trace) AS trace, stack, sum(blocked_ns) AS n, sum(count) AS waits, max(blocked_ns) AS longest\n"
     "  FROM samples WHERE own = 0 AND kind = 'lock' AND blocked_ns > 0 GROUP BY stack)\n"
     "SELECT f.function, f.module, sum(b.waits) AS waits, round(sum(b.n) / 1e6, 3) AS blocked_ms,\n"
     "  round(max(b.longest) / 1e6, 3) AS longest_ms\n" JOIN_INNERMOST //
     "GROUP BY f.function, f.module ORDER BY blocked_ms DESC, f.function, f.module LIMIT 30"},
    {"lock-holders", "Waits by lock: the thread that held it when they began, and the one that ended them.",
     "SELECT pid, lock, owner_tid, waker_tid, sum(count) AS waits, round(sum(blocked_ns) / 1e6, 3) AS blocked_ms\n"
     "FROM samples WHERE kind = 'lock' AND blocked_ns > 0\n"
     "GROUP BY trace, pid, lock, owner_tid, waker_tid\n"
     "ORDER BY blocked_ms DESC, pid, lock, owner_tid, waker_tid LIMIT 30"},
    {"io-waits", "Where threads waited in reads, writes, polls, sleeps and other calls.",
     "WITH by_stack AS (\n"
     "  SELECT min(trace) AS trace, stack, event, sum(blocked_ns) AS n, sum(count) AS calls\n"
     "  FROM samples WHERE own = 0 AND kind = 'io' AND blocked_ns > 0 GROUP BY stack, event)\n"
     "SELECT b.event, f.function, sum(b.calls) AS calls, round(sum(b.n) / 1e6, 3) AS blocked_ms\n" JOIN_INNERMOST
     "GROUP BY b.event, f.function ORDER BY blocked_ms DESC, b.event, f.function LIMIT 30"},
    {"allocations", "Functions by the bytes that they and what they call allocated, estimated.",
     BY_STACK("bytes", " AND kind = 'alloc'") BY_FRAME
     "SELECT f.function, f.module, sum(b.n) AS bytes\n" JOIN_FRAMES
     "GROUP BY f.function, f.module ORDER BY bytes DESC, f.function, f.module LIMIT 30"},
    {"seconds", "Processor time and samples of each second.",
     "SELECT time_ns - time_ns % 1000000000 AS second_ns, round(sum(cpu_ns) / 1e6, 3) AS cpu_ms,\n"
     "  sum(count) AS samples\n"
     "FROM samples GROUP BY second_ns ORDER BY second_ns"},
    {"losses", "What each trace is of, and whether anything is missing in it.",
     "SELECT file, host, service, version, hits, present_samples, throttled, lost, overwritten_samples,\n"
     "  damaged_samples, complete\n"
     "FROM traces ORDER BY file, trace"},
    {0},
};

const struct query_ready *query_ready_find(const char *name)
{
    for (const struct query_ready *ready = query_ready; ready->name; ready++)
        if (strcmp(ready->name, name) == 0)
            return ready;
    return NULL;
}
