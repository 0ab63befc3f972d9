/*
 * support.h - which operators TorchAir lowers, as measured: operators.tsv, one target per line with "whole", "partial"
 * (some arguments raise NotImplementedError) or "none" (registered, but always raises).
 */
#ifndef FX_GRAPH_SUPPORT_H
#define FX_GRAPH_SUPPORT_H

typedef enum fx_support {
    FX_SUPPORT_UNKNOWN = 0, /* not registered */
    FX_SUPPORT_NONE = 1,
    FX_SUPPORT_PARTIAL = 2,
    FX_SUPPORT_WHOLE = 3
} fx_support;

fx_support fx_support_of(const char *target);

#endif
