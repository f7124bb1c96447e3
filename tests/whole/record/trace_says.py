#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a trace holds, and that its accounts balance. Usage: trace_says.py QUT FILE EXPRESSION

Exit status 0: EXPRESSION, of Python, is true of t (the document of `qut info --json`), of processes, threads and notes;
due(p) are the ticks that a process should have had: on a busy machine several of them come as one sample."""
import json
import subprocess
import sys

qut, path, expression = sys.argv[1:4]
t = json.loads(subprocess.run([qut, "info", "--json", path], stdout=subprocess.PIPE).stdout)
names = {"t": t, "processes": t["processes"], "threads": t["threads"], "notes": t["notes"],
         "due": lambda process: process["notes"].get("ticks-due", 0)}
if not t["balanced"]:
    sys.exit(f"{path}: the accounts do not balance")
if not eval(expression, names):
    sys.exit(f"{path}: not so: {expression}\n{json.dumps(t)[:3000]}")
