/*
 * table.h - aligned tables that fit a terminal: if too wide, first columns that may be elided shrink, then the least
 * important ones are removed, and finally names shrink.
 */
#ifndef TABLE_H
#define TABLE_H

#include "text.h"

typedef enum column_elide {
    ELIDE_NEVER,
    ELIDE_END,
    ELIDE_MIDDLE,
    ELIDE_START, /* paths: shrink first */
    ELIDE_TYPE,  /* "f32[2, 3]": loses its spaces, then its end */
    ELIDE_NAME,  /* names that users type: in the middle, as the last resort */
} column_elide;

typedef struct table_column {
    const char *title;
    bool is_right; /* aligned */
    column_elide elide;
    size_t least;   /* minimum width when elided */
    int importance; /* 0: never removed; else the lowest goes first; 5 goes after names were elided */
} table_column;

typedef struct text_table text_table;

text_table *table_create(const table_column *columns, size_t n_columns); /* columns are borrowed */
void table_free(text_table *table);

/* Cells are filled left to right, row by row. Text is cleaned. */
void table_cell(text_table *table, text_style style, const char *text);
/* Adds the buffer's text (already clean) and empties the buffer. */
void table_take(text_table *table, text_style style, fxtap_buffer *text);
/* The same for text that extends over the empty cells after it, so that its column may be narrower. */
void table_take_over(text_table *table, text_style style, fxtap_buffer *text);

/* Prints a line of titles, then the rows, without columns that are empty in all rows. */
void table_print(text_table *table, fxtap_buffer *out);

#endif
