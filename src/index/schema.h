/*
 * schema.h - the tables of the index (fxtap.db), shared by the writer and the reader.
 *
 * Each rank has one file, written by any number of runs (processes). `value` has what all names of a value share
 * (dtype, shape, hash, statistics); `tensor` is narrow, with one row for each name and step. The view `tensors` joins
 * all of it for interactive queries. Times are in microseconds since 1970, UTC.
 */
#ifndef FX_INDEX_SCHEMA_H
#define FX_INDEX_SCHEMA_H

#define FX_INDEX_FILE "fxtap.db"
#define FX_INDEX_APPLICATION_ID 0x66787470 /* "fxtp" */
#define FX_INDEX_VERSION 1                 /* PRAGMA user_version; higher versions are rejected */

#define FX_INDEX_TABLES                                                                                                \
    "CREATE TABLE run(id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, host TEXT NOT NULL, started_us INTEGER NOT NULL,"  \
    " ended_us INTEGER, world_size INTEGER NOT NULL, rank INTEGER NOT NULL, type TEXT NOT NULL,"                       \
    " fxtap TEXT NOT NULL, versions TEXT NOT NULL, command TEXT NOT NULL);"                                            \
    "CREATE TABLE graph(id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES run(id), graph INTEGER NOT NULL,"   \
    " kind TEXT NOT NULL, strict_key BLOB NOT NULL, structural_key BLOB NOT NULL, occurrence INTEGER NOT NULL,"        \
    " record BLOB NOT NULL, UNIQUE(run_id, graph));"                                                                   \
    "CREATE TABLE node(id INTEGER PRIMARY KEY, graph_id INTEGER NOT NULL REFERENCES graph(id),"                        \
    " position INTEGER NOT NULL, name TEXT NOT NULL, target TEXT NOT NULL, stem TEXT NOT NULL,"                        \
    " source_file TEXT NOT NULL, source_line INTEGER NOT NULL, source_function TEXT NOT NULL,"                         \
    " source_code TEXT NOT NULL, stack TEXT NOT NULL, module_path TEXT NOT NULL, module_type TEXT NOT NULL,"           \
    " flags INTEGER NOT NULL, skipped TEXT);"                                                                          \
    "CREATE TABLE slot(id INTEGER PRIMARY KEY, node_id INTEGER NOT NULL REFERENCES node(id), io INTEGER NOT NULL,"     \
    " position TEXT NOT NULL, arg_name TEXT NOT NULL, prefix TEXT NOT NULL);"                                          \
    "CREATE TABLE step(id INTEGER PRIMARY KEY, graph_id INTEGER NOT NULL REFERENCES graph(id), step INTEGER NOT NULL," \
    " call INTEGER NOT NULL, state TEXT NOT NULL, folder TEXT NOT NULL, partial TEXT NOT NULL,"                        \
    " started_us INTEGER NOT NULL, ended_us INTEGER NOT NULL, reason TEXT NOT NULL);"                                  \
    "CREATE TABLE value(id INTEGER PRIMARY KEY, dtype TEXT NOT NULL, descr TEXT NOT NULL, fortran INTEGER NOT NULL,"   \
    " shape TEXT NOT NULL, strides TEXT NOT NULL, layout TEXT NOT NULL, device TEXT NOT NULL, bytes INTEGER NOT NULL," \
    " hash BLOB NOT NULL, count INTEGER NOT NULL, finite_count INTEGER NOT NULL, nan_count INTEGER NOT NULL,"          \
    " pos_inf_count INTEGER NOT NULL, neg_inf_count INTEGER NOT NULL, zero_count INTEGER NOT NULL,"                    \
    " subnormal_count INTEGER NOT NULL, min, max, abs_max REAL, mean REAL, mean_imag REAL, std REAL, rms REAL,"        \
    " l2_norm REAL);"                                                                                                  \
    "CREATE TABLE tensor(step_id INTEGER NOT NULL, slot_id INTEGER NOT NULL, stamp_us INTEGER NOT NULL,"               \
    " value_id INTEGER, skipped TEXT, PRIMARY KEY(step_id, slot_id, stamp_us)) WITHOUT ROWID;"

#define FX_INDEX_VIEW                                                                                                  \
    "CREATE VIEW tensors AS SELECT g.run_id AS run, g.graph, st.step, st.state, st.call, n.position AS node_order,"    \
    " n.name AS node, n.target, CASE s.io WHEN 0 THEN 'INPUT' WHEN 1 THEN 'OUTPUT' ELSE 'INOUT' END AS io,"            \
    " s.position, s.arg_name, v.dtype, v.shape, v.strides, v.layout, v.device, v.bytes, lower(hex(v.hash)) AS hash,"   \
    " v.count, v.nan_count, v.pos_inf_count, v.neg_inf_count, v.zero_count, v.subnormal_count, v.min, v.max,"          \
    " v.abs_max, v.mean, v.std, v.rms, v.l2_norm, t.skipped, n.source_file, n.source_line, n.module_path, t.stamp_us," \
    " CASE WHEN t.value_id IS NULL OR st.folder = '' THEN NULL ELSE st.folder || '/' || s.prefix ||"                   \
    " strftime('%Y%m%d%H%M%S', t.stamp_us / 1000000, 'unixepoch') || printf('%06d', t.stamp_us % 1000000) || '.npy'"   \
    " END AS file FROM tensor t JOIN step st ON st.id = t.step_id JOIN slot s ON s.id = t.slot_id"                     \
    " JOIN node n ON n.id = s.node_id JOIN graph g ON g.id = n.graph_id LEFT JOIN value v ON v.id = t.value_id;"

#define FX_INDEX_SCHEMA FX_INDEX_TABLES FX_INDEX_VIEW

/* Created with their first row. Most dumps have no such rows; readers accept an index without these tables. */
#define FX_INDEX_FINDING                                                                                               \
    "CREATE TABLE IF NOT EXISTS finding(id INTEGER PRIMARY KEY, step_id INTEGER NOT NULL REFERENCES step(id),"         \
    " node_id INTEGER NOT NULL REFERENCES node(id), stamp_us INTEGER NOT NULL, kind INTEGER NOT NULL,"                 \
    " position TEXT NOT NULL, arg_name TEXT NOT NULL, count INTEGER NOT NULL, total INTEGER NOT NULL)"
#define FX_INDEX_UNDEFINED                                                                                             \
    "CREATE TABLE IF NOT EXISTS undefined(value_id INTEGER PRIMARY KEY REFERENCES value(id), count INTEGER NOT NULL,"  \
    " ranges BLOB NOT NULL, hash BLOB NOT NULL)"

/*
 * Columns:
 *  graph.kind      "inference", "forward", "backward", "subgraph"
 *  graph.record    fxtap_graph_serialise()
 *  *.strict_key, structural_key, hash    16 bytes, big-endian
 *  node.stem       NODE-TARGET as in file names: "add_1-aten.add.Tensor", shortened or escaped if necessary
 *  node.skipped    NULL if the node is dumped, else the reason why it is not
 *  slot.position   unabridged: "0", "1.2", "alpha"
 *  slot.prefix     a file's name up to its time stamp: "add_1-aten.add.Tensor.INPUT.0."; differs from
 *                  stem.IO.position. only if that would be too long
 *  step.state      "whole", "failed"
 *  step.folder     relative to the rank's folder, as "graph_1/0"; "" if the step has no files (statistics only)
 *  step.partial    the folder that the files were written into, as "graph_1/.12-1.partial" (call and run number), or
 *                  "". Rows are committed just before it is renamed, so while this folder exists the step is partial
 *                  (killed, or just being renamed): its files are in this folder or already in step.folder.
 *  step.call       number of the call in the process, from 0
 *  value.shape     of the saved array: "2,3", "" for 0-d; value.strides: the original, "3,1", "" if not strided
 *  value.min, max  INTEGER for integers and bool (TEXT above 2^63-1), REAL for floats (SQLite's 9e999 for infinity),
 *                  NULL if there is no range
 *  value.mean ...  NULL if it is not a number (no finite element)
 *  finding.kind    fxtap_finding_kind; position and arg_name identify the argument
 *  undefined       values with undefined elements: how many, which (tensor/undefined.h), and the hash of the bytes of
 *                  the others. value.count and all statistics are of the others; value.hash is of all bytes
 *  tensor.value_id NULL if nothing was saved; then `skipped` has the reason
 *  a tensor's file: step.folder/{slot.prefix}{YYYYMMDDHHMMSSffffff of stamp_us}.npy
 */

#endif
