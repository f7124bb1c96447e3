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

// ---- places.c

// Locations that are written alike are one place. Places are in the order in which they are written.
struct otlp_places {
    uint32_t *same;        // by a name's id: the first one whose function is written alike
    uint32_t *of_location; // place, from 1 on; of the one behind the trace's own, too: that of stacks without frames
    uint32_t *locations;   // of a place: a location that is there
    uint32_t count;        // the last place is that without frames
};

// ---- stacks.c

struct otlp_stack {
    uint32_t outer; // a stack's index; 0: there is nothing outside
    uint32_t place;
    uint32_t number; // in the dictionary, by export_otlp_stacks_number; 0: no sample has it
    bool is_used;    // by a sample
};

// Stacks as a tree: nodes of the trace that differ in nothing that is written are one.
struct otlp_stacks {
    BASE_VECTOR(struct otlp_stack);
    struct base_hash_index index;
    uint32_t *of_node;
    uint32_t used; // numbers that were given
};

// A stack without frames gets one that says so. 0, or -1 without memory.
int export_otlp_stacks_make(struct otlp_stacks *stacks, const struct trace *trace, const struct locations *locations,
                            const struct otlp_places *places);
// Numbers those that are used by their frames, the outermost first: each stands behind the one with which it has most
// in common. 0, or -1 without memory.
int export_otlp_stacks_number(struct otlp_stacks *stacks);
void export_otlp_stacks_free(struct otlp_stacks *stacks);

// ---- otlp.c, profile.c, dictionary.c

// What makes a sample another one, in this order, and what it counts.
struct otlp_sample {
    uint32_t process, thread_name, thread_id, kind; // attributes' numbers; 0: it has none
    uint32_t stack;                                 // its index; its number once all samples are there
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
    struct otlp_places places;
    struct otlp_stacks stacks;
    struct export_mapping *mappings; // of each module
    struct {
        BASE_VECTOR(struct otlp_sample);
    } samples;         // sorted, each once
    uint32_t losses;   // an attribute; 0: nothing is missing
    uint32_t halvings; // an attribute; 0: the rate is what was asked for
    uint32_t share;    // an attribute; 0: all windows are taken
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

// Of writer->locations: 0, or -1 without memory.
int export_otlp_places_make(struct otlp_writer *writer);
void export_otlp_places_free(struct otlp_places *places);
// Whether a node's functions are named.
bool export_otlp_has_lines(const struct otlp_writer *writer, uint32_t node);
// As the conventions call it; NULL: they have no word, or it is not known.
const char *export_otlp_frame_type(const struct trace *trace, uint32_t node);

// What is in `samples`, process by process.
void export_otlp_write_profiles(struct otlp_writer *writer);
// Behind them: of what they point to. False: no memory.
bool export_otlp_write_dictionary(struct otlp_writer *writer);

#endif
