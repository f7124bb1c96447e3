// SPDX-License-Identifier: Apache-2.0
// Programs of probes that were compiled elsewhere: relocatable files of `clang -target bpf`, made with
// libqut/include/qut/probe.h. A section's name says where its functions run, by the language's places.
#ifndef TRACER_PROBE_OBJECT_H
#define TRACER_PROBE_OBJECT_H

#include "tracer/probe/script.h"

struct probe_object_fault {
    bool is_no_memory;
    char text[640]; // what is wrong; of an instruction also its section, its function, and where in that it stands
};

// Whether these bytes are such a file, and no text.
bool probe_object_is(const void *bytes, size_t size_bytes);

// 0; -1: *fault says why it is refused. Allocates; free with probe_script_free in either case. Any bytes will do: they
// are looked at within their bounds, and what is taken is verified.
int probe_object_read(const void *bytes, size_t size_bytes, struct probe_script *script,
                      struct probe_object_fault *fault);

#endif
