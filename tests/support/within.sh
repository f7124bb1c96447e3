# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
within() # SECONDS COMMAND...: whether it comes true by then
{
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < until)) || return 1
        sleep 0.05
    done
}
