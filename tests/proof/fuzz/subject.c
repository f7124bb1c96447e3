// SPDX-License-Identifier: Apache-2.0
// What debug information is made of: functions inlined into one another, scopes, ranges, a function of each kind of
// linkage, and calls that leave the module.
extern int elsewhere(int value);
extern int further(int value);

struct point {
    int x, y;
};

static inline __attribute__((always_inline)) int innermost(int value)
{
    return value * 3 + elsewhere(value);
}

static inline __attribute__((always_inline)) int middle(const struct point *point)
{
    int sum = 0;
    for (int i = 0; i < point->x; i++) {
        int scaled = innermost(point->y + i);
        if (scaled > 7)
            sum += scaled;
    }
    return sum;
}

static __attribute__((noinline)) int local(struct point *point)
{
    point->x++;
    return middle(point) - further(point->y);
}

int outer(int x, int y)
{
    struct point point = {x, y};
    return local(&point) + innermost(x);
}

__attribute__((cold)) int rare(int x)
{
    return x < 0 ? outer(x, 1) : middle(&(struct point){x, x});
}
