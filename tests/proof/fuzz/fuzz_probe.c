// SPDX-License-Identifier: Apache-2.0
// Programs of probes: what the verifier takes is run by an interpreter that checks each step, by ours,
// and as machine code.
#include "bytecode/verify.h"
#include "tests/proof/fuzz/fuzz.h"
#include "tests/support/probe_machine.h"

static void run_all(const void *data, size_t size)
{
    static struct bytecode_workspace workspace;
    uint64_t fields[QUT_PROBE_FIELD_END];
    struct bytecode_fault fault;
    if (!bytecode_verify(data, size, &workspace, &fault)) {
        fuzz_require(fault.refusal != BYTECODE_OK && *bytecode_refusal_text(fault.refusal));
        return;
    }
    const struct qut_probe_image image = qut_probe_parts(data);
    for (unsigned i = 0; i < QUT_PROBE_FIELD_END; i++)
        fields[i] = (uint64_t)i * size - 20;
    for (uint32_t i = 0; i < image.header->program_count; i++) {
        const struct probe_judgement judged = probe_judge(&image, i, fields);
        fuzz_require(!judged.wrong);
        const struct probe_judgement ran = probe_judge_runs(&image, i, fields);
        fuzz_require(ran.result == judged.result && ran.calls_hash == judged.calls_hash && ran.calls == judged.calls);
        fuzz_require(!probe_machine_judge(&image, i, fields, &judged));
    }
}

int fuzz_probe(const uint8_t *data, size_t size)
{
    void *aligned = malloc(size ? size : 1);
    fuzz_require(aligned != NULL);
    if (size)
        memcpy(aligned, data, size);
    run_all(aligned, size);
    free(aligned);
    return 0;
}
