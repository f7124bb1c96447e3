// SPDX-License-Identifier: Apache-2.0
// Compiled by each compiler, in several forms, and once more as C++.
#include "subject.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
#define PLAIN extern "C"
#else
#define PLAIN
#endif
PLAIN void subject_capture(void);
uint64_t subject_captured[6];
__asm__(".text\n"
        ".globl subject_capture\n"
        ".type subject_capture, @function\n"
        "subject_capture:\n"
        "    movq subject_captured@GOTPCREL(%rip), %rax\n"
        "    movq %rdi, (%rax)\n"
        "    movq %rsi, 8(%rax)\n"
        "    movq %rdx, 16(%rax)\n"
        "    movq %rcx, 24(%rax)\n"
        "    movq %r8, 32(%rax)\n"
        "    movq %r9, 40(%rax)\n"
        "    movq %rdi, %rax\n" // what returns a struct in memory gives its address back
        "    ret\n"
        ".size subject_capture, .-subject_capture\n");

// So that the compiler does not know whom it calls.
static void *some(void *function)
{
    __asm__("" : "+r"(function));
    return function;
}
#define CAPTURE some((void *)(uintptr_t)subject_capture)
// Calls the other one as if it were this one.
#define AS(function) ((__typeof__(&function))CAPTURE)

static void keep(struct subject_fields *fields)
{
    for (unsigned i = 0; i < 6; i++)
        fields->arguments[i] = subject_captured[i];
}

enum color { RED = 3, GREEN, BLUE = 70000 };
enum signs { MINUS = -5, PLUS = 5 };
typedef unsigned short port_t;
struct point {
    int x, y;
};
struct small {
    signed char c;
    short s;
    int bits : 5;
    unsigned more : 11;
};
struct two {
    long a;
    unsigned char *b;
};
struct mixed {
    double d;
    long n;
};
struct floats {
    float a, b;
};
struct large {
    long a[3];
    char name[10];
};
struct __attribute__((packed)) packed {
    char c;
    int n;
};
struct hidden;
struct node {
    struct node *next;
    const char *text;
    struct point at;
    union {
        int word;
        unsigned char bytes[4];
    };
    short table[3][4];
    enum color color;
    unsigned long long wide : 40;
    signed int narrow : 3;
    double weight;
    struct hidden *hidden;
    const volatile port_t port;
    char names[2][6];
};

#ifdef __clang__
#define NOT_CHANGED __attribute__((noinline))
#else
#define NOT_CHANGED __attribute__((noinline, noclone))
#endif
#define FUNCTION PLAIN NOT_CHANGED
static volatile long subject_sink;

FUNCTION int plain(int fd, const char *path, unsigned char small, bool flag, long long big, enum color color, int last)
{
    subject_sink = fd + path[0] + small + flag + big + (long)color + last;
    return -fd;
}
FUNCTION long floats(double a, int n, float b, long m, struct floats both, port_t port)
{
    subject_sink = n + m + port + (long)(a + (double)b + (double)both.a);
    return m;
}
FUNCTION struct point structs(struct point p, struct two t, int n, struct small s)
{
    struct point back = {p.x + n, p.y + s.c};
    subject_sink = t.a + p.x;
    return back;
}
FUNCTION struct mixed halves(struct mixed m, int n, struct mixed other)
{
    m.n += n + other.n;
    return m;
}
FUNCTION struct large in_memory(int n, struct large l, struct packed p, enum signs sign)
{
    l.a[0] += n + p.n + (long)sign;
    return l;
}
FUNCTION struct node *nodes(struct node *node, struct node **all, int (*compare)(const void *, const void *),
                            void *data)
{
    subject_sink = node->at.x + (compare == 0) + (data == 0);
    return all[1];
}
FUNCTION void wide(int a, __int128 b, int c, long double x, int d)
{
    subject_sink = a + (long)b + c + (long)x + d;
}
FUNCTION void too_wide(long a, long b, long c, long d, long e, struct two t, long f)
{
    subject_sink = a + b + c + d + e + f + t.a;
}
FUNCTION void nothing(void)
{
    subject_sink = 1;
}
FUNCTION int more(const char *format, ...)
{
    subject_sink = format[0];
    return 7;
}

static void call_plain(struct subject_fields *fields)
{
    AS(plain)(-3, "a path", 250, true, -(1LL << 40), BLUE, 9);
    keep(fields);
    fields->result = (uint64_t)(int64_t)plain(4, "b", 0, 0, 0, RED, 0);
}
static void call_floats(struct subject_fields *fields)
{
    const struct floats both = {1, 2};
    AS(floats)(1.5, -7, 2.5f, 1L << 40, both, 65535);
    keep(fields);
    fields->result = (uint64_t)floats(1, 1, 1, -12, both, 1);
}
static void call_structs(struct subject_fields *fields)
{
    static unsigned char byte[2] = {77, 78};
    const struct point p = {-11, 12};
    const struct two t = {1L << 33, byte};
    const struct small s = {-2, -300, -9, 1029};
    AS(structs)(p, t, 5, s);
    keep(fields);
    fields->result =
        ((uint64_t(*)(struct point, struct two, int, struct small))some((void *)(uintptr_t)structs))(p, t, 5, s);
}
static void call_halves(struct subject_fields *fields)
{
    const struct mixed m = {1.5, -40}, other = {2.5, 50};
    AS(halves)(m, 6, other);
    keep(fields);
    // The number comes back in rax: it is the first word that is in a general register.
    typedef long (*as_number)(struct mixed, int, struct mixed);
    fields->result = (uint64_t)((as_number)some((void *)(uintptr_t)halves))(m, 6, other);
}
static void call_in_memory(struct subject_fields *fields)
{
    static struct large back;
    const struct large l = {{10, 20, 30}, "012345678"};
    const struct packed p = {1, 2};
    typedef uint64_t (*with_place)(struct large *, int, struct large, struct packed, enum signs);
    ((with_place)CAPTURE)(&back, 6, l, p, MINUS);
    keep(fields);
    fields->result = ((with_place)some((void *)(uintptr_t)in_memory))(&back, 6, l, p, MINUS);
}
// An array that is full has no end of its own: what is behind it is none of it.
static void fill(struct node *node)
{
    for (unsigned i = 0; i < sizeof node->names[0]; i++)
        node->names[0][i] = (char)('a' + i);
}
static void call_nodes(struct subject_fields *fields)
{
    static struct node second = {0,  "the second", {-1, 22}, {-2}, {{0}},   GREEN, 0xff00112233,
                                 -4, 2.5,          0,        8080, {"", ""}};
    static struct node first = {
        &second, "the first",     {100, -200}, {0x01020384}, {{0, 1, 2, 3}, {10, 11, 12, 13}, {20, -21, 22, 23}},
        BLUE,    0x8012345678,    3,           1.5,          0,
        65000,   {"abcde", "xyz"}};
    static struct node *all[2] = {&first, &second};
    fill(&first);
    AS(nodes)(&first, all, 0, &second);
    keep(fields);
    fields->result = (uint64_t)(uintptr_t)nodes(&first, all, 0, 0);
}
static void call_wide(struct subject_fields *fields)
{
    AS(wide)(1, -2, 3, 4, -5);
    keep(fields);
}
static void call_too_wide(struct subject_fields *fields)
{
    const struct two t = {7, 0};
    AS(too_wide)(1, 2, 3, 4, 5, t, 6);
    keep(fields);
}
static void call_nothing(struct subject_fields *fields)
{
    nothing();
    keep(fields);
}
static void call_more(struct subject_fields *fields)
{
    AS(more)("%d", 5);
    keep(fields);
    fields->result = 0xffffffff00000007;
}

#ifdef __cplusplus
#include "subject_cpp.h"
#else
#define CPP_CASES
#endif

#define CASE(name) #name, (void *)(uintptr_t)name, call_##name
static const struct subject_case cases[] = {
    {CASE(plain),
     "plain(int fd, const char *path, unsigned char small, bool flag, long long big, enum color color, int last) -> "
     "int",
     {{"args->fd", -3},
      {"args->path[3]", 'a'},
      {"args->small", 250},
      {"args->flag", 1},
      {"args->big", -(1LL << 40)},
      {"args->color", 70000},
      {"str(args->path) == \"a path\"", 1},
      {"args->path == arg1", 1},
      {"args->fd < 0 && args->small / 2 > 124", 1},
      {"retval + 0", -4}}},
    {CASE(floats),
     "floats(double a, int n, float b, long m, struct floats both, port_t port) -> long",
     {{"args->n", -7}, {"args->m", 1L << 40}, {"args->port", 65535}, {"retval + 0", -12}}},
    {CASE(structs),
     "structs(struct point p, struct two t, int n, struct small s) -> struct point",
     {{"args->p.x", -11},
      {"args->p.y", 12},
      {"args->t.a", 1L << 33},
      {"args->t.b[1]", 78},
      {"args->n", 5},
      {"args->s.c", -2},
      {"args->s.s", -300},
      {"args->s.bits", -9},
      {"args->s.more", 1029},
      {"retval.x", -6},
      {"retval.y", 10}}},
    {CASE(halves),
     "halves(struct mixed m, int n, struct mixed other) -> struct mixed",
     {{"args->m.n", -40}, {"args->n", 6}, {"args->other.n", 50}, {"retval.n", 16}}},
    {CASE(in_memory),
     "in_memory(int n, struct large l, struct packed p, enum signs sign) -> struct large",
     {{"args->n", 6},
      {"args->sign", -5},
      {"retval.a[0]", 13},
      {"retval.a[2]", 30},
      {"str(retval.name) == \"012345678\"", 1}}},
    {CASE(nodes),
     "nodes(struct node *node, struct node **all, int (*compare)(const void *, const void *), void *data) -> struct "
     "node *",
     {{"args->node->at.x", 100},
      {"args->node->at.y", -200},
      {"str(args->node->text) == \"the first\"", 1},
      {"str(args->node->next->text) == \"the second\"", 1},
      {"args->node->word", 0x01020384},
      {"args->node->bytes[0]", 0x84},
      {"args->node->table[2][1]", -21},
      {"u16(args->node->table[1])", 10},
      {"args->node->color", 70000},
      {"args->node->wide", 0x8012345678},
      {"args->node->narrow", 3},
      {"args->all[1]->narrow", -4},
      {"args->all[1]->wide", 0xff00112233},
      {"args->node->port", 65000},
      {"str(args->node->names[0]) == \"abcdef\"", 1},
      {"str(args->node->names[1]) == \"xyz\"", 1},
      {"args->compare", 0},
      {"args->node->next == args->data", 1},
      {"args->node[0].at.x", 100},
      {"args->node->next->next->next->text", 0},
      {"retval->at.y", 22},
      {"retval->word + retval->at.x", -3},
      {"str(retval->text) == \"the second\"", 1}}},
    {CASE(wide),
     "wide(int a, __int128 b, int c, long double x, int d) -> void",
     {{"args->a", 1}, {"args->c", 3}, {"args->d", -5}}},
    {CASE(too_wide),
     "too_wide(long a, long b, long c, long d, long e, struct two t, long f) -> void",
     {{"args->e", 5}, {"args->f", 6}}},
    {CASE(nothing), "nothing() -> void", {{"arg0 - arg0", 0}}},
    {CASE(more), "more(const char *format, ...) -> int", {{"args->format[1]", 'd'}}},
    CPP_CASES};

PLAIN const struct subject_table subject_table;
const struct subject_table subject_table = {cases, sizeof cases / sizeof *cases};
