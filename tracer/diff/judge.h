// SPDX-License-Identifier: Apache-2.0
// Whether something changed, or whether chance alone may have made what is seen. Of each function:
//
//   sampling: so many samples of so many met it on each side. What of that chance makes is known: Fisher's exact test
//             of shares, or of rates; for many samples as of normal variables.
//   spread:   where a side has several recordings, they say how much they differ by themselves, which is more: load of
//             the machine, where pages lie, input. Student's t test of their values, whose variance is drawn towards
//             what is usual among all functions (what sampling makes, and so many per cent of the value), as far as
//             they agree on it: so few recordings a side say something, too.
//
// What counts is the larger one of both chances: nothing is surer than its samples allow. Many functions are asked
// about, so a few look changed by chance: the chances are corrected as Benjamini and Hochberg do, and of what is told
// as changed at most one in twenty is not. Where nothing changed, that is: in one comparison of twenty something is
// told.
#ifndef TRACER_DIFF_JUDGE_H
#define TRACER_DIFF_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

enum judge_verdict {
    JUDGE_CANNOT_TELL, // chance may have made it
    JUDGE_MORE,        // B is more than A
    JUDGE_LESS,
};

// What is compared: shares of a whole, amounts that were sampled, amounts that were measured (what they are is known,
// and only a spread says what they mean).
enum judge_basis { JUDGE_SHARES, JUDGE_AMOUNTS, JUDGE_MEASURED };

// Index 0 is A, 1 is B.
struct judge_item {
    // Given.
    double met[2];           // samples that met it, or what is worth as many
    double of[2];            // of so many in all
    double whole[2];         // amounts: what all of a side's samples stand for, of one recording
    const double *values[2]; // of each recording: its share, or amount
    // Found.
    double mean[2];         // of the values
    double change, error;   // B - A; with a chance of 95 % it is off by no more. INFINITY: nothing is known
    double chance, correct; // that it is by chance; the same, corrected
    bool is_tested;         // false: too few samples to ever say something
    enum judge_verdict verdict;
};

enum { JUDGE_LEAST_MET = 10 }; // samples on both sides, for a test
// Below 0.05, since few recordings a side, with functions of two sorts, made 6 of 100 comparisons of equal ones say
// something at 0.05 (tests/unit/tracer/diff/power_test.c).
#define JUDGE_LEVEL 0.035

// chance, error, mean, change of items of one kind (self, or total). recordings: on each side, 1 or more.
// False: no memory.
bool diff_judge(struct judge_item *const *items, size_t count, const size_t recordings[2], enum judge_basis basis);
// And then of all that was asked: correct, verdict. False: no memory.
bool diff_judge_correct(struct judge_item *const *items, size_t count);

#endif
