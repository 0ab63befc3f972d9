/* The panel beside the picture: a node in full, and what a search found. */

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
