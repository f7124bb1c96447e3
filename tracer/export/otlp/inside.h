// SPDX-License-Identifier: Apache-2.0
// What the parts of a request share: what it has of samples, and the one dictionary that all its messages point into.
#ifndef TRACER_EXPORT_OTLP_INSIDE_H
#define TRACER_EXPORT_OTLP_INSIDE_H

#include "base/interner.h"
#include "tracer/export/locations.h"
#include "tracer/export/otlp/fields.h"
#include "tracer/export/pprof/mappings.h"
#include "tracer/export/pprof/pprof_types.h"
#include "tracer/export/protobuf.h"

// ---- attributes.c

struct otlp_attribute {
    uint32_t key;     // in the dictionary's strings
    const char *text; // NULL: it is a number
    uint64_t number;
};

struct otlp_attributes {
    BASE_VECTOR(struct otlp_attribute); // index + 1 is its number
    struct base_hash_index index;
    struct base_interner texts; // of values: these stand in the attributes, not in the dictionary's strings
    bool has_failed;
};

// The number of an attribute, each once; 0 without memory.
uint32_t export_otlp_attribute_text(struct otlp_attributes *attributes, struct base_interner *strings, const char *key,
                                    const char *text);
uint32_t export_otlp_attribute_number(struct otlp_attributes *attributes, struct base_interner *strings,
                                      const char *key, uint64_t number);
void export_otlp_attributes_free(struct otlp_attributes *attributes);

// ---- stacks.c

struct otlp_stack {
    uint32_t outer; // a stack's index; 0: there is nothing outside
    uint32_t location;
    uint32_t number; // in the dictionary, once export_otlp_stacks_use met it; 0: no sample has it
};

// Stacks as a tree: nodes of the trace that differ in nothing that is written are one.
struct otlp_stacks {
    BASE_VECTOR(struct otlp_stack);
    struct base_hash_index index;
    uint32_t *of_node;
    uint32_t used; // numbers that were given
};

// A stack without frames gets one that says so: location `empty`. 0, or -1 without memory.
int export_otlp_stacks_make(struct otlp_stacks *stacks, const struct trace *trace, const struct locations *locations,
                            uint32_t empty);
uint32_t export_otlp_stacks_use(struct otlp_stacks *stacks, uint32_t stack); // its number
void export_otlp_stacks_free(struct otlp_stacks *stacks);

// ---- otlp.c, profile.c, dictionary.c

// What makes a sample another one, in this order, and what it counts.
struct otlp_sample {
    uint32_t process, thread_name, thread_id, kind; // attributes' numbers; 0: it has none
    uint32_t stack;
    uint64_t value;
};

struct otlp_writer {
    const struct selection *selection;
    const struct trace *trace;
    const struct names *names;
    const struct export_options *options;
    struct pprof_type type;
    struct pprof_types types; // for the period
    struct protobuf out;
    struct base_interner strings;
    struct otlp_attributes attributes;
    struct locations locations;
    struct otlp_stacks stacks;
    struct export_mapping *mappings; // of each module
    struct {
        BASE_VECTOR(struct otlp_sample);
    } samples;         // sorted, each once
    uint32_t losses;   // an attribute; 0: nothing is missing
    uint32_t halvings; // an attribute; 0: the rate is what was asked for
};

// 0 is what a field is where it is not written.
static inline void otlp_put(struct otlp_writer *writer, unsigned field, uint64_t value)
{
    if (value)
        export_protobuf_number(&writer->out, field, value);
}
static inline void otlp_put_string(struct otlp_writer *writer, unsigned field, const char *text)
{
    otlp_put(writer, field, base_interner_add(&writer->strings, text));
}

// The number of the location of stacks without frames, behind the trace's.
static inline uint32_t otlp_without_frames(const struct otlp_writer *writer)
{
    return (uint32_t)writer->locations.count + 1;
}

// What is in `samples`, process by process.
void export_otlp_write_profiles(struct otlp_writer *writer);
// Behind them: of what they point to. False: no memory.
bool export_otlp_write_dictionary(struct otlp_writer *writer);

#endif
