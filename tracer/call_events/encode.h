// SPDX-License-Identifier: Apache-2.0
// Events of one thread made the contents of blocks of type CALL_EVENTS.
#ifndef TRACER_CALL_EVENTS_ENCODE_H
#define TRACER_CALL_EVENTS_ENCODE_H

#include "formats/qut_calls.h"
#include "tracer/call_events/events.h"

struct call_events_encoder;

// Behind so many events of the thread. NULL: no memory.
struct call_events_encoder *call_events_encoder_new(uint32_t thread, uint64_t event_count);
void call_events_encoder_free(struct call_events_encoder *encoder);

// Adds as many as have room in the block and returns how many; 0: the block is full, or there is no memory,
// *no_memory.
size_t call_events_encode(struct call_events_encoder *encoder, const struct qut_calls_event *events, size_t count,
                          bool *no_memory);
uint32_t call_events_encoded(const struct call_events_encoder *encoder); // events in the block
uint64_t call_events_told(const struct call_events_encoder *encoder);    // events in all blocks, with this one's
uint32_t call_events_enters(const struct call_events_encoder *encoder);  // in the block
// The block's contents in pieces that pack better apart; then, with the next event, another one begins.
enum { CALL_EVENTS_PIECES = 1 + QUT_TRACE_FILE_CALL_STREAM_COUNT };
void call_events_block(struct call_events_encoder *encoder, struct base_bytes pieces[CALL_EVENTS_PIECES]);
// Of a block that could not be kept: the next one has its place.
void call_events_drop(struct call_events_encoder *encoder);

#endif
