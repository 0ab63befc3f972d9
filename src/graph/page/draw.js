/* Drawing what is in sight on the canvas. */

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
