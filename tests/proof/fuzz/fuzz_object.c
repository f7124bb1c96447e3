// SPDX-License-Identifier: Apache-2.0
// Objects of probes: any bytes are refused with a word, or become programs that do nothing they may not, and can be
// explained.
#include "bytecode/verify.h"
#include "tests/proof/fuzz/fuzz.h"
#include "tests/support/probe_judge.h"
#include "tracer/probe/explain.h"
#include "tracer/probe/object.h"

static void run_all(const struct probe_script *script)
{
    static struct bytecode_workspace workspace;
    uint64_t fields[QUT_PROBE_FIELD_END];
    struct bytecode_fault fault;
    fuzz_require(bytecode_verify(script->image, script->image_bytes, &workspace, &fault));
    const struct qut_probe_image image = qut_probe_parts(script->image);
    fuzz_require(script->maps.count == image.header->map_count && script->places.count > 0);
    for (unsigned i = 0; i < QUT_PROBE_FIELD_END; i++)
        fields[i] = (uint64_t)i * script->image_bytes - 20;
    for (uint32_t i = 0; i < image.header->program_count; i++) {
        const struct probe_judgement judged = probe_judge(&image, i, fields), ran = probe_judge_runs(&image, i, fields);
        fuzz_require(!judged.wrong && ran.result == judged.result && ran.calls_hash == judged.calls_hash);
    }
    char *shown = probe_explain(script, NULL);
    fuzz_require(shown && *shown);
    free(shown);
}

int fuzz_object(const uint8_t *data, size_t size)
{
    struct probe_script script;
    struct probe_object_fault fault;
    if (probe_object_read(data, size, &script, &fault) == 0)
        run_all(&script);
    else
        fuzz_require(fault.text[0] && !fault.is_no_memory);
    probe_script_free(&script);
    return 0;
}
