// SPDX-License-Identifier: Apache-2.0
// Probes in front of this program's own functions, put there by the program itself: for where nobody may look into it
// from outside. In libqut-probes.a, to be linked before libqut.a.
//
//     __attribute__((patchable_function_entry(1))) int handle(struct request *request);
//
//     const struct qut_own_function functions[] = {{(const void *)handle, 1 << 0 | 1 << 1}};
//     struct qut_own_options options = {.size = sizeof options, .image = image, .image_bytes = image_bytes,
//                                       .functions = functions, .function_count = 1};
//     error = qut_own_probes_begin(&options);
//     while (qut_own_probes_next(map, &position, &value)) ...
//     qut_own_probes_end();
//
// An image has the programs of a script (formats/qut_probe.md), as `qut probe --compile FILE` writes it on any machine.
// It is verified before it runs. Programs of entries, returns and unwinds run; those of `begin`, `timer` and `end` are
// the tool's.
//
// aarch64: yes, by the interpreter, while threads run: a nop is exchanged for a branch at once. Needs pages of code
// that may be written (Android's apps may not write theirs: -EACCES). x86-64 and others: -ENOSYS. On x86-64 all threads
// have to stand still meanwhile, which `qut probe -p` does.
#ifndef QUT_OWN_PROBES_H
#define QUT_OWN_PROBES_H

#include <qut/base.h>

QUT_DECLS_BEGIN

struct qut_own_function {
    const void *function; // begins with a nop that its compiler left, behind a `bti` if it has one
    uint32_t programs;    // of the image, bits: what runs there
};

struct qut_own_options {
    size_t size;       // sizeof(struct qut_own_options)
    const void *image; // copied
    size_t image_bytes;
    const struct qut_own_function *functions; // each once; copied
    size_t function_count;
};

// Puts stubs in front of all these functions, or of none: 0, or -ENOSYS: not on this machine; -EALREADY: there are
// some; -EINVAL: not a sound image, no functions, or programs that cannot run there; -ENOTSUP: a function has no nop;
// -ERANGE: there is no room near it; or -errno. Calls from then on are seen, in all threads, and in children of fork,
// too, which go on with the same maps. stack() walks as qut_backtrace does, with a registered thread's speed, and puts
// the frames into the trace that is open (qut_trace_open), in a sample with the number as its extra 64; before
// qut_start it is 0. [not signal-safe, blocks; one of begin, end and look at a time]
QUT_API int qut_own_probes_begin(const struct qut_own_options *options);

// Takes the stubs out: no program begins any more. Calls that are open return as they would. What was counted can be
// read until the next begin. Thunks, and the memory of maps, stay, since threads may be in them: some KiB, and what
// maps have taken, for each begin. 0, -EALREADY: there are none, or -errno: some are still there, whose programs do not
// run. [not signal-safe, blocks; one of begin, end and look at a time]
QUT_API int qut_own_probes_end(void);

// Programs of `unwind` run for what threads that have ended had left open. Every so often, where there are such.
// [not signal-safe, blocks; one of begin, end and look at a time]
QUT_API void qut_own_probes_look(void);

// What a map has under one key. Threads may come with the same key at the same moment: then it is there twice, and
// their sums are those of both.
struct qut_own_value {
    const uint64_t *key;
    uint32_t key_words;
    uint32_t cell_count;   // of a histogram, else 0
    uint64_t updates;      // how often something was added
    int64_t number;        // count, sum, min, max, value; the sum of avg and of histograms
    const uint64_t *cells; // of a histogram: how many were in each
};
// The next one of map number `map` behind *position, which is 0 at first: 1, or 0: there are no more. Programs may
// run meanwhile. [not signal-safe, does not block; any thread, not during begin]
QUT_API int qut_own_probes_next(uint32_t map, uint32_t *position, struct qut_own_value *value, size_t size);

// What `printf` said: the next record, whose number comes in *record, and its words, of which the image says how many
// there are, at most max of them. 1, or 0: there is none.
// [not signal-safe, does not block; one thread at a time, not during begin]
QUT_API int qut_own_probes_record(uint32_t *record, uint64_t *words, uint32_t max);

// What had no room since begin: keys in maps, records, calls whose unwind is not seen; and calls of all times that no
// program saw, on stacks below which something else is mapped (formats/qut_calls.md), in this process.
// [not signal-safe, does not block; any thread, not during begin]
QUT_API uint64_t qut_own_probes_lost(void);

QUT_DECLS_END

#endif
