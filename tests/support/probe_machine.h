// SPDX-License-Identifier: Apache-2.0
// Programs of probes as machine code (bytecode/machine.h), held against what the interpreter did that checks each step.
#ifndef TESTS_SUPPORT_PROBE_MACHINE_H
#define TESTS_SUPPORT_PROBE_MACHINE_H

#include "tests/support/probe_judge.h"

bool probe_machine_is_there(void); // a translator for this machine

// Translates a program of an image that the verifier took. NULL, or what is wrong with the code.
const char *probe_machine_load(const struct qut_probe_image *image, uint32_t program);
// Runs what was loaded last: on a stack that is looked at afterwards, and as a probe does. NULL, or what differs.
const char *probe_machine_differs(const struct qut_probe_image *image, const uint64_t *fields,
                                  const struct probe_judgement *judged);
// Both, or NULL where there is no translator.
const char *probe_machine_judge(const struct qut_probe_image *image, uint32_t program, const uint64_t *fields,
                                const struct probe_judgement *judged);

// probe_machine_x86_64.S: enters code with a stack of the caller's. NULL: there is no translator.
typedef uint64_t probe_machine_enter_fn(const uint8_t *code, const uint64_t *fields, struct bytecode_host *host,
                                        uint8_t *stack_end);
extern probe_machine_enter_fn *const probe_machine_enter;

#endif
