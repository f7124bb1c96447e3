// SPDX-License-Identifier: Apache-2.0
#include "qutc/table/draft.h"
int qutc_draft_share_runs(struct qutc_draft *draft, struct qutc_error *error)
{
    (void)draft;
    (void)error;
    return 0;
}
