// SPDX-License-Identifier: Apache-2.0
// Scripts of probes, and what they become.
#include <stdio.h>
#include <string.h>

#include "tests/proof/fuzz/seeds/seeds.h"
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

void probe_seeds(void)
{
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
