# SPDX-License-Identifier: Apache-2.0
"""Runs inside gdb: prints one JSON line a thread, {"tid", "pcs", "end"}. Frames that exist in debug information only,
inlined and tail-called ones, have no return address on the stack and are left out."""
import json

import gdb

for setting in ("backtrace past-main on", "backtrace limit unlimited"):
    gdb.execute("set " + setting)
for thread in gdb.selected_inferior().threads():
    thread.switch()
    pcs, end = [], ""
    try:
        frame = gdb.newest_frame()
        while frame is not None:
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                pcs.append(frame.pc())
            reason = frame.unwind_stop_reason()
            if reason != gdb.FRAME_UNWIND_NO_REASON:
                end = gdb.frame_stop_reason_string(reason)
            frame = frame.older()
    except gdb.error as error:
        end = str(error)
    print("QUT " + json.dumps({"tid": thread.ptid[1], "pcs": pcs, "end": end}), flush=True)
