'use strict';
/*
 * The picture of a graph. Data comes as JSON in the page; every text of it is put in by textContent or drawn on the
 * canvas, never parsed as HTML.
 *
 * Layout: each open module is laid out on its own, its nodes and the modules in it being boxes in layers; a closed
 * module is one box. Inputs stand right above their first use.
 */
(() => {
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

  // ---- preparation ----

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
    modules[0].open = true;
    const result = {name: source.name, modules, nodes, frames: [], boxes: []};
    if (nodes.length <= 150) modules.forEach((m) => { m.open = true; });
    return result;
  }

  const graphs = data.graphs.map(prepare);
  const isBad = (node) => node.stats.some((s) => s.nan > 0 || s.inf > 0);

  // ---- layout ----

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

  // ---- drawing ----

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    ['back', 'front', 'dim', 'line', 'card', 'edge', 'edge-on', 'module', 'module-line', 'closed', 'input', 'constant',
      'output', 'operator', 'bad', 'on'].forEach((name) => { colours[name] = style.getPropertyValue(`--${name}`).trim(); });
  }

  function fillOf(box) {
    if (box.kind === 'module') return colours.closed;
    const node = graph.nodes[box.index];
    if (isBad(node)) return colours.bad;
    return colours[{placeholder: 'input', get_attr: 'constant', output: 'output'}[node.op] || 'operator'];
  }

  function visible(box) {
    return box.x * view.scale + view.x < canvas.clientWidth && (box.x + box.w) * view.scale + view.x > 0 &&
      box.y * view.scale + view.y < canvas.clientHeight && (box.y + box.h) * view.scale + view.y > 0;
  }

  function roundRect(box, radius) {
    pen.beginPath();
    pen.roundRect(box.x, box.y, box.w, box.h, radius);
  }

  function drawFrame(box) {
    roundRect(box, 8);
    pen.fillStyle = colours.module;
    pen.globalAlpha = 0.75;
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = colours['module-line'];
    pen.lineWidth = 1;
    pen.stroke();
    if (view.scale > 0.25) {
      pen.fillStyle = colours.dim;
      pen.font = FONT;
      pen.fillText(`▾ ${box.title}`, box.x + 10, box.y + 16);
    }
  }

  function drawBox(box) {
    const on = box.kind === 'node' ? box.index === selected : selected !== null && graph.place[selected] === box;
    roundRect(box, 6);
    pen.fillStyle = fillOf(box);
    pen.fill();
    pen.strokeStyle = on ? colours.on : colours['module-line'];
    pen.lineWidth = on ? 3 : 1;
    pen.stroke();
    if (view.scale < 0.3) return;
    box.lines.forEach((line, i) => {
      pen.font = i === 0 ? FONT : SMALL;
      pen.fillStyle = i === 0 ? colours.front : colours.dim;
      pen.fillText(i === 0 && box.kind === 'module' ? `▸ ${line}` : line, box.x + 10, box.y + 18 + i * 15);
    });
  }

  function drawEdge(from, to, on) {
    const x1 = from.x + from.w / 2;
    const y1 = from.y + from.h;
    const x2 = to.x + to.w / 2;
    const y2 = to.y;
    const bend = Math.max(16, Math.min(120, Math.abs(y2 - y1) / 2));
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
    pen.strokeStyle = on ? colours['edge-on'] : colours.edge;
    pen.lineWidth = on ? 2 : 1;
    pen.stroke();
    if (view.scale > 0.3) {
      pen.beginPath();
      pen.moveTo(x2 - 4, y2 - 6);
      pen.lineTo(x2, y2);
      pen.lineTo(x2 + 4, y2 - 6);
      pen.stroke();
    }
  }

  function edgeVisible(from, to) {
    const x = Math.min(from.x, to.x);
    const y = Math.min(from.y, to.y);
    return visible({x, y, w: Math.max(from.x + from.w, to.x + to.w) - x, h: Math.max(from.y + from.h, to.y + to.h) - y});
  }

  let pending = false;
  function draw() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      drawNow();
    });
  }

  function drawNow() {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = colours.back;
    pen.fillRect(0, 0, width, height);
    pen.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, view.x * ratio, view.y * ratio);
    graph.frames.filter(visible).forEach(drawFrame);
    const mark = selected === null ? null : graph.place[selected];
    const lit = [];
    graph.edges.forEach(([from, to]) => {
      if (!edgeVisible(from, to)) return;
      if (mark !== null && (from === mark || to === mark)) lit.push([from, to]);
      else drawEdge(from, to, false);
    });
    lit.forEach(([from, to]) => drawEdge(from, to, true));
    graph.boxes.filter(visible).forEach(drawBox);
  }

  // ---- moving ----

  function fit() {
    let right = 1;
    let bottom = 1;
    graph.boxes.concat(graph.frames).forEach((box) => {
      right = Math.max(right, box.x + box.w);
      bottom = Math.max(bottom, box.y + box.h);
    });
    const scale = Math.min(1.2, (canvas.clientWidth - 40) / right, (canvas.clientHeight - 40) / bottom);
    view.scale = Math.max(scale, 0.02);
    view.x = (canvas.clientWidth - right * view.scale) / 2;
    view.y = Math.max(20, (canvas.clientHeight - bottom * view.scale) / 2);
    draw();
  }

  /* All of it where that can be read, else its beginning. */
  function begin() {
    fit();
    if (view.scale >= 0.35 || graph.boxes.length === 0) return;
    const first = graph.boxes.reduce((top, box) => (box.y < top.y ? box : top));
    view.scale = 0.6;
    view.x = canvas.clientWidth / 2 - (first.x + first.w / 2) * view.scale;
    view.y = 30 - first.y * view.scale;
    draw();
  }

  function zoom(factor, x, y) {
    const scale = Math.min(4, Math.max(0.01, view.scale * factor));
    view.x = x - (x - view.x) * scale / view.scale;
    view.y = y - (y - view.y) * scale / view.scale;
    view.scale = scale;
    draw();
  }

  function centre(box) {
    view.scale = Math.max(view.scale, 0.8);
    view.x = canvas.clientWidth / 2 - (box.x + box.w / 2) * view.scale;
    view.y = canvas.clientHeight / 2 - (box.y + box.h / 2) * view.scale;
  }

  function boxAt(x, y) {
    const px = (x - view.x) / view.scale;
    const py = (y - view.y) / view.scale;
    const inside = (box) => px >= box.x && px <= box.x + box.w && py >= box.y && py <= box.y + box.h;
    const box = graph.boxes.find(inside);
    if (box) return box;
    const frames = graph.frames.filter((frame) => inside(frame) && py <= frame.y + TITLE);
    return frames.sort((a, b) => b.depth - a.depth)[0] || null;
  }

  /* Opens or closes a module and keeps the place under the pointer where it was. */
  function toggle(box, x, y) {
    graph.modules[box.index].open = !graph.modules[box.index].open;
    layout();
    const place = graph.frames.concat(graph.boxes).find((b) => b.kind !== 'node' && b.index === box.index);
    if (place) {
      view.x = x - (place.x + Math.min(40, place.w / 2)) * view.scale;
      view.y = y - (place.y + 12) * view.scale;
    }
    draw();
  }

  function select(index, move) {
    selected = index;
    if (index !== null) {
      for (let m = graph.nodes[index].module; m !== 0; m = graph.modules[m].parent) {
        if (move && !graph.modules[m].open) graph.modules[m].open = true;
      }
      if (hidden(index)) byId('inputs').click();
      if (move) {
        layout();
        centre(graph.place[index]);
      }
    }
    showDetails();
    draw();
  }

  // ---- the panel ----

  function add(parent, tag, text, className) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    parent.appendChild(element);
    return element;
  }

  function addLinks(panel, title, indices) {
    if (indices.length === 0) return;
    add(panel, 'h3', title);
    const list = add(panel, 'ul');
    indices.slice(0, 500).forEach((index) => {
      const node = graph.nodes[index];
      const button = add(add(list, 'li'), 'button', node.name);
      button.type = 'button';
      add(button, 'small', node.op === 'call_function' ? node.target : node.op);
      button.addEventListener('click', () => select(index, true));
    });
    if (indices.length > 500) add(panel, 'p', `and ${indices.length - 500} more`);
  }

  /* What it gave first, then what it took. */
  function addStats(panel, stats) {
    const rank = (s) => (s.place.startsWith('INPUT') ? 1 : 0);
    [...stats].sort((a, b) => rank(a) - rank(b)).forEach((s) => {
      add(panel, 'h3', `${s.place}  ${s.dtype} [${s.shape}]`);
      const table = add(panel, 'table');
      const row = (name, value, bad) => {
        const line = add(table, 'tr');
        add(line, 'th', name);
        add(line, 'td', value, bad ? 'bad' : undefined);
      };
      if (s.count !== undefined) {
        [['min', s.min], ['max', s.max], ['mean', s.mean], ['std', s.std], ['rms', s.rms], ['abs max', s.absMax]]
          .forEach(([name, value]) => { if (value !== null) row(name, value); });
        row('elements', `${s.count}, ${s.zero} of them zero`);
        if (s.nan > 0) row('NaN', String(s.nan), true);
        if (s.inf > 0) row('Inf', String(s.inf), true);
      }
      if (s.file) row('file', s.file);
    });
  }

  function showDetails() {
    const panel = byId('panel');
    panel.replaceChildren();
    if (selected === null) {
      add(panel, 'p', 'Click a node to see where it comes from, what it takes and what it gives.');
      return;
    }
    const node = graph.nodes[selected];
    add(panel, 'h2', node.name);
    add(panel, 'p', node.op === 'call_function' ? node.target : `${node.op} ${node.target}`);
    if (node.type) add(panel, 'p', `gives ${node.type}`);
    if (node.args) {
      add(panel, 'h3', 'arguments');
      add(panel, 'pre', node.args);
    }
    if (node.source) {
      add(panel, 'h3', `${node.source.file}:${node.source.line} in ${node.source.function}`);
      if (node.source.code) add(panel, 'pre', node.source.code);
    }
    const m = graph.modules[node.module];
    if (node.module !== 0) {
      add(panel, 'h3', 'module');
      add(panel, 'p', m.path + (m.type ? ` : ${m.type}` : ''));
    }
    if (node.flags) add(panel, 'p', node.flags);
    node.graphs.forEach((index) => {
      const at = graphs.findIndex((g) => g.name === `${graph.name}.${index}`);
      const button = add(panel, 'button', `open subgraph ${index}`);
      button.type = 'button';
      button.addEventListener('click', () => show(at));
    });
    addStats(panel, node.stats);
    addLinks(panel, 'inputs', node.inputs);
    addLinks(panel, 'used by', node.users);
  }

  function search(text) {
    const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
    if (words.length === 0) {
      showDetails();
      return;
    }
    const found = [];
    graph.nodes.forEach((node, index) => {
      const source = node.source ? `${node.source.file}:${node.source.line} ${node.source.code}` : '';
      const all = `${node.name} ${node.target} ${graph.modules[node.module].path} ${node.type} ${source}`.toLowerCase();
      if (words.every((word) => all.includes(word))) found.push(index);
    });
    const panel = byId('panel');
    panel.replaceChildren();
    add(panel, 'p', `${found.length} of ${graph.nodes.length} nodes`);
    addLinks(panel, 'found', found);
    return found;
  }

  // ---- beginning ----

  function show(index) {
    graph = graphs[index];
    selected = null;
    byId('which').value = String(index);
    layout();
    showDetails();
    begin();
  }

  function setAll(open) {
    graph.modules.forEach((m, i) => { if (i > 0) m.open = open; });
    layout();
    begin();
  }

  function setTheme(dark) {
    document.documentElement.classList.toggle('dark', dark);
    readColours();
    if (graph) draw();
  }

  function pointer() {
    let last = null;
    let moved = 0;
    canvas.addEventListener('pointerdown', (event) => {
      last = event;
      moved = 0;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!last) return;
      moved += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
      if (moved > 4) {
        canvas.classList.add('moving');
        view.x += event.clientX - last.clientX;
        view.y += event.clientY - last.clientY;
        draw();
      }
      last = event;
    });
    canvas.addEventListener('pointerup', (event) => {
      canvas.classList.remove('moving');
      if (last && moved <= 4) {
        const box = boxAt(event.offsetX, event.offsetY);
        if (box && box.kind !== 'node') toggle(box, event.offsetX, event.offsetY);
        else select(box ? box.index : null, false);
      }
      last = null;
    });
    canvas.addEventListener('pointercancel', () => { last = null; });
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.offsetX, event.offsetY);
    }, {passive: false});
  }

  function keyboard() {
    canvas.addEventListener('keydown', (event) => {
      const step = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]}[event.key];
      if (step) {
        view.x += step[0];
        view.y += step[1];
        draw();
      } else if (event.key === '+' || event.key === '-') {
        zoom(event.key === '+' ? 1.25 : 0.8, canvas.clientWidth / 2, canvas.clientHeight / 2);
      } else if (event.key === 'f') {
        fit();
      } else if (event.key === '/') {
        byId('search').focus();
      } else {
        return;
      }
      event.preventDefault();
    });
  }

  byId('title').textContent = data.title || 'graph';
  document.title = `${data.title || 'graph'} - fxtap`;
  graphs.forEach((g, i) => { add(byId('which'), 'option', i === 0 ? 'whole' : `subgraph ${g.name}`).value = String(i); });
  byId('which-label').hidden = graphs.length < 2;
  byId('which').addEventListener('change', (event) => show(Number(event.target.value)));
  byId('search').addEventListener('input', (event) => search(event.target.value));
  byId('search').addEventListener('keydown', (event) => {
    if (event.key === 'Enter') {
      const found = search(event.target.value);
      if (found && found.length > 0) select(found[0], true);
    }
  });
  byId('inputs').addEventListener('change', (event) => {
    showInputs = event.target.checked;
    if (selected !== null && hidden(selected)) selected = null;
    layout();
    draw();
  });
  byId('expand').addEventListener('click', () => setAll(true));
  byId('collapse').addEventListener('click', () => setAll(false));
  byId('fit').addEventListener('click', fit);
  byId('theme').addEventListener('click', () => setTheme(!document.documentElement.classList.contains('dark')));
  window.addEventListener('resize', draw);
  pointer();
  keyboard();
  setTheme(window.matchMedia('(prefers-color-scheme: dark)').matches);
  show(0);
})();
