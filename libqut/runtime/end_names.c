// SPDX-License-Identifier: Apache-2.0
#include <qut/frame.h>

#include "formats/qut_rule.h"

static const char *const reason_names[QUT_END_REASON_COUNT] = {
    [QUT_END_NOT] = "not ended",
    [QUT_END_OUTERMOST] = "outermost frame",
    [QUT_END_LIMIT] = "frame limit",
    [QUT_END_NO_MODULE] = "no module",
    [QUT_END_TABLE_PENDING] = "table pending",
    [QUT_END_NO_TABLE] = "no table",
    [QUT_END_NO_ROW] = "no unwind information",
    [QUT_END_REFUSED] = "unwind information refused",
    [QUT_END_NO_REGISTER] = "register not known",
    [QUT_END_BAD_MEMORY] = "unreadable memory",
    [QUT_END_NO_PROGRESS] = "no progress",
    [QUT_END_NOT_STARTED] = "not started",
    [QUT_END_NOT_CODE] = "not executable",
};

static const char *const refusal_names[QUT_REFUSAL_END] = {
    [QUT_REFUSED_NOT] = "NOT",
    [QUT_REFUSED_CANTUNWIND] = "CANTUNWIND",
    [QUT_REFUSED_CFA_EXPRESSION] = "CFA_EXPRESSION",
    [QUT_REFUSED_REGISTER_EXPRESSION] = "REGISTER_EXPRESSION",
    [QUT_REFUSED_CFA_UNDEFINED] = "CFA_UNDEFINED",
    [QUT_REFUSED_OFFSET_RANGE] = "OFFSET_RANGE",
    [QUT_REFUSED_REGISTER_RANGE] = "REGISTER_RANGE",
    [QUT_REFUSED_BAD_PROGRAM] = "BAD_PROGRAM",
    [QUT_REFUSED_STATE_DEPTH] = "STATE_DEPTH",
    [QUT_REFUSED_PERSONALITY] = "PERSONALITY",
    [QUT_REFUSED_EXIDX_OPCODE] = "EXIDX_OPCODE",
    [QUT_REFUSED_EXIDX_TRUNCATED] = "EXIDX_TRUNCATED",
    [QUT_REFUSED_RA_LOST] = "RA_LOST",
    [QUT_REFUSED_INSTRUMENTED] = "INSTRUMENTED",
    [QUT_REFUSED_OAT_CODE] = "OAT_CODE",
    [QUT_REFUSED_STACK_SWITCH] = "STACK_SWITCH",
    [QUT_REFUSED_EH_RETURN] = "EH_RETURN",
};

const char *qut_end_reason_name(uint32_t reason)
{
    return reason < QUT_END_REASON_COUNT ? reason_names[reason] : "unknown reason";
}

const char *qut_refusal_name(uint32_t refusal)
{
    return refusal < QUT_REFUSAL_END && refusal_names[refusal] ? refusal_names[refusal] : "UNKNOWN_REASON";
}
