#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes C source of the library of scripts: embed.py OUT.c SCRIPT.qp..."""
import os
import sys


def main():
    out, *paths = sys.argv[1:]
    paths.sort(key=os.path.basename)
    with open(out, "w", encoding="utf-8") as file:
        file.write("// SPDX-License-Identifier: Apache-2.0\n// Made by embed.py.\n")
        file.write('#include "tracer/cli/probe/probe_library.h"\n\n')
        for number, path in enumerate(paths):
            with open(path, "rb") as script:
                data = script.read()
            file.write(f"static const char script{number}[] = {{\n")
            for at in range(0, len(data), 24):
                file.write(",".join(str(byte) for byte in data[at:at + 24]) + ",\n")
            file.write("};\n")
        file.write("const struct probe_library_script probe_library_scripts[] = {\n")
        for number, path in enumerate(paths):
            name = os.path.splitext(os.path.basename(path))[0]
            file.write(f'    {{"{name}", script{number}, sizeof script{number}}},\n')
        file.write("    {0, 0, 0},\n};\n")


main()
