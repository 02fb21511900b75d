// The replica map: cells of one packed array on a canvas; a newer array draws only the cells that changed.
"use strict";
(() => {
  const NAMES = ["none", "leader", "in sync", "behind", "offline", "being added"];
  const HEAD = 26;
  let map = null, drawn = null, size = 8, columns = 1;

  const canvas = () => document.getElementById("map");
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function palette() {
    return ["--plain-ground", "--cell-leader", "--cell-sync", "--cell-behind", "--cell-offline", "--cell-added"].map(color);
  }

  async function load() {
    const answer = await fetch("/replicas.bin", { cache: "no-store" });
    if (!answer.ok) return;
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const view = new DataView(bytes.buffer);
    const length = view.getUint32(0);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    const next = { brokers: head.brokers, names: head.names, cells: bytes.subarray(4 + length) };
    const fits = map && map.brokers.join() === next.brokers.join() && map.names.length === next.names.length;
    if (!map) size = next.names.length <= 200 ? 16 : next.names.length <= 2000 ? 10 : 6;
    map = next;
    document.getElementById("zoom").value = size;
    if (fits) change(); else whole();
  }

  // Partitions go down, and on in another block of columns when the screen is full.
  function place(index) {
    const rows = Math.ceil(map.names.length / columns);
    const width = map.brokers.length * size + size;
    return [Math.floor(index / rows) * width, HEAD + (index % rows) * size];
  }

  function whole() {
    const target = canvas();
    if (!target || !map) return;
    const room = target.parentElement.clientWidth || 300, block = map.brokers.length * size + size;
    columns = Math.max(1, Math.min(Math.floor(room / block), Math.ceil(map.names.length / 20)));
    const rows = Math.ceil(map.names.length / columns), ratio = devicePixelRatio || 1;
    const width = Math.max(block, columns * block), height = HEAD + rows * size + 4;
    target.width = width * ratio; target.height = height * ratio;
    target.setAttribute("width", target.width); target.setAttribute("height", target.height);
    target.classList.add("ready");
    target.style.setProperty("width", width + "px"); target.style.setProperty("height", height + "px");
    const pen = target.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.fillStyle = color("--soft");
    pen.font = "11px system-ui, sans-serif";
    if (size >= 8) for (let block_ = 0; block_ < columns; block_++)
      map.brokers.forEach((broker, at) => pen.fillText(broker, (block_ * (map.brokers.length + 1) + at) * size, HEAD - 8, size * 1.6));
    const colors = palette();
    for (let index = 0; index < map.cells.length; index++) cell(pen, colors, index);
    drawn = map.cells.slice();
  }

  function cell(pen, colors, index) {
    const state = map.cells[index];
    const width = map.brokers.length;
    const [left, top] = place(Math.floor(index / width));
    const x = left + (index % width) * size, y = top, inner = size - 1;
    pen.clearRect(x, y, inner, inner);
    if (state === 0) return;
    pen.fillStyle = colors[state];
    if (state === 1) pen.fillRect(x, y, inner, inner);
    else if (state === 4) { pen.fillRect(x, y, inner, 2); pen.fillRect(x, y + inner - 2, inner, 2); pen.fillRect(x, y, 2, inner); pen.fillRect(x + inner - 2, y, 2, inner); }
    else pen.fillRect(x + 1, y + 1, inner - 2, inner - 2);
  }

  function change() {
    const pen = canvas().getContext("2d"), colors = palette();
    for (let index = 0; index < map.cells.length; index++)
      if (drawn[index] !== map.cells[index]) { drawn[index] = map.cells[index]; cell(pen, colors, index); }
  }

  function under(event) {
    const box = canvas().getBoundingClientRect(), block = (map.brokers.length + 1) * size;
    const x = event.clientX - box.left, y = event.clientY - box.top - HEAD;
    const rows = Math.ceil(map.names.length / columns), column = Math.floor(x / block);
    const row = Math.floor(y / size), broker = Math.floor((x % block) / size);
    const index = column * rows + row;
    if (y < 0 || row >= rows || index >= map.names.length || broker >= map.brokers.length) return null;
    return { name: map.names[index], broker: map.brokers[broker], state: map.cells[index * map.brokers.length + broker] };
  }

  canvas().addEventListener("mousemove", (event) => {
    const found = map && under(event);
    if (found) document.getElementById("pointed").textContent = `${found.name} on broker ${found.broker}: ${NAMES[found.state]}`;
  });
  canvas().addEventListener("click", (event) => {
    const found = map && under(event);
    if (!found) return;
    const dash = found.name.lastIndexOf("-");
    location.href = `/partitions/${found.name.slice(0, dash)}/${found.name.slice(dash + 1)}`;
  });
  document.getElementById("zoom").addEventListener("input", (event) => { size = Number(event.target.value); whole(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", whole);
  document.body.addEventListener("picture", load);
  addEventListener("resize", whole);
  load();
})();
