/* Slot, room and submission in one function. */
#include "writer/dump.h"

static fxtap_status find_slot(fxtap_call *call, fxtap_node node, fxtap_io io, const char *position, fxtap_slot *out)
{
    fxtap_status status = fx_call_check(call);
    return status == FXTAP_OK ? fxtap_capture_slot(call->capture, node, io, position, NULL, out) : status;
}

fxtap_status fxtap_call_save(fxtap_call *call, fxtap_node node, fxtap_io io, const char *position, uint64_t stamp_us,
                             const fxtap_view *view, fxtap_ticket *ticket)
{
    FX_REQUIRE(view);
    fxtap_slot slot = 0;
    fxtap_status status = find_slot(call, node, io, position, &slot);
    if (status != FXTAP_OK) {
        return status;
    }
    if (ticket != NULL && *ticket != 0) {
        return fxtap_call_alias(call, slot, stamp_us, *ticket);
    }
    fxtap_submission submission = {.struct_size = sizeof submission, .slot = slot, .stamp_us = stamp_us, .view = *view};
    return fxtap_call_submit(call, &submission, ticket);
}

fxtap_status fxtap_call_save_copy(fxtap_call *call, fxtap_node node, fxtap_io io, const char *position,
                                  uint64_t stamp_us, const fxtap_view *view)
{
    FX_REQUIRE(view);
    fxtap_slot slot = 0;
    fxtap_status status = find_slot(call, node, io, position, &slot);
    return status == FXTAP_OK ? fxtap_call_submit_small(call, slot, stamp_us, view, NULL, 0) : status;
}
