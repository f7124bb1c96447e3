// SPDX-License-Identifier: Apache-2.0
// Names of a trace's nodes, late: looked up when they are to be read, once for each place in the code. Sources,
// in this order: symbols of the module's file (.symtab, .dynsym, .gnu_debugdata), of its debug file by build-id, of
// what debuginfod gives (where that is asked for), method names of dex and OAT files, names that a JIT registered.
// Code that none of them names is at least told apart by function: unwind information says where each begins.
#ifndef TRACER_NAMES_NAMES_H
#define TRACER_NAMES_NAMES_H

#include "tracer/trace/trace_data.h"

struct names;

struct names_options {
    const char *debug_root;  // where debug files are; NULL: /usr/lib/debug, of the system root first
    const char *system_root; // put before the modules' paths; NULL: none
    const char *agent_path;  // the file whose copy was the agent; NULL: the trace says, which must live on
    bool inlined;    // functions inlined at the place become frames of their own (needs libdw and debug information)
    bool lines;      // file and line, likewise
    bool no_files;   // none is opened: what lies in files has its address for a name
    bool debuginfod; // $DEBUGINFOD_URLS may be asked: slow, and says outside which builds are looked at
    void (*progress)(void *context, size_t done, size_t all);
    void *progress_context;
};

struct name {
    const char *function; // demangled, never empty. Without a symbol "libc.so.6+0x1230": where the function begins, by
                          // the unwind information; without that, the place itself
    const char *mangled;  // NULL: as function
    const char *module;   // the path's last part; "" where there is no file, as of code made at run time
    const char *file;     // source file; NULL: not known
    uint32_t line;        // 0: not known
    bool is_inlined;      // into the next one of the same node
    bool is_known;        // false: function is only an address
    uint32_t id;          // the same for the same function, module and file: from 0 on, without gaps
};

// Whether this build knows inlined functions and lines at all.
bool names_can_inline(void);

// All names of the trace's nodes are looked up now. NULL, *error filled: no memory. Modules without symbols are no
// error: names_missing tells them.
struct names *names_of(const struct trace *trace, const struct names_options *options, struct base_error *error);
void names_free(struct names *names);

// The functions of a node, innermost (inlined) first; at least one, but for the root.
size_t names_count(const struct names *names, uint32_t node);
const struct name *names_at(const struct names *names, uint32_t node, size_t index);

size_t names_id_count(const struct names *names); // ids are below this
const struct name *names_by_id(const struct names *names, uint32_t id);

// Modules in which code has no names, with the number of nodes concerned and why ("no symbols", "No such file").
struct names_missing {
    const char *path; // "[memory]": in no module
    size_t node_count;
    const char *why;
};
size_t names_missing(const struct names *names, const struct names_missing **missing);

#endif
