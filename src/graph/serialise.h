/*
 * serialise.h - the form of a graph record in bytes, shared by the writer and the reader of it.
 *
 *   8 bytes  "fxtapgr\n"
 *   u32      version
 *   u32      graph kind
 *   u64      bytes of the body
 *   u64      XXH3-64 of the body
 *   body:    u32 strings; each: u32 bytes, then they
 *            u32 subgraphs; each: u64 bytes, then a whole record
 *            entries in the order in which they were added, each a byte of tag and its fields; the tag END
 *
 * All numbers little-endian. An entry of a value has the value's kind as its tag; strings are named by their number
 * from 1 (0: none), values by their handle, nodes by their number. Every entry names only what came before it.
 */
#ifndef FX_GRAPH_SERIALISE_H
#define FX_GRAPH_SERIALISE_H

#define FX_RECORD_MAGIC "fxtapgr\n"
#define FX_RECORD_VERSION 1
#define FX_RECORD_HEAD_BYTES 32

#define FX_RECORD_TAG_NODE 0xF0
#define FX_RECORD_TAG_END 0xFF

#endif
