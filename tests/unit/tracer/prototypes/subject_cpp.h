// SPDX-License-Identifier: Apache-2.0
// What only C++ has: classes that are handed over by their address, references, base classes.
#ifndef TESTS_UNIT_TRACER_PROTOTYPES_SUBJECT_CPP_H
#define TESTS_UNIT_TRACER_PROTOTYPES_SUBJECT_CPP_H

namespace room
{
struct base {
    long first;
    static long shared;
};
struct other {
    short second;
};
class guest : public base, public other
{
  public:
    guest(long a, short b, int c) : own(c) { first = a, second = b; }
    ~guest();
    __attribute__((noinline)) int add(int n, const guest &with, guest by_value);
    __attribute__((noinline)) virtual int speak(bool loud);
    int own;
};
long base::shared = 5;
guest::~guest()
{
    subject_sink = own;
}
int guest::add(int n, const guest &with, guest by_value)
{
    return own + n + with.own + by_value.own;
}
int guest::speak(bool loud)
{
    return loud ? own : 0;
}
} // namespace room

typedef int (*adds)(room::guest *, int, const room::guest *, room::guest *);

static void *entry_of_add(void)
{
    int (room::guest::*method)(int, const room::guest &, room::guest) = &room::guest::add;
    void *entry;
    __builtin_memcpy(&entry, &method, sizeof entry);
    return entry;
}
static void call_add(struct subject_fields *fields)
{
    static room::guest one(10, -20, 30), two(1, 2, 3), three(7, 8, 9);
    ((adds)CAPTURE)(&one, -4, &two, &three);
    keep(fields);
}

// What is handed over by value, and has a destructor, is handed over by its address.
FUNCTION int takes(room::guest g, int n)
{
    return g.own + n;
}
static void call_takes(struct subject_fields *fields)
{
    static room::guest one(10, -20, 30);
    ((int (*)(room::guest *, int))CAPTURE)(&one, 17);
    keep(fields);
}
FUNCTION room::guest gives(int n)
{
    return room::guest(n, 2, 3);
}
static void call_gives(struct subject_fields *fields)
{
    alignas(room::guest) static char place[sizeof(room::guest)];
    typedef uint64_t (*with_place)(void *, int);
    ((with_place)CAPTURE)(place, 19);
    keep(fields);
    fields->result = ((with_place)some((void *)(uintptr_t)gives))(place, 19);
}
FUNCTION long refers(int &number, struct node *const &node, room::other &&moved)
{
    return number + node->at.x + moved.second;
}
static void call_refers(struct subject_fields *fields)
{
    static int number = -33;
    static struct node node = {0, "n", {5, 6}, {0}, {{0}}, RED, 0, 0, 0, 0, 0, {"", ""}}, *where = &node;
    static room::other moved = {44};
    AS(refers)(number, where, (room::other &&) moved);
    keep(fields);
}

#define CPP_CASES                                                                                                      \
    {"room::guest::add",                                                                                               \
     entry_of_add(),                                                                                                   \
     call_add,                                                                                                         \
     NULL,                                                                                                             \
     {{"args->this->own", 30},                                                                                         \
      {"args->n", -4},                                                                                                 \
      {"args->with.own", 3},                                                                                           \
      {"args->with.first", 1},                                                                                         \
      {"args->this->second", -20},                                                                                     \
      {"args->by_value.own", 9},                                                                                       \
      {"args->by_value.first", 7}}},                                                                                   \
        {CASE(takes),                                                                                                  \
         "takes(class guest g, int n) -> int",                                                                         \
         {{"args->g.own", 30}, {"args->g.second", -20}, {"args->n", 17}}},                                             \
        {CASE(gives), "gives(int n) -> class guest", {{"args->n", 19}, {"retval.own", 3}, {"retval.first", 19}}},      \
        {CASE(refers),                                                                                                 \
         "refers(int &number, struct node *const &node, struct other &&moved) -> long",                                \
         {{"args->number", -33}, {"args->node->at.y", 6}, {"args->moved.second", 44}}},

#endif
