// SPDX-License-Identifier: Apache-2.0
// A command over many inputs: expanded, worked on in parallel, told in order, counted.
#ifndef QUTC_CLI_BATCH_H
#define QUTC_CLI_BATCH_H

#include "base/json.h"
#include "qutc/cli/operands.h"
#include "qutc/cli/worker_pool.h"

enum cli_outcome {
    CLI_DONE = 0,
    CLI_KEPT,      // nothing to do: the cache has it
    CLI_NO_UNWIND, // found in a batch, has no code or no unwind information: not a failure
    CLI_ANSWER_NO, // done, and the answer is "no"
    CLI_FAILED,
    CLI_CRASHED,
    CLI_OUTCOME_END,
};

struct cli_batch {
    const struct cli_options *options;
    struct cli_inputs inputs;
    // Prints to `output` what stdout is to get: with --json, one object. Returns an enum cli_outcome; on CLI_FAILED and
    // CLI_NO_UNWIND with *error filled and nothing printed.
    int (*work)(struct cli_batch *batch, size_t index, FILE *output, uint64_t numbers[CLI_TALLY_NUMBERS],
                struct base_error *error);
    void *context;
    // Filled by cli_batch_run:
    size_t outcomes[CLI_OUTCOME_END];
    uint64_t sums[CLI_TALLY_NUMBERS];
};

// Expands the operands into batch->inputs. Returns an enum cli_status.
int cli_batch_expand(struct cli_batch *batch, const struct cli_options *options, bool take_tables);
// Returns an enum cli_status; says on stderr what failed.
int cli_batch_run(struct cli_batch *batch);
void cli_batch_free(struct cli_batch *batch);

#endif
