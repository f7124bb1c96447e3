// SPDX-License-Identifier: Apache-2.0
// How likely something is by chance: the distributions that comparing needs. Numbers only; nothing fails, nothing is
// allocated, any thread may call.
#ifndef TRACER_DIFF_CHANCE_H
#define TRACER_DIFF_CHANCE_H

// That a normal variable lies farther out than z, on either side.
double diff_chance_normal(double z);
// The same of Student's t; freedom: degrees of it, above 0, INFINITY: as of a normal one.
double diff_chance_student(double t, double freedom);
// How far out 95 % of it lies: 1.96 for a normal one.
double diff_chance_bound(double freedom);

// That two parts of equal share come out as unlike as x_a of n_a and x_b of n_b, or more so. Exact (Fisher) where
// either part, or what is beside it, is small. 1 where there is nothing to go by.
double diff_chance_shares(double x_a, double n_a, double x_b, double n_b);
// That events of equal rate come out as unlike as x_a in a time of t_a and x_b in t_b.
double diff_chance_rates(double x_a, double t_a, double x_b, double t_b);

// Derivatives of log gamma(x), x > 0, and x for a given second one.
double diff_chance_digamma(double x);
double diff_chance_trigamma(double x);
double diff_chance_trigamma_inverse(double y);

#endif
