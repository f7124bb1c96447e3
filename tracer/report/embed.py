#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes C source of the report's page: embed.py NAME OUT.c page.html page.css FILE.js...

The scripts, which are modules, become one, in the order given: what a module imports comes before it. They stay readable.
The page gets a content security policy that names the hash of this script and of
this style: whatever a trace may smuggle in, nothing else runs, and nothing is loaded.
"""
import base64
import hashlib
import os
import re
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def variable(path):
    return "module_" + os.path.splitext(os.path.basename(path))[0]


def module_of(path):
    """A module as a function's result: what it exports."""
    def bind(match):
        return f"const {match.group(1)} = {variable(match.group(2))};\n"

    text = read(path)
    exported = re.findall(r"^export (?:const|let|class|(?:async )?function\*?) ([A-Za-z_]\w*)", text, re.MULTILINE)
    # export const A = 1, B = 2;
    for line in re.findall(r"^export const (.*);", text, re.MULTILINE):
        exported += re.findall(r", ([A-Za-z_]\w*) = ", line)
    text = re.sub(r"^import (\{[^}]*\}) from '(?:\./|\.\./page/)([^']*)';\n", bind, text, flags=re.MULTILINE)
    text = re.sub(r"^export (?=const |let |class |async |function)", "", text, flags=re.MULTILINE)
    if re.search(r"^(import|export)\b", text, flags=re.MULTILINE):
        sys.exit(f"{path}: an import or export that embed.py does not know")
    return f"const {variable(path)} = (() => {{\n{text}return {{ {', '.join(exported)} }};\n}})();\n"


def script_of(paths):
    text = "\n'use strict';\n(() => {\n" + "\n".join(module_of(path) for path in paths) + "})();\n"
    if "</script" in text.lower() or "<!--" in text:
        sys.exit("a script contains what would end it")
    return text


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main():
    name, out, page_path, style_path, *script_paths = sys.argv[1:]
    script, style = script_of(script_paths), read(style_path)
    policy = f"default-src 'none'; script-src {hash_of(script)}; style-src {hash_of(style)}; base-uri 'none'; form-action 'none'"
    page = read(page_path)
    for marker, text in (("policy", policy), ("style", style), ("script", script)):
        if page.count("{{" + marker + "}}") != 1:
            sys.exit(f"{page_path}: {marker} is not there once")
        page = page.replace("{{" + marker + "}}", text)
    pieces = re.split(r"\{\{(?:title|summary|data)\}\}", page)
    if len(pieces) != 4:
        sys.exit(f"{page_path}: needs title, summary and data")
    with open(out, "w", encoding="utf-8") as file:
        file.write("// SPDX-License-Identifier: Apache-2.0\n// Made by embed.py.\n")
        file.write('#include "tracer/report/page.h"\n\n')
        for index, piece in enumerate(pieces):
            file.write(f"static const unsigned char piece{index}[] = {{\n")
            data = piece.encode()
            for at in range(0, len(data), 24):
                file.write(",".join(str(byte) for byte in data[at:at + 24]) + ",\n")
            file.write("};\n")
        file.write(f"const struct report_piece {name}[REPORT_PIECE_COUNT] = {{\n")
        for index in range(len(pieces)):
            file.write(f"    {{piece{index}, sizeof piece{index}}},\n")
        file.write("};\n")


main()
