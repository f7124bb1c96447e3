// SPDX-License-Identifier: Apache-2.0
// Scripts of probes, and what they become.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proof/fuzz/seeds/seeds.h"
#include "tests/support/probe_object.h"
#include "tracer/probe/script.h"

static const char *const scripts[] = {
    "entry:f { @ = count() }",
    "entry:lib*!f, return:\"A::f(int, char)\" /tid > 10 && !(pid == 0x1f)/ { @a[time, tid] = sum(time % 7) }",
    "return:f /duration > 1ms || retval < 0/ { printf(\"%-5d %s\\n\", tid, str(retval, 16)) }",
    "entry:f { @v[tid] = arg0; if (@v[tid] * 3 < arg1 ? 1 : u32(arg2 + 4)) { @h = hist(arg3) } else { @l = lhist(arg5, "
    "-10, 100, 10) } }",
    "entry:f /str(arg0) == \"some text\"/ { @x = min(s8(arg1)); @y = max(~arg2); @z = avg(-arg3) } // and\n"
    "timer:100ms { print(@x); clear(@y) } begin { } end { printf(\"%x%%\", time) }",
    "alloc /size > 9/ { @[stack(2), address] = sum(size) } free { @f[address] = count() } unlock { @h = hist(held) }",
    "call:lib*!f in main, return:f in \"A::g(int, char)\", call:f in lib!g* /tid/ { @[tid] = count() }"
    "throw { @t[str(type)] = count() } catch /address != 0/ { @c[stack(2)] = count() }",
};

static void object_seeds(void)
{
    struct probe_object_spec spec;
    probe_object_sample(&spec);
    struct build_buffer file = probe_object_write(&spec);
    write_seed("object", "sample", -1, file.data, file.size);
    free(file.data);
    spec.section = "call:f in \"A::g(int, char)\", return:f";
    spec.maps[1].shape = QUT_PROBE_MAP_AVG;
    spec.maps[1].parts[1] = QUT_PROBE_TEXT(24);
    spec.record = (struct qut_probe_record_definition){{QUT_PROBE_FRAMES}, "%s%%"};
    file = probe_object_write(&spec);
    write_seed("object", "others", -1, file.data, file.size);
    free(file.data);
}

void probe_seeds(void)
{
    object_seeds();
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct probe_script script;
        struct probe_diagnostic why;
        char name[32];
        snprintf(name, sizeof name, "script-%zu", i);
        write_seed("script", name, -1, scripts[i], strlen(scripts[i]));
        if (probe_compile(scripts[i], strlen(scripts[i]), &script, &why) == 0)
            write_seed("probe", name, -1, script.image, script.image_bytes);
        probe_script_free(&script);
    }
}
