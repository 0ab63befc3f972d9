#include "support_reader.h"

#include "support_cmocka.h"

#include <sqlite3.h>

fxtap_reader *sr_open(const char *path)
{
    fxtap_reader *reader = NULL;
    assert_int_equal(fxtap_reader_open(path, &reader), FXTAP_OK);
    return reader;
}

fxtap_tensor_query sr_query_all(void)
{
    return (fxtap_tensor_query){
        .struct_size = sizeof(fxtap_tensor_query), .rank = -1, .graph = -1, .step = -1, .io = -1};
}

fxtap_tensor_list *sr_list(fxtap_reader *reader, const fxtap_tensor_query *query)
{
    fxtap_tensor_query all = sr_query_all();
    fxtap_tensor_list *list = NULL;
    assert_int_equal(fxtap_reader_tensors(reader, query != NULL ? query : &all, &list), FXTAP_OK);
    return list;
}

size_t sr_count(fxtap_reader *reader, const fxtap_tensor_query *query)
{
    fxtap_tensor_list *list = sr_list(reader, query);
    size_t count = fxtap_tensor_list_count(list);
    fxtap_tensor_list_free(list);
    return count;
}

void sr_sql(const char *path, const char *sql)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    char *message = NULL;
    int code = sqlite3_exec(database, sql, NULL, NULL, &message);
    if (code != SQLITE_OK) {
        fail_msg("%s", message);
    }
    sqlite3_close(database);
}
