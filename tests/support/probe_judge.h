// SPDX-License-Identifier: Apache-2.0
// Another interpreter of probes' programs, which shares no code with bytecode/ and believes nothing: it looks at each
// step whether a register is set, what an address is of, whether bytes were written, and how long it goes on. What the
// verifier takes must never make it stop.
#ifndef TESTS_SUPPORT_PROBE_JUDGE_H
#define TESTS_SUPPORT_PROBE_JUDGE_H

#include "bytecode/run.h"
#include "formats/qut_probe.h"

struct probe_judgement {
    const char *wrong;   // NULL: the program ended, and did nothing that it may not
    uint32_t at;         // the instruction that was wrong
    uint64_t result;     // r0
    uint64_t calls_hash; // of all calls of helpers: which, with what
    uint32_t calls, steps;
    // At the end, of what checks each step.
    uint8_t stack[QUT_PROBE_STACK_BYTES];
    bool is_written[QUT_PROBE_STACK_BYTES];
};

// One program of an image whose header and tables are sound (its instructions may be anything). `fields` has
// QUT_PROBE_FIELD_END of them.
struct probe_judgement probe_judge(const struct qut_probe_image *image, uint32_t program, const uint64_t *fields);
// The same program by bytecode_run, with a host that does the same. Only of an image that the verifier took.
struct probe_judgement probe_judge_runs(const struct qut_probe_image *image, uint32_t program, const uint64_t *fields);
// By anything that runs programs, with such a host.
typedef uint64_t probe_judge_run(void *context, const uint64_t *fields, struct bytecode_host *host);
struct probe_judgement probe_judge_runs_by(const struct qut_probe_image *image, const uint64_t *fields,
                                           probe_judge_run *run, void *context);

#endif
