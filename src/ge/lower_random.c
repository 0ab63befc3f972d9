/*
 * The random operators' state: a seed, and offsets from a separate input. Both are created at the first random
 * operator; each further one extends the input, also in the text already written for it.
 */
#include <string.h>

#include "ge/lower.h"
#include "ge/recipe.h"

#define SEED 10 /* as in TorchAir's dumps on a CPU */

static fx_ge_op *add_unpack(fx_lower *lower, fx_ref data)
{
    const fx_ge_def *def = fx_ge_def_find("Unpack");
    fx_ge_op *op = fx_ge_add_op(lower->ge, "Unpack", "unpack_generator_offsets", 1, 1);
    if (op == NULL || def == NULL) {
        return NULL;
    }
    op->def = def;
    fx_ge_set_input(op, 0, "x", data);
    op->outputs[0].name = "y0";
    fx_ge_add_attr(lower->ge, op, "num", FX_ATTR_INT, fx_val_int(1));
    return op;
}

static void begin(fx_lower *lower)
{
    fx_val seed = fx_val_int(SEED);
    lower->seed = fx_ge_named_const(lower->ge, "initial_seed", &seed, FX_GE_INT64);
    int64_t *dims = fx_arena_calloc(&lower->ge->arena, 1, sizeof *dims);
    if (dims == NULL) {
        return;
    }
    dims[0] = 1;
    fx_ge_op *data = fx_lower_add_data(lower, "offset_list", FX_GE_INT64, dims, 1, "CPU");
    fx_ref ref = {data, 0};
    if (data != NULL) {
        lower->offsets.op = add_unpack(lower, ref);
    }
}

fx_ref fx_random_seed(fx_lower *lower)
{
    if (lower->seed.op == NULL) {
        begin(lower);
    }
    return lower->seed;
}

fx_ref fx_random_offset(fx_lower *lower)
{
    fx_ref none = {NULL, 0};
    if (lower->seed.op == NULL) {
        begin(lower);
    }
    fx_ge_op *unpack = lower->offsets.op;
    if (unpack == NULL) {
        return none;
    }
    fx_ref ref = {unpack, lower->n_random++};
    if (lower->n_random == 1) {
        return ref;
    }
    /* Adds an output, and a number in the input. */
    size_t n = (size_t)lower->n_random;
    fx_ge_op *data = unpack->inputs[0].op;
    fx_ge_desc *outputs = fx_arena_calloc(&lower->ge->arena, n + 1, sizeof *outputs);
    int64_t *dims = fx_arena_calloc(&lower->ge->arena, 1, sizeof *dims);
    if (outputs == NULL || dims == NULL) {
        return none;
    }
    memcpy(outputs, unpack->outputs, (n - 1) * sizeof *outputs);
    outputs[n - 1] = outputs[0];
    outputs[n - 1].name = fx_arena_printf(&lower->ge->arena, "y%zu", n - 1);
    unpack->outputs = outputs;
    unpack->n_outputs = n;
    unpack->attrs[0].value = fx_val_int((int64_t)n);
    dims[0] = (int64_t)n;
    data->outputs[0].dims = data->input_descs[0].dims = dims;
    return ref;
}
