/* Buttons, pointer, keys; and the beginning. */

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
