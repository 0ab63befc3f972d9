/*
 * print.h - the printers of a graph record, one function per format. ge/print.c has the table of all formats.
 */
#ifndef FX_GRAPH_PRINT_H
#define FX_GRAPH_PRINT_H

#include "fxtap/print.h"

/* Appends the text. Out of memory is reported in out->status, which the caller checks. */
typedef fxtap_status (*fx_print_function)(const fxtap_graph *graph, const fxtap_print_options *options,
                                          fxtap_buffer *out);

fxtap_status fx_print_fx(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out);
fxtap_status fx_print_json(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out);
fxtap_status fx_print_dot(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out);
fxtap_status fx_print_html(const fxtap_graph *graph, const fxtap_print_options *options, fxtap_buffer *out);

#endif
