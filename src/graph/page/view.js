/* Moving about: what is in sight, what is open, what is selected. */

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
  view.scale = 0.8;
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
