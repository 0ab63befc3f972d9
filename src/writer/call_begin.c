/* Beginning a call: its step and memory; time stamps. */
#include <string.h>

#include "util/memory.h"
#include "writer/dump.h"

static void take_memory(fxtap_call *call)
{
    fxtap_dump *dump = call->dump;
    pthread_mutex_lock(&dump->lock);
    fx_call_memory memory = dump->spare;
    memset(&dump->spare, 0, sizeof dump->spare);
    pthread_mutex_unlock(&dump->lock);
    call->arena = memory.arena;
    call->entries = memory.entries;
    call->entry_capacity = memory.entry_capacity;
    call->values = memory.values;
    call->value_capacity = memory.value_capacity;
}

/* Takes a step number for the call (NULL: the next one) and adds it to the dump's calls. */
static fxtap_status enlist(fxtap_call *call, const uint64_t *step)
{
    fxtap_dump *dump = call->dump;
    fx_steps *steps = &call->capture->steps;
    pthread_mutex_lock(&dump->lock);
    call->step = step != NULL ? *step : fx_steps_next(steps);
    fxtap_status status = fx_steps_take(steps, call->step);
    if (status == FXTAP_OK) {
        call->next = dump->calls;
        if (dump->calls != NULL) {
            dump->calls->previous = call;
        }
        dump->calls = call;
    }
    pthread_mutex_unlock(&dump->lock);
    return status;
}

static fxtap_status begin(fxtap_capture *capture, const uint64_t *step, fxtap_call **out)
{
    fxtap_dump *dump = capture->dump;
    if (dump->generation != fx_fork_count()) {
        fxtap_dump_after_fork(dump);
    }
    fxtap_call *call = fx_calloc(1, sizeof *call);
    if (call == NULL) {
        return FXTAP_E_NOMEM;
    }
    call->capture = capture;
    call->dump = dump;
    call->generation = dump->generation;
    call->dir_fd = -1;
    fxtap_status status = enlist(call, step);
    if (status != FXTAP_OK) {
        fx_free(call);
        return status;
    }
    call->number = atomic_fetch_add(&dump->next_call, 1);
    call->started_us = fx_dump_now_us(dump);
    take_memory(call);
    fx_queue_adapt(&dump->queue);
    *out = call;
    return FXTAP_OK;
}

fxtap_status fxtap_call_begin(fxtap_capture *capture, fxtap_call **out)
{
    FX_REQUIRE(capture);
    FX_REQUIRE(out);
    return begin(capture, NULL, out);
}

fxtap_status fxtap_call_begin_step(fxtap_capture *capture, uint64_t step, fxtap_call **out)
{
    FX_REQUIRE(capture);
    FX_REQUIRE(out);
    return begin(capture, &step, out);
}

uint64_t fxtap_call_step(const fxtap_call *call)
{
    return call->step;
}

uint64_t fxtap_call_number(const fxtap_call *call)
{
    return call->number;
}

uint64_t fxtap_call_stamp(fxtap_call *call)
{
    if (call == NULL || call->dump == NULL) {
        return 0;
    }
    uint64_t now_us = fx_dump_now_us(call->dump);
    call->stamped_us = now_us > call->stamped_us ? now_us : call->stamped_us + 1;
    return call->stamped_us;
}
