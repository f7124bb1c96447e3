#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rebuilds the text of `qut stack` from its JSON and compares. Usage: json_as_text.py JSON TEXT"""
import json
import sys

WORD_BYTES = {"x86_64": 8, "aarch64": 8, "riscv64": 8, "arm": 4, "x86": 4}


def module_name(frame):
    if "file" in frame:
        return frame["file"] + (f":{frame['line']}" if "line" in frame else "")
    if "module" not in frame:
        return "<unknown>"
    name = frame["module"] + (" (deleted)" if frame.get("deleted") else "")
    if "module_offset" in frame:
        member = frame.get("entry", frame.get("soname"))
        name += f"!{member}" if member else ""
        name += f" (offset {frame['module_offset']})"
    return name


def frame_text(index, frame, digits):
    line = f"  #{index:02d} pc {int(frame.get('module_pc', frame['pc']), 16):0{digits}x}  {module_name(frame)}"
    if "function" in frame:
        offset = frame.get("function_offset", 0)
        line += f" ({frame['function']}" + (f"+{offset}" if offset and frame["kind"] != "dex" else "") + ")"
    line += " [signal frame]" if frame.get("signal_frame") else ""
    return line + (" [guessed]" if frame.get("guessed") else "")


def stack_text(stack, digits):
    threads = stack["threads"]
    if len(threads) > 1 and len({thread["name"] for thread in threads}) == 1:
        tids = ", ".join(str(thread["tid"]) for thread in threads)
        lines = [f'{len(threads)} threads "{threads[0]["name"]}": {tids}']
    else:
        named = ", ".join(f'{thread["tid"]} "{thread["name"]}"' for thread in threads)
        lines = [(f"{len(threads)} threads: " if len(threads) > 1 else "") + named]
    lines += [frame_text(index, frame, digits) for index, frame in enumerate(stack["frames"])]
    if "python_reason" in stack:
        lines.append("      python: " + stack["python_reason"])
    if not stack["end"]["outermost"]:
        lines.append("      end: " + stack["end"]["text"])
    return "\n".join(lines) + "\n"


with open(sys.argv[1], encoding="utf-8") as file:
    document = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    text = file.read()
rebuilt = "\n".join(stack_text(stack, 2 * WORD_BYTES[document["arch"]]) for stack in document["stacks"])
if rebuilt != text:
    sys.exit(f"from JSON:\n{rebuilt}\nas text:\n{text}")
