// SPDX-License-Identifier: Apache-2.0
// What a trace is of, said beside its name: a trace knows no hosts.
#ifndef TRACER_ANALYSIS_LABELS_H
#define TRACER_ANALYSIS_LABELS_H

// NULL: as the trace says.
struct analysis_labels {
    const char *host, *service, *version;
};

// "FILE,host=NAME,service=NAME,version=NAME": cuts the labels off, unless there is a file of the whole name. They stand
// in the operand. Returns NULL; or, where no file is left of it, a last part "WORD=..." that is none of these labels.
const char *analysis_take_labels(char *operand, struct analysis_labels *labels);

#endif
