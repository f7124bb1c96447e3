// SPDX-License-Identifier: Apache-2.0
// A program that records itself: stacks of labels, a request, a wait. recorder PATH, which is in a memory file system.
#include <stdio.h>
#include <string.h>

#include <qut/qut.h>

enum { SAMPLES = 200, STEP_NS = 1000000 };

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    struct qut_trace_options options = {.size = sizeof options, .path = argv[1], .segment_bytes = 4 << 20};
    int status = qut_trace_open(&options);
    if (status != 0) {
        fprintf(stderr, "%s: %s\n", argv[1], strerror(-status));
        return 1;
    }
    uint32_t outer = qut_trace_label_node(0, "serve"), inner[2];
    inner[0] = qut_trace_label_node(outer, "parse");
    inner[1] = qut_trace_label_node(outer, "</script><script>answer()</script>");
    uint64_t now_ns = 1000000000;
    for (unsigned i = 0; i < SAMPLES; i++, now_ns += STEP_NS) {
        const struct qut_event event = {.time_ns = now_ns, .kind = QUT_SAMPLE_CPU};
        if (i % 50 == 0)
            qut_trace_mark(QUT_MARK_BEGIN, i, "request");
        if (qut_trace_append_node(inner[i / 10 % 2], &event) < 0)
            return 1;
    }
    qut_trace_close();
    return 0;
}
