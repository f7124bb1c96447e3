// SPDX-License-Identifier: Apache-2.0
// What a piece of code of ART's JIT was made of, by the runtime's own records: for code without debug info, which has
// no name otherwise. As it is in Debian's ART 11 (OAT version 183), on x86-64:
//
//   Runtime        what art::Runtime::instance_ points at; a word of it leads to the
//   JitCodeCache   with where its code lies, a std::map (libstdc++'s) from code to ArtMethod*, whether a collection of
//                  code is under way, and how many have begun
//   ArtMethod      its class (32 bits), flags, and where its bytecode is in the data of its dex file
//   Class          leads to its DexCache, and that to the DexFile, which says where the dex file and its data begin
//
// Nothing is believed that does not agree: the records have to be those of the cache, the map has to have the very
// code, and a dex file has to be where it is said to be.
#ifndef QUT_ART_JIT_METHODS_H
#define QUT_ART_JIT_METHODS_H

#include "libqut/art/jit_code.h"

// Where in these, on an architecture.
struct art_jit_records {
    uint16_t cache_at;                                          // in art::Runtime
    uint16_t code_at, methods_at, method_count_at;              // in art::jit::JitCodeCache
    uint16_t under_way_at, made_at, entered_at, begun_at;       // the same
    uint16_t left_at, right_at, key_at, value_at;               // in the map's nodes
    uint16_t flags_at, bytecode_at;                             // in art::ArtMethod
    uint16_t dex_cache_at, dex_file_at, file_begin_at, data_at; // in Class, DexCache, and twice in DexFile
};
const struct art_jit_records *art_jit_records(const struct arch *arch); // NULL: not known

#define ART_RUNTIME_INSTANCE "_ZN3art7Runtime9instance_E"

// Code is given back by collections only, and by class loaders that end: one that was there when none was under way is
// there as long as no other has begun.
struct art_jit_collections {
    uint64_t begun;
    bool is_under_way;
};

// instance_address: of ART_RUNTIME_INSTANCE. False: these are not the records of this cache. Signal-safe where
// memory->read is.
bool art_jit_collections_of(const struct elf_art_memory *memory, const struct art_jit_cache *cache,
                            uint64_t instance_address, struct art_jit_collections *collections);

// Where it counts what it has made. It does so before a piece of code is entered for the first time, and code that is
// on a stack is not given back: while the number is what it was, code at an address on a stack is what it was. 0: these
// are not the records of this cache. As above.
uint64_t art_jit_made_at(const struct elf_art_memory *memory, const struct art_jit_cache *cache,
                         uint64_t instance_address);

// *dex_pc: the first instruction of the method that the code is of. False: it is of none, or of one without bytecode,
// or what is there does not agree. Signal-safe where memory->read is.
bool art_jit_bytecode_of(const struct elf_art_memory *memory, const struct art_jit_cache *cache,
                         uint64_t instance_address, uint64_t code_start, uint64_t *dex_pc);

#endif
