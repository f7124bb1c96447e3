// SPDX-License-Identifier: Apache-2.0
// Programs of probes in C, for `qut probe -f OBJECT`. This header is for what clang compiles for them; nothing of it is
// in a library.
//
//     #include <qut/probe.h>
//     QUT_PROBE_MAP(sizes, QUT_PROBE_MAP_HIST, QUT_PROBE_NUMBER);
//
//     SEC("entry:libc.so*!write") int writes(const struct qut_probe_context *context)
//     {
//         qut_probe_u64 key = context->tid;
//         qut_probe_add(&sizes, &key, context->arg[2]);
//         return 0;
//     }
//
//     clang -O2 -target bpf -c counts.c -o counts.o
//     qut probe -f counts.o -p PID
//
// The name of a section is where its functions run: places of the language (docs/probes.md), but those with a meaning
// ("alloc", "lock", "throw" and their like). What a program may do is what scripts may (formats/qut_probe.md), proven
// before it runs. That means of C:
//
//   - functions that are called are static and inlined (__attribute__((always_inline))); there are no loops that are
//     left as such, and no data but maps and records: texts stand in records;
//   - addresses are of the stack: of keys, records, and what is read there, 512 bytes in all. Their members have 8
//     bytes, or a multiple of that, and are all set;
//   - the program's memory is looked at by qut_probe_read and qut_probe_text alone, which bear any address;
//   - sizes, numbers of frames, and which map or record is meant, are constants where a helper is called.
#ifndef QUT_PROBE_H
#define QUT_PROBE_H

typedef unsigned int qut_probe_u32;
typedef unsigned long long qut_probe_u64;
typedef long long qut_probe_s64;

#ifndef SEC
#define SEC(NAME) __attribute__((section(NAME), used))
#endif

// ---- what a program is told

// What is filled in where: arg at an entry and within a function, retval at a return, duration there and where a call
// was left, tid, error and random at each of these, the others everywhere.
struct qut_probe_context { // volatile: read whole, as they must be
    const volatile qut_probe_u64 arg[6];
    const volatile qut_probe_u64 retval;
    const volatile qut_probe_u64 duration; // ns
    const volatile qut_probe_u64 time;     // ns
    const volatile qut_probe_u64 tid;
    const volatile qut_probe_u64 pid;
    const volatile qut_probe_u64 error;  // errno of the thread, as it is then
    const volatile qut_probe_u64 random; // 0 to 2^32 - 1, another one in each run
};

// ---- maps and records

enum { QUT_PROBE_PARTS = 8, QUT_PROBE_FORMAT_BYTES = 224 };

// A key's or a record's members, in the order of its struct: bytes / 8 in the lower half, what they are in the upper.
#define QUT_PROBE_NUMBER      (1u << 16 | 1)
#define QUT_PROBE_TEXT(BYTES) (2u << 16 | (((BYTES) + 7) / 8)) // its memory has a multiple of 8 bytes
#define QUT_PROBE_FRAMES      (3u << 16 | 1)                   // what qut_probe_stack gave

enum qut_probe_map_shape {
    QUT_PROBE_MAP_COUNT = 0,
    QUT_PROBE_MAP_SUM = 1,
    QUT_PROBE_MAP_MIN = 2,
    QUT_PROBE_MAP_MAX = 3,
    QUT_PROBE_MAP_AVG = 4,
    QUT_PROBE_MAP_HIST = 5,  // by powers of two
    QUT_PROBE_MAP_LHIST = 6, // QUT_PROBE_LINEAR_MAP
    QUT_PROBE_MAP_VALUE = 7, // what was put there last
};

struct qut_probe_map_definition { // as it stands in the object
    qut_probe_u32 shape;          // enum qut_probe_map_shape
    qut_probe_u32 zero;
    qut_probe_u32 parts[QUT_PROBE_PARTS]; // of the key; 0: no more
    qut_probe_s64 low, step;              // of QUT_PROBE_MAP_LHIST: steps from low on, each of `step`
    qut_probe_u64 steps;
};

struct qut_probe_record_definition { // likewise
    qut_probe_u32 parts[QUT_PROBE_PARTS];
    char format[QUT_PROBE_FORMAT_BYTES]; // of printf; ends with a 0
};

// A map NAME, whose key has these parts; none: it has one value. NAME is how it is shown.
#define QUT_PROBE_MAP(NAME, SHAPE, ...)                                                                                \
    const struct qut_probe_map_definition NAME SEC("qut.maps") = {SHAPE, 0, {__VA_ARGS__}, 0, 0, 0}
#define QUT_PROBE_LINEAR_MAP(NAME, LOW, STEP, STEPS, ...)                                                              \
    const struct qut_probe_map_definition NAME SEC("qut.maps") = {                                                     \
        QUT_PROBE_MAP_LHIST, 0, {__VA_ARGS__}, LOW, STEP, STEPS}
// What is printed by FORMAT, of these parts.
#define QUT_PROBE_RECORD(NAME, FORMAT, ...)                                                                            \
    const struct qut_probe_record_definition NAME SEC("qut.records") = {{__VA_ARGS__}, FORMAT}

// ---- helpers, by their numbers

#define QUT_PROBE_HELPER(NUMBER, RESULT, NAME, ARGUMENTS)                                                              \
    static RESULT(*const NAME) ARGUMENTS __attribute__((unused)) = (RESULT(*) ARGUMENTS)NUMBER
#define QUT_PROBE_MAP_ADDRESS const struct qut_probe_map_definition *map

// In `entry` and `return`. Reads 1 to 256 bytes at an address of the program's; 1, or 0: not all could be read, and
// what could not is 0.
QUT_PROBE_HELPER(1, qut_probe_u64, qut_probe_read, (void *to, qut_probe_u64 bytes, qut_probe_u64 address));
// Likewise a text, up to its end; how long it is. Behind it all is 0.
QUT_PROBE_HELPER(2, qut_probe_u64, qut_probe_text, (void *to, qut_probe_u64 bytes, qut_probe_u64 address));
// Everywhere. Adds a value under a key (0: the map has none), or puts it there.
QUT_PROBE_HELPER(3, qut_probe_u64, qut_probe_add, (QUT_PROBE_MAP_ADDRESS, const void *key, qut_probe_u64 value));
// Of a QUT_PROBE_MAP_VALUE: what is there; 0: nothing is.
QUT_PROBE_HELPER(4, qut_probe_u64, qut_probe_get, (QUT_PROBE_MAP_ADDRESS, const void *key));
QUT_PROBE_HELPER(5, qut_probe_u64, qut_probe_emit,
                 (const struct qut_probe_record_definition *record, const void *words));
// In `timer`, `begin` and `end`.
QUT_PROBE_HELPER(6, qut_probe_u64, qut_probe_print, (QUT_PROBE_MAP_ADDRESS));
QUT_PROBE_HELPER(7, qut_probe_u64, qut_probe_clear, (QUT_PROBE_MAP_ADDRESS));
// In `entry` and `return`. Who has called the function, 1 to 127 frames, as a number.
QUT_PROBE_HELPER(8, qut_probe_u64, qut_probe_stack, (qut_probe_u64 frames));
// Likewise what an open descriptor is, as qut_probe_text: a file's path, or the kernel's word for another thing.
QUT_PROBE_HELPER(9, qut_probe_u64, qut_probe_path, (void *to, qut_probe_u64 bytes, qut_probe_u64 descriptor));

#endif
