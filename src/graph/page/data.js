/*
 * The picture of a graph: its data and what is shown of it. The files of this folder are parts of one function, in the
 * order data, layout, draw, view, panel, main.
 *
 * Data comes as JSON in the page; every text of it is put in by textContent or drawn on the canvas, never parsed as HTML.
 */

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId('data').textContent);
const canvas = byId('picture');
const pen = canvas.getContext('2d');
const FONT = '12px system-ui, sans-serif';
const SMALL = '11px system-ui, sans-serif';
const GAP_X = 18;
const GAP_Y = 34;
const PAD = 14;
const TITLE = 22;
const ROW = 14;

let graph = null; // the one shown, prepared
let selected = null; // an index of graph.nodes
let view = {x: 0, y: 0, scale: 1};
let colours = {};
let showInputs = true;

function isInput(node) {
  return node.op === 'placeholder' || node.op === 'get_attr';
}

/* The innermost module that two modules lie in. Parents have smaller numbers. */
function common(modules, a, b) {
  while (a !== b) {
    if (a > b) a = modules[a].parent;
    else b = modules[b].parent;
  }
  return a;
}

/* Statistics come as rows; without a count there are none, only what was dumped. */
function readStat([place, dtype, shape, file, count, nan, inf, zero, min, max, mean, std, rms, absMax]) {
  return {place, dtype, shape, file, count, nan, inf, zero, min, max, mean, std, rms, absMax};
}

/*
 * Opens modules level by level while the picture stays small; one that holds nearly everything is opened in any case,
 * since closed it would show nothing.
 */
function openFirst(modules) {
  let boxes = 1;
  let level = [modules[0]];
  while (level.length > 0) {
    const more = level.reduce((sum, m) => sum + m.children.length + m.nodes.length - 1, 0);
    if (boxes + more > 120) level = level.filter((m) => m.count > 0.9 * modules[0].count);
    else boxes += more;
    level.forEach((m) => { m.open = true; });
    level = level.flatMap((m) => m.children.map((child) => modules[child]));
  }
}

function prepare(source) {
  const modules = source.modules.map((m) => ({...m, children: [], nodes: [], open: false, count: 0}));
  modules.forEach((m, i) => {
    if (i > 0) modules[m.parent].children.push(i);
  });
  const nodes = source.nodes.map((n) => (
    {...n, inputs: [...new Set(n.inputs)], stats: n.stats.map(readStat), users: [], box: null}));
  nodes.forEach((n, i) => n.inputs.forEach((input) => nodes[input].users.push(i)));
  nodes.forEach((n, i) => {
    if (isInput(n) && n.module === 0 && n.users.length > 0) { // a weight belongs to the module that uses it
      n.module = n.users.map((user) => nodes[user].module).reduce((a, b) => common(modules, a, b));
    }
    modules[n.module].nodes.push(i);
  });
  for (let i = modules.length - 1; i >= 0; i--) {
    modules[i].count += modules[i].nodes.length;
    if (i > 0) modules[modules[i].parent].count += modules[i].count;
  }
  openFirst(modules);
  return {name: source.name, modules, nodes, frames: [], boxes: []};
}

const graphs = data.graphs.map(prepare);
const isBad = (node) => node.stats.some((s) => s.nan > 0 || s.inf > 0);
