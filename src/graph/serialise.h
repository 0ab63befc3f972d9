/*
 * serialise.h - the serialised format of a graph record.
 *
 *   8 bytes  "fxtapgr\n"
 *   u32      version
 *   u32      graph kind
 *   u64      bytes of the body
 *   u64      XXH3-64 of the body
 *   body: u32 strings; each: u32 length, bytes
 *            u32 subgraphs; each: u64 bytes, then a whole record
 *            entries in order of creation, each a tag byte and its fields; the tag END
 *
 * All numbers are little-endian. The tag of a value is its kind; strings are referred to by index from 1 (0: none),
 * values by handle, nodes by index. Entries refer only to earlier ones.
 */
#ifndef FX_GRAPH_SERIALISE_H
#define FX_GRAPH_SERIALISE_H

#define FX_RECORD_MAGIC "fxtapgr\n"
#define FX_RECORD_VERSION 1
#define FX_RECORD_HEAD_BYTES 32

#define FX_RECORD_TAG_NODE 0xF0
#define FX_RECORD_TAG_END 0xFF

#endif
