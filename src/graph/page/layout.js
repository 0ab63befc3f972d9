/*
 * Layout: each open module is laid out on its own, its nodes and the modules in it being boxes in layers; a closed module
 * is one box. Inputs stand right above their first use.
 */

function textWidth(text, font) {
  pen.font = font;
  return pen.measureText(text).width;
}

function shorten(text, length) {
  return text.length > length ? text.slice(0, length - 1) + '…' : text;
}

function linesOf(node) {
  const lines = [shorten(node.name, 40)];
  if (node.op !== 'placeholder' && node.op !== 'output') lines.push(shorten(node.target, 44));
  if (node.type !== '') lines.push(shorten(node.type, 44));
  const s = node.stats.find((x) => x.place.startsWith('OUTPUT') && x.count !== undefined);
  if (s) lines.push(`mean ${s.mean}  std ${s.std}`);
  return lines;
}

function nodeBox(index) {
  const node = graph.nodes[index];
  if (!node.box) {
    const lines = linesOf(node);
    const width = Math.max(...lines.map((line, i) => textWidth(line, i === 0 ? FONT : SMALL)));
    node.box = {kind: 'node', index, lines, w: Math.max(60, width + 20), h: 12 + lines.length * 15};
  }
  return node.box;
}

function moduleBox(index) {
  const m = graph.modules[index];
  const lines = [shorten(m.name, 40), shorten(`${m.type.split('.').pop()} (${m.count})`.trim(), 44)];
  const width = Math.max(textWidth(lines[0], FONT), textWidth(lines[1], SMALL));
  return {kind: 'module', index, lines, w: Math.max(90, width + 34), h: 46};
}

/* The child of `module` that holds a node: the node itself, or a module in it. -1: not in it at all. */
function itemIn(module, index) {
  const node = graph.nodes[index];
  let at = node.module;
  if (at === module) return `n${index}`;
  while (at !== 0 && graph.modules[at].parent !== module) at = graph.modules[at].parent;
  return at === 0 ? null : `m${at}`;
}

function memberNodes(module, out) {
  const m = graph.modules[module];
  m.nodes.forEach((i) => out.push(i));
  m.children.forEach((child) => memberNodes(child, out));
  return out;
}

function hidden(index) {
  return !showInputs && isInput(graph.nodes[index]);
}

/* Boxes of a module's own nodes and modules, those opened laid out first. */
function collectItems(module) {
  const m = graph.modules[module];
  const items = new Map();
  m.nodes.filter((i) => !hidden(i)).forEach((i) => items.set(`n${i}`, {...nodeBox(i), first: i, inputs: [], users: []}));
  m.children.forEach((child) => {
    const first = firstNode(child);
    const box = graph.modules[child].open ? layoutModule(child) : moduleBox(child);
    items.set(`m${child}`, {...box, first, inputs: [], users: []});
  });
  return items;
}

/* When a module begins: its first operator; inputs are there before everything. */
function firstNode(module) {
  const m = graph.modules[module];
  const own = m.nodes.find((i) => !isInput(graph.nodes[i]));
  let first = own === undefined ? Infinity : own;
  m.children.forEach((child) => { first = Math.min(first, firstNode(child)); });
  return first === Infinity && m.nodes.length > 0 ? m.nodes[0] : first;
}

/* Edges between the items of a module; what would run against the order of execution is left to the drawing. */
function connect(module, items) {
  const members = memberNodes(module, []);
  const seen = new Set();
  members.forEach((user) => {
    const to = itemIn(module, user);
    if (!items.has(to)) return;
    graph.nodes[user].inputs.forEach((input) => {
      const from = itemIn(module, input);
      const key = `${from} ${to}`;
      if (from === to || !items.has(from) || seen.has(key)) return;
      seen.add(key);
      if (items.get(from).first < items.get(to).first) {
        items.get(from).users.push(items.get(to));
        items.get(to).inputs.push(items.get(from));
      }
    });
  });
}

function assignLayers(list) {
  list.sort((a, b) => a.first - b.first);
  list.forEach((item) => {
    item.layer = item.inputs.reduce((most, input) => Math.max(most, input.layer + 1), 0);
  });
  for (let i = list.length - 1; i >= 0; i--) { // inputs and constants down to their first use
    const item = list[i];
    if (item.inputs.length === 0 && item.users.length > 0) {
      item.layer = Math.max(0, Math.min(...item.users.map((user) => user.layer)) - 1);
    }
  }
  const layers = [];
  list.forEach((item) => { (layers[item.layer] = layers[item.layer] || []).push(item); });
  return layers.filter((layer) => layer !== undefined);
}

const mean = (values) => values.reduce((sum, v) => sum + v, 0) / values.length;

/* Boxes of one layer side by side, each as near to where it wants to be as the others let it. */
function placeLayer(layer, neighbours) {
  layer.forEach((item, i) => {
    const near = item[neighbours].filter((other) => other.cx !== undefined);
    item.want = near.length > 0 ? mean(near.map((other) => other.cx)) : (item.cx === undefined ? i * 1e-3 : item.cx);
  });
  layer.sort((a, b) => a.want - b.want || a.first - b.first);
  let right = -Infinity;
  layer.forEach((item) => {
    item.cx = Math.max(item.want, right + item.w / 2);
    right = item.cx + item.w / 2 + GAP_X;
  });
  const shift = mean(layer.map((item) => item.cx - item.want)); // pushed to the right: half of it back
  layer.forEach((item) => { item.cx -= shift; });
}

/* A layer too wide to look at in several rows below each other. */
function breakLayer(layer) {
  if (layer.length <= ROW) return [layer];
  const middle = mean(layer.map((item) => item.cx));
  const rows = [];
  for (let i = 0; i < layer.length; i += ROW) {
    const row = layer.slice(i, i + ROW);
    let right = middle - (row.reduce((sum, item) => sum + item.w + GAP_X, 0) - GAP_X) / 2;
    row.forEach((item) => {
      item.cx = right + item.w / 2;
      right += item.w + GAP_X;
    });
    rows.push(row);
  }
  return rows;
}

function placeItems(list) {
  const layers = assignLayers(list);
  layers.forEach((layer) => placeLayer(layer, 'inputs'));
  for (let i = 0; i < 2; i++) {
    for (let j = layers.length - 1; j >= 0; j--) placeLayer(layers[j], 'users');
    layers.forEach((layer) => placeLayer(layer, 'inputs'));
  }
  let y = 0;
  layers.flatMap(breakLayer).forEach((layer) => {
    const height = Math.max(...layer.map((item) => item.h));
    layer.forEach((item) => { item.y = y + (height - item.h) / 2; });
    y += height + GAP_Y;
  });
  const left = list.reduce((least, item) => Math.min(least, item.cx - item.w / 2), Infinity);
  list.forEach((item) => { item.x = item.cx - item.w / 2 - left; });
  const width = list.reduce((most, item) => Math.max(most, item.x + item.w), 0);
  return {w: width, h: Math.max(0, y - GAP_Y)};
}

function layoutModule(module) {
  const items = collectItems(module);
  connect(module, items);
  const list = [...items.values()];
  const size = placeItems(list);
  const m = graph.modules[module];
  const title = shorten(m.name + (m.type ? ` : ${m.type.split('.').pop()}` : ''), 60);
  const width = module === 0 ? size.w : Math.max(size.w, textWidth(title, FONT) + 20) + 2 * PAD;
  const top = module === 0 ? 0 : TITLE + PAD;
  const inset = module === 0 ? 0 : (width - size.w) / 2;
  list.forEach((item) => {
    item.x += inset;
    item.y += top;
  });
  return {kind: 'frame', index: module, title, items: list, w: width, h: size.h + top + (module === 0 ? 0 : PAD)};
}

function flatten(item, x, y, depth) {
  const box = {...item, x: x + (item.x || 0), y: y + (item.y || 0), depth};
  if (item.kind !== 'frame') {
    graph.boxes.push(box);
    if (item.kind === 'node') graph.place[item.index] = box;
    else memberNodes(item.index, []).forEach((i) => { graph.place[i] = box; });
    return;
  }
  if (item.index !== 0) graph.frames.push(box);
  item.items.forEach((child) => flatten(child, box.x, box.y, depth + 1));
}

function layout() {
  graph.frames = [];
  graph.boxes = [];
  graph.place = new Array(graph.nodes.length).fill(null);
  flatten(layoutModule(0), 0, 0, 0);
  graph.edges = [];
  const seen = new Set();
  const number = new Map(graph.boxes.map((box, i) => [box, i]));
  graph.nodes.forEach((node, user) => {
    node.inputs.forEach((input) => {
      const from = graph.place[input];
      const to = graph.place[user];
      if (!from || !to || from === to) return;
      const key = number.get(from) * graph.boxes.length + number.get(to);
      if (seen.has(key)) return;
      seen.add(key);
      graph.edges.push([from, to]);
    });
  });
  byId('status').textContent = `${graph.nodes.length} nodes, ${graph.boxes.length} boxes drawn` +
    ` · drag to move, wheel to zoom, click a module to open or close it`;
}
