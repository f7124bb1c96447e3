// SPDX-License-Identifier: Apache-2.0
#include "tracer/diff/chance.h"

#include <math.h>

enum { EXACT_MOST = 400 }; // events on both sides, up to which all ways are summed up

double diff_chance_normal(double z)
{
    return erfc(fabs(z) * M_SQRT1_2);
}

// ---- Student's t, by the incomplete beta function

// Its continued fraction, by Lentz's way; x below (a + 1) / (a + b + 2).
static double beta_fraction(double a, double b, double x)
{
    enum { STEPS = 300 };
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d;
    for (int m = 1; m <= STEPS; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const double steps[] = {even, odd};
        double last = 1;
        for (int i = 0; i < 2; i++) {
            d = 1 + steps[i] * d;
            c = 1 + steps[i] / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            last = c * d;
            value *= last;
        }
        if (fabs(last - 1) < 1e-12)
            break;
    }
    return value;
}

static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

// The share of a beta distribution below x.
static double beta_below(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    const double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double diff_chance_student(double t, double freedom)
{
    if (freedom > 1e6)
        return diff_chance_normal(t);
    if (isinf(t))
        return 0;
    return beta_below(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double diff_chance_bound(double freedom)
{
    double low = 1.9, high = 1e4;
    while (high - low > 1e-6 * low) {
        const double middle = (low + high) / 2;
        if (diff_chance_student(middle, freedom) > 0.05)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// ---- counts

static double log_choose(double n, double k)
{
    return log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1);
}

// Of so many events, how many of them are A's: log chances, from the least such number on.
struct ways {
    double least, most;
    double first;                                      // the log chance of `least`
    double (*step)(const struct ways *ways, double k); // how many times as likely k + 1 is as k
    double n_a, n_b, events;
};

// Twice the smaller one of both sides' chances.
static double both_sides(const struct ways *ways, double x)
{
    double below = 0, above = 0, log_chance = ways->first;
    for (double k = ways->least; k <= ways->most; k++) {
        const double chance = exp(log_chance);
        below += k <= x ? chance : 0;
        above += k >= x ? chance : 0;
        log_chance += log(ways->step(ways, k));
    }
    const double less = below < above ? below : above;
    return less > 0.5 ? 1 : 2 * less;
}

static double hypergeometric_step(const struct ways *ways, double k)
{
    return (ways->n_a - k) * (ways->events - k) / ((k + 1) * (ways->n_b - ways->events + k + 1));
}

static double binomial_step(const struct ways *ways, double k)
{
    return (ways->events - k) / (k + 1) * ways->n_a / ways->n_b;
}

double diff_chance_shares(double x_a, double n_a, double x_b, double n_b)
{
    if (!(n_a >= 1 && n_b >= 1))
        return 1;
    x_a = fmin(x_a, n_a);
    x_b = fmin(x_b, n_b);
    const double all = n_a + n_b, x = x_a + x_b;
    if (x > all / 2) // what is beside them tells the same, and is less
        return x >= all ? 1 : diff_chance_shares(n_a - x_a, n_a, n_b - x_b, n_b);
    if (x > EXACT_MOST) {
        const double share = x / all, variance = share * (1 - share) * (1 / n_a + 1 / n_b);
        return diff_chance_normal((x_b / n_b - x_a / n_a) / sqrt(variance));
    }
    struct ways ways = {.step = hypergeometric_step, .n_a = round(n_a), .n_b = round(n_b)};
    const double met_a = fmin(round(x_a), ways.n_a);
    ways.events = met_a + fmin(round(x_b), ways.n_b);
    ways.least = fmax(0, ways.events - ways.n_b);
    ways.most = fmin(ways.events, ways.n_a);
    ways.first = log_choose(ways.n_a, ways.least) + log_choose(ways.n_b, ways.events - ways.least) -
                 log_choose(ways.n_a + ways.n_b, ways.events);
    return both_sides(&ways, met_a);
}

double diff_chance_rates(double x_a, double t_a, double x_b, double t_b)
{
    if (!(t_a > 0 && t_b > 0))
        return 1;
    if (x_a + x_b > EXACT_MOST) {
        const double rate = (x_a + x_b) / (t_a + t_b), variance = rate * (1 / t_a + 1 / t_b);
        return diff_chance_normal((x_b / t_b - x_a / t_a) / sqrt(variance));
    }
    const double events = round(x_a) + round(x_b);
    const struct ways ways = {.step = binomial_step,
                              .first = events * log(t_b / (t_a + t_b)),
                              .most = events,
                              .n_a = t_a,
                              .n_b = t_b,
                              .events = events};
    return both_sides(&ways, round(x_a));
}

// ---- derivatives of log gamma: recurrence up to 8, and the asymptotic series from there on

double diff_chance_digamma(double x)
{
    double value = 0;
    for (; x < 8; x++)
        value -= 1 / x;
    const double y = 1 / (x * x);
    return value + log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y / 240)));
}

double diff_chance_trigamma(double x)
{
    double value = 0;
    for (; x < 8; x++)
        value += 1 / (x * x);
    const double y = 1 / (x * x);
    return value + 1 / x + y / 2 + y / x * (1.0 / 6 - y * (1.0 / 30 - y * (1.0 / 42 - y / 30)));
}

double diff_chance_trigamma_inverse(double y)
{
    double low = 1e-8, high = 1e8; // it falls, from about 1 / x^2 to about 1 / x
    for (int i = 0; i < 200 && high / low > 1 + 1e-12; i++) {
        const double middle = sqrt(low * high);
        if (diff_chance_trigamma(middle) > y)
            low = middle;
        else
            high = middle;
    }
    return sqrt(low * high);
}
