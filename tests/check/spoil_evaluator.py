#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes rule_eval.c with one deliberate mistake: spoil_evaluator.py NAME IN OUT. The tests must notice each."""
import sys

MISTAKES = {
    "offset": ("return read_word(e, moved(e, e->cfa, rule->offset_bytes), value)",
               "return read_word(e, moved(e, e->cfa, rule->offset_bytes ^ 8), value)"),
    "deref": ("e->cfa = moved(e, word, cfa->add_bytes);", "e->cfa = moved(e, word, 0);"),
    "plt": (">= cfa->plt.threshold", "> cfa->plt.threshold"),
    "same": ("case QUT_REG_SAME: return register_value(e, same, value)",
             "case QUT_REG_SAME: return register_value(e, same ^ 1, value)"),
}

name, source_path, out_path = sys.argv[1:]
right, wrong = MISTAKES[name]
source = open(source_path).read()
if source.count(right) != 1:
    sys.exit(f"spoil_evaluator: '{right}' is not there exactly once: keep the mistakes in step with the evaluator")
open(out_path, "w").write(source.replace(right, wrong))
