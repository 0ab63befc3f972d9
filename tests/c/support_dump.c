#include "support_dump.h"

#include "support_cmocka.h"
#include "support_graph.h"

#include <string.h>

static uint64_t clock_us;

static uint64_t tick(void)
{
    return clock_us += 1000;
}

void sd_set_clock(unsigned seconds)
{
    clock_us = UINT64_C(1767225600000000) + seconds * UINT64_C(1000000);
}

static const char *const stack = "  File \"model.py\", line 12, in forward\n    y = x * 2\n";

static fxtap_graph *make_graph(small_dump *small)
{
    fxtap_graph *graph = sg_graph(FXTAP_GRAPH_INFERENCE);
    fxtap_value meta = sg_tensor(graph, FXTAP_FLOAT32, "cpu", "2,3");
    fxtap_node x = sg_node(graph, FXTAP_OP_PLACEHOLDER, "arg0_1", "arg0_1", 0, NULL, meta);
    fxtap_value twice_args[] = {sg_ref(graph, x), sg_float(graph, 2.0)};
    fxtap_node_desc twice = {.struct_size = sizeof twice,
                             .op = FXTAP_OP_CALL_FUNCTION,
                             .name = "mul",
                             .target = "aten.mul.Scalar",
                             .args = twice_args,
                             .n_args = 2,
                             .meta = meta,
                             .stack_trace = stack,
                             .module_path = "L['self'].layers.0",
                             .module_type = "torch.nn.modules.linear.Linear"};
    small->twice = sg_add(graph, &twice);
    fxtap_value args[] = {sg_ref(graph, small->twice)};
    sg_node(graph, FXTAP_OP_CALL_FUNCTION, "getitem", "operator.getitem", 1, args, meta);
    small->total = sg_node(graph, FXTAP_OP_CALL_FUNCTION, "sum_1", "aten.sum.default", 1, args,
                           sg_tensor(graph, FXTAP_FLOAT32, "cpu", ""));
    sg_node(graph, FXTAP_OP_OUTPUT, "output", "output", 1, args, 0);
    return graph;
}

small_dump sd_open(const char *root, fxtap_dump_type type)
{
    small_dump small = {0};
    fxtap_dump_options options = {.struct_size = sizeof options,
                                  .path = root,
                                  .world_size = 1,
                                  .type = type,
                                  .clock_us = tick,
                                  .versions = "torch 2.13.0",
                                  .command = "python train.py"};
    assert_int_equal(fxtap_dump_open(&options, &small.dump), FXTAP_OK);
    fxtap_graph *graph = make_graph(&small);
    const char *reasons[] = {NULL, NULL, "non aten target", NULL, NULL};
    assert_int_equal(fxtap_dump_add_graph(small.dump, graph, 1, reasons, &small.capture), FXTAP_OK);
    fxtap_graph_free(graph);
    return small;
}

static fxtap_slot slot_of(small_dump *small, fxtap_node node, fxtap_io io, const char *position, const char *name)
{
    fxtap_slot slot;
    assert_int_equal(fxtap_capture_slot(small->capture, node, io, position, name, &slot), FXTAP_OK);
    return slot;
}

static fxtap_ticket submit(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, const float *values, int32_t ndim)
{
    static const int64_t shape[] = {2, 3};
    fxtap_submission submission = {
        .struct_size = sizeof submission,
        .slot = slot,
        .stamp_us = stamp_us,
        .view = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = ndim, .shape = shape},
    };
    uint64_t n_bytes;
    fxtap_ticket ticket;
    assert_int_equal(fxtap_view_saved_bytes(&submission.view, &n_bytes), FXTAP_OK);
    assert_int_equal(fxtap_call_reserve(call, n_bytes, true), FXTAP_OK);
    assert_int_equal(fxtap_call_submit(call, &submission, &ticket), FXTAP_OK);
    return ticket;
}

void sd_step(small_dump *small, const float values[SD_N_VALUES], bool fails)
{
    static const double factor = 2.0;
    float twice[SD_N_VALUES], total = 0.0f;
    for (size_t i = 0; i < SD_N_VALUES; i++) {
        twice[i] = 2.0f * values[i];
        total += twice[i];
    }
    fxtap_call *call;
    assert_int_equal(fxtap_call_begin(small->capture, &call), FXTAP_OK);
    uint64_t stamp_us = fxtap_call_stamp(call);
    fxtap_view scalar = {.data = &factor, .dtype = FXTAP_FLOAT64};
    submit(call, slot_of(small, small->twice, FXTAP_INPUT, "0", "self"), stamp_us, values, 2);
    assert_int_equal(fxtap_call_submit_small(call, slot_of(small, small->twice, FXTAP_INPUT, "1", "other"), stamp_us,
                                             &scalar, NULL, 0),
                     FXTAP_OK);
    fxtap_ticket ticket = submit(call, slot_of(small, small->twice, FXTAP_OUTPUT, "0", NULL), stamp_us, twice, 2);
    stamp_us = fxtap_call_stamp(call);
    assert_int_equal(fxtap_call_alias(call, slot_of(small, small->total, FXTAP_INPUT, "0", "self"), stamp_us, ticket),
                     FXTAP_OK);
    assert_int_equal(fxtap_call_skip(call, slot_of(small, small->total, FXTAP_INPUT, "dim", "dim"), stamp_us, "None"),
                     FXTAP_OK);
    assert_int_equal(fxtap_call_submit_small(call, slot_of(small, small->total, FXTAP_INPUT, "mode", "mode"), stamp_us,
                                             NULL, "sum", 3),
                     FXTAP_OK);
    submit(call, slot_of(small, small->total, FXTAP_OUTPUT, "0", NULL), stamp_us, &total, 0);
    if (fails) {
        assert_int_equal(fxtap_call_fail(call, "RuntimeError: boom"), FXTAP_OK);
    } else {
        assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    }
}

void sd_close(small_dump *small)
{
    fxtap_dump_close(small->dump);
    small->dump = NULL;
}

void sd_write(const char *root, unsigned seconds, unsigned n_steps)
{
    sd_set_clock(seconds);
    small_dump small = sd_open(root, FXTAP_DUMP_NPY);
    for (unsigned step = 0; step < n_steps; step++) {
        float values[SD_N_VALUES];
        for (size_t i = 0; i < SD_N_VALUES; i++) {
            values[i] = (float)(step + i + 1);
        }
        sd_step(&small, values, false);
    }
    sd_close(&small);
}
