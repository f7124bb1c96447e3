// SPDX-License-Identifier: Apache-2.0
#include "formats/qut_standard_cells.h"

struct qut_standard_cells qut_standard_cells(enum qut_arch_id arch)
{
    switch (arch) {
    case QUT_ARCH_X86_64: return (struct qut_standard_cells){qut_standard_cells_x86_64, QUT_STANDARD_X86_64};
    case QUT_ARCH_AARCH64: return (struct qut_standard_cells){qut_standard_cells_aarch64, QUT_STANDARD_AARCH64};
    case QUT_ARCH_ARM: return (struct qut_standard_cells){qut_standard_cells_arm, QUT_STANDARD_ARM};
    case QUT_ARCH_X86: return (struct qut_standard_cells){qut_standard_cells_x86, QUT_STANDARD_X86};
    case QUT_ARCH_RISCV64: return (struct qut_standard_cells){qut_standard_cells_riscv64, QUT_STANDARD_RISCV64};
    default: return (struct qut_standard_cells){0};
    }
}
