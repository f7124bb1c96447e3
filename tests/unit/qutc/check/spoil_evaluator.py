#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the evaluator with one deliberate mistake: spoil_evaluator.py NAME DEFINITION.h SOURCE.c OUT. The tests must notice each."""
import sys

MISTAKES = {
    "offset": ("runtime_eval_moved(e, e->cfa, rule->offset_bytes) - distance, value)",
               "runtime_eval_moved(e, e->cfa, rule->offset_bytes ^ 8) - distance, value)"),
    "deref": ("e->cfa = runtime_eval_moved(e, word, cfa->add_bytes);", "e->cfa = runtime_eval_moved(e, word, 0);"),
    "plt": (">= cfa->plt.threshold", "> cfa->plt.threshold"),
    "vector": ("base += vector_bytes * (uint64_t)(int64_t)cfa->vector_count;", "base += vector_bytes;"),
    "same": ("case QUT_REG_SAME: return runtime_eval_register_value(e, same, value)",
             "case QUT_REG_SAME: return runtime_eval_register_value(e, same ^ 1, value)"),
}

name, definition_path, source_path, out_path = sys.argv[1:]
right, wrong = MISTAKES[name]
definition = open(definition_path).read()
if definition.count(right) != 1:
    sys.exit(f"spoil_evaluator: '{right}' is not there exactly once: keep the mistakes in step with the evaluator")
source = open(source_path).read().replace('#include "libqut/runtime/rule_eval_inline.h"\n', "")
open(out_path, "w").write(definition.replace(right, wrong) + source)
