# SPDX-License-Identifier: Apache-2.0
"""A program with many different stacks: reads, parses and compiles a part of the standard library. Prints a number."""
import ast
import json
import os
import re
import sys

passes = int(sys.argv[1])
folder = os.path.dirname(os.__file__)
done = 0
for _ in range(passes):
    for name in sorted(os.listdir(folder))[:60]:
        if not name.endswith(".py"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        tree = ast.parse(text)
        done += sum(isinstance(node, ast.Call) for node in ast.walk(tree))
        done += len(compile(tree, name, "exec").co_names)
        words = re.findall(r"[A-Za-z_]+", text)
        done += len(json.loads(json.dumps(sorted(set(words), key=lambda word: (len(word), word)))))
print(done)
