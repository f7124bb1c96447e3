// SPDX-License-Identifier: Apache-2.0
// Scripts of probes: any text is compiled to what the verifier takes, or a mistake in it is shown.
#include "tests/proof/fuzz/fuzz.h"
#include "tracer/probe/script.h"

int fuzz_script(const uint8_t *data, size_t size)
{
    struct probe_script script;
    struct probe_diagnostic why;
    if (probe_compile((const char *)data, size, &script, &why) != 0) {
        // At its begin: further on may stand what the script says, and a fuzzer soon says this.
        static const char ours[] = "a mistake of ours";
        fuzz_require(why.text[0] && !why.is_no_memory && strncmp(why.text, ours, sizeof ours - 1) != 0);
        char *shown = probe_diagnostic_show(&why, "script", (const char *)data, size);
        fuzz_require(shown && strchr(shown, '^'));
        free(shown);
    }
    probe_script_free(&script);
    return 0;
}
