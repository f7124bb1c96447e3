// SPDX-License-Identifier: Apache-2.0
// What the page is made from, as bytes: read by tracer/report/page/data.mjs, which is of the same build always.
//
//   header size u32 | header: JSON | sections, one after the other
//
// The header names the sections in their order, with their sizes. A section is a column: numbers, LEB128 one after the
// other, z: zigzag before, or plain bytes.
//
//   strings        length of each          string_bytes   and their bytes, UTF-8 or not
//   function_name, function_module, function_file          string of each
//   frame_parent   index - parent          frame_function, frame_class, frame_flags, frame_low (line),
//   frame_high (line - low); all but for frame 0, the root
//   process_*      for each process; a command is a string; recording: pids mean nothing in another one
//   ptotal_N, ttotal_N   the exact sum N of each process, of each thread
//   thread_*       for each thread, process: the index of its; a name is a string; hold: how long a stack may hold
//   without a sample, ns, 0: ever sample_time    z, from the last sample's end; of a thread's first one from the
//   trace's beginning, like all times in units of 2^time_shift ns sample_count   sample_span: from its first to its
//   last, only where count > 1
//   sample_cpu          z, ns of processor time since the thread's last sample
//   sample_cpu_stands   z, how much more than that it stands for
//   sample_frame        z, minus the last sample's
//   sample_line         of its innermost frame, 0: not known
//   sample_kind, sample_flags, sample_level   bytes
//   metric_N            growth since the thread's last sample that had metrics
//   extra_sample        index of the sample, minus the last one's
//   extra_key, extra_low, extra_high          32 bits each; of BEGIN_NODE the frame instead of the node
//   lock_name           of each extra that is a lock: a string, empty where it has no symbol
//   mark_time (z, minus the thread's last), mark_kind, mark_low, mark_high, mark_name
//   gap_from (z, minus the thread's last), gap_length, gap_lost, gap_reason
//   kind_number, kind_name
//   call_lane_thread, call_lane_count   lanes of exact calls: a thread's index, and how many calls stand on it
//   call_begin (minus the lane's last, ns, of the first from the trace's beginning), call_length (ns), call_function,
//   call_depth, call_how (enum call_times_how): by begin, what is within another one behind it
//   call_sum_function, call_sum_counted   of all calls, a row for each function of each process: its name; calls without
//   events call_sum_how (as many as enum call_times_how has), call_sum_times (total, self, shortest, longest, ns),
//   call_sum_histogram (how many buckets; of each: which, and its calls), one row behind the other; call_sum_recorded
//   (1 + how many calls of a thinned function were recorded, of which the times are; 0: it is not thinned)
//   call_hidden         one number: calls that are not in the page, since there were too many
#ifndef TRACER_REPORT_PACK_H
#define TRACER_REPORT_PACK_H

#include "tracer/analysis/selection.h"
#include "tracer/names/names.h"
#include "tracer/report/bytes.h"
#include "tracer/trace/trace_data.h"

// Returns 0, or -1: no memory. *bytes is to be freed.
int report_pack(const struct selection *selection, const struct names *names, struct bytes *bytes);

#endif
