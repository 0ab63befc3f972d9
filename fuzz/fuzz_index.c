/* fuzz_index.c - opens, lists and checks an index of arbitrary bytes; no path in it may leave the dump. */
#include "index_use.h"

static index_folder folder;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fxtap_reader *reader = NULL;
    if (folder.root[0] == '\0') {
        make_index_folder(&folder);
    }
    write_index(&folder, data, size);
    if (fxtap_reader_open(folder.root, &reader) == FXTAP_OK) {
        use_reader(reader, &folder);
        fxtap_reader_close(reader);
    }
    return 0;
}
