/* support_reader.h - reads dumps in tests; all functions assert. */
#ifndef SUPPORT_READER_H
#define SUPPORT_READER_H

#include "fxtap/reader.h"

fxtap_reader *sr_open(const char *path);
fxtap_tensor_query sr_query_all(void);
/* `query` NULL: all. */
fxtap_tensor_list *sr_list(fxtap_reader *reader, const fxtap_tensor_query *query);
size_t sr_count(fxtap_reader *reader, const fxtap_tensor_query *query);
/* Runs SQL on a database. */
void sr_sql(const char *path, const char *sql);

#endif
